//! Lines that are written many at a time, and synced together with other files.

use std::io;
use std::sync::Arc;

use steno_disk::SyncSet;
use steno_model::Seq;

use crate::error::Error;
use crate::log::{Health, Log};
use crate::sync::lock;
use crate::tail::{AppendError, Tail};

impl Log {
    /// Adds a line to those that are written together.
    pub(crate) fn gather(&self, render: impl FnOnce(Seq, &mut Vec<u8>)) -> Result<Seq, Error> {
        self.with_tail(|tail| tail.gather(render))
    }

    /// Writes the gathered lines, and adds the file to those that have to be synced.
    pub(crate) fn write_gathered(&self, set: &mut SyncSet) -> Result<(), Error> {
        self.with_tail(Tail::write_gathered)?;
        set.file(Arc::clone(&self.file));
        set.dir(self.path.dir());
        Ok(())
    }

    /// Returns the number of the last line, written or gathered.
    pub(crate) fn seq_gathered(&self) -> Option<Seq> {
        lock(&self.state).tail.seq_gathered()
    }

    /// Checks after a sync that the file is still at its path and has what was written.
    pub(crate) fn check_synced(&self) -> Result<(), Error> {
        let _alone = lock(&self.syncing);
        self.check_in_place()
    }

    /// Refuses everything after a sync that failed.
    pub(crate) fn sync_failed(&self, source: io::Error) -> Error {
        let error = Error::Poisoned { path: self.path.clone(), what: "synced", source: Arc::new(source) };
        lock(&self.state).fail(&error);
        error
    }

    fn with_tail<R>(&self, work: impl FnOnce(&mut Tail) -> Result<R, AppendError>) -> Result<R, Error> {
        let mut state = lock(&self.state);
        if let Health::Failed(error) = &state.health {
            return Err(error.clone());
        }
        let done = work(&mut state.tail);
        done.map_err(|error| self.append_failed(&mut state, error))
    }
}
