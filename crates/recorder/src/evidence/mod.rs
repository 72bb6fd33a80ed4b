//! From an event back to the bytes it was made from: read one by one, or checked for all of a store.

mod check;
mod find;
mod record_time;
mod unpacked;

pub use check::{EvidenceCheck, EvidenceHolder, EvidenceReport, WrongEvidence};
pub use unpacked::{EvidenceError, EvidenceReader, read_unpacked};
