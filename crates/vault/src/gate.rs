//! The lock between writers and sweeps. Writers share it from the moment they rely on a chunk until a manifest names
//! it; a sweep takes it exclusively.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steno_disk::{Disk, LockGuard, StorePath};

use crate::error::Error;
use crate::names::VaultFile;

/// How long to wait between two attempts to take the lock.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The shared side of the lock, used by all writers of this process.
#[derive(Default)]
pub(crate) struct Gate {
    inside: Mutex<GateState>,
}

#[derive(Default)]
struct GateState {
    count: usize,
    lock: Option<Box<dyn LockGuard>>,
    /// The number of sweeps when this process last looked.
    sweeps: Option<u64>,
}

/// Whether the index of this process is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexState {
    /// There was no sweep.
    Current,
    /// There was a sweep: the index has to be reloaded.
    Stale,
}

impl Gate {
    /// Takes the lock for one more writer; waits while a sweep runs.
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
            // On the first call too: the index may have been loaded before, and a sweep may have run since.
            if inside.sweeps.replace(sweeps) != Some(sweeps) {
                since = IndexState::Stale;
            }
            inside.lock = Some(lock);
        }
        inside.count += 1;
        Ok(since)
    }

    /// Releases the lock for one writer.
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

/// The exclusive side of the lock. While it is held, no process relies on a chunk that no manifest names.
pub(crate) struct ExclusiveGate(Box<dyn LockGuard>);

impl ExclusiveGate {
    /// Takes the lock; `None` when writers held it at each of `tries` attempts.
    pub(crate) fn take(disk: &dyn Disk, tries: usize) -> Result<Option<Self>, Error> {
        Ok(try_lock(disk, &VaultFile::SweepLock.path(), tries)?.map(Self))
    }

    /// Makes all processes reload their index before they rely on a chunk. To be called before anything is moved or
    /// deleted, since this process may die in between.
    pub(crate) fn announce(&self) -> Result<(), Error> {
        let sweeps = read_sweeps(&*self.0)?.wrapping_add(1);
        let text = format!("{sweeps}\n");
        self.0.write(&text).map_err(Error::io("write", &VaultFile::SweepLock.path()))
    }
}

/// Takes a lock exclusively; `None` when another process held it at each of `tries` attempts.
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
