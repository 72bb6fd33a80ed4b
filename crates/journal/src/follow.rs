//! Follows a transcript that another process writes: the file is the bus.

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use steno_disk::StorePath;
use steno_model::{EventType, RunId, Seq, Word};

use crate::error::Error;
use crate::reader::{Reader, Recorded};
use crate::store::Store;

/// How often a file is looked at where the system tells nobody about changes.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Events of one run from a number on: those in the file, then each as it is written.
pub struct Follower {
    store: Store,
    reader: Reader,
    /// Whether the last event that was read says that the run has completed.
    completed: bool,
    from: Seq,
    watch: Option<Watch>,
}

/// Why waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something has changed among the transcripts.
    Changed,
    /// Nothing was heard in that time.
    TimedOut,
}

struct Watch {
    _watcher: RecommendedWatcher,
    changed: Receiver<()>,
}

impl Follower {
    /// Opens a run that exists.
    ///
    /// # Errors
    /// [`Error::NoSuchRun`], or an I/O error.
    pub fn open(store: &Store, run: RunId, from: Seq) -> Result<Self, Error> {
        // Watching begins before the first read, so that nothing falls between the two.
        let watch = Watch::start(store);
        Ok(Self { store: store.clone(), reader: Reader::open(store, run)?, completed: false, from, watch })
    }

    /// Returns the next event that is in the file; `None` when there is no more yet.
    ///
    /// # Errors
    /// As [`Reader::read_next`].
    pub fn read_next(&mut self) -> Result<Option<Recorded>, Error> {
        while let Some(recorded) = self.reader.read_next()? {
            self.completed = recorded.event.event_type == Word::Known(EventType::RunCompleted);
            if recorded.event.seq >= self.from {
                return Ok(Some(recorded));
            }
        }
        Ok(None)
    }

    /// Tells whether the last event of the file, as far as it was read, completes the run.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.completed
    }

    /// Waits until the file may have grown, at most so long; says which it was.
    ///
    /// # Errors
    /// When the file was deleted, replaced, or has become shorter than what was read.
    pub fn wait(&self, at_most: Duration) -> Result<Woken, Error> {
        let heard = if let Some(watch) = &self.watch {
            watch.changed.recv_timeout(at_most).is_ok()
        } else {
            std::thread::sleep(at_most.min(POLL_INTERVAL));
            false
        };
        self.reader.check_in_place(&**self.store.disk())?;
        // Heard of a change or not, the file is read again: a lost notice costs time and no event.
        Ok(if heard { Woken::Changed } else { Woken::TimedOut })
    }
}

impl Watch {
    /// Watches the transcripts; `None` where that is not possible (no such call, no more watches).
    fn start(store: &Store) -> Option<Self> {
        let dir = store.disk().host_path(&StorePath::transcripts())?;
        // One notice that waits says all there is to say: read the file again.
        let (send, changed) = sync_channel(1);
        let tell = move |event: notify::Result<notify::Event>| {
            // Looking at the file opens its directory, which is told of too; heeding that would never end.
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
                tracing::debug!(%error, "no watch on the transcripts; looking at the file now and then");
                None
            }
        }
    }
}
