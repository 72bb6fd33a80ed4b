//! Reads bytes as `stream-json` output of Claude Code, or both directions of its control protocol.
#![no_main]

use steno_adapters::claude;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(claude::stream, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
