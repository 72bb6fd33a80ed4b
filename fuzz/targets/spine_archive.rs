//! Reads bytes as a tar file with a bundle in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check_tar(input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
