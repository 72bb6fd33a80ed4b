//! The limits of a line.

/// How deep the value of one field may nest.
///
/// With the envelope around it a line stays below 128 levels, which `serde_json`, jq and Python all read.
pub const DEPTH_MAX: usize = 125;

/// How many bytes one line may have, its newline included.
///
/// Agents write lines of tens of megabytes (images in base64); a reader has to hold one line in memory.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
