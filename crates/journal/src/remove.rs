//! Takes a run away: for good, with everything beside it, or aside, to be written anew. Its lock stays, so that nobody
//! can hold two.

use steno_disk::{StorePath, sync_dir};
use steno_model::RunId;

use crate::error::Error;
use crate::lease::Lease;
use crate::names::RunFile;
use crate::seal::read_seals;
use crate::store::Store;

impl Store {
    /// Deletes a run's transcript with its seals, notes and what was set aside of it; returns how many bytes that were.
    /// A run that is not there is fine.
    ///
    /// # Errors
    /// [`Error::Held`] when somebody writes to it, or what the system says; some of the files may be gone then.
    pub fn remove_run(&self, run: RunId, now: jiff::Timestamp) -> Result<u64, Error> {
        let disk = &**self.disk();
        let _lease = Lease::take(disk, &RunFile::Lock(run).path(), now)?;
        let dir = StorePath::transcripts();
        let names = disk.list(&dir).map_err(|source| Error::io("list", &dir, source))?;
        let prefix = format!("{run}.");
        let mut bytes = 0;
        for name in names.iter().filter(|name| name.starts_with(&prefix)) {
            let path = dir.below(name);
            let found = disk.identity(&path).map_err(|source| Error::io("look at", &path, source))?;
            bytes += found.map_or(0, |found| found.size_bytes);
            disk.remove(&path).map_err(|source| Error::io("delete", &path, source))?;
        }
        sync_dir(disk, &dir).map_err(|source| Error::io("sync the directory of", &dir, source))?;
        Ok(bytes)
    }

    /// Renames a transcript that no seal vouches for, so that whoever can make its events again begins it anew; returns
    /// its new name. `None` when a seal vouches for part of it, or there is none: nothing was changed then.
    ///
    /// # Errors
    /// [`Error::Held`] when somebody writes to it, or what the system says.
    pub fn set_aside_unsealed(&self, run: RunId, now: jiff::Timestamp) -> Result<Option<StorePath>, Error> {
        let disk = &**self.disk();
        let lease = Lease::take(disk, &RunFile::Lock(run).path(), now)?;
        let path = RunFile::Transcript(run).path();
        if !read_seals(disk, run)?.is_empty() || self.size(run)?.is_none() {
            return Ok(None);
        }
        let is_free = |aside: &StorePath| disk.identity(aside).is_ok_and(|found| found.is_none());
        let Some(aside) = path.orphans(lease.epoch).find(is_free) else { return Ok(None) };
        disk.rename(&path, &aside).map_err(|source| Error::io("set aside", &path, source))?;
        let dir = path.dir();
        sync_dir(disk, &dir).map_err(|source| Error::io("sync the directory of", &dir, source))?;
        Ok(Some(aside))
    }
}
