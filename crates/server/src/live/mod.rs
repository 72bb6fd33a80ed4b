//! Live events: one thread reads what is new in the transcripts that somebody listens to, whoever writes them, and hands it
//! to all listeners.
//!
//! The file is the bus. A listener that is too slow is not waited for: it is told from where on it can catch up.

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
/// How often files are looked at where the system does not tell of changes, and for what it may have left out.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
/// How many events of a run are handed out before it is the turn of others.
const TURN_LEN: usize = 256;

/// What the reading thread is told.
enum Told {
    /// Something has changed in a file.
    Changed(RunId),
    /// Anything may have.
    Unsure,
    /// Somebody listens to another run.
    Listening,
}

/// Hands out live events.
pub struct Hub {
    shared: Arc<Shared>,
    tell: Sender<Told>,
    _watcher: Option<RecommendedWatcher>,
}

struct Shared {
    store: Store,
    feeds: Mutex<HashMap<RunId, Feed>>,
    /// How many there are, for those who do not want to wait.
    runs: AtomicUsize,
}

/// A run that somebody listens to.
struct Feed {
    reader: Reader,
    frames: broadcast::Sender<Arc<Frame>>,
}

/// The events of a run from now on.
pub struct Listening {
    /// The events.
    pub frames: broadcast::Receiver<Arc<Frame>>,
    /// The last event that will not come, as it is in the file already; 0 if there is none.
    pub seq_last: u64,
}

impl Shared {
    fn feeds(&self) -> MutexGuard<'_, HashMap<RunId, Feed>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out what is new in some runs, or in all; returns those that have more.
    fn hand_out(&self, changed: Option<&HashSet<RunId>>) -> HashSet<RunId> {
        let mut busy = HashSet::new();
        let mut feeds = self.feeds();
        feeds.retain(|run, feed| {
            let is_due = changed.is_none_or(|changed| changed.contains(run));
            if feed.frames.receiver_count() == 0 {
                return false;
            }
            let left = if is_due { feed.hand_out(*run) } else { Left::Nothing };
            if left == Left::More {
                busy.insert(*run);
            }
            left != Left::Gone && (changed.is_some() || feed.reader.check(&self.store).is_ok())
        });
        self.runs.store(feeds.len(), Ordering::Relaxed);
        busy
    }
}

impl Hub {
    /// Begins to watch a store.
    #[must_use]
    pub fn new(store: Store) -> Self {
        let (tell, told) = channel();
        let watcher = watch(&store, tell.clone());
        let shared = Arc::new(Shared { store, feeds: Mutex::default(), runs: AtomicUsize::new(0) });
        let weak = Arc::downgrade(&shared);
        // It ends with the hub, as nobody can tell it anything then.
        let thread = std::thread::Builder::new().name("steno-live".to_owned());
        if let Err(error) = thread.spawn(move || read_on(&weak, &told)) {
            tracing::error!(%error, "nobody reads what is new");
        }
        Self { shared, tell, _watcher: watcher }
    }

    /// Listens to a run.
    ///
    /// # Errors
    /// What the journal says.
    pub fn listen(&self, run: RunId) -> Result<Listening, Error> {
        let mut feeds = self.shared.feeds();
        // One whose file was replaced tells nothing more.
        feeds.retain(|known, feed| *known != run || feed.reader.check(&self.shared.store).is_ok());
        if let Some(feed) = feeds.get(&run) {
            let seq_last = feed.reader.seq_last().map_or(0, steno_model::Seq::get);
            return Ok(Listening { frames: feed.frames.subscribe(), seq_last });
        }
        let reader = Reader::open_at_end(&self.shared.store, run)?;
        let seq_last = reader.seq_last().map_or(0, steno_model::Seq::get);
        let (frames, receiver) = broadcast::channel(BEHIND_MAX);
        feeds.insert(run, Feed { reader, frames });
        self.shared.runs.store(feeds.len(), Ordering::Relaxed);
        drop(feeds);
        self.tell.send(Told::Listening).ok();
        Ok(Listening { frames: receiver, seq_last })
    }

    /// Returns to how many runs somebody listens.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.shared.runs.load(Ordering::Relaxed)
    }
}

/// Watches the transcripts; `None` where that is not possible.
fn watch(store: &Store, tell: Sender<Told>) -> Option<RecommendedWatcher> {
    let dir = store.disk().host_path(&StorePath::transcripts())?;
    let hear = move |event: notify::Result<notify::Event>| match event {
        Ok(event) if event.kind.is_access() => {}
        Ok(event) if !event.need_rescan() => {
            for run in event.paths.iter().filter_map(|path| run_of(path)) {
                tell.send(Told::Changed(run)).ok();
            }
        }
        Ok(_) | Err(_) => drop(tell.send(Told::Unsure)),
    };
    let started = notify::recommended_watcher(hear).and_then(|mut watcher| {
        watcher.watch(&dir, RecursiveMode::NonRecursive)?;
        Ok(watcher)
    });
    started
        .inspect_err(|error| tracing::warn!(%error, "no watch on the transcripts; looking now and then"))
        .ok()
}

/// Returns the run whose transcript lies at a path.
fn run_of(path: &Path) -> Option<RunId> {
    let name = path.file_name()?.to_str()?;
    RunId::parse(name.strip_suffix(".jsonl")?).ok()
}

/// Reads what is new, until the hub is gone.
fn read_on(shared: &Weak<Shared>, told: &Receiver<Told>) {
    // Those that had more than fits into a turn.
    let mut busy = HashSet::new();
    loop {
        let mut changed = std::mem::take(&mut busy);
        let mut is_sure = true;
        let wait = if changed.is_empty() { LOOK_INTERVAL } else { Duration::ZERO };
        let mut take = |told| match told {
            Told::Changed(run) => drop(changed.insert(run)),
            Told::Unsure | Told::Listening => is_sure = false,
        };
        match told.recv_timeout(wait) {
            Ok(first) => {
                take(first);
                told.try_iter().for_each(take);
            }
            Err(RecvTimeoutError::Timeout) => is_sure = wait.is_zero(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let Some(shared) = shared.upgrade() else { return };
        busy = shared.hand_out(is_sure.then_some(&changed));
    }
}

/// What a run has left after its turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Nothing,
    More,
    /// There will be no more.
    Gone,
}

impl Feed {
    /// Hands out what is new, as much as fits into a turn.
    fn hand_out(&mut self, run: RunId) -> Left {
        for _ in 0..TURN_LEN {
            match self.reader.read_next() {
                // Nobody may be there to hear it.
                Ok(Some(recorded)) => drop(self.frames.send(Arc::new(Frame::of(&recorded)))),
                Ok(None) => return Left::Nothing,
                Err(error) => {
                    let path = RunFile::Transcript(run).path();
                    tracing::warn!(%error, "`{path}` cannot be read on");
                    return Left::Gone;
                }
            }
        }
        Left::More
    }
}
