//! Reads bytes as a connection of the Agent Client Protocol.
#![no_main]

use steno_adapters::acp;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(acp::connection, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
