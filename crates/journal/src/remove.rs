//! Deletes runs and spines with everything beside them, and sets a transcript aside so that it can be rewritten. Lock
//! files stay, so that no two processes can hold the same lock.

use std::sync::Arc;

use steno_disk::{Disk, StorePath, sync_dir};
use steno_model::{RunId, ThreadId};

use crate::error::Error;
use crate::lease::Lease;
use crate::names::{RunFile, SegmentName};
use crate::seal::read_seals;
use crate::spine::artifact::ARTIFACTS_DIR;
use crate::store::Store;

/// The lock of a spine: while it exists, nothing else writes the spine.
pub struct SpineLock {
    disk: Arc<dyn Disk>,
    thread: ThreadId,
    lease: Lease,
}

impl SpineLock {
    /// Returns the thread.
    #[must_use]
    pub fn thread(&self) -> &ThreadId {
        &self.thread
    }

    /// Deletes the spine with its artifacts, notes and files set aside. A missing spine is not an error.
    ///
    /// The last segment is deleted first, so that a kill leaves a shorter spine.
    ///
    /// # Errors
    /// I/O errors. Some of the files may be deleted then; a second call continues.
    pub fn remove(&mut self) -> Result<(), Error> {
        // Its refusals must not be noted for a later one with the same name.
        self.lease.set_refused(None)?;
        let disk = &*self.disk;
        let dir = StorePath::spine_of(&self.thread);
        let artifacts = dir.below(ARTIFACTS_DIR);
        let remove_all = |dir: &StorePath, names: Vec<String>| {
            for name in names {
                let path = dir.below(name);
                disk.remove(&path).map_err(|source| Error::io("delete", &path, source))?;
            }
            sync_dir(disk, dir).map_err(|source| Error::io("sync the directory of", dir, source))
        };
        let mut names = list(disk, &dir)?;
        if names.is_empty() && !list(disk, &StorePath::spine())?.contains(&self.thread.to_string()) {
            return Ok(());
        }
        let has_artifacts = names.iter().any(|name| name == ARTIFACTS_DIR);
        names.retain(|name| name != ARTIFACTS_DIR);
        names.sort_by_key(|name| match SegmentName::parse(name) {
            Some(SegmentName::Meta(index)) => (u32::MAX - index.0, 0),
            Some(SegmentName::Records(index)) => (u32::MAX - index.0, 1),
            None => (u32::MAX, 2),
        });
        remove_all(&dir, names)?;
        let remove_dir =
            |dir: &StorePath| disk.remove_dir(dir).map_err(|source| Error::io("delete", dir, source));
        if has_artifacts {
            remove_all(&artifacts, list(disk, &artifacts)?)?;
            remove_dir(&artifacts)?;
        }
        remove_dir(&dir)?;
        let spines = StorePath::spine();
        sync_dir(disk, &spines).map_err(|source| Error::io("sync the directory of", &spines, source))
    }
}

fn list(disk: &dyn Disk, dir: &StorePath) -> Result<Vec<String>, Error> {
    disk.list(dir).map_err(|source| Error::io("list", dir, source))
}

fn size_of(disk: &dyn Disk, thread: &ThreadId) -> Result<u64, Error> {
    let dir = StorePath::spine_of(thread);
    let artifacts = dir.below(ARTIFACTS_DIR);
    let mut bytes = 0;
    for dir in [dir, artifacts] {
        for name in list(disk, &dir)?.iter().filter(|name| *name != ARTIFACTS_DIR) {
            let path = dir.below(name);
            let found = disk.identity(&path).map_err(|source| Error::io("access", &path, source))?;
            bytes += found.map_or(0, |found| found.size_bytes);
        }
    }
    Ok(bytes)
}

impl Store {
    /// Takes the lock of a spine.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, or an I/O error.
    pub fn lock_spine(&self, thread: &ThreadId, now: jiff::Timestamp) -> Result<SpineLock, Error> {
        let disk = Arc::clone(self.disk());
        let lease = Lease::take(&*disk, &StorePath::spine_lock(thread), now)?;
        Ok(SpineLock { disk, thread: thread.clone(), lease })
    }

    /// Returns the size of all files of a spine, including artifacts and files set aside.
    ///
    /// # Errors
    /// I/O errors.
    pub fn spine_bytes(&self, thread: &ThreadId) -> Result<u64, Error> {
        size_of(&**self.disk(), thread)
    }

    /// Deletes the transcript of a run with its seals, notes and files set aside; returns how many bytes that were. A
    /// missing run is not an error.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, or an I/O error. Some of the files may be deleted then.
    pub fn remove_run(&self, run: RunId, now: jiff::Timestamp) -> Result<u64, Error> {
        let disk = &**self.disk();
        let mut lease = Lease::take(disk, &RunFile::Lock(run).path(), now)?;
        // Its refusals must not be noted for a later one with the same name.
        lease.set_refused(None)?;
        let dir = StorePath::transcripts();
        let transcript = RunFile::Transcript(run).path();
        let prefix = format!("{run}.");
        let sidecars = list(disk, &dir)?.into_iter().filter(|name| name.starts_with(&prefix));
        let superseded = transcript.superseded(1);
        let is_beside = |path: &StorePath| *path != transcript && *path != superseded;
        let sidecars = sidecars.map(|name| dir.below(name)).filter(is_beside);
        let mut bytes = 0;
        // These are deleted last: as long as one of them exists, the run is found and can be deleted again.
        for paths in [sidecars.collect(), vec![superseded.clone()], vec![transcript.clone()]] {
            for path in paths {
                let found = disk.identity(&path).map_err(|source| Error::io("access", &path, source))?;
                bytes += found.map_or(0, |found| found.size_bytes);
                disk.remove(&path).map_err(|source| Error::io("delete", &path, source))?;
            }
            sync_dir(disk, &dir).map_err(|source| Error::io("sync the directory of", &dir, source))?;
        }
        Ok(bytes)
    }

    /// Renames a transcript without a seal, so that a caller that can derive its events again can start over; returns
    /// its new name. `None` when it has a seal or does not exist: nothing was changed then.
    ///
    /// # Errors
    /// [`Error::Locked`] when another writer has it, or an I/O error.
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
