//! Records that come before their session is known, kept for a while.

use crate::emit::{Emit, PendingRecord};

/// How many records wait for their session at most; a source that names none by then gets an id of its own.
pub(super) const WAITING_LEN_MAX: usize = 1024;

/// What waits, in order.
#[derive(Default)]
pub(super) struct PendingRecords(Vec<PendingItem>);

/// A record that waits, or a piece that cannot be read.
pub(super) struct PendingItem {
    pub(super) held: PendingRecord,
    pub(super) what: PendingKind,
}

/// What kind of thing waits.
pub(super) enum PendingKind {
    /// A record; says which way it went.
    Record(steno_model::Lane),
    /// Something that cannot be read, and why.
    Unreadable(Box<str>),
}

impl PendingRecords {
    /// Keeps a record; false when no more may wait after it.
    pub(super) fn keep(&mut self, what: PendingKind, emit: &Emit<'_>) -> bool {
        self.0.push(PendingItem { held: emit.hold(), what });
        self.0.len() < WAITING_LEN_MAX
    }

    /// Hands over everything that waits.
    pub(super) fn take(&mut self) -> Vec<PendingItem> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
