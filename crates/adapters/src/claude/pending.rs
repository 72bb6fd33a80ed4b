//! Records that wait until their session is known.

use crate::emit::{Emit, PendingRecord};

/// The most records that wait for their session; after that the source gets a derived id.
pub(super) const WAITING_LEN_MAX: usize = 1024;

/// The waiting records, in order.
#[derive(Default)]
pub(super) struct PendingRecords(Vec<PendingItem>);

/// A waiting record, or an unreadable piece.
pub(super) struct PendingItem {
    pub(super) held: PendingRecord,
    pub(super) what: PendingKind,
}

/// The kind of a waiting item.
pub(super) enum PendingKind {
    /// A record, with its direction.
    Record(steno_model::Lane),
    /// An unreadable piece, and why.
    Unreadable(Box<str>),
}

impl PendingRecords {
    /// Adds a record; false if no more may wait after it.
    pub(super) fn keep(&mut self, what: PendingKind, emit: &Emit<'_>) -> bool {
        self.0.push(PendingItem { held: emit.hold(), what });
        self.0.len() < WAITING_LEN_MAX
    }

    /// Removes and returns everything that waits.
    pub(super) fn take(&mut self) -> Vec<PendingItem> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
