//! Counts how much of a source was understood.

use std::collections::BTreeMap;

use super::RecordOutcome;

/// How much of a source was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// Records that were read.
    pub records: u64,
    /// Of these, the ones without information about the work, by the adapter's list.
    pub bookkeeping: u64,
    /// Of these, the ones of unknown types, by type.
    pub unknown: BTreeMap<String, u64>,
    /// Of these, the ones whose bytes had to be changed to read them.
    pub repaired: u64,
    /// Pieces of the source that cannot be read.
    pub unreadable: u64,
    /// The bytes of a last line that has no newline and is not a whole record.
    pub torn_bytes: u64,
    /// Records that were read and then removed by a rewrite of the source.
    pub vanished: u64,
}

impl Completeness {
    pub(super) fn count(&mut self, read: RecordOutcome) {
        match read {
            RecordOutcome::Understood | RecordOutcome::Waiting => {}
            RecordOutcome::Bookkeeping => self.bookkeeping += 1,
            RecordOutcome::Unknown(name) => *self.unknown.entry(name).or_default() += 1,
        }
    }
}
