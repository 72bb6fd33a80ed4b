//! From an event back to the bytes it was made from: reads single records, or checks a whole store.

mod check;
mod find;
mod reader;
mod record_time;

pub use check::{EvidenceCheck, EvidenceHolder, EvidenceReport, WrongEvidence};
pub use reader::EvidenceReader;
