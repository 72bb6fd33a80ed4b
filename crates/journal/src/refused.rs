//! What was refused for want of room and is not noted yet.
//!
//! It is counted here, left in the lock file while the disk is full, and noted when there is room: by the writer itself,
//! or by whoever opens the run or spine next.

use std::io;

use serde::{Deserialize, Serialize};
use steno_model::{Epoch, Seq, Timestamp};

use crate::note::{Note, Noted};

/// Records of a run or spine that were refused, from the last note on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refused {
    count: u64,
    /// The last record before the first of them; 0 when there was none.
    seq_last: u64,
    /// What the disk said of the last of them.
    cause: String,
    /// The opening in which the first of them was refused.
    epoch: u64,
    /// When the last of them was refused.
    time: String,
}

impl Refused {
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

    /// Puts it behind what was refused before, as one.
    pub(crate) fn after(self, before: Option<&Self>) -> Self {
        let Some(before) = before else { return self };
        let count = before.count.saturating_add(self.count);
        Self { count, seq_last: before.seq_last, epoch: before.epoch, ..self }
    }

    /// Returns the note that says so.
    pub(crate) fn to_note(&self) -> Note {
        let Self { count, seq_last, cause, epoch, time } = self.clone();
        Note { time, what: Noted::Refused { count, seq_last, cause, epoch: Some(epoch) } }
    }

    /// Tells whether it is noted. An opening notes once what it refused after the same record.
    pub(crate) fn is_in(&self, notes: &[Note]) -> bool {
        notes.iter().any(|note| {
            matches!(note.what, Noted::Refused { seq_last, epoch, .. }
                if (epoch, seq_last) == (Some(self.epoch), self.seq_last))
        })
    }
}
