//! References to events. A session may have several runs, so a reference has the run and the number.

use std::fmt;

use steno_model::{RunId, Seq};

/// An event of a run, written `RUN:SEQ`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventRef {
    /// The run.
    pub run: RunId,
    /// The event's number in it.
    pub seq: Seq,
}

impl fmt::Display for EventRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.run, self.seq)
    }
}
