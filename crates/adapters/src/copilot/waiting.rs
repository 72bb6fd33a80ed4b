//! Records that wait until the session is named: in the output only the last line names it.

use crate::emit::{Emit, PendingRecord};

/// How many bytes wait at most; with the next record the run begins without a session.
pub(super) const WAITING_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The waiting records, in order.
#[derive(Default)]
pub(super) struct WaitingRecords {
    records: Vec<WaitingRecord>,
    bytes: usize,
}

/// A waiting record, or a piece that cannot be read, and why.
pub(super) struct WaitingRecord {
    pub(super) held: PendingRecord,
    pub(super) unreadable: Option<Box<str>>,
}

impl WaitingRecords {
    /// Adds a record; false if no more may wait after it.
    pub(super) fn keep(&mut self, unreadable: Option<&str>, emit: &Emit<'_>) -> bool {
        /// What a record costs besides its text.
        const RECORD_BYTES: usize = 256;
        self.records.push(WaitingRecord { held: emit.hold(), unreadable: unreadable.map(Box::from) });
        self.bytes += emit.text().len() + RECORD_BYTES;
        self.bytes < WAITING_BYTES_MAX
    }

    /// Removes and returns everything that waits.
    pub(super) fn take(&mut self) -> Vec<WaitingRecord> {
        self.bytes = 0;
        std::mem::take(&mut self.records)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }
}
