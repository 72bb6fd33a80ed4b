//! One growing file: append under a lock, sync for many at once, stop at the first failure.

mod gathered;
mod in_place;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "mutant-seq-outside-lock")]
use std::sync::atomic::Ordering;
use std::time::Instant;

use sha2::Digest as _;
use steno_disk::{Disk, DiskFile, StorePath, read_full, sync_file};
use steno_model::{Epoch, Seq};

use crate::commit::{Batch, Commit};
use crate::error::Error;
use crate::refusals::Refusals;
use crate::seal::Prefix;
use crate::sync::{Mutex, lock, lock_in_turn, lock_soon};
use crate::tail::{AppendError, FileEnd, Tail};

/// How much an acknowledgement promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The whole line is written: it survives the death of the process.
    Written,
    /// The line is synced: it survives a power cut.
    Synced,
}

impl Level {
    /// Returns the word used in acknowledgements.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Synced => "synced",
        }
    }
}

/// A growing file and the records that wait on it.
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    path: StorePath,
    epoch: Epoch,
    clock: fn() -> jiff::Timestamp,
    file: Arc<dyn DiskFile>,
    /// Reads the same file even after its name was deleted.
    reader: Arc<dyn DiskFile>,
    state: Mutex<LogState>,
    /// Writers that are not next wait here.
    turn: Mutex<()>,
    /// Held during each sync and what follows from it: the system reports a failed sync once, to the first caller.
    syncing: Mutex<()>,
    opened: Instant,
    /// When the file was last checked, in milliseconds since `opened`.
    looked_ms: AtomicU64,
    /// The last record that was written when the file was last found at its path; 0 when there was none.
    looked_seq: AtomicU64,
    #[cfg(feature = "mutant-seq-outside-lock")]
    taken: AtomicU64,
}

struct LogState {
    tail: Tail,
    batch: Arc<Batch>,
    batch_len: usize,
    batch_len_before: usize,
    queued: bool,
    health: Health,
    /// Refusals that are not noted yet.
    refused: Option<Refusals>,
}

enum Health {
    Good,
    Failed(Error),
}

/// A record that is written but not acknowledged yet.
pub struct PendingRecord {
    seq: Seq,
    /// The sync that it waits for at [`Level::Synced`].
    batch: Option<Arc<Batch>>,
    /// The file to check before it is acknowledged at [`Level::Written`].
    file: Option<Arc<dyn Commit>>,
}

impl PendingRecord {
    /// Returns the record's number.
    #[must_use]
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// Waits until the record has reached its level in a file that is still at its path.
    ///
    /// # Errors
    /// When the sync failed, or another program deleted, replaced, cut or changed the file: the record may or may not
    /// survive, and is not acknowledged.
    pub fn wait(self) -> Result<Seq, Error> {
        self.batch.map_or(Ok(()), |batch| batch.wait())?;
        self.file.map_or(Ok(()), |file| file.look_after(self.seq))?;
        Ok(self.seq)
    }

    /// Makes `wait` check the file, unless a sync does that.
    pub(crate) fn look_at(self, file: Arc<dyn Commit>) -> Self {
        let file = self.batch.is_none().then_some(file);
        Self { file, ..self }
    }

    /// Tells whether waiting would return without a sync.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.batch.as_ref().is_none_or(|batch| batch.is_done())
    }
}

/// The parameters of a log.
pub(crate) struct LogParts {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) path: StorePath,
    pub(crate) epoch: Epoch,
    pub(crate) prefix: Prefix,
    pub(crate) clock: fn() -> jiff::Timestamp,
}

/// A line that is written.
pub(crate) struct AppendedLine<R> {
    /// The record, to wait on.
    pub(crate) pending: PendingRecord,
    /// The result of `under_lock`.
    pub(crate) kept: R,
    /// Whether the log has to be queued for a commit.
    pub(crate) queue: bool,
    /// Whether there are refusals that are not noted yet.
    pub(crate) has_refused: bool,
}

impl Log {
    /// Opens the file for appending. A new file and its directory are synced before anything is acknowledged.
    pub(crate) fn open(parts: LogParts) -> Result<Self, Error> {
        let log = Self::open_unsynced(parts)?;
        let failed = |doing| {
            let path = log.path.clone();
            move |source| Error::io(doing, &path, source)
        };
        sync_file(&*log.file).map_err(failed("sync"))?;
        steno_disk::sync_dir(&*log.disk, &log.path.dir()).map_err(failed("sync the directory of"))?;
        Ok(log)
    }

    /// Opens the file for appending. The file and its directory have to be synced.
    pub(crate) fn open_unsynced(parts: LogParts) -> Result<Self, Error> {
        let LogParts { disk, path, epoch, prefix, clock } = parts;
        let failed = |doing| {
            let path = path.clone();
            move |source| Error::io(doing, &path, source)
        };
        let file = disk.open_append(&path).map_err(failed("open"))?;
        let reader = disk.open_read(&path).map_err(failed("open"))?;
        let reader = reader.ok_or_else(|| failed("open")(io::ErrorKind::NotFound.into()))?;
        #[cfg(feature = "mutant-seq-outside-lock")]
        let taken = prefix.seq_last.map_or(0, Seq::get).into();
        let state = Mutex::new(LogState {
            tail: Tail::new(Arc::clone(&file), FileEnd { len: prefix.len, seq_last: prefix.seq_last }),
            batch: Arc::default(),
            batch_len: 0,
            batch_len_before: 0,
            queued: false,
            health: Health::Good,
            refused: None,
        });
        Ok(Self {
            disk,
            path,
            epoch,
            clock,
            file,
            reader,
            state,
            turn: Mutex::new(()),
            syncing: Mutex::new(()),
            opened: Instant::now(),
            looked_ms: AtomicU64::new(u64::MAX),
            looked_seq: AtomicU64::new(0),
            #[cfg(feature = "mutant-seq-outside-lock")]
            taken,
        })
    }

    /// Appends one line. `under_lock` runs before the next line can be written, so its effects have the order of the
    /// file.
    pub(crate) fn append<R>(
        &self,
        level: Level,
        render: impl FnOnce(Seq, &mut Vec<u8>),
        under_lock: impl FnOnce() -> R,
    ) -> Result<AppendedLine<R>, Error> {
        let taken = self.seq_outside_lock();
        let mut state = match level {
            Level::Written => lock_in_turn(&self.state, &self.turn),
            Level::Synced => lock_soon(&self.state),
        };
        if let Health::Failed(error) = &state.health {
            return Err(error.clone());
        }
        let appended = match taken {
            Some(seq) => state.tail.append_as(seq, render),
            None => state.tail.append(render),
        };
        let seq = appended.map_err(|error| self.append_failed(&mut state, error))?;
        let (batch, queue) = state.join(level);
        let has_refused = state.refused.is_some();
        let kept = under_lock();
        drop(state);
        Ok(AppendedLine { pending: PendingRecord { seq, batch, file: None }, kept, queue, has_refused })
    }

    /// A deliberate fault: takes a number before the lock, to show that the tests find it.
    #[cfg(feature = "mutant-seq-outside-lock")]
    fn seq_outside_lock(&self) -> Option<Seq> {
        Seq::new(self.taken.fetch_add(1, Ordering::SeqCst) + 1)
    }

    #[cfg(not(feature = "mutant-seq-outside-lock"))]
    #[expect(clippy::unused_self, reason = "the mutant needs it")]
    fn seq_outside_lock(&self) -> Option<Seq> {
        None
    }

    fn append_failed(&self, state: &mut LogState, error: AppendError) -> Error {
        match error {
            AppendError::NoRoom(source, lines) => {
                let one = Refusals::one(self.epoch, state.tail.end().seq_last, &source, (self.clock)());
                state.refused = Some(one.times(lines).after(state.refused.as_ref()));
                Error::NoRoom { path: self.path.clone(), source: Arc::new(source) }
            }
            AppendError::Lost(source) => {
                let error =
                    Error::Poisoned { path: self.path.clone(), what: "written", source: Arc::new(source) };
                state.health = Health::Failed(error.clone());
                error
            }
        }
    }

    /// Returns the refusals that are not noted yet.
    pub(crate) fn refused(&self) -> Option<Refusals> {
        lock(&self.state).refused.clone()
    }

    /// Takes the refusals that are not noted yet.
    pub(crate) fn take_refused(&self) -> Option<Refusals> {
        lock(&self.state).refused.take()
    }

    /// Puts back refusals that could not be noted.
    pub(crate) fn put_back_refused(&self, refused: Refusals) {
        let mut state = lock(&self.state);
        state.refused = Some(match state.refused.take() {
            Some(later) => later.after(Some(&refused)),
            None => refused,
        });
    }

    /// Tells whether the previous sync served one record and the next would too, so that no other record is about to
    /// share it.
    pub(crate) fn is_quiet(&self) -> bool {
        let state = lock(&self.state);
        state.batch_len_before <= 1 && state.batch_len <= 1
    }

    /// Returns how long the file is now.
    pub(crate) fn len(&self) -> u64 {
        self.end().len
    }

    /// Returns where the file ends now.
    pub(crate) fn end(&self) -> FileEnd {
        lock(&self.state).tail.end()
    }

    /// Reads back what was written since `prefix` and extends it, if the file has what was written.
    ///
    /// `prefix` covers the file up to the last such call. Only one call may run at a time.
    pub(crate) fn read_back(&self, prefix: &mut Prefix) -> Result<(), Error> {
        let (end, written) = lock(&self.state).tail.take_checksum();
        let outcome = self.read_range(prefix, end, written);
        if let Err(error) = &outcome {
            // The checksum is used up, so nothing more can be sealed.
            lock(&self.state).health = Health::Failed(error.clone());
        }
        outcome
    }

    fn read_range(&self, prefix: &mut Prefix, end: FileEnd, written: u32) -> Result<(), Error> {
        const PIECE_BYTES: u64 = 256 * 1024;
        let failed =
            |source| Error::Poisoned { path: self.path.clone(), what: "read back", source: Arc::new(source) };
        let mut read = crc32fast::Hasher::new();
        let mut hash = prefix.hash.clone();
        let mut offset = prefix.len;
        let mut piece = Vec::new();
        while offset < end.len {
            piece.resize(usize::try_from(PIECE_BYTES.min(end.len - offset)).unwrap_or(0), 0);
            let count = read_full(&*self.reader, &mut piece, offset).map_err(failed)?;
            if count < piece.len() {
                return Err(Error::Changed {
                    path: self.path.clone(),
                    found: offset + count as u64,
                    wanted: end.len,
                });
            }
            read.update(&piece);
            hash.update(&piece);
            offset += count as u64;
        }
        if read.finalize() != written {
            return Err(Error::Changed { path: self.path.clone(), found: end.len, wanted: end.len });
        }
        *prefix = Prefix { len: end.len, seq_last: end.seq_last, hash };
        Ok(())
    }

    /// Syncs everything written so far, and acknowledges all waiting records.
    pub(crate) fn sync_now(&self) -> Result<(), Error> {
        // Locked before the batch is taken: a close then waits for all syncs under way, and the file is not compared
        // with what was written after another writer has continued it.
        let _alone = lock(&self.syncing);
        let batch = lock(&self.state).take_batch();
        let outcome = self.sync_once();
        batch.finish(outcome.clone());
        outcome
    }

    /// Refuses everything from now on; returns the earlier failure, if there was one.
    pub(crate) fn close(&self) -> Option<Error> {
        let mut state = lock(&self.state);
        if let Health::Failed(error) = &state.health {
            // The failure stays: after a failed sync no other may be tried, closed or not.
            return Some(error.clone());
        }
        state.health = Health::Failed(Error::Closed);
        None
    }

    /// Syncs the file and checks that it is still the one at its path. After a failure every call fails.
    fn sync_once(&self) -> Result<(), Error> {
        if let Health::Failed(
            error @ (Error::Poisoned { .. } | Error::Vanished { .. } | Error::Changed { .. }),
        ) = &lock(&self.state).health
        {
            return Err(error.clone());
        }
        sync_file(&*self.file).map_err(|source| {
            let error = Error::Poisoned { path: self.path.clone(), what: "synced", source: Arc::new(source) };
            lock(&self.state).fail(&error);
            error
        })?;
        self.check_in_place()
    }

    /// Returns the failure that stops recording; being closed is not one.
    pub(crate) fn failure(&self) -> Option<Error> {
        match &lock(&self.state).health {
            Health::Good | Health::Failed(Error::Closed) => None,
            Health::Failed(error) => Some(error.clone()),
        }
    }
}

impl LogState {
    /// Joins the batch that the next sync acknowledges; returns whether the file has to be queued for it.
    fn join(&mut self, level: Level) -> (Option<Arc<Batch>>, bool) {
        if level == Level::Written {
            return (None, false);
        }
        self.batch_len += 1;
        let queue = !std::mem::replace(&mut self.queued, true);
        (Some(Arc::clone(&self.batch)), queue)
    }

    /// Refuses everything from now on, and reports the error to all waiting records.
    fn fail(&mut self, error: &Error) {
        self.health = Health::Failed(error.clone());
        self.take_batch().finish(Err(error.clone()));
    }

    fn take_batch(&mut self) -> Arc<Batch> {
        self.batch_len_before = std::mem::take(&mut self.batch_len);
        std::mem::take(&mut self.batch)
    }
}

impl Commit for Log {
    fn commit(&self) -> bool {
        {
            let mut state = lock(&self.state);
            if state.batch_len == 0 {
                // A seal has synced the file meanwhile.
                state.queued = false;
                return false;
            }
        }
        // A failure is stored in `health` and reported to all waiting records.
        self.sync_now().ok();
        let mut state = lock(&self.state);
        state.queued = state.batch_len > 0;
        state.queued
    }

    fn look_after(&self, seq: Seq) -> Result<(), Error> {
        self.look_once_after(seq)
    }

    fn idle(&self) {}
}
