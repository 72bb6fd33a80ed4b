//! Records that were refused because there was no space, and are not noted yet.
//!
//! They are counted here, stored in the lock file while the disk is full, and noted when there is space: by the writer
//! itself, or by the next process that opens the run or spine.

use std::io;

use serde::{Deserialize, Serialize};
use steno_model::{Epoch, Seq, Timestamp};

use crate::note::{Note, NoteKind};

/// Refused records of a run or spine since the last note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusals {
    count: u64,
    /// The last record before the first refused one; 0 when there was none.
    seq_last: u64,
    /// The error of the last refused record.
    cause: String,
    /// The opening in which the first one was refused.
    epoch: u64,
    /// When the last one was refused.
    time: String,
}

impl Refusals {
    /// Returns the same with another count.
    pub(crate) fn times(self, count: u64) -> Self {
        Self { count, ..self }
    }

    /// One record, refused after `seq_last`.
    pub(crate) fn one(epoch: Epoch, seq_last: Option<Seq>, cause: &io::Error, now: jiff::Timestamp) -> Self {
        Self {
            count: 1,
            seq_last: seq_last.map_or(0, Seq::get),
            cause: cause.to_string(),
            epoch: epoch.0,
            time: Timestamp::from_instant(now).to_string(),
        }
    }

    /// Combines these with earlier refusals.
    pub(crate) fn after(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let count = before.count.saturating_add(self.count);
        Self { count, seq_last: before.seq_last, epoch: before.epoch, ..self }
    }

    /// Returns the note for these refusals.
    pub(crate) fn to_note(&self) -> Note {
        let Self { count, seq_last, cause, epoch, time } = self.clone();
        Note { time, what: NoteKind::Refused { count, seq_last, cause, epoch: Some(epoch) } }
    }

    /// Tells whether these are noted. An opening notes its refusals after the same record once.
    pub(crate) fn is_in(&self, notes: &[Note]) -> bool {
        notes.iter().any(|note| {
            matches!(note.what, NoteKind::Refused { seq_last, epoch, .. }
                if (epoch, seq_last) == (Some(self.epoch), self.seq_last))
        })
    }
}
