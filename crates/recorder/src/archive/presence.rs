//! Whether somebody follows agents into a store: a lock that whoever follows holds.

use std::sync::Arc;

use steno_disk::{Disk, LockGuard, StorePath};

/// Held while somebody follows. A second one who follows beside waits for it, so that it is free only when nobody does.
pub(crate) struct Presence {
    disk: Arc<dyn Disk>,
    guard: Option<Box<dyn LockGuard>>,
}

impl Presence {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, guard: None }
    }

    /// Takes the lock if it is free. Nothing depends on it but what is told to people.
    pub(crate) fn show(&mut self) {
        if self.guard.is_none() {
            self.guard = self.disk.try_lock(&path()).ok().flatten();
        }
    }
}

/// Tells whether somebody follows agents into a store.
#[must_use]
pub fn is_followed(disk: &dyn Disk) -> bool {
    disk.is_locked(&path()).unwrap_or(false)
}

fn path() -> StorePath {
    StorePath::locks().below("follow.lock")
}
