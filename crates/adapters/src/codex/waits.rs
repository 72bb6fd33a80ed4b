//! What waits inside a rollout, each with the record that it came in.
//!
//! It is written as that record's own as long as nothing that follows has been written; after that with the record at
//! hand, since the positions of a source rise from event to event.

use steno_model::RunId;
use steno_model::json::JsonString;

use super::agents::End;
use super::items::Report;
use crate::emit::{CallReport, Emit, PendingRecord};

/// A record that something waits with.
pub(super) struct Wait {
    held: PendingRecord,
    copied_from: Option<RunId>,
    /// Whether something was written that stands at or after it.
    is_overtaken: bool,
}

impl Wait {
    /// Keeps the record that is being read.
    pub(super) fn new(copied_from: Option<RunId>, emit: &Emit<'_>) -> Self {
        Self { held: emit.hold(), copied_from, is_overtaken: emit.has_written() }
    }

    /// Takes note that something was written that stands at or after it.
    pub(super) fn overtake(&mut self) {
        self.is_overtaken = true;
    }

    pub(super) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    /// Writes events at the record's own place, where that is still possible. It is so once only: parts of a record
    /// are counted from its beginning.
    pub(super) fn write(&mut self, emit: &mut Emit<'_>, write: impl FnOnce(&mut Emit<'_>)) {
        if self.is_overtaken {
            return write(emit);
        }
        self.is_overtaken = true;
        self.write_entry(emit, |emit| {
            emit.set_copied_from(self.copied_from);
            write(emit);
        });
    }

    /// Writes entries, which have the record's own bytes and time wherever its events stand.
    pub(super) fn write_entry(&self, emit: &mut Emit<'_>, write: impl FnOnce(&mut Emit<'_>)) {
        emit.release(&self.held, write);
    }
}

/// How a call ended, as one record reports it.
pub(super) struct CallEnd {
    pub(super) id: JsonString,
    pub(super) report: Report,
    /// The call itself, for one that no response has.
    pub(super) call: CallReport,
    /// The threads that the call made.
    pub(super) made: Vec<String>,
    /// The threads that it saw end.
    pub(super) done: Vec<(String, End)>,
}

/// The report of a call without its output, which the very next record may have.
pub(super) struct Awaited {
    pub(super) report: CallEnd,
    pub(super) wait: Wait,
}
