//! Writes the events of a run many at a time, and leaves its syncs to the caller, so that many runs can share them.
//!
//! The order is: [`BulkRecorder::append`] events, [`BulkRecorder::write_out`], sync, [`BulkRecorder::seal`], sync,
//! [`BulkRecorder::end`]. Nothing is acknowledged before the second sync. If the process dies earlier, the next writer
//! of the run recovers what was written.

use std::io;
use std::sync::Arc;

use steno_disk::SyncSet;
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Draft, RunId, Seq, Timestamp};

use crate::error::Error;
use crate::lease::Lease;
use crate::log::{Log, LogParts};
use crate::names::RunFile;
use crate::note::{NoteKind, settle_refused, write_note, write_refused};
use crate::recorder::Journal;
use crate::recovery;
use crate::rewrite;
use crate::seal::{Prefix, Seal};
use crate::sidecar;
use crate::store::Store;

/// The only writer of a run, for many events at once. It has no subscribers.
///
/// If it is dropped before [`BulkRecorder::end`], gathered events that are not written yet are dropped with it.
pub struct BulkRecorder {
    run: RunId,
    store: Store,
    log: Log,
    lease: Lease,
    clock: fn() -> jiff::Timestamp,
    /// The part that was read back and matches what was written.
    prefix: Prefix,
    /// How many bytes are sealed.
    sealed: u64,
    /// The lock file, until it is synced.
    unsynced: SyncSet,
}

impl Journal {
    /// Opens a run for many events at once: takes its lock, recovers after a crash, and continues after its last event.
    ///
    /// # Errors
    /// As [`Journal::record`].
    pub fn record_bulk(&self, run: RunId) -> Result<BulkRecorder, Error> {
        let disk = Arc::clone(self.store.disk());
        let now = (self.options.clock)();
        let mut unsynced = SyncSet::default();
        let mut lease = Lease::take_unsynced(&*disk, &RunFile::Lock(run).path(), now, &mut unsynced)?;
        rewrite::settle(&*disk, run)?;
        let found = recovery::inspect(&*disk, run)?;
        recovery::apply(&*disk, &found, now)?;
        let refused = settle_refused(&*disk, run, &mut lease)?;
        let prefix = found.into_prefix();
        let sealed = prefix.len;
        let (epoch, clock) = (lease.epoch, self.options.clock);
        let path = RunFile::Transcript(run).path();
        let log = Log::open_unsynced(LogParts { disk, path, epoch, prefix: prefix.clone(), clock })?;
        if let Some(refused) = refused {
            log.put_back_refused(refused);
        }
        Ok(BulkRecorder { run, store: self.store.clone(), log, lease, clock, prefix, sealed, unsynced })
    }
}

impl BulkRecorder {
    /// Returns the number of the last event.
    #[must_use]
    pub fn seq_last(&self) -> Option<Seq> {
        self.log.seq_gathered()
    }

    /// Adds an event, which is written later.
    ///
    /// # Errors
    /// [`Error::TooLong`], after which other events can be added; [`Error::NoRoom`], after which the events that were
    /// not written are dropped; or an I/O error.
    pub fn append(&mut self, draft: Draft) -> Result<Seq, Error> {
        let clock = self.clock;
        let encoded = draft.encode(self.run, || Timestamp::from_instant(clock()));
        if encoded.line_bytes_max() > LINE_BYTES_MAX {
            return Err(Error::TooLong { bytes: encoded.line_bytes_max() as u64 });
        }
        let gathered = self.log.gather(|seq, line| encoded.write_line(seq, line));
        gathered.inspect_err(|error| self.keep_if_refused(error))
    }

    /// Notes that the source could not deliver everything it saw.
    ///
    /// # Errors
    /// I/O errors.
    pub fn note_dropped(&mut self, count: u64, cause: &str) -> Result<(), Error> {
        let seq_last = self.seq_last().map_or(0, Seq::get);
        self.note(NoteKind::Dropped { count, seq_last, cause: cause.to_owned() })
    }

    /// Writes all events, reads them back, and adds the files that have to be synced.
    ///
    /// # Errors
    /// As [`BulkRecorder::append`].
    pub fn write_out(&mut self, set: &mut SyncSet) -> Result<(), Error> {
        let written = self.log.write_gathered(set);
        written.inspect_err(|error| self.keep_if_refused(error))?;
        set.take(&mut self.unsynced);
        self.log.read_back(&mut self.prefix)
    }

    /// Seals what was written, after its sync, and adds the files that have to be synced.
    ///
    /// # Errors
    /// [`Error::Vanished`] or [`Error::Changed`] if another program changed the transcript, or an I/O error.
    pub fn seal(&mut self, set: &mut SyncSet) -> Result<(), Error> {
        let checked = self.log.check_synced();
        if let Err(Error::Vanished { kept: Some(kept), .. }) = &checked {
            let seq_last = self.seq_last().map_or(0, Seq::get);
            let noted = self.note(NoteKind::Vanished { kept: kept.file_name().to_owned(), seq_last });
            noted.unwrap_or_else(
                |error| tracing::warn!(run = %self.run, %error, "a note could not be written"),
            );
        }
        checked?;
        if self.prefix.len > self.sealed {
            let seal = Seal::new(self.run, &self.prefix, (self.clock)());
            let path = RunFile::Seals(self.run).path();
            sidecar::append_unsynced(&**self.store.disk(), &path, &seal.to_line(), set)?;
            self.sealed = self.prefix.len;
        }
        self.note_refused();
        Ok(())
    }

    /// Returns the error of a sync that failed. The recorder refuses everything from then on.
    pub fn sync_failed(&mut self, source: io::Error) -> Error {
        self.log.sync_failed(source)
    }

    /// Ends the recording after the last sync, and releases the lock.
    pub fn end(self) {}

    /// Writes, syncs and seals everything by itself, and releases the lock.
    ///
    /// # Errors
    /// I/O errors.
    pub fn close(mut self) -> Result<(), Error> {
        let mut set = SyncSet::default();
        self.write_out(&mut set)?;
        let disk = Arc::clone(self.store.disk());
        set.sync_each(&*disk).map_err(|source| self.sync_failed(source))?;
        let mut set = SyncSet::default();
        self.seal(&mut set)?;
        set.sync_each(&*disk).map_err(|source| Error::io("sync", &RunFile::Seals(self.run).path(), source))
    }

    fn note(&self, what: NoteKind) -> Result<(), Error> {
        write_note(&**self.store.disk(), self.run, (self.clock)(), what)
    }

    /// Records refusals in the lock file before the error is returned.
    fn keep_if_refused(&mut self, error: &Error) {
        if matches!(error, Error::NoRoom { .. })
            && let Err(error) = self.lease.set_refused(self.log.refused())
        {
            tracing::warn!(run = %self.run, %error, "refusals could not be recorded in the lock file");
        }
    }

    /// Notes refusals; the next opening notes those that cannot be noted now.
    fn note_refused(&mut self) {
        let Some(refused) = self.log.take_refused() else { return };
        if let Err(error) = write_refused(&**self.store.disk(), self.run, &refused) {
            tracing::warn!(run = %self.run, %error, "refusals could not be noted yet");
            self.log.put_back_refused(refused);
        }
        if let Err(error) = self.lease.set_refused(self.log.refused()) {
            tracing::warn!(run = %self.run, %error, "refusals could not be recorded in the lock file");
        }
    }
}
