//! Reads bytes as a session file of Copilot CLI.
#![no_main]

use steno_adapters::copilot;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(copilot::events, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
