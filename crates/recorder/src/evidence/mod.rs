//! From an event back to the bytes it was made from: read one by one.

mod unpacked;

pub use unpacked::{EvidenceReader, ReadError, read_unpacked};
