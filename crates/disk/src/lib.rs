//! The disk of a store, behind a trait, so that tests can lose, tear and reorder what was not synced.
//!
//! All files of the journal and the vault go through [`Disk`] and [`DiskFile`]: appending, syncing, renaming and
//! locking below one directory. This crate does these operations safely; callers decide what a failure means.
//!
//! ```
//! use steno_disk::{Disk as _, RealDisk, StorePath, append_all, read_full, replace_file};
//!
//! # let dir = tempfile::tempdir()?;
//! let disk = RealDisk::create(&dir.path().join("store"))?;
//! let path = StorePath::root().below("greeting");
//! replace_file(&disk, &path, b"hello")?;
//! append_all(&*disk.open_append(&path)?, b", world")?;
//!
//! let mut bytes = [0; 64];
//! let file = disk.open_read(&path)?.expect("it was just made");
//! assert_eq!(read_full(&*file, &mut bytes, 0)?, 12);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Promises
//! - [`RealDisk`] opens files beneath one directory handle, follows no links, never blocks on a pipe, and opens regular
//!   files only. New files have mode 0600 and directories 0700, independent of the umask. It does not write to or
//!   replace files of another user, and creates nothing in another user's store. [`RealDisk::survey`] finds files of
//!   other users.
//! - [`open_regular`] opens files outside the store with the same care, for example an agent's file, and
//!   [`read_host_file`] reads at most a given number of bytes.
//! - [`append_all`], [`overwrite_all`] and [`read_full`] continue after interrupted and short calls.
//! - After [`replace_file`] a power cut leaves either the old content or the new one.
//! - A failed sync is never retried, because a second sync may succeed without the data being safe.
//! - [`SharedSync`] makes many files safe with one call. If that call fails, everything that any thread was about to
//!   make safe counts as lost.

mod directory;
#[cfg(target_os = "linux")]
mod held_locks;
mod host;
mod output;
mod path;
mod read;
mod real;
mod shared_sync;
mod survey;
#[cfg(target_os = "linux")]
mod whole;

use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

pub use host::{Links, TooLong, open_host_file, open_regular, read_host_file, read_up_to};
pub use output::{discard, give_name};
pub use path::StorePath;
pub use read::{OffsetReader, read_full};
pub use real::RealDisk;
pub use shared_sync::{SharedSync, SyncSet, SyncTicket};
pub use survey::{ForeignEntry, Survey, check_can_make};

/// The directory tree of one store.
pub trait Disk: Send + Sync {
    /// Creates a directory with mode 0700 unless it exists, and syncs its parent.
    ///
    /// # Errors
    /// I/O errors.
    fn make_dir(&self, dir: &StorePath) -> io::Result<()>;

    /// Opens a file for appending; creates it with mode 0600 if it does not exist.
    ///
    /// # Errors
    /// [`NotRegular`] inside the error when the path is something else; otherwise an I/O error.
    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file for reading; `None` when it does not exist.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>>;

    /// Opens an existing file for overwriting bytes in place.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>>;

    /// Creates a file with mode 0600 at a path that does not exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when the path exists; otherwise an I/O error.
    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames a file; replaces an existing one.
    ///
    /// # Errors
    /// I/O errors.
    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()>;

    /// Removes a temporary file that never became part of the store.
    ///
    /// # Errors
    /// I/O errors, or `Unsupported`. They can be ignored: the file may stay.
    fn discard(&self, temporary: &StorePath) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("`{temporary}` cannot be removed")))
    }

    /// Deletes a file; a missing one is not an error. Until its directory is synced, a power cut may bring it back.
    ///
    /// # Errors
    /// I/O errors.
    fn remove(&self, path: &StorePath) -> io::Result<()>;

    /// Deletes an empty directory; a missing one is not an error. Until its parent is synced, a power cut may bring it
    /// back.
    ///
    /// # Errors
    /// [`io::ErrorKind::DirectoryNotEmpty`] when it is not empty; otherwise an I/O error.
    fn remove_dir(&self, dir: &StorePath) -> io::Result<()>;

    /// Syncs a directory, so that the names in it survive a power cut.
    ///
    /// # Errors
    /// I/O errors.
    fn sync_dir(&self, dir: &StorePath) -> io::Result<()>;

    /// Syncs everything that was written to the store's file system, by any process: contents, lengths and names.
    ///
    /// # Errors
    /// I/O errors: it is then unknown what is on the disk, of all that was written since the disk was opened.
    /// [`io::ErrorKind::Unsupported`] where this is not possible, or where it would not report failed writes: nothing
    /// was synced then.
    fn sync_whole(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Lists the names in a directory; a missing one has none.
    ///
    /// # Errors
    /// I/O errors.
    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>>;

    /// Returns the identity of the file at a path; `None` when it does not exist.
    ///
    /// # Errors
    /// I/O errors.
    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>>;

    /// Returns the identities of the wanted files in a directory, ordered by name; a missing directory has none.
    ///
    /// # Errors
    /// I/O errors.
    fn identities(
        &self,
        dir: &StorePath,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> io::Result<Vec<(String, Identity)>> {
        let names = self.list(dir)?.into_iter().filter(|name| is_wanted(name));
        let identity = |name: String| {
            let found = self.identity(&dir.below(&name)).transpose()?;
            Some(found.map(|found| (name, found)))
        };
        names.filter_map(identity).collect()
    }

    /// Returns how many bytes the files in a directory have, without those in directories below it.
    ///
    /// # Errors
    /// I/O errors.
    fn size_of_files(&self, dir: &StorePath) -> io::Result<u64> {
        let names = self.list(dir)?;
        let sizes = names.iter().map(|name| self.identity(&dir.below(name)));
        sizes.map(|found| Ok(found?.map_or(0, |found| found.size_bytes))).sum()
    }

    /// Takes the exclusive lock of a file while the guard exists; `None` when another holder has it.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>>;

    /// Takes the shared lock of a file; `None` when it is locked exclusively.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn try_share(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>>;

    /// Tells whether a file is locked exclusively.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn is_locked(&self, path: &StorePath) -> io::Result<bool>;

    /// Returns the wanted files in a directory that are locked exclusively, ordered by name.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn locked_files(&self, dir: &StorePath, is_wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
        let names = self.list(dir)?.into_iter().filter(|name| is_wanted(name));
        let locked = |name: String| match self.is_locked(&dir.below(&name)) {
            Ok(is_locked) => is_locked.then_some(Ok(name)),
            Err(error) => Some(Err(error)),
        };
        names.filter_map(locked).collect()
    }

    /// Returns the host path to watch for changes below a directory; `None` where watching is not possible.
    fn host_path(&self, dir: &StorePath) -> Option<std::path::PathBuf>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes at the end, possibly not all bytes; returns how many.
    ///
    /// # Errors
    /// I/O errors.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Moves bytes from a pipe to the end, possibly not all; returns how many. The file must have no other writer.
    ///
    /// # Errors
    /// I/O errors. [`io::ErrorKind::Unsupported`] where this is not possible: nothing was taken from the pipe then.
    fn append_from_pipe(&self, _pipe: BorrowedFd<'_>, _len: usize) -> io::Result<usize> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Reserves space after the end, from an offset on. The length of the file does not change. Truncating frees it.
    ///
    /// # Errors
    /// I/O errors, or [`io::ErrorKind::Unsupported`].
    fn reserve(&self, _offset: u64, _len: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Overwrites bytes at an offset, possibly not all; returns how many.
    ///
    /// # Errors
    /// I/O errors.
    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reads at an offset; 0 at the end.
    ///
    /// # Errors
    /// I/O errors.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Syncs content and length, so that they survive a power cut.
    ///
    /// # Errors
    /// I/O errors. It is then unknown what is on the disk, and a second sync that succeeds proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// Truncates the file.
    ///
    /// # Errors
    /// I/O errors.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Returns the identity of the open file.
    ///
    /// # Errors
    /// I/O errors.
    fn identity(&self) -> io::Result<Identity>;
}

/// A lock that is held until it is dropped, and its lock file.
pub trait LockGuard: Send + Sync {
    /// Returns the text that the previous holder wrote into the lock file.
    ///
    /// # Errors
    /// I/O errors.
    fn read(&self) -> io::Result<String>;

    /// Replaces the content of the lock file and syncs it. Existing bytes are overwritten in place, which needs no
    /// space.
    ///
    /// # Errors
    /// I/O errors.
    fn write(&self, text: &str) -> io::Result<()> {
        self.write_unsynced(text)?.sync()
    }

    /// Replaces the content of the lock file; returns the file, which has to be synced.
    ///
    /// # Errors
    /// I/O errors.
    fn write_unsynced(&self, text: &str) -> io::Result<Arc<dyn DiskFile>>;
}

/// Truncates a file to `len` bytes if it is longer. Otherwise nothing is called: on a full disk even a truncation may
/// fail.
///
/// # Errors
/// I/O errors.
pub fn cut_behind(file: &dyn DiskFile, len: u64) -> io::Result<()> {
    if file.identity()?.size_bytes > len { file.truncate(len) } else { Ok(()) }
}

/// Identifies a file, independent of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its device.
    pub device: u64,
    /// Its inode number. File systems reuse the number of a deleted file at once.
    pub inode: u64,
    /// How many names it has; 0 when it was deleted.
    pub links: u64,
    /// Its length.
    pub size_bytes: u64,
    /// When its content or its inode last changed, in nanoseconds since 1970.
    pub changed_ns: i64,
}

impl Identity {
    /// Tells whether both are the same file.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The cause inside an [`io::Error`] when a path is not a regular file of ours.
#[derive(Clone, Copy, Debug)]
pub struct NotRegular {
    /// What it is, with its article.
    pub found: &'static str,
}

impl NotRegular {
    /// Returns the cause, if the error has it.
    #[must_use]
    pub fn inside(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for NotRegular {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} instead of a regular file", self.found)
    }
}

impl std::error::Error for NotRegular {}

impl From<NotRegular> for io::Error {
    fn from(cause: NotRegular) -> Self {
        Self::other(cause)
    }
}

/// Writes all bytes at the end. Interrupted calls are repeated, short ones continued, and a write of zero bytes fails.
///
/// # Errors
/// I/O errors. Some of the bytes may be in the file then.
pub fn append_all(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    write_all(bytes, |rest, _| file.append(rest))
}

/// Overwrites bytes, with the same care as [`append_all`].
///
/// # Errors
/// I/O errors. Some of the bytes may be in the file then.
pub fn overwrite_all(file: &dyn DiskFile, bytes: &[u8], offset: u64) -> io::Result<()> {
    write_all(bytes, |rest, done| file.overwrite(rest, offset + done as u64))
}

fn write_all(bytes: &[u8], mut write: impl FnMut(&[u8], usize) -> io::Result<usize>) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match write(&bytes[done..], done) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Syncs a file. Everything that the journal acknowledges was synced through here, [`sync_dir`] or [`SharedSync`]. Only
/// the name of a new directory and the content of a lock file are synced by the disk itself.
///
/// # Errors
/// I/O errors. Never retried, because a second sync may succeed without the data being safe.
pub fn sync_file(file: &dyn DiskFile) -> io::Result<()> {
    if cfg!(feature = "mutant-no-fsync") {
        return Ok(());
    }
    let first = file.sync();
    if cfg!(feature = "mutant-fsync-retried") && first.is_err() {
        return file.sync();
    }
    first
}

/// Syncs a directory.
///
/// # Errors
/// I/O errors.
pub fn sync_dir(disk: &dyn Disk, dir: &StorePath) -> io::Result<()> {
    if cfg!(feature = "mutant-no-dir-fsync") {
        return Ok(());
    }
    disk.sync_dir(dir)
}

/// Replaces a whole file: temporary name, sync, rename, sync of the directory.
///
/// # Errors
/// I/O errors. The old file, if there was one, is unchanged then.
pub fn replace_file(disk: &dyn Disk, path: &StorePath, bytes: &[u8]) -> io::Result<()> {
    replace_with(disk, path, |file| append_all(file, bytes))
}

/// A file with a new content that is not at its path yet.
pub struct StagedFile {
    temporary: StorePath,
    path: StorePath,
    file: Arc<dyn DiskFile>,
}

impl StagedFile {
    /// Writes the new content of a file under a temporary name.
    ///
    /// # Errors
    /// I/O errors. The old file, if there was one, is unchanged then.
    pub fn write(disk: &dyn Disk, path: &StorePath, bytes: &[u8]) -> io::Result<Self> {
        let temporary = path.temporary();
        let file = disk.create(&temporary)?;
        if let Err(error) = append_all(&*file, bytes) {
            disk.discard(&temporary).ok();
            return Err(error);
        }
        Ok(Self { temporary, path: path.clone(), file })
    }

    /// Returns the file, to sync it.
    #[must_use]
    pub fn file(&self) -> &Arc<dyn DiskFile> {
        &self.file
    }

    /// Replaces the file by the new content, which was synced, and returns it to append to. The directory has to be
    /// synced after that.
    ///
    /// # Errors
    /// I/O errors. The old file, if there was one, is unchanged then.
    pub fn place(self, disk: &dyn Disk) -> io::Result<Arc<dyn DiskFile>> {
        if let Err(error) = disk.rename(&self.temporary, &self.path) {
            disk.discard(&self.temporary).ok();
            return Err(error);
        }
        Ok(self.file)
    }

    /// Deletes the new content.
    pub fn discard(self, disk: &dyn Disk) {
        disk.discard(&self.temporary).ok();
    }
}

/// Replaces a whole file like [`replace_file`], with the content that `write` writes.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_with(
    disk: &dyn Disk,
    path: &StorePath,
    write: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
) -> io::Result<()> {
    // A unique name and a new file: another process may be replacing the same file.
    let temporary = path.temporary();
    let file = disk.create(&temporary)?;
    let placed = write(&*file).and_then(|()| sync_file(&*file)).and_then(|()| disk.rename(&temporary, path));
    if let Err(error) = placed {
        disk.discard(&temporary).ok();
        return Err(error);
    }
    sync_dir(disk, &path.dir())
}
