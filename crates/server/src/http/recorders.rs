//! Runs that are recorded over HTTP: each is opened with its first event, and closed when it is idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use steno_journal::{Error, Journal, Recorder, RecordingGuard};
use steno_model::RunId;

/// After how long without events a run is closed, so that other processes can record it.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// How long to wait for others, and how many times at most.
const WAIT: Duration = Duration::from_millis(2);
const WAITS_MAX: usize = 1000;

/// The runs that are open.
pub(super) struct Recorders {
    journal: Journal,
    /// How many may be open: each takes some file descriptors.
    open_max: usize,
    /// How many are open.
    open: AtomicUsize,
    places: Mutex<HashMap<RunId, Arc<RunSlot>>>,
}

/// The lock under which the recorder of one run is opened and closed.
#[derive(Default)]
struct RunSlot(Mutex<SlotState>);

#[derive(Default)]
struct SlotState {
    open: Option<OpenRecorder>,
    /// A failed recorder that some requests may still hold.
    failed: Weak<Recorder>,
}

struct OpenRecorder {
    recorder: Arc<Recorder>,
    used: Instant,
}

impl RunSlot {
    fn held(&self) -> MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns since when the recorder is idle, if that is known without waiting for the lock.
    fn idle_since(&self) -> Option<Instant> {
        let held = self.0.try_lock().ok()?;
        held.open.as_ref().filter(|open| Arc::strong_count(&open.recorder) == 1).map(|open| open.used)
    }
}

impl Recorders {
    pub(super) fn new(journal: Journal, open_max: usize) -> Self {
        Self { journal, open_max, open: AtomicUsize::new(0), places: Mutex::default() }
    }

    /// Starts recording; fails while recording is paused.
    pub(super) fn enter(&self) -> Result<RecordingGuard, Error> {
        self.journal.store().begin_recording(jiff::Timestamp::now())
    }

    fn places(&self) -> MutexGuard<'_, HashMap<RunId, Arc<RunSlot>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the recorder of a run, and opens it if needed.
    pub(super) fn of(&self, run: RunId) -> Result<Arc<Recorder>, Error> {
        let place = Arc::clone(self.places().entry(run).or_default());
        // A failed recorder holds the lock of the run until its last user drops it.
        wait_until(|| place.held().failed.strong_count() == 0);
        let mut held = place.held();
        if held.open.is_none() {
            self.take_slot();
            let recorder = Arc::new(self.journal.record(run).inspect_err(|_| self.give_slot_back())?);
            held.open = Some(OpenRecorder { recorder, used: Instant::now() });
        }
        let open = held.open.as_mut().ok_or(Error::Closed)?;
        open.used = Instant::now();
        Ok(Arc::clone(&open.recorder))
    }

    /// Counts one more open recorder, and closes the one that was idle longest if the limit is reached.
    ///
    /// If all of them stay in use, the limit is exceeded by one.
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

    /// Closes a recorder, unless it is in use again. Requests that come meanwhile wait, and open it again.
    fn close_idle(&self, place: &RunSlot) {
        let mut held = place.held();
        if let Some(idle) = held.open.take_if(|open| Arc::strong_count(&open.recorder) == 1) {
            close(&idle.recorder);
            self.give_slot_back();
        }
    }

    /// Drops a failed recorder: the next request opens the run again, which recovers it.
    pub(super) fn give_up(&self, failed: &Arc<Recorder>) {
        let place = self.places().get(&failed.run()).cloned();
        let Some(place) = place else { return };
        let mut held = place.held();
        if held.open.take_if(|open| Arc::ptr_eq(&open.recorder, failed)).is_some() {
            self.give_slot_back();
            held.failed = Arc::downgrade(failed);
        }
    }

    /// Closes recorders that have been idle for long.
    pub(super) fn close_quiet(&self) {
        let is_quiet =
            |place: &RunSlot| place.idle_since().is_some_and(|since| since.elapsed() >= QUIET_AFTER);
        let quiet: Vec<_> = self.places().values().filter(|place| is_quiet(place)).cloned().collect();
        for place in quiet {
            self.close_idle(&place);
        }
        self.drop_closed();
    }

    /// Removes unused slots. A slot that a request holds is about to be opened.
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

/// Waits until a condition is true; false if it stays false.
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
        tracing::warn!(run = %recorder.run(), %error, "cannot close a run");
    }
}
