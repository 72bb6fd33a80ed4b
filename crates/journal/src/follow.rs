//! Follows a transcript that another process writes: the file is the bus.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use steno_disk::StorePath;
use steno_model::{EventType, RunId, Seq, Word};

use crate::error::Error;
use crate::reader::{Reader, RecordedEvent};
use crate::store::Store;

/// How often a file is polled where the system does not report changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Streams the events of a run from a number on: those in the file, then each new one as it is written.
pub struct Follower {
    store: Store,
    reader: Reader,
    /// Whether the last event that was read completes the run.
    completed: bool,
    from: Seq,
    watch: TranscriptWatch,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeReason {
    /// Something changed in the directory of transcripts.
    Changed,
    /// Nothing changed in that time.
    TimedOut,
}

/// Waits for changes in the directory of transcripts.
pub struct TranscriptWatch(Option<DirWatch>);

struct DirWatch {
    _watcher: RecommendedWatcher,
    changed: Receiver<()>,
}

impl Follower {
    /// Opens an existing run.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], or an I/O error.
    pub fn open(store: &Store, run: RunId, from: Seq) -> Result<Self, Error> {
        // The watch starts before the first read, so that no change is missed.
        let watch = TranscriptWatch::start(store);
        Ok(Self { store: store.clone(), reader: Reader::open(store, run)?, completed: false, from, watch })
    }

    /// Returns the next event in the file; `None` when there is none yet.
    ///
    /// # Errors
    /// As [`Reader::read_next`].
    pub fn read_next(&mut self) -> Result<Option<RecordedEvent>, Error> {
        while let Some(recorded) = self.reader.read_next()? {
            self.completed = recorded.event.event_type == Word::Known(EventType::RunCompleted);
            if recorded.event.seq >= self.from {
                return Ok(Some(recorded));
            }
        }
        Ok(None)
    }

    /// Tells whether the last event that was read completes the run.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.completed
    }

    /// Waits until the file may have grown or the time is over; returns which.
    ///
    /// # Errors
    /// When the file was deleted, replaced, or has become shorter than what was read.
    pub fn wait(&self, at_most: Duration) -> Result<WakeReason, Error> {
        let reason = self.watch.wait(at_most);
        self.reader.check_in_place(&**self.store.disk())?;
        // The file is read again in both cases, so a lost notice costs time but no event.
        Ok(reason)
    }
}

impl TranscriptWatch {
    /// Begins to watch. Where that is not possible (not supported, or no watches left), waiting ends after a short time.
    #[must_use]
    pub fn start(store: &Store) -> Self {
        Self(DirWatch::start(store))
    }

    /// Waits until something may have changed or the time is over; returns which.
    #[must_use]
    pub fn wait(&self, at_most: Duration) -> WakeReason {
        let is_changed = if let Some(watch) = &self.0 {
            watch.changed.recv_timeout(at_most).is_ok()
        } else {
            std::thread::sleep(at_most.min(POLL_INTERVAL));
            false
        };
        if is_changed { WakeReason::Changed } else { WakeReason::TimedOut }
    }
}

impl DirWatch {
    fn start(store: &Store) -> Option<Self> {
        let dir = store.disk().host_path(&StorePath::transcripts())?;
        // One queued notice is enough: it means that the file has to be read again.
        let (send, changed) = sync_channel(1);
        let tell = move |event: notify::Result<notify::Event>| {
            // Our own reads cause access notices too. Reacting to them would never end.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                send.try_send(()).ok();
            }
        };
        let started = notify::recommended_watcher(tell).and_then(|mut watcher| {
            watcher.watch(&dir, RecursiveMode::NonRecursive)?;
            Ok(Self { _watcher: watcher, changed })
        });
        match started {
            Ok(watch) => Some(watch),
            Err(error) => {
                tracing::debug!(%error, "cannot watch the transcripts; polling the file instead");
                None
            }
        }
    }
}
