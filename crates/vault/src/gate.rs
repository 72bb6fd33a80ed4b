//! Between those who add evidence and whoever deletes some: the former share a lock from the moment they rely on a chunk
//! until a manifest names it, the latter holds it alone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steno_disk::{Disk, LockGuard, StorePath};

use crate::error::Error;
use crate::names::VaultFile;

/// How often those who add look whether somebody has done deleting.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The lock, as one process has it.
#[derive(Default)]
pub(crate) struct Gate {
    inside: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    count: usize,
    lock: Option<Box<dyn LockGuard>>,
    /// How often somebody has deleted, as far as we know.
    sweeps: Option<u64>,
}

/// Whether chunks were deleted since this process looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexState {
    /// Everything is where it was.
    Current,
    /// What is known of places has to be learned anew.
    Stale,
}

impl Gate {
    /// Goes inside; waits while somebody deletes.
    pub(crate) fn enter(&self, disk: &dyn Disk) -> Result<IndexState, Error> {
        let mut inside = self.inside();
        let mut since = IndexState::Current;
        if inside.count == 0 {
            let path = VaultFile::SweepLock.path();
            let lock = loop {
                match disk.try_share(&path).map_err(Error::io("lock", &path))? {
                    Some(lock) => break lock,
                    None => std::thread::sleep(BETWEEN_TRIES),
                }
            };
            let sweeps = read_sweeps(&*lock)?;
            // Who comes for the first time may have looked at places before, and somebody may have swept since.
            if inside.sweeps.replace(sweeps) != Some(sweeps) {
                since = IndexState::Stale;
            }
            inside.lock = Some(lock);
        }
        inside.count += 1;
        Ok(since)
    }

    /// Goes outside again.
    pub(crate) fn leave(&self) {
        let mut inside = self.inside();
        inside.count -= 1;
        if inside.count == 0 {
            inside.lock = None;
        }
    }

    fn inside(&self) -> MutexGuard<'_, GateState> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The lock, held by whoever moves or deletes chunks: nobody relies on one that no manifest names.
pub(crate) struct ExclusiveGate(Box<dyn LockGuard>);

impl ExclusiveGate {
    /// Takes the lock; `None` when others were inside at each of so many tries.
    pub(crate) fn take(disk: &dyn Disk, tries: usize) -> Result<Option<Self>, Error> {
        Ok(try_lock(disk, &VaultFile::SweepLock.path(), tries)?.map(Self))
    }

    /// Has everybody learn places anew before relying on one. To be called before anything is moved or deleted: who does
    /// so may die in between.
    pub(crate) fn announce(&self) -> Result<(), Error> {
        let sweeps = read_sweeps(&*self.0)?.wrapping_add(1);
        let text = format!("{sweeps}\n");
        self.0.write(&text).map_err(Error::io("write", &VaultFile::SweepLock.path()))
    }
}

/// Takes a lock alone; `None` when somebody else held it at each of so many tries.
pub(crate) fn try_lock(
    disk: &dyn Disk,
    path: &StorePath,
    tries: usize,
) -> Result<Option<Box<dyn LockGuard>>, Error> {
    for left in (0..tries).rev() {
        if let Some(lock) = disk.try_lock(path).map_err(Error::io("lock", path))? {
            return Ok(Some(lock));
        }
        if left > 0 {
            std::thread::sleep(BETWEEN_TRIES);
        }
    }
    Ok(None)
}

fn read_sweeps(lock: &dyn LockGuard) -> Result<u64, Error> {
    let text = lock.read().map_err(Error::io("read", &VaultFile::SweepLock.path()))?;
    Ok(text.trim().parse().unwrap_or(0))
}
