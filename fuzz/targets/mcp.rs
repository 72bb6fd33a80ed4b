//! Reads bytes as a connection to an MCP server.
#![no_main]

use steno_adapters::mcp;

libfuzzer_sys::fuzz_target!(|input: &[u8]| steno_fuzz::check(mcp::connection, input));

libfuzzer_sys::fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    steno_fuzz::mutate(data, size, max_size, seed)
});
