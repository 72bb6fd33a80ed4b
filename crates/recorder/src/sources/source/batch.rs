//! The steps of a source that is recorded together with others, which share its syncs.

use std::io;

use steno_capture::tail::{Tail, TailRead};
use steno_disk::SyncSet;
use steno_journal::Error as JournalError;
use steno_vault::{Remainder, SourceEnd, SourceWriter};

use super::{FoundSource, KnownSource, OpenSource, ReadOutcome, SourceError, cursors};

impl OpenSource {
    /// Makes safe what was found. If the last owner was interrupted, its bytes are synced again before events are made
    /// from them.
    pub(crate) fn commit_found(&mut self) -> Result<(), SourceError> {
        self.writer.commit(Remainder::InTail).map_err(SourceError::vault(&self.path))
    }

    /// Feeds the bytes of the vault, and continues the file after them.
    pub(crate) fn take_found(&mut self) -> Result<(), SourceError> {
        let Some(FoundSource { vault, seen, is_known, cursor }) = self.found.take() else { return Ok(()) };
        if !is_known {
            return Ok(());
        }
        self.set_quiet(true);
        let known = self.feed_again(&vault, seen)?;
        self.set_quiet(false);
        if let Some(known) = known {
            let saved = cursor.as_deref().and_then(cursors::read);
            // The saved cursor identifies the file, which saves a comparison byte for byte.
            let cursor =
                saved.filter(|saved| saved.generation == known.generation && saved.whole == known.whole);
            self.tail = Tail::resume(&self.path, cursor.unwrap_or(known));
        }
        Ok(())
    }

    /// Returns the writer of its bytes.
    pub(crate) fn writer(&mut self) -> &mut SourceWriter {
        &mut self.writer
    }

    /// Tells whether the vault had the source when it was opened, and that is not taken yet.
    pub(crate) fn is_found(&self) -> bool {
        self.found.as_ref().is_some_and(|found| found.is_known)
    }

    /// Reads once. The bytes go to the vault, but are not safe yet.
    pub(crate) fn read_more(&mut self, now: &str) -> Result<ReadOutcome, SourceError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let look = self.tail.read_next(&mut buffer, self.read_bytes)?;
        let outcome = match look {
            TailRead::Bytes { .. } => {
                self.read += buffer.len() as u64;
                // Not twice as much as is needed: many sources are open at a time.
                self.unfed.reserve_exact(buffer.len());
                self.unfed.extend_from_slice(&buffer);
                let stored = self.writer.append(&buffer);
                stored.map(|()| ReadOutcome::More).map_err(SourceError::vault(&self.path))
            }
            // These are rare, and committed by themselves.
            TailRead::Late { .. } | TailRead::NewGeneration { .. } => self.take(look, &buffer, now),
            TailRead::AtEnd => Ok(ReadOutcome::AtEnd),
            TailRead::Gone => Ok(ReadOutcome::Gone),
        };
        self.buffer = buffer;
        outcome
    }

    /// Stores what was read in chunks when nothing more is read, and frees buffers.
    pub(crate) fn store_rest(&mut self) -> Result<(), SourceError> {
        self.buffer = Vec::new();
        self.writer.store_chunks(SourceEnd::Reached).map_err(SourceError::vault(&self.path))
    }

    /// Writes all events, and adds the files that have to be synced.
    pub(crate) fn write_out(&mut self, set: &mut SyncSet) -> Result<(), SourceError> {
        self.runs.write_out(set).map_err(|source| self.journal_failed(source))
    }

    /// Syncs, seals and closes the runs.
    pub(crate) fn close_runs(&mut self) -> Result<(), SourceError> {
        self.runs.close().map_err(|source| self.journal_failed(source))
    }

    /// Seals the runs and writes the state of the source, and adds the files that have to be synced. All bytes and
    /// events are safe by now.
    pub(crate) fn write_end(&mut self, now: &str, set: &mut SyncSet) -> Result<(), SourceError> {
        self.runs.seal(set).map_err(|source| self.journal_failed(source))?;
        let info = self.recognised();
        let state = self.state();
        self.writer.write_state(info.as_ref(), state, now, set).map_err(SourceError::vault(&self.path))
    }

    /// Releases the source after the last sync. `take_failure` was checked before.
    pub(crate) fn end(&mut self) -> Result<KnownSource, SourceError> {
        self.writer.end_state().map_err(SourceError::vault(&self.path))?;
        Ok(self.known())
    }

    /// Refuses everything after a sync that failed; returns the error.
    pub(crate) fn sync_failed(&mut self, error: impl Fn() -> io::Error) -> SourceError {
        self.runs.sync_failed(&error);
        let path = steno_disk::StorePath::transcripts();
        self.journal_failed(JournalError::io("sync", &path, error()))
    }

    fn journal_failed(&self, source: JournalError) -> SourceError {
        SourceError::Journal { path: self.path.clone(), source }
    }
}
