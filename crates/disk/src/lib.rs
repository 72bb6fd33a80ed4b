//! The disk that a store lies on, behind a trait, so that tests can lose, tear and reorder what was not synced.
//!
//! Everything that the journal and the vault keep goes through [`Disk`] and [`DiskFile`]: appending, syncing, renaming,
//! locking, below one directory. What to do when one of them fails is the callers' affair; how to do it safely is here.
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
//! - [`RealDisk`] opens beneath one directory handle, follows no link, never waits for a pipe, and opens regular files
//!   alone; new files have mode 0600 and directories 0700, whatever the umask. It writes to no file of another user,
//!   replaces none, and makes nothing in another user's store. [`RealDisk::survey`] finds what others have left there.
//! - [`open_regular`] opens what lies outside, an agent's file or a copy of a run, with the same care, and
//!   [`read_host_file`] reads no more of it than its caller can bear.
//! - [`append_all`], [`overwrite_all`] and [`read_full`] go on after interrupted and short calls.
//! - [`replace_file`] leaves the old content or the new one, whenever the power goes.
//! - A sync that failed is never tried again: the second answer may be a false yes.

mod host;
mod path;
mod real;
mod survey;

use std::fmt;
use std::io;
use std::sync::Arc;

pub use host::{Links, TooLong, open_host_file, open_regular, read_host_file, read_up_to};
pub use path::StorePath;
pub use real::RealDisk;
pub use survey::{Foreign, Survey, check_can_make};

/// The directory tree of one store.
pub trait Disk: Send + Sync {
    /// Makes a directory with mode 0700 unless it is there, and syncs the directory it lies in.
    ///
    /// # Errors
    /// I/O errors.
    fn make_dir(&self, dir: &StorePath) -> io::Result<()>;

    /// Opens a file to append, and makes it with mode 0600 when it is not there.
    ///
    /// # Errors
    /// [`NotRegular`] inside the error when something else stands there; otherwise an I/O error.
    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>>;

    /// Opens a file to read; `None` when it is not there.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>>;

    /// Opens an existing file to write over bytes that it has.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>>;

    /// Makes a file with mode 0600 where nothing stands.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] when something does; otherwise an I/O error.
    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>>;

    /// Renames a file, over another one if need be.
    ///
    /// # Errors
    /// I/O errors.
    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()>;

    /// Takes away a file that was being made and never became part of the store.
    ///
    /// # Errors
    /// What the system says, or that this disk cannot. Nobody has to care: the file may stay.
    fn discard(&self, temporary: &StorePath) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, format!("`{temporary}` stays")))
    }

    /// Deletes a file for good; one that is not there is fine. Until its directory is synced a power cut may bring it
    /// back.
    ///
    /// # Errors
    /// I/O errors.
    fn remove(&self, path: &StorePath) -> io::Result<()>;

    /// Deletes an empty directory; one that is not there is fine. Until the one that it lies in is synced a power cut may
    /// bring it back.
    ///
    /// # Errors
    /// [`io::ErrorKind::DirectoryNotEmpty`] when something is in it; otherwise an I/O error.
    fn remove_dir(&self, dir: &StorePath) -> io::Result<()>;

    /// Makes the names in a directory survive a power cut.
    ///
    /// # Errors
    /// I/O errors.
    fn sync_dir(&self, dir: &StorePath) -> io::Result<()>;

    /// Lists the names in a directory; none when it is not there.
    ///
    /// # Errors
    /// I/O errors.
    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>>;

    /// Returns what stands at a path now; `None` when nothing does.
    ///
    /// # Errors
    /// I/O errors.
    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>>;

    /// Takes the lock of a file for as long as the guard lives; `None` when somebody else holds it.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>>;

    /// Takes the lock of a file together with others who share it; `None` when somebody holds it alone.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn try_share(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>>;

    /// Tells whether somebody holds the lock of a file alone.
    ///
    /// # Errors
    /// As [`Disk::open_append`].
    fn is_locked(&self, path: &StorePath) -> io::Result<bool>;

    /// Returns a path of the host to watch for changes below a directory; `None` where nobody can watch.
    fn host_path(&self, dir: &StorePath) -> Option<std::path::PathBuf>;
}

/// An open file.
pub trait DiskFile: Send + Sync {
    /// Writes at the end, perhaps not everything; returns how many bytes.
    ///
    /// # Errors
    /// I/O errors.
    fn append(&self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes over bytes at an offset, perhaps not all; returns how many.
    ///
    /// # Errors
    /// I/O errors.
    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Reads at an offset; 0 at the end.
    ///
    /// # Errors
    /// I/O errors.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Makes content and length survive a power cut.
    ///
    /// # Errors
    /// I/O errors. The content's fate is unknown then, and a second sync that succeeds proves nothing.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file.
    ///
    /// # Errors
    /// I/O errors.
    fn truncate(&self, len: u64) -> io::Result<()>;

    /// Returns what the handle stands for.
    ///
    /// # Errors
    /// I/O errors.
    fn identity(&self) -> io::Result<Identity>;
}

/// A lock that is held until it is dropped, and the small file that it is a lock of.
pub trait LockGuard: Send + Sync {
    /// Returns what the holder before has left in the lock file.
    ///
    /// # Errors
    /// I/O errors.
    fn read(&self) -> io::Result<String>;

    /// Replaces the content of the lock file and syncs it. As many bytes as it has are written in their place, which
    /// takes no room.
    ///
    /// # Errors
    /// I/O errors.
    fn write(&self, text: &str) -> io::Result<()>;
}

/// Cuts off what a file has behind `len` bytes. A file that is no longer is left alone: on a full disk even that may
/// fail.
///
/// # Errors
/// I/O errors.
pub fn cut_behind(file: &dyn DiskFile, len: u64) -> io::Result<()> {
    if file.identity()?.size_bytes > len { file.truncate(len) } else { Ok(()) }
}

/// What tells one file from another, however its name changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The device it lies on.
    pub device: u64,
    /// Its number there. File systems give a deleted file's number to the next one at once.
    pub inode: u64,
    /// How many names it has; 0 when it was deleted.
    pub links: u64,
    /// How long it is.
    pub size_bytes: u64,
}

impl Identity {
    /// Tells whether both are the same file.
    #[must_use]
    pub fn is_same_file(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// The cause inside an [`io::Error`] when there is something else where a regular file of ours should be.
#[derive(Clone, Copy, Debug)]
pub struct NotRegular {
    /// What it is, with its article.
    pub found: &'static str,
}

impl NotRegular {
    /// Returns the cause if that is what an error of the disk is about.
    #[must_use]
    pub fn inside(error: &io::Error) -> Option<Self> {
        error.get_ref()?.downcast_ref().copied()
    }
}

impl fmt::Display for NotRegular {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} stands where a regular file should be", self.found)
    }
}

impl std::error::Error for NotRegular {}

impl From<NotRegular> for io::Error {
    fn from(cause: NotRegular) -> Self {
        Self::other(cause)
    }
}

/// Writes all bytes at the end: interrupted calls are made again, short ones go on, and a write of nothing fails.
///
/// # Errors
/// I/O errors; part of the bytes may be in the file then.
pub fn append_all(file: &dyn DiskFile, bytes: &[u8]) -> io::Result<()> {
    write_all(bytes, |rest, _| file.append(rest))
}

/// Writes all bytes over others, with the same care as [`append_all`].
///
/// # Errors
/// I/O errors; part of the bytes may be in the file then.
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

/// A file of a disk as something to read from, from a place on.
pub struct Reading {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Reading {
    /// Begins at a place.
    #[must_use]
    pub fn from(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl io::Read for Reading {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(into, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// Reads into the buffer until it is full or the file ends; returns how many bytes.
///
/// # Errors
/// I/O errors.
pub fn read_full(file: &dyn DiskFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// Syncs a file. Whatever the journal acknowledges was synced through here or [`sync_dir`]; a disk syncs by itself
/// the name of a directory that it makes and what it writes into a lock file.
///
/// # Errors
/// I/O errors; never asked twice, since the second answer may be a false yes.
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

/// Puts a whole file in place: temporary name, sync, rename, sync of the directory.
///
/// # Errors
/// I/O errors; the old file, if there was one, is untouched then.
pub fn replace_file(disk: &dyn Disk, path: &StorePath, bytes: &[u8]) -> io::Result<()> {
    replace_with(disk, path, |file| append_all(file, bytes))
}

/// Puts a whole file in place like [`replace_file`], with whatever `write` puts into it.
///
/// # Errors
/// As [`replace_file`].
pub fn replace_with(
    disk: &dyn Disk,
    path: &StorePath,
    write: impl FnOnce(&dyn DiskFile) -> io::Result<()>,
) -> io::Result<()> {
    // A name of its own and a file that was not there: others may be putting the same file in place.
    let temporary = path.temporary();
    let file = disk.create(&temporary)?;
    let placed = write(&*file).and_then(|()| sync_file(&*file)).and_then(|()| disk.rename(&temporary, path));
    if let Err(error) = placed {
        disk.discard(&temporary).ok();
        return Err(error);
    }
    sync_dir(disk, &path.dir())
}
