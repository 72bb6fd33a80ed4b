//! Reads bytes as output of `codex exec --json`.
#![no_main]

use steno_adapters::codex;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(codex::exec, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
