//! Reads bytes as what `opencode run --format json` prints.
#![no_main]

use steno_adapters::opencode;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(opencode::stream, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
