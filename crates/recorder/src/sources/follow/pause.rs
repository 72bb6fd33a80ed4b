//! What whoever follows does about a pause.

use std::path::Path;

use steno_journal::Pause;

use super::{FollowObserver, SourceError, SourceFollower, SourceLocations};

impl SourceFollower<'_> {
    /// Tells whether recording is paused. After a pause that skips, what was written meanwhile is left out first.
    pub(super) fn is_paused(&mut self, watcher: &mut dyn FollowObserver) -> bool {
        let is_paused = watcher.is_paused();
        if let Some(pause) = self.skipping.take().filter(|_| !is_paused)
            && let Err(error) = self.leave_out(&pause)
        {
            watcher.failed(Path::new("paused"), &error);
            self.skipping = Some(pause);
            return true;
        }
        let set = self.archive.journal.store().pause_set();
        self.skipping = set.filter(|pause| is_paused && pause.skips);
        is_paused
    }

    /// Leaves out what was written during a pause. Whoever has ended it by hand has done that for agents' homes, and not
    /// for what was named here.
    fn leave_out(&mut self, pause: &Pause) -> Result<(), SourceError> {
        if self.archive.journal.store().pause_set().is_some() {
            return self.archive.end_pause(&self.places);
        }
        let named = SourceLocations { homes: Vec::new(), ..self.places.clone() };
        if named.given.is_empty() { Ok(()) } else { self.archive.skip(pause, &named).map(|_| ()) }
    }
}
