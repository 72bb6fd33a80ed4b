//! Damaged and missing transcripts: what is wrong, what can still be read, and rewriting them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use steno_model::{ExchangeEvent, RunId};

use crate::error::Error;
use crate::lease::Lease;
use crate::lines::{Lines, NextLine};
use crate::names::RunFile;
use crate::note::{NoteKind, read_notes_in, settle_refused};
use crate::recorder::Journal;
use crate::rewrite::{Rewrite, number_next, settle};
use crate::store::Store;
use crate::verify::check_run;

/// What is wrong with a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    /// It does not exist.
    Missing,
    /// A line or a seal is damaged, as the text says.
    Damaged(String),
}

impl Journal {
    /// Begins to rewrite a damaged or missing transcript, as [`Journal::rewrite`] does for an undamaged one; `None`
    /// when nothing is wrong with it.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, or an I/O error.
    pub fn rewrite_flawed(&self, run: RunId) -> Result<Option<(Rewrite, Flaw)>, Error> {
        let disk = Arc::clone(self.store.disk());
        let mut lease = Lease::take(&*disk, &RunFile::Lock(run).path(), (self.options.clock)())?;
        settle(&*disk, run)?;
        let Some(flaw) = self.store.flaw(run)? else { return Ok(None) };
        settle_refused(&*disk, run, &mut lease)?;
        Ok(Some((Rewrite::begin(self, run, lease, Some(flaw.clone()))?, flaw)))
    }
}

impl Store {
    /// Reads a whole transcript and returns what is wrong with it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn flaw(&self, run: RunId) -> Result<Option<Flaw>, Error> {
        match check_run(self, run, Vec::new()) {
            Ok(_) => Ok(None),
            Err(Error::NoSuchRun { .. }) => Ok(Some(Flaw::Missing)),
            Err(Error::SealBroken { .. }) if !self.has(run)? => Ok(Some(Flaw::Missing)),
            Err(error @ (Error::Damaged { .. } | Error::SealBroken { .. } | Error::Shrunk { .. })) => {
                Ok(Some(Flaw::Damaged(error.to_string())))
            }
            Err(error) => Err(error),
        }
    }

    /// Passes the readable events of a damaged transcript to `take`, in file order.
    ///
    /// # Errors
    /// I/O errors.
    pub fn salvage(&self, run: RunId, take: &mut dyn FnMut(ExchangeEvent)) -> Result<(), Error> {
        let path = RunFile::Transcript(run).path();
        let failed = |source| Error::io("read", &path, source);
        let Some(file) = self.disk().open_read(&path).map_err(failed)? else { return Ok(()) };
        let mut lines = Lines::new(file, 0).until_now().map_err(failed)?;
        loop {
            let end = match lines.next().map_err(failed)? {
                NextLine::Line { bytes, .. } => {
                    if let Ok(event) = ExchangeEvent::parse(bytes)
                        && event.run_id == run
                    {
                        take(event);
                    }
                    continue;
                }
                NextLine::TooLong { end, .. } => end,
                NextLine::End { .. } => return Ok(()),
            };
            lines.skip_to(end);
        }
    }

    /// Returns the numbers of the superseded transcripts that were damaged when they were replaced.
    ///
    /// # Errors
    /// I/O errors.
    pub fn superseded_damaged(&self, run: RunId) -> Result<Vec<u32>, Error> {
        let (disk, path) = (&**self.disk(), RunFile::Notes(run).path());
        let mut notes = read_notes_in(disk, &path)?;
        // A crash may have prevented the last renames.
        notes.extend(read_notes_in(disk, &path.next())?);
        for number in 1..number_next(disk, run)? {
            notes.extend(read_notes_in(disk, &path.superseded(number))?);
        }
        let number = |noted| match noted {
            NoteKind::Rederived { superseded, flaw: Some(_), .. } => Some(superseded),
            NoteKind::Rederived { flaw: None, .. }
            | NoteKind::Recovered { .. }
            | NoteKind::Refused { .. }
            | NoteKind::Dropped { .. }
            | NoteKind::Lagged { .. }
            | NoteKind::Vanished { .. } => None,
        };
        Ok(notes.into_iter().filter_map(|note| number(note.what)).collect())
    }
}
