//! Reads bytes as a recording of HTTP exchanges, or as bodies.
#![no_main]

use steno_adapters::http;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(http::recording, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
