//! The files in one directory: a call to the system for each, and none for their path.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{self, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::Identity;
#[cfg(target_os = "linux")]
use crate::held_locks;
use crate::real::{check_regular, identity_of};

/// Returns the wanted names in a directory, in order.
pub(crate) fn names(dir: &OwnedFd, is_wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
    names_of(dir, is_wanted, None)
}

/// Returns the wanted names in a directory, in order; only those of some inodes, if these are given.
fn names_of(
    dir: &OwnedFd,
    is_wanted: &dyn Fn(&str) -> bool,
    inodes: Option<&HashSet<u64>>,
) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::Dir::read_from(dir)? {
        let entry = entry?;
        if inodes.is_some_and(|inodes| !inodes.contains(&entry.ino())) {
            continue;
        }
        // A name that is not UTF-8 is not ours, but still counts as an entry.
        let name = entry.file_name().to_string_lossy();
        if name != "." && name != ".." && is_wanted(&name) {
            names.push(name.into_owned());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Returns the identities of the wanted files in a directory, ordered by name.
pub(crate) fn identities(
    dir: &OwnedFd,
    is_wanted: &dyn Fn(&str) -> bool,
) -> io::Result<Vec<(String, Identity)>> {
    let identity = |name: String| match fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Some(Ok((name, identity_of(&stat)))),
        // It was deleted meanwhile.
        Err(Errno::NOENT) => None,
        Err(error) => Some(Err(error.into())),
    };
    names(dir, is_wanted)?.into_iter().filter_map(identity).collect()
}

/// Returns how many bytes the regular files in a directory have.
pub(crate) fn size_of_files(dir: &OwnedFd) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::Dir::read_from(dir)? {
        match fs::statat(dir, entry?.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if check_regular(&stat).is_ok() => bytes += identity_of(&stat).size_bytes,
            // It was deleted meanwhile.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(bytes)
}

/// Returns the wanted files in a directory that are locked exclusively, ordered by name.
pub(crate) fn locked_files(dir: &OwnedFd, is_wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
    let is_locked = |name: &str| -> io::Result<bool> {
        let file = match fs::openat(dir, name, flags, Mode::empty()) {
            Ok(file) => file,
            // It was deleted meanwhile.
            Err(Errno::NOENT) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        match fs::flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                // A process that is being started may have a copy of the file, so closing ours would not release it.
                fs::flock(&file, FlockOperation::Unlock)?;
                Ok(false)
            }
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    };
    let locked = |name: String| match is_locked(&name) {
        Ok(is_locked) => is_locked.then_some(Ok(name)),
        Err(error) => Some(Err(error)),
    };
    // Each file is tried: a file that somebody deletes may leave its inode to another one.
    names_of(dir, is_wanted, held_inodes(dir).as_ref())?.into_iter().filter_map(locked).collect()
}

/// Returns the inodes of all locked files of this machine; `None` if they are not known.
#[cfg(target_os = "linux")]
fn held_inodes(dir: &OwnedFd) -> Option<HashSet<u64>> {
    held_locks::exclusive(dir)
}

/// Returns the inodes of all locked files of this machine, which no other system lists.
#[cfg(not(target_os = "linux"))]
fn held_inodes(_dir: &OwnedFd) -> Option<HashSet<u64>> {
    None
}

#[cfg(test)]
mod tests {
    use crate::{Disk as _, RealDisk, StorePath};

    #[test]
    fn files_and_locks_of_a_directory_are_those_of_each_path() {
        let dir = tempfile::tempdir().unwrap();
        let disk = RealDisk::create(&dir.path().join("store")).unwrap();
        let locks = StorePath::locks();
        assert_eq!(disk.identities(&locks, &|_| true).unwrap(), [], "a missing directory has no files");
        assert!(disk.locked_files(&locks, &|_| true).unwrap().is_empty());
        disk.make_dir(&locks).unwrap();
        let held = disk.try_lock(&locks.below("a.lock")).unwrap().unwrap();
        let other = disk.try_lock(&locks.below("b.lock")).unwrap().unwrap();
        drop(disk.try_lock(&locks.below("c.lock")).unwrap());
        let is_wanted = |name: &str| name != "b.lock";
        let identity = |name: &str| disk.identity(&locks.below(name)).unwrap().unwrap();
        let want = ["a.lock", "c.lock"].map(|name| (name.to_owned(), identity(name)));
        assert_eq!(disk.identities(&locks, &is_wanted).unwrap(), want);
        assert_eq!(disk.locked_files(&locks, &is_wanted).unwrap(), ["a.lock"]);
        drop((held, other));
        assert!(disk.locked_files(&locks, &|_| true).unwrap().is_empty());
    }
}
