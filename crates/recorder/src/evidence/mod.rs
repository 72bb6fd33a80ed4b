//! From an event back to the bytes it was made from: reads single records, or checks a whole store.

mod check;
mod find;
mod record_time;
mod unpacked;

pub use check::{EvidenceCheck, EvidenceHolder, EvidenceReport, WrongEvidence};
pub use unpacked::{EvidenceError, EvidenceReader, read_unpacked};
