//! Events of a rollout that wait, each with its record.
//!
//! They are written at the position of their record if no later event has been written, and otherwise with the current
//! record, because the positions of a source rise from event to event.

use steno_model::RunId;
use steno_model::json::JsonString;

use super::agents::End;
use super::items::Report;
use crate::emit::{CallReport, Emit, PendingRecord};

/// The record of waiting events.
pub(super) struct Wait {
    record: PendingRecord,
    copied_from: Option<RunId>,
    /// Whether an event at or after its position was written.
    is_overtaken: bool,
}

impl Wait {
    /// Keeps the current record.
    pub(super) fn new(copied_from: Option<RunId>, emit: &Emit<'_>) -> Self {
        Self { record: emit.hold(), copied_from, is_overtaken: emit.has_written() }
    }

    /// Notes that an event at or after its position was written.
    pub(super) fn overtake(&mut self) {
        self.is_overtaken = true;
    }

    pub(super) fn is_overtaken(&self) -> bool {
        self.is_overtaken
    }

    /// Writes events at the position of the record, if that is still possible. That is so only once, because parts of a
    /// record are numbered from its start.
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

    /// Writes entries, which always have the bytes and time of the record itself.
    pub(super) fn write_entry(&self, emit: &mut Emit<'_>, write: impl FnOnce(&mut Emit<'_>)) {
        emit.release(&self.record, write);
    }
}

/// How a call ended, as one record reports it.
pub(super) struct CallEnd {
    pub(super) id: JsonString,
    pub(super) report: Report,
    /// The call itself, in case no response has it.
    pub(super) call: CallReport,
    /// The threads that the call created.
    pub(super) made: Vec<String>,
    /// The threads that it saw end.
    pub(super) done: Vec<(String, End)>,
}

/// The report of a call without its output, which the next record may have.
pub(super) struct PendingReport {
    pub(super) report: CallEnd,
    pub(super) wait: Wait,
}
