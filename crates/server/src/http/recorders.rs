//! Runs that are recorded over HTTP: each is opened with its first event, and closed when it has been quiet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use steno_journal::{Error, Journal, Recorder};
use steno_model::RunId;

/// After how long without events a run is closed, so that others can record it.
const QUIET_AFTER: Duration = Duration::from_secs(10);
/// How many runs are held open: each takes some descriptors.
const OPEN_MAX: usize = 128;

/// The runs that are open.
pub(super) struct Recorders {
    journal: Journal,
    open: Mutex<HashMap<RunId, Open>>,
}

struct Open {
    recorder: Arc<Recorder>,
    used: Instant,
}

impl Recorders {
    pub(super) fn new(journal: Journal) -> Self {
        Self { journal, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<RunId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the recorder of a run, which is opened if need be.
    pub(super) fn of(&self, run: RunId) -> Result<Arc<Recorder>, Error> {
        let mut open = self.open();
        if let Some(known) = open.get_mut(&run) {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.recorder));
        }
        if open.len() >= OPEN_MAX {
            // Somebody who is about to use one holds it too.
            let idle = open.iter().filter(|(_, open)| Arc::strong_count(&open.recorder) == 1);
            if let Some(oldest) = idle.min_by_key(|(_, open)| open.used).map(|(run, _)| *run) {
                open.remove(&oldest);
            }
        }
        let recorder = Arc::new(self.journal.record(run)?);
        open.insert(run, Open { recorder: Arc::clone(&recorder), used: Instant::now() });
        Ok(recorder)
    }

    /// Lets go of a run whose recorder has failed: the next one opens it anew, which recovers.
    pub(super) fn give_up(&self, failed: &Arc<Recorder>) {
        self.open().retain(|_, open| !Arc::ptr_eq(&open.recorder, failed));
    }

    /// Closes what has been quiet.
    pub(super) fn close_quiet(&self) {
        let is_quiet =
            |open: &Open| open.used.elapsed() >= QUIET_AFTER && Arc::strong_count(&open.recorder) == 1;
        let quiet: Vec<Open> =
            self.open().extract_if(|_, open| is_quiet(open)).map(|(_, open)| open).collect();
        for open in quiet {
            close(&open.recorder);
        }
    }

    pub(super) fn close_all(&self) {
        for (_, open) in std::mem::take(&mut *self.open()) {
            close(&open.recorder);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.open().len()
    }
}

fn close(recorder: &Recorder) {
    if let Err(error) = recorder.close() {
        tracing::warn!(run = %recorder.run(), %error, "a run was not closed well");
    }
}
