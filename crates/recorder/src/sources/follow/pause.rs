//! How following handles a pause.

use std::path::Path;

use steno_journal::Pause;

use super::{FollowObserver, SourceError, SourceFollower, SourceLocations};

impl SourceFollower<'_> {
    /// Tells whether recording is paused. After a pause that skips, first marks what was written during it as skipped.
    pub(super) fn is_paused(&mut self, watcher: &mut dyn FollowObserver) -> bool {
        let is_paused = watcher.is_paused();
        if let Some(pause) = self.skipping.take().filter(|_| !is_paused)
            && let Err(error) = self.leave_out(&pause)
        {
            watcher.failed(Path::new("paused"), &error);
            self.skipping = Some(pause);
            return true;
        }
        let set = self.recorder.journal.store().pause_set();
        self.skipping = set.filter(|pause| is_paused && pause.skips);
        is_paused
    }

    /// Marks what was written during a pause as skipped. `steno resume` has done that for agents' homes, but not for
    /// the paths that were named here.
    fn leave_out(&mut self, pause: &Pause) -> Result<(), SourceError> {
        if self.recorder.journal.store().pause_set().is_some() {
            return self.recorder.end_pause(&self.places);
        }
        let named = SourceLocations { homes: Vec::new(), ..self.places.clone() };
        if named.given.is_empty() { Ok(()) } else { self.recorder.skip(pause, &named).map(|_| ()) }
    }
}
