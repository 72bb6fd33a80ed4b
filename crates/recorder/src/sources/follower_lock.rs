//! Whether a process follows agents into a store: it holds a lock file that has its process id and the time of its program.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use steno_disk::{Disk, LockGuard, StorePath, read_full};

/// A process id and a time, each on its line, are not longer.
const NOTE_BYTES_MAX: usize = 64;

/// A process that follows agents into a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowerProcess {
    /// Its process id, if the lock file has it.
    pub pid: Option<u32>,
    /// When the file of its program was written, in seconds since 1970, if the lock file has it.
    pub program_written_at: Option<u64>,
}

/// A change of who follows into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowerChange {
    /// No change, or not known.
    AsBefore,
    /// Another process follows; this was not known.
    Follows(FollowerProcess),
    /// The other process has ended.
    Ended,
}

/// The lock of the process that follows. A second process that follows waits for it, so it is free only if no process
/// follows.
pub(crate) struct FollowerLock {
    disk: Arc<dyn Disk>,
    guard: Option<Box<dyn LockGuard>>,
    /// The process that followed at the last check.
    other: Option<FollowerProcess>,
    /// Asked at the start, as an upgrade replaces the file of a running program.
    program_written_at: Option<u64>,
}

impl FollowerLock {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Self {
        Self { disk, guard: None, other: None, program_written_at: program_written_at() }
    }

    /// Tells whether another process followed at the last check.
    pub(crate) fn has_other(&self) -> bool {
        self.other.is_some()
    }

    /// Takes the lock if it is free; returns what has changed. It only affects messages.
    pub(crate) fn show(&mut self) -> FollowerChange {
        if self.guard.is_some() {
            return FollowerChange::AsBefore;
        }
        self.guard = self.disk.try_lock(&path()).ok().flatten();
        if let Some(guard) = &self.guard {
            // If this fails, messages have no process id.
            let written_at = self.program_written_at.map(|seconds| seconds.to_string()).unwrap_or_default();
            guard.write(&format!("{}\n{written_at}\n", std::process::id())).ok();
            return self.other.take().map_or(FollowerChange::AsBefore, |_| FollowerChange::Ended);
        }
        // A process that only checks the lock holds it for a moment, and does not follow.
        match follower(&*self.disk) {
            Some(other) if self.other != Some(other) => {
                self.other = Some(other);
                FollowerChange::Follows(other)
            }
            Some(_) | None => FollowerChange::AsBefore,
        }
    }
}

/// Returns the process that follows agents into a store, if there is one.
#[must_use]
pub fn follower(disk: &dyn Disk) -> Option<FollowerProcess> {
    disk.is_locked(&path()).unwrap_or(false).then(|| {
        let note = note(disk).unwrap_or_default();
        let mut lines = note.lines();
        let pid = lines.next().and_then(|line| line.trim().parse().ok());
        FollowerProcess { pid, program_written_at: lines.next().and_then(|line| line.trim().parse().ok()) }
    })
}

/// Returns when the file of the running program was written, in seconds since 1970.
#[must_use]
pub fn program_written_at() -> Option<u64> {
    let modified = std::env::current_exe().and_then(std::fs::metadata).and_then(|about| about.modified());
    Some(modified.ok()?.duration_since(UNIX_EPOCH).ok()?.as_secs())
}

fn note(disk: &dyn Disk) -> Option<String> {
    let file = disk.open_read(&path()).ok().flatten()?;
    let mut text = [0; NOTE_BYTES_MAX];
    let read = read_full(&*file, &mut text, 0).ok()?;
    str::from_utf8(&text[..read]).ok().map(str::to_owned)
}

fn path() -> StorePath {
    StorePath::locks().below("follow.lock")
}

#[cfg(test)]
mod tests {
    use steno_disk::RealDisk;

    use super::*;

    #[test]
    fn second_follower_sees_the_first_and_its_end_once() {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(dir.path()).unwrap());
        disk.make_dir(&StorePath::locks()).unwrap();
        let (mut first, mut second) =
            (FollowerLock::new(Arc::clone(&disk)), FollowerLock::new(Arc::clone(&disk)));
        let own = FollowerProcess { pid: Some(std::process::id()), program_written_at: program_written_at() };
        assert_eq!(follower(&*disk), None);
        assert_eq!((first.show(), first.show()), (FollowerChange::AsBefore, FollowerChange::AsBefore));
        assert_eq!(follower(&*disk), Some(own));
        assert_eq!((second.show(), second.show()), (FollowerChange::Follows(own), FollowerChange::AsBefore));
        drop(first);
        assert_eq!((second.show(), second.show()), (FollowerChange::Ended, FollowerChange::AsBefore));
        // A process that checks at the same moment shares the lock and does not follow.
        drop(second);
        let asking = disk.try_share(&path()).unwrap();
        let mut third = FollowerLock::new(Arc::clone(&disk));
        assert_eq!((asking.is_some(), third.show()), (true, FollowerChange::AsBefore));
        drop(asking);
        third.show();
        assert_eq!(follower(&*disk), Some(own));
    }
}
