//! Live events: one worker thread reads new events from the transcripts that have listeners, and sends them to all
//! listeners. Any process may write the transcripts.
//!
//! A listener that is too slow does not delay others. It gets the number from which it can read the file.

mod frame;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use steno_disk::StorePath;
use steno_journal::{Error, Reader, RunFile, Store};
use steno_model::RunId;
use tokio::sync::broadcast;

pub use frame::{Frame, FrameId, end_of};

/// How many events a listener may be behind.
const BEHIND_MAX: usize = 128;
/// How often files are checked, because the system may not report every change.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How many events of one run are sent before the next run is read.
const TURN_LEN: usize = 256;

/// A message to the worker thread.
enum FeedNotice {
    /// The transcript of a run changed.
    Changed(RunId),
    /// Any file may have changed.
    Unsure,
    /// Another run has a listener.
    Subscription,
}

/// Sends live events to listeners.
pub struct Hub {
    shared: Arc<HubState>,
    tell: Sender<FeedNotice>,
    _watcher: Option<RecommendedWatcher>,
}

struct HubState {
    store: Store,
    feeds: Mutex<HashMap<RunId, Feed>>,
    /// The number of feeds, readable without the lock.
    runs: AtomicUsize,
}

/// A run with listeners.
struct Feed {
    reader: Reader,
    frames: broadcast::Sender<Arc<Frame>>,
}

/// The events of a run from now on.
pub struct Subscription {
    /// The events.
    pub frames: broadcast::Receiver<Arc<Frame>>,
    /// The last event that is already in the file and is not sent; 0 if there is none.
    pub seq_last: u64,
}

impl HubState {
    fn feeds(&self) -> MutexGuard<'_, HashMap<RunId, Feed>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends new events of some runs, or of all; returns the runs that have more.
    fn send_new(&self, changed: Option<&HashSet<RunId>>) -> HashSet<RunId> {
        let mut busy = HashSet::new();
        let mut feeds = self.feeds();
        feeds.retain(|run, feed| {
            let is_due = changed.is_none_or(|changed| changed.contains(run));
            if feed.frames.receiver_count() == 0 {
                return false;
            }
            let left = if is_due { feed.send_new(*run) } else { FeedState::Nothing };
            if left == FeedState::More {
                busy.insert(*run);
            }
            left != FeedState::Gone && (changed.is_some() || feed.reader.check(&self.store).is_ok())
        });
        self.runs.store(feeds.len(), Ordering::Relaxed);
        busy
    }
}

impl Hub {
    /// Starts to watch a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        let (tell, notices) = channel();
        let watcher = watch(&store, tell.clone());
        let shared = Arc::new(HubState { store, feeds: Mutex::default(), runs: AtomicUsize::new(0) });
        let weak = Arc::downgrade(&shared);
        // The thread ends when the hub is dropped and the channel closes.
        let thread = std::thread::Builder::new().name("steno-live".to_owned());
        if let Err(error) = thread.spawn(move || read_until_dropped(&weak, &notices)) {
            tracing::error!(%error, "cannot start the thread that reads live events");
        }
        Self { shared, tell, _watcher: watcher }
    }

    /// Subscribes to a run.
    ///
    /// # Errors
    /// What the journal says.
    pub fn listen(&self, run: RunId) -> Result<Subscription, Error> {
        let mut feeds = self.shared.feeds();
        // A feed whose file was replaced sends nothing more.
        feeds.retain(|known, feed| *known != run || feed.reader.check(&self.shared.store).is_ok());
        if let Some(feed) = feeds.get(&run) {
            let seq_last = feed.reader.seq_last().map_or(0, steno_model::Seq::get);
            return Ok(Subscription { frames: feed.frames.subscribe(), seq_last });
        }
        let reader = Reader::open_at_end(&self.shared.store, run)?;
        let seq_last = reader.seq_last().map_or(0, steno_model::Seq::get);
        let (frames, receiver) = broadcast::channel(BEHIND_MAX);
        feeds.insert(run, Feed { reader, frames });
        self.shared.runs.store(feeds.len(), Ordering::Relaxed);
        drop(feeds);
        self.tell.send(FeedNotice::Subscription).ok();
        Ok(Subscription { frames: receiver, seq_last })
    }

    /// Returns how many runs have listeners.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.shared.runs.load(Ordering::Relaxed)
    }
}

/// Watches the transcripts; `None` where that is not possible.
fn watch(store: &Store, tell: Sender<FeedNotice>) -> Option<RecommendedWatcher> {
    let dir = store.disk().host_path(&StorePath::transcripts())?;
    let on_change = move |event: notify::Result<notify::Event>| match event {
        Ok(event) if event.kind.is_access() => {}
        Ok(event) if !event.need_rescan() => {
            for run in event.paths.iter().filter_map(|path| run_of(path)) {
                tell.send(FeedNotice::Changed(run)).ok();
            }
        }
        Ok(_) | Err(_) => drop(tell.send(FeedNotice::Unsure)),
    };
    let started = notify::recommended_watcher(on_change).and_then(|mut watcher| {
        watcher.watch(&dir, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    started
        .inspect_err(
            |error| tracing::warn!(%error, "cannot watch the transcripts; checking them regularly instead"),
        )
        .ok()
}

/// Returns the run whose transcript is at a path.
fn run_of(path: &Path) -> Option<RunId> {
    let name = path.file_name()?.to_str()?;
    RunId::parse(name.strip_suffix(".jsonl")?).ok()
}

/// Reads new events until the hub is dropped.
fn read_until_dropped(shared: &Weak<HubState>, notices: &Receiver<FeedNotice>) {
    // Runs that had more than `TURN_LEN` events.
    let mut busy = HashSet::new();
    loop {
        let mut changed = std::mem::take(&mut busy);
        let mut is_sure = true;
        let wait = if changed.is_empty() { LOOK_INTERVAL } else { Duration::ZERO };
        let mut take = |notice| match notice {
            FeedNotice::Changed(run) => drop(changed.insert(run)),
            FeedNotice::Unsure | FeedNotice::Subscription => is_sure = false,
        };
        match notices.recv_timeout(wait) {
            Ok(first) => {
                take(first);
                notices.try_iter().for_each(take);
            }
            Err(RecvTimeoutError::Timeout) => is_sure = wait.is_zero(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        busy = shared.send_new(is_sure.then_some(&changed));
    }
}

/// What a feed has left after one round.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FeedState {
    Nothing,
    More,
    /// The transcript cannot be read any further.
    Gone,
}

impl Feed {
    /// Sends up to `TURN_LEN` new events.
    fn send_new(&mut self, run: RunId) -> FeedState {
        for _ in 0..TURN_LEN {
            match self.reader.read_next() {
                // Sending fails without listeners, which is fine.
                Ok(Some(recorded)) => drop(self.frames.send(Arc::new(Frame::of(&recorded)))),
                Ok(None) => return FeedState::Nothing,
                Err(error) => {
                    let path = RunFile::Transcript(run).path();
                    tracing::warn!(%error, "cannot continue reading `{path}`");
                    return FeedState::Gone;
                }
            }
        }
        FeedState::More
    }
}
