//! Runs that are recorded over HTTP: each is opened with its first event, and closed when it has been quiet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use steno_journal::{Error, Journal, Recorder, RecordingGuard};
use steno_model::RunId;

/// After how long without events a run is closed, so that others can record it.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// How long is waited for others at a time, and how often at most.
const WAIT: Duration = Duration::from_millis(2);
const WAITS_MAX: usize = 1000;

/// The runs that are open.
pub(super) struct Recorders {
    journal: Journal,
    /// How many are held open: each takes some descriptors.
    open_max: usize,
    /// How many are.
    open: AtomicUsize,
    places: Mutex<HashMap<RunId, Arc<Place>>>,
}

/// Where the recorder of one run is opened and closed, while others go on with theirs.
#[derive(Default)]
struct Place(Mutex<Held>);

#[derive(Default)]
struct Held {
    open: Option<Open>,
    /// One that has failed, and that some may hold still.
    failed: Weak<Recorder>,
}

struct Open {
    recorder: Arc<Recorder>,
    used: Instant,
}

impl Place {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns since when it is open and nobody uses it, as far as that can be seen without waiting.
    fn idle_since(&self) -> Option<Instant> {
        let held = self.0.try_lock().ok()?;
        held.open.as_ref().filter(|open| Arc::strong_count(&open.recorder) == 1).map(|open| open.used)
    }
}

impl Recorders {
    pub(super) fn new(journal: Journal, open_max: usize) -> Self {
        Self { journal, open_max, open: AtomicUsize::new(0), places: Mutex::default() }
    }

    /// Begins to record something; fails while recording is paused.
    pub(super) fn enter(&self) -> Result<RecordingGuard, Error> {
        self.journal.store().begin_recording(jiff::Timestamp::now())
    }

    fn places(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the recorder of a run, which is opened if need be.
    pub(super) fn of(&self, run: RunId) -> Result<Arc<Recorder>, Error> {
        let place = Arc::clone(self.places().entry(run).or_default());
        // A recorder that has failed has the lock of the run until the last one lets it go.
        wait_until(|| place.held().failed.strong_count() == 0);
        let mut held = place.held();
        if held.open.is_none() {
            self.take_slot();
            let recorder = Arc::new(self.journal.record(run).inspect_err(|_| self.give_slot_back())?);
            held.open = Some(Open { recorder, used: Instant::now() });
        }
        let open = held.open.as_mut().ok_or(Error::Closed)?;
        open.used = Instant::now();
        Ok(Arc::clone(&open.recorder))
    }

    /// Counts one more that is to be open, and closes the one that was used longest ago if there are enough.
    ///
    /// Should all of them be in use for long, it is one too many rather than none.
    fn take_slot(&self) {
        let take = |open: usize| (open < self.open_max).then_some(open + 1);
        let is_taken = wait_until(|| {
            if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                return true;
            }
            let idle = self
                .places()
                .values()
                .filter_map(|place| Some((place.idle_since()?, Arc::clone(place))))
                .collect::<Vec<_>>();
            if let Some((_, oldest)) = idle.into_iter().min_by_key(|(since, _)| *since) {
                self.close_idle(&oldest);
            }
            self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
        });
        if !is_taken {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn give_slot_back(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Closes one, unless somebody has come to use it. Whoever comes meanwhile waits, and opens it again.
    fn close_idle(&self, place: &Place) {
        let mut held = place.held();
        if let Some(idle) = held.open.take_if(|open| Arc::strong_count(&open.recorder) == 1) {
            close(&idle.recorder);
            self.give_slot_back();
        }
    }

    /// Lets go of a run whose recorder has failed: the next one opens it anew, which recovers.
    pub(super) fn give_up(&self, failed: &Arc<Recorder>) {
        let place = self.places().get(&failed.run()).cloned();
        let Some(place) = place else { return };
        let mut held = place.held();
        if held.open.take_if(|open| Arc::ptr_eq(&open.recorder, failed)).is_some() {
            self.give_slot_back();
            held.failed = Arc::downgrade(failed);
        }
    }

    /// Closes what has been quiet.
    pub(super) fn close_quiet(&self) {
        let is_quiet = |place: &Place| place.idle_since().is_some_and(|since| since.elapsed() >= QUIET_AFTER);
        let quiet: Vec<_> = self.places().values().filter(|place| is_quiet(place)).cloned().collect();
        for place in quiet {
            self.close_idle(&place);
        }
        self.drop_closed();
    }

    /// Takes places away that nobody needs. Who holds one is about to open it.
    fn drop_closed(&self) {
        self.places().retain(|_, place| Arc::strong_count(place) > 1 || place.held().open.is_some());
    }

    pub(super) fn close_all(&self) {
        for (_, place) in std::mem::take(&mut *self.places()) {
            if let Some(open) = place.held().open.take() {
                close(&open.recorder);
                self.give_slot_back();
            }
        }
    }

    /// Returns how many are open or being opened.
    pub(super) fn len(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// Waits a while until something is so; false if it does not come about.
fn wait_until(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..WAITS_MAX {
        if is_so() {
            return true;
        }
        std::thread::sleep(WAIT);
    }
    false
}

fn close(recorder: &Recorder) {
    if let Err(error) = recorder.close() {
        tracing::warn!(run = %recorder.run(), %error, "a run was not closed well");
    }
}
