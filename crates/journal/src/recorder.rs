//! The recorder of one run: record, subscribe, close (R66).

use std::sync::Arc;
use std::time::{Duration, Instant};

use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{Draft, Epoch, RunId, Seq, Timestamp};

use crate::catch_up::CatchUp;
use crate::commit::{Commit, CommitPool};
use crate::error::Error;
use crate::fanout::{FanOut, MissedEvents, Subscription};
use crate::lease::Lease;
use crate::log::{Level, Log, LogParts, PendingRecord};
use crate::names::RunFile;
use crate::note::{NoteKind, settle_refused, write_note, write_refused};
use crate::recovery;
use crate::rewrite;
use crate::seal::{Prefix, Seal};
use crate::sidecar;
use crate::store::Store;
use crate::sync::{Mutex, MutexGuard, lock};

/// Options of recorders.
#[derive(Clone)]
pub struct Options {
    /// After how long without a new event a run is sealed.
    pub seal_idle: Duration,
    /// The clock.
    pub clock: fn() -> jiff::Timestamp,
}

impl Default for Options {
    fn default() -> Self {
        Self { seal_idle: Duration::from_secs(30), clock: jiff::Timestamp::now }
    }
}

/// The write side of a store: opens recorders that share a few commit threads.
#[derive(Clone)]
pub struct Journal {
    pub(crate) store: Store,
    pub(crate) pool: Arc<CommitPool>,
    pub(crate) options: Options,
}

impl Journal {
    /// Makes the write side of a store.
    #[must_use]
    pub fn new(store: Store, options: Options) -> Self {
        Self { store, pool: CommitPool::new(), options }
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns how many commit threads there are.
    #[must_use]
    pub fn commit_threads(&self) -> usize {
        self.pool.threads()
    }

    /// Opens a run for appending: takes its lock, recovers after a crash, and continues after its last event.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, [`Error::Damaged`] or [`Error::SealBroken`] when it must not be
    /// appended to, or an I/O error.
    pub fn record(&self, run: RunId) -> Result<Recorder, Error> {
        let disk = Arc::clone(self.store.disk());
        let now = (self.options.clock)();
        let mut lease = Lease::take(&*disk, &RunFile::Lock(run).path(), now)?;
        rewrite::settle(&*disk, run)?;
        let found = recovery::inspect(&*disk, run)?;
        recovery::apply(&*disk, &found, now)?;
        let refused = settle_refused(&*disk, run, &mut lease)?;
        let prefix = found.into_prefix();
        let sealed = prefix.len;
        let path = RunFile::Transcript(run).path();
        let (epoch, clock) = (lease.epoch, self.options.clock);
        let log = Log::open(LogParts { disk, path, epoch, prefix: prefix.clone(), clock })?;
        if let Some(refused) = refused {
            log.put_back_refused(refused);
        }
        let inner = Arc::new(Inner {
            run,
            epoch,
            store: self.store.clone(),
            log,
            fan_out: FanOut::default(),
            sealing: Mutex::new(SealProgress { sealed, prefix, seen: sealed, since: Instant::now() }),
            lease: Mutex::new(Some(lease)),
            options: self.options.clone(),
        });
        let watched: Arc<dyn Commit> = Arc::<Inner>::clone(&inner);
        self.pool.watch(Arc::downgrade(&watched));
        Ok(Recorder { inner, pool: Arc::clone(&self.pool) })
    }
}

/// The only writer of a run. Threads share it by reference.
pub struct Recorder {
    inner: Arc<Inner>,
    pool: Arc<CommitPool>,
}

struct Inner {
    run: RunId,
    epoch: Epoch,
    store: Store,
    log: Log,
    fan_out: FanOut,
    sealing: Mutex<SealProgress>,
    lease: Mutex<Option<Lease>>,
    options: Options,
}

/// How far the file is sealed, and since when it has not grown.
struct SealProgress {
    sealed: u64,
    /// The part that was read back and matches what was written.
    prefix: Prefix,
    seen: u64,
    since: Instant,
}

impl Recorder {
    /// Returns the run.
    #[must_use]
    pub fn run(&self) -> RunId {
        self.inner.run
    }

    /// Returns the number of this opening of the run.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.inner.epoch
    }

    /// Returns the number of the last event.
    #[must_use]
    pub fn seq_last(&self) -> Option<Seq> {
        self.inner.log.end().seq_last
    }

    /// Records an event and waits until it has reached its level.
    ///
    /// At [`Level::Written`] the file is checked once per millisecond, since a check takes longer than a write. To have
    /// a check before every acknowledgement, [`append`](Self::append) events and wait for them.
    ///
    /// # Errors
    /// [`Error::NoRoom`] when the disk is full, or [`Error::TooLong`]: nothing was written, and the next record may
    /// succeed. Any other error stops the recorder permanently.
    pub fn record(&self, draft: Draft, level: Level) -> Result<Seq, Error> {
        let (pending, queue) = self.write(draft, level)?;
        // Waking a commit thread takes a third of the time of a sync, so a lone writer syncs by itself.
        if queue && (!self.inner.log.is_quiet() || self.inner.commit()) {
            self.queue();
        }
        pending.wait()
    }

    /// Writes an event and returns before its sync or check, so that one thread can have many in flight.
    ///
    /// # Errors
    /// As [`Recorder::record`].
    pub fn append(&self, draft: Draft, level: Level) -> Result<PendingRecord, Error> {
        let (pending, queue) = self.write(draft, level)?;
        if queue {
            self.queue();
        }
        Ok(pending.look_at(Arc::<Inner>::clone(&self.inner)))
    }

    fn queue(&self) {
        self.pool.push(Arc::<Inner>::clone(&self.inner));
    }

    /// Writes an event and passes it to subscribers; returns whether the run has to be queued for a commit.
    fn write(&self, draft: Draft, level: Level) -> Result<(PendingRecord, bool), Error> {
        let inner = &self.inner;
        let encoded = draft.encode(inner.run, || Timestamp::from_instant((inner.options.clock)()));
        if encoded.line_bytes_max() > LINE_BYTES_MAX {
            return Err(Error::TooLong { bytes: encoded.line_bytes_max() as u64 });
        }
        let render = |seq, line: &mut Vec<u8>| encoded.write_line(seq, line);
        let appended = inner.log.append(level, render, || inner.fan_out.enter());
        let appended = appended.inspect_err(|error| inner.keep_if_refused(error))?;
        let (mut subscribers, pending) = (appended.kept, appended.pending);
        subscribers.deliver(|| encoded.into_event(pending.seq()));
        drop(subscribers);
        if appended.has_refused
            && let Some(lease) = lock(&inner.lease).as_mut()
        {
            inner.note_refused(lease);
        }
        if level == Level::Written {
            inner.log.look_now_and_then()?;
        }
        Ok((pending, appended.queue))
    }

    /// Subscribes to events that are recorded from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.inner.fan_out.subscribe(self.inner.epoch)
    }

    /// Returns the events from `from` on: first from the file, then live; events missed live are read from the file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn catch_up(&self, from: Seq) -> Result<CatchUp, Error> {
        CatchUp::new(self.subscribe(), &self.inner.store, self.inner.run, from)
    }

    /// Notes that the source could not deliver everything it saw.
    ///
    /// # Errors
    /// [`Error::Closed`], or an I/O error.
    pub fn note_dropped(&self, count: u64, cause: &str) -> Result<(), Error> {
        let _held = self.inner.hold()?;
        let seq_last = self.seq_last().map_or(0, Seq::get);
        self.inner.note(NoteKind::Dropped { count, seq_last, cause: cause.to_owned() })
    }

    /// Seals everything recorded so far; `None` when the last seal covers it already.
    ///
    /// # Errors
    /// [`Error::Closed`], or an I/O error.
    pub fn seal(&self) -> Result<Option<Seal>, Error> {
        let _held = self.inner.hold()?;
        self.inner.seal()
    }

    /// Seals the run when nothing has been recorded for a while; commit threads do this by themselves.
    pub fn seal_if_idle(&self, now: Instant) {
        self.inner.seal_if_idle(now);
    }

    /// Syncs and seals the run, ends the subscriptions, releases the lock. A second call does nothing.
    ///
    /// # Errors
    /// What failed; the recorder is closed all the same.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.close()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::error!(run = %self.inner.run, %error, "closing a run failed");
        }
    }
}

impl Inner {
    /// Prevents a close while the guard is held; fails when the run is closed.
    fn hold(&self) -> Result<MutexGuard<'_, Option<Lease>>, Error> {
        let held = lock(&self.lease);
        if held.is_some() { Ok(held) } else { Err(Error::Closed) }
    }

    fn note(&self, what: NoteKind) -> Result<(), Error> {
        write_note(&**self.store.disk(), self.run, (self.options.clock)(), what)
    }

    /// Records refusals in the lock file before the error is returned: the process may end before they can be noted.
    fn keep_if_refused(&self, error: &Error) {
        if !matches!(error, Error::NoRoom { .. }) {
            return;
        }
        // If the run is closed, `close` has handled it: the refusal was counted before.
        if let Some(lease) = lock(&self.lease).as_mut() {
            self.keep_refused(lease);
        }
    }

    /// Records in the lock file the refusals that are not noted.
    fn keep_refused(&self, lease: &mut Lease) {
        if let Err(error) = lease.set_refused(self.log.refused()) {
            tracing::warn!(run = %self.run, %error, "refusals could not be recorded in the lock file");
        }
    }

    /// Notes refusals; those that cannot be noted now are noted later.
    fn note_refused(&self, lease: &mut Lease) {
        let Some(refused) = self.log.take_refused() else { return };
        if let Err(error) = write_refused(&**self.store.disk(), self.run, &refused) {
            tracing::warn!(run = %self.run, %error, "refusals could not be noted yet");
            self.log.put_back_refused(refused);
        }
        self.keep_refused(lease);
    }

    fn seal(&self) -> Result<Option<Seal>, Error> {
        let mut sealing = lock(&self.sealing);
        self.log.read_back(&mut sealing.prefix)?;
        self.log.sync_now()?;
        if sealing.prefix.len == sealing.sealed {
            return Ok(None);
        }
        let seal = Seal::new(self.run, &sealing.prefix, (self.options.clock)());
        sidecar::append_line(&**self.store.disk(), &RunFile::Seals(self.run).path(), &seal.to_line())?;
        sealing.sealed = sealing.prefix.len;
        Ok(Some(seal))
    }

    /// Seals the run if nothing was recorded for a while.
    fn seal_if_idle(&self, now: Instant) {
        let Ok(_held) = self.hold() else { return };
        let len = self.log.len();
        let due = {
            let mut sealing = lock(&self.sealing);
            if sealing.seen != len {
                (sealing.seen, sealing.since) = (len, now);
            }
            sealing.sealed < len && now.saturating_duration_since(sealing.since) >= self.options.seal_idle
        };
        if due && self.log.failure().is_none() {
            // Set even if sealing fails, so that the next attempt comes after the same time.
            lock(&self.sealing).since = now;
            if let Err(error) = self.seal() {
                tracing::warn!(run = %self.run, %error, "an idle run could not be sealed");
            }
        }
    }

    fn close(&self) -> Result<(), Error> {
        // Held to the end, so that a second close returns only when everything is done.
        let mut held = lock(&self.lease);
        let Some(mut lease) = held.take() else { return Ok(()) };
        let outcome = match self.log.close() {
            None => self.seal().map(|_| ()),
            Some(error) => Err(error),
        };
        if let Err(Error::Vanished { kept: Some(kept), .. }) = &outcome {
            let seq_last = self.log.end().seq_last.map_or(0, Seq::get);
            self.note_or_warn(NoteKind::Vanished { kept: kept.file_name().to_owned(), seq_last });
        }
        self.note_refused(&mut lease);
        for missed in self.fan_out.close() {
            self.note_or_warn(lagged(missed));
        }
        drop(lease);
        outcome
    }

    fn note_or_warn(&self, what: NoteKind) {
        if let Err(error) = self.note(what) {
            tracing::warn!(run = %self.run, %error, "a note could not be written");
        }
    }
}

fn lagged(missed: MissedEvents) -> NoteKind {
    let (first, last) = missed.range.map_or((0, 0), |(first, last)| (first.get(), last.get()));
    NoteKind::Lagged { count: missed.count, seq_first: first, seq_last: last }
}

impl Commit for Inner {
    fn commit(&self) -> bool {
        self.log.commit()
    }

    fn look_after(&self, seq: Seq) -> Result<(), Error> {
        self.log.look_once_after(seq)
    }

    fn idle(&self) {
        // A failure is stored and returned to the next caller that records.
        self.log.look().ok();
        self.seal_if_idle(Instant::now());
    }
}
