//! Makes many files safe with one call, for several threads.
//!
//! The system reports a write that failed to the first caller of `syncfs` after it, and to no other. So one thread
//! calls at a time, and after a failure everything counts as lost that any thread had not yet made safe.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Disk, DiskFile, StorePath, sync_dir, sync_file};

/// For fewer files it is cheaper to sync each: syncing everything writes the data of other programs too.
const WHOLE_MIN: usize = 8;

/// Files and directories that are made safe together.
#[derive(Default)]
pub struct SyncSet {
    files: Vec<Arc<dyn DiskFile>>,
    dirs: BTreeSet<StorePath>,
}

impl SyncSet {
    /// Adds a file.
    pub fn file(&mut self, file: Arc<dyn DiskFile>) {
        self.files.push(file);
    }

    /// Adds a directory, whose names changed.
    pub fn dir(&mut self, dir: StorePath) {
        self.dirs.insert(dir);
    }

    /// Takes everything from another set.
    pub fn take(&mut self, other: &mut Self) {
        self.files.append(&mut other.files);
        self.dirs.append(&mut other.dirs);
    }

    /// Tells whether there is nothing to sync.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.dirs.is_empty()
    }

    /// Returns how many files and directories there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len() + self.dirs.len()
    }

    /// Syncs one file after the other, then the directories.
    ///
    /// # Errors
    /// I/O errors. It is then unknown which of the files are safe.
    pub fn sync_each(&self, disk: &dyn Disk) -> io::Result<()> {
        self.files.iter().try_for_each(|file| sync_file(&**file))?;
        self.dirs.iter().try_for_each(|dir| sync_dir(disk, dir))
    }
}

/// The time at which a thread began to write what it will make safe.
#[derive(Clone, Copy, Debug)]
pub struct SyncTicket {
    failures: u64,
}

/// The syncs of one disk that several threads share.
pub struct SharedSync {
    disk: Arc<dyn Disk>,
    state: Mutex<SyncState>,
    /// Called after a failure, before any other thread can begin or sync.
    on_failure: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct SyncState {
    /// How often a sync failed. After the first failure each file is synced by itself, so that others are not affected.
    failures: u64,
    /// Whether the disk cannot be synced as a whole.
    is_unsupported: bool,
}

impl SharedSync {
    /// Shares the syncs of a disk. After a failure, `on_failure` is called before any other thread begins or syncs.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, on_failure: impl Fn() + Send + Sync + 'static) -> Self {
        Self { disk, state: Mutex::default(), on_failure: Box::new(on_failure) }
    }

    /// Begins to write something that will be made safe with this ticket.
    #[must_use]
    pub fn begin(&self) -> SyncTicket {
        SyncTicket { failures: self.state.lock().unwrap_or_else(PoisonError::into_inner).failures }
    }

    /// Makes everything in the set safe.
    ///
    /// # Errors
    /// I/O errors. Also if the sync of another thread failed after this ticket was taken: the failure may have been
    /// about our files. Never retried; whoever wrote something with a ticket that failed has to write it again.
    pub fn sync(&self, ticket: SyncTicket, set: &SyncSet) -> io::Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failures != ticket.failures {
            return Err(io::Error::other("a shared sync failed"));
        }
        if set.is_empty() {
            return Ok(());
        }
        let synced = if set.len() < WHOLE_MIN || state.failures > 0 || state.is_unsupported {
            // What other threads wrote is not affected by a failure here: each of their files reports its own.
            drop(state);
            return set.sync_each(&*self.disk);
        } else {
            sync_whole(&*self.disk)
        };
        match synced {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                state.is_unsupported = true;
                drop(state);
                set.sync_each(&*self.disk)
            }
            Err(error) => {
                state.failures += 1;
                (self.on_failure)();
                Err(error)
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Syncs the whole disk.
fn sync_whole(disk: &dyn Disk) -> io::Result<()> {
    if cfg!(feature = "mutant-no-fsync") || cfg!(feature = "mutant-no-syncfs") {
        return Ok(());
    }
    let first = disk.sync_whole();
    let is_failure = first.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Unsupported);
    if cfg!(feature = "mutant-fsync-retried") && is_failure {
        return disk.sync_whole();
    }
    first
}
