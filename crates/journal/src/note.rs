//! Notes beside a transcript or a spine: what happened to the record itself.
//!
//! The ten event types stay closed and the file has no gaps, so recoveries, refusals and drops are said here.

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, StorePath};
use steno_model::{RunId, ThreadId, Timestamp};

use crate::error::Error;
use crate::lines::{Lines, Piece};
use crate::names::RunFile;
use crate::side;

/// Whose notes: those of a run, or of a spine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotesOf {
    /// `transcripts/<run-id>.notes.jsonl`
    Run(RunId),
    /// `spine/<thread-id>/notes.jsonl`
    Spine(ThreadId),
}

impl NotesOf {
    fn path(&self) -> StorePath {
        match self {
            Self::Run(run) => RunFile::Notes(*run).path(),
            Self::Spine(thread) => StorePath::spine_notes(thread),
        }
    }
}

impl From<RunId> for NotesOf {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

impl From<&ThreadId> for NotesOf {
    fn from(thread: &ThreadId) -> Self {
        Self::Spine(thread.clone())
    }
}

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
    of: impl Into<NotesOf>,
    time: jiff::Timestamp,
    what: Noted,
) -> Result<(), Error> {
    write_note_in(disk, &of.into().path(), time, what)
}

fn write_note_in(disk: &dyn Disk, path: &StorePath, time: jiff::Timestamp, what: Noted) -> Result<(), Error> {
    let note = Note { time: Timestamp::from_instant(time).to_string(), what };
    side::append_line(disk, path, &side::json_line(&note))
}

/// Notes a recovery, unless one that was killed after its note has done so: the name of what it kept says which.
pub(crate) fn note_once(
    disk: &dyn Disk,
    of: impl Into<NotesOf>,
    time: jiff::Timestamp,
    what: Noted,
) -> Result<(), Error> {
    note_once_in(disk, &of.into().path(), time, what)
}

/// Notes a recovery like [`note_once`], in a file wherever it lies.
pub(crate) fn note_once_in(
    disk: &dyn Disk,
    path: &StorePath,
    time: jiff::Timestamp,
    what: Noted,
) -> Result<(), Error> {
    if read_notes_in(disk, path)?.iter().any(|note| note.what == what) {
        return Ok(());
    }
    write_note_in(disk, path, time, what)
}

/// Reads the notes of a run or a spine; lines that are no notes of a kind we know are left out, and so is a torn
/// tail.
///
/// # Errors
/// What the system says.
pub fn read_notes(disk: &dyn Disk, of: impl Into<NotesOf>) -> Result<Vec<Note>, Error> {
    read_notes_in(disk, &of.into().path())
}

fn read_notes_in(disk: &dyn Disk, path: &StorePath) -> Result<Vec<Note>, Error> {
    let Some(file) = disk.open_read(path).map_err(|source| Error::io("open", path, source))? else {
        return Ok(Vec::new());
    };
    let failed = |doing| move |source| Error::io(doing, path, source);
    let mut lines = Lines::new(file, 0).until_now().map_err(failed("look at"))?;
    let mut notes = Vec::new();
    loop {
        match lines.next().map_err(failed("read"))? {
            Piece::Line { bytes, .. } => notes.extend(serde_json::from_slice(bytes).ok()),
            Piece::TooLong { end, .. } => lines.skip_to(end),
            Piece::End { .. } => return Ok(notes),
        }
    }
}
