//! Runs that are recorded over HTTP: each is opened with its first event, and closed when it has been quiet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use steno_journal::{Error, Journal, Recorder};
use steno_model::RunId;

/// After how long without events a run is closed, so that others can record it.
const QUIET_AFTER: Duration = Duration::from_secs(10);

/// The runs that are open.
pub(super) struct Recorders {
    journal: Journal,
    /// How many are held open: each takes some descriptors.
    open_max: usize,
    places: Mutex<HashMap<RunId, Arc<Place>>>,
}

/// Where the recorder of one run is opened and closed, while others go on with theirs.
struct Place(Mutex<Option<Open>>);

struct Open {
    recorder: Arc<Recorder>,
    used: Instant,
}

impl Place {
    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when it was used last; nothing while somebody uses it.
    fn idle_since(&self) -> Option<Instant> {
        let open = self.0.try_lock().ok()?;
        open.as_ref().filter(|open| Arc::strong_count(&open.recorder) == 1).map(|open| open.used)
    }

    /// Closes it, unless somebody has come to use it. Whoever comes meanwhile waits, and opens it again.
    fn close_idle(&self) {
        let mut open = self.open();
        if let Some(idle) = open.take_if(|open| Arc::strong_count(&open.recorder) == 1) {
            close(&idle.recorder);
        }
    }
}

impl Recorders {
    pub(super) fn new(journal: Journal, open_max: usize) -> Self {
        Self { journal, open_max, places: Mutex::default() }
    }

    fn places(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Place>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the recorder of a run, which is opened if need be.
    pub(super) fn of(&self, run: RunId) -> Result<Arc<Recorder>, Error> {
        let (place, oldest) = self.place(run);
        if let Some(oldest) = oldest {
            oldest.close_idle();
            drop(oldest);
            self.drop_closed();
        }
        let mut open = place.open();
        let recorder = match open.as_ref() {
            Some(open) => Arc::clone(&open.recorder),
            None => Arc::new(self.journal.record(run)?),
        };
        *open = Some(Open { recorder: Arc::clone(&recorder), used: Instant::now() });
        Ok(recorder)
    }

    /// Returns the place of a run, and one that has to be closed if there are too many.
    fn place(&self, run: RunId) -> (Arc<Place>, Option<Arc<Place>>) {
        let mut places = self.places();
        let oldest = if places.len() >= self.open_max && !places.contains_key(&run) {
            let idle = places.iter().filter_map(|(run, place)| Some((place.idle_since()?, *run)));
            idle.min_by_key(|(since, _)| *since).and_then(|(_, run)| places.get(&run).cloned())
        } else {
            None
        };
        let place = places.entry(run).or_insert_with(|| Arc::new(Place(Mutex::default())));
        (Arc::clone(place), oldest)
    }

    /// Lets go of a run whose recorder has failed: the next one opens it anew, which recovers.
    pub(super) fn give_up(&self, failed: &Arc<Recorder>) {
        let place = self.places().get(&failed.run()).cloned();
        if let Some(place) = place {
            place.open().take_if(|open| Arc::ptr_eq(&open.recorder, failed));
        }
    }

    /// Closes what has been quiet.
    pub(super) fn close_quiet(&self) {
        let is_quiet = |place: &Place| place.idle_since().is_some_and(|since| since.elapsed() >= QUIET_AFTER);
        let quiet: Vec<_> = self.places().values().filter(|place| is_quiet(place)).cloned().collect();
        for place in quiet {
            place.close_idle();
        }
        self.drop_closed();
    }

    /// Takes places away that nobody needs. Who holds one is about to open it.
    fn drop_closed(&self) {
        self.places().retain(|_, place| Arc::strong_count(place) > 1 || place.open().is_some());
    }

    pub(super) fn close_all(&self) {
        for (_, place) in std::mem::take(&mut *self.places()) {
            if let Some(open) = place.open().take() {
                close(&open.recorder);
            }
        }
    }

    /// Returns how many are open or being opened.
    pub(super) fn len(&self) -> usize {
        self.places().len()
    }
}

fn close(recorder: &Recorder) {
    if let Err(error) = recorder.close() {
        tracing::warn!(run = %recorder.run(), %error, "a run was not closed well");
    }
}
