//! Records that wait until their session is known.

use crate::emit::{Emit, PendingRecord};

/// The most records that wait for their session; after that the source gets a derived id.
pub(crate) const WAITING_LEN_MAX: usize = 1024;

/// The waiting records, in order.
#[derive(Default)]
pub(crate) struct PendingRecords(Vec<PendingItem>);

/// A waiting record, or an unreadable piece.
pub(crate) struct PendingItem {
    pub(crate) record: PendingRecord,
    pub(crate) what: PendingKind,
}

/// The kind of a waiting item.
pub(crate) enum PendingKind {
    /// A record, with its direction.
    Record(steno_model::Lane),
    /// An unreadable piece, and why.
    Unreadable(Box<str>),
}

impl PendingRecords {
    /// Adds a record; false if no more may wait after it.
    pub(crate) fn keep(&mut self, what: PendingKind, emit: &Emit<'_>) -> bool {
        self.0.push(PendingItem { record: emit.hold(), what });
        self.0.len() < WAITING_LEN_MAX
    }

    /// Removes and returns everything that waits.
    pub(crate) fn take(&mut self) -> Vec<PendingItem> {
        std::mem::take(&mut self.0)
    }

    /// Does the same, and gives the records before the first time the first time that waits.
    pub(crate) fn take_from_first_time(&mut self) -> Vec<PendingItem> {
        let mut items = self.take();
        let first = items.iter().find_map(|item| item.record.clock.clone());
        for item in &mut items {
            item.record.clock = item.record.clock.take().or_else(|| first.clone());
        }
        items
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
