//! Records that come before their session is known, kept for a while.

use crate::emit::{Emit, Held};

/// How many records wait for their session at most; a source that names none by then gets an id of its own.
pub(super) const WAITING_LEN_MAX: usize = 1024;

/// What waits, in order.
#[derive(Default)]
pub(super) struct Waiting(Vec<Waiter>);

/// A record that waits, or a piece that cannot be read.
pub(super) struct Waiter {
    pub(super) held: Held,
    pub(super) what: Waits,
}

/// What kind of thing waits.
pub(super) enum Waits {
    /// A record; says which way it went.
    Record(steno_model::Lane),
    /// Something that cannot be read, and why.
    Unreadable(Box<str>),
}

impl Waiting {
    /// Keeps a record; false when no more may wait after it.
    pub(super) fn keep(&mut self, what: Waits, emit: &Emit<'_>) -> bool {
        self.0.push(Waiter { held: emit.hold(), what });
        self.0.len() < WAITING_LEN_MAX
    }

    /// Hands over everything that waits.
    pub(super) fn take(&mut self) -> Vec<Waiter> {
        std::mem::take(&mut self.0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
