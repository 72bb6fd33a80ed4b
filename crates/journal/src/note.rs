//! Notes beside a transcript or a spine: what happened to the record itself.
//!
//! The ten event types are closed and the file has no gaps, so recoveries, refusals and drops are recorded here.

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, StorePath};
use steno_model::{RunId, ThreadId, Timestamp};

use crate::error::Error;
use crate::flaw::Flaw;
use crate::lease::{Lease, read_refused};
use crate::lines::{Lines, NextLine};
use crate::names::RunFile;
use crate::refusals::Refusals;
use crate::sidecar;
use crate::tail::is_no_room;

/// The run or spine that notes belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotesOwner {
    /// `transcripts/<run-id>.notes.jsonl`
    Run(RunId),
    /// `spine/<thread-id>/notes.jsonl`
    Spine(ThreadId),
}

impl NotesOwner {
    fn path(&self) -> StorePath {
        match self {
            Self::Run(run) => RunFile::Notes(*run).path(),
            Self::Spine(thread) => StorePath::spine_notes(thread),
        }
    }

    fn lock_path(&self) -> StorePath {
        match self {
            Self::Run(run) => RunFile::Lock(*run).path(),
            Self::Spine(thread) => StorePath::spine_lock(thread),
        }
    }
}

impl From<RunId> for NotesOwner {
    fn from(run: RunId) -> Self {
        Self::Run(run)
    }
}

impl From<&ThreadId> for NotesOwner {
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
    pub what: NoteKind,
}

/// What happened to the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum NoteKind {
    /// A torn tail was moved aside when the run was opened.
    Recovered {
        /// Where the tail began.
        offset: u64,
        /// How long it was.
        bytes: u64,
        /// The file that has a copy of it.
        kept: String,
        /// The last event before it; 0 when there was none.
        seq_last: u64,
    },
    /// Records were refused because there was no space.
    Refused {
        /// How many.
        count: u64,
        /// The last event before the first of them; 0 when there was none.
        seq_last: u64,
        /// The error of the disk.
        cause: String,
        /// The opening in which the first of them was refused; older notes lack it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
    },
    /// The source could not deliver everything it saw.
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
    /// The file was deleted or replaced while it was written, and its content was saved.
    Vanished {
        /// The file that has a copy of it.
        kept: String,
        /// The last event in it; 0 when there was none.
        seq_last: u64,
    },
    /// The transcript was derived again from its evidence, and the old one was kept.
    Rederived {
        /// The adapter that it was derived with before.
        from: String,
        /// The adapter that it was derived with now.
        to: String,
        /// The number of the superseded files.
        superseded: u32,
        /// How many events that the adapter did not make were carried over.
        carried: u64,
        /// What was wrong with the old transcript, if that was the reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        flaw: Option<Flaw>,
    },
}

/// Writes a note and syncs it.
pub(crate) fn write_note(
    disk: &dyn Disk,
    of: impl Into<NotesOwner>,
    time: jiff::Timestamp,
    what: NoteKind,
) -> Result<(), Error> {
    write_note_in(disk, &of.into().path(), time, what)
}

fn write_note_in(
    disk: &dyn Disk,
    path: &StorePath,
    time: jiff::Timestamp,
    what: NoteKind,
) -> Result<(), Error> {
    let note = Note { time: Timestamp::from_instant(time).to_string(), what };
    sidecar::append_line(disk, path, &sidecar::json_line(&note))
}

/// Writes a note about refusals and syncs it.
pub(crate) fn write_refused(
    disk: &dyn Disk,
    of: impl Into<NotesOwner>,
    refused: &Refusals,
) -> Result<(), Error> {
    sidecar::append_line(disk, &of.into().path(), &sidecar::json_line(&refused.to_note()))
}

/// Notes refusals that earlier holders of the lock could not note; returns them when there is still no space.
pub(crate) fn settle_refused(
    disk: &dyn Disk,
    of: impl Into<NotesOwner>,
    lease: &mut Lease,
) -> Result<Option<Refusals>, Error> {
    let Some(refused) = lease.refused().cloned() else { return Ok(None) };
    let of = of.into();
    // The writer of the note may have died before it updated the lock file.
    if !refused.is_in(&read_notes_in(disk, &of.path())?) {
        match write_refused(disk, of, &refused) {
            Err(Error::Io { source, .. }) if is_no_room(&source) => return Ok(Some(refused)),
            outcome => outcome?,
        }
    }
    lease.set_refused(None)?;
    Ok(None)
}

/// Notes a recovery, unless an interrupted one has noted it already: the name of the copy identifies it.
pub(crate) fn note_once(
    disk: &dyn Disk,
    of: impl Into<NotesOwner>,
    time: jiff::Timestamp,
    what: NoteKind,
) -> Result<(), Error> {
    note_once_in(disk, &of.into().path(), time, what)
}

/// Notes a recovery like [`note_once`], in any file.
pub(crate) fn note_once_in(
    disk: &dyn Disk,
    path: &StorePath,
    time: jiff::Timestamp,
    what: NoteKind,
) -> Result<(), Error> {
    if read_notes_in(disk, path)?.iter().any(|note| note.what == what) {
        return Ok(());
    }
    write_note_in(disk, path, time, what)
}

/// Reads the notes of a run or a spine. Unknown kinds and a torn tail are left out. Refusals that could not be noted
/// yet come last, as they will be noted.
///
/// # Errors
/// I/O errors.
pub fn read_notes(disk: &dyn Disk, of: impl Into<NotesOwner>) -> Result<Vec<Note>, Error> {
    let of = of.into();
    // Read before the notes: a refusal is removed from the lock file after it was noted.
    let refused = read_refused(disk, &of.lock_path())?;
    let mut notes = read_notes_in(disk, &of.path())?;
    let unnoted = refused.filter(|refused| !refused.is_in(&notes));
    notes.extend(unnoted.map(|refused| refused.to_note()));
    Ok(notes)
}

pub(crate) fn read_notes_in(disk: &dyn Disk, path: &StorePath) -> Result<Vec<Note>, Error> {
    let Some(file) = disk.open_read(path).map_err(|source| Error::io("open", path, source))? else {
        return Ok(Vec::new());
    };
    let failed = |doing| move |source| Error::io(doing, path, source);
    let mut lines = Lines::new(file, 0).until_now().map_err(failed("access"))?;
    let mut notes = Vec::new();
    loop {
        match lines.next().map_err(failed("read"))? {
            NextLine::Line { bytes, .. } => notes.extend(serde_json::from_slice(bytes).ok()),
            NextLine::TooLong { end, .. } => lines.skip_to(end),
            NextLine::End { .. } => return Ok(notes),
        }
    }
}
