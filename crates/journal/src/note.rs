//! Notes beside a transcript: what happened to the record itself.
//!
//! The ten event types stay closed and the file has no gaps, so recoveries, refusals and drops are said here.

use serde::{Deserialize, Serialize};
use steno_model::{RunId, Timestamp};

use crate::disk::Disk;
use crate::error::Error;
use crate::lines::{Lines, Piece};
use crate::names::RunFile;
use crate::side;

/// One line of a notes file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When it was noted.
    pub time: String,
    /// What happened.
    #[serde(flatten)]
    pub what: Noted,
}

/// What happened to the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Noted {
    /// A torn tail was moved aside when the run was opened.
    Recovered {
        /// Where the tail began.
        offset: u64,
        /// How long it was.
        bytes: u64,
        /// The file that keeps it.
        kept: String,
        /// The last event before it; 0 when there was none.
        seq_last: u64,
    },
    /// Records were refused because there was no room.
    Refused {
        /// How many.
        count: u64,
        /// The last event before them; 0 when there was none.
        seq_last: u64,
        /// What the disk said.
        cause: String,
    },
    /// Somebody upstream could not hand over everything it saw.
    Dropped {
        /// How many frames or records.
        count: u64,
        /// The last event before them; 0 when there was none.
        seq_last: u64,
        /// Why.
        cause: String,
    },
    /// A subscriber was too slow. Nothing is missing in the file.
    Lagged {
        /// How many events it did not get live.
        count: u64,
        /// The first of them.
        seq_first: u64,
        /// The last of them.
        seq_last: u64,
    },
    /// The file was deleted or replaced under its writer, and what it held was kept.
    Vanished {
        /// The file that keeps it.
        kept: String,
        /// The last event in it; 0 when there was none.
        seq_last: u64,
    },
}

/// Writes a note and syncs it.
pub(crate) fn write_note(
    disk: &dyn Disk,
    run: RunId,
    time: jiff::Timestamp,
    what: Noted,
) -> Result<(), Error> {
    let note = Note { time: Timestamp::from_instant(time).to_string(), what };
    side::append_line(disk, &RunFile::Notes(run).path(), &side::json_line(&note))
}

/// Reads the notes of a run; lines that are no notes of a kind we know are left out.
///
/// # Errors
/// What the system says.
pub fn read_notes(disk: &dyn Disk, run: RunId) -> Result<Vec<Note>, Error> {
    let path = RunFile::Notes(run).path();
    let Some(file) = disk.open_read(&path).map_err(|source| Error::io("open", &path, source))? else {
        return Ok(Vec::new());
    };
    let mut lines = Lines::new(file, 0);
    let mut notes = Vec::new();
    while let Piece::Line { bytes, .. } = lines.next().map_err(|source| Error::io("read", &path, source))? {
        notes.extend(serde_json::from_slice(bytes).ok());
    }
    Ok(notes)
}
