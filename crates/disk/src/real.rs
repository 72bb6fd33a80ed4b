//! The disk of the operating system, opened below one directory handle.
//!
//! Links, devices and pipes are refused, and no open can block: a FIFO in place of a log would block a plain open.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::directory;
#[cfg(target_os = "linux")]
use crate::whole;
use crate::{Disk, DiskFile, Identity, LockGuard, NotRegular, StorePath};

const FILE_MODE: Mode = Mode::from_raw_mode(0o600);
const DIR_MODE: Mode = Mode::from_raw_mode(0o700);
const LOCK_TEXT_BYTES_MAX: usize = 4096;

/// The error for a file of another user.
const FOREIGN: NotRegular = NotRegular { found: "a file of another user" };

/// A store's directory on the real disk.
#[derive(Debug)]
pub struct RealDisk {
    root: OwnedFd,
    path: PathBuf,
    /// Whether the whole file system can be synced at once, once that is known.
    syncs_whole: OnceLock<bool>,
}

impl RealDisk {
    /// Opens the directory; `None` when it does not exist.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: &Path) -> io::Result<Option<Self>> {
        match fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) {
            Ok(root) => Ok(Some(Self { root, path: path.to_owned(), syncs_whole: OnceLock::new() })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens the directory; creates it with mode 0700 if it does not exist.
    ///
    /// # Errors
    /// I/O errors.
    pub fn create(path: &Path) -> io::Result<Self> {
        make_dirs_above(path)?;
        match fs::mkdir(path, DIR_MODE) {
            // The owner needs all three permissions, whatever the umask is.
            Ok(()) => fs::chmod(path, DIR_MODE)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // Also when it exists: its creator may have died before its name was synced.
        sync_names_in(parent_of(path))?;
        Self::open(path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Returns the owner of the store: that of its format file.
    pub(crate) fn owner(&self) -> io::Result<Option<u32>> {
        Ok(self.stat(&StorePath::format())?.map(|stat| stat.st_uid))
    }

    /// Fails in a store of another user, because its owner could not use files that we create.
    fn check_owner(&self) -> io::Result<()> {
        match self.owner()? {
            Some(owner) if owner != this_user() => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("the store belongs to another user (uid {owner}); only its owner may write to it"),
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn stat(&self, path: &StorePath) -> io::Result<Option<Stat>> {
        let stat = self
            .open_dir(&path.dir())
            .and_then(|dir| fs::statat(dir, path.file_name(), AtFlags::SYMLINK_NOFOLLOW));
        match stat {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a directory below the root without following any link.
    fn open_dir(&self, dir: &StorePath) -> Result<OwnedFd, Errno> {
        let name = if dir.as_str().is_empty() { "." } else { dir.as_str() };
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        open_beneath(self.root.as_fd(), name, flags)
    }

    /// Opens a regular file below the root without following links; for writing, it must be our own.
    fn open_file(&self, path: &StorePath, flags: OFlags) -> io::Result<RealFile> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let fd = match open_beneath(self.root.as_fd(), path.as_str(), flags) {
            Ok(fd) => fd,
            // A link gives ELOOP and a FIFO without a reader ENXIO; the error names the type instead.
            Err(error @ (Errno::LOOP | Errno::NXIO | Errno::ISDIR)) => {
                self.stat(path)?.map_or(Ok(()), |stat| check_regular(&stat))?;
                return Err(error.into());
            }
            Err(error) => return Err(error.into()),
        };
        let stat = fs::fstat(&fd)?;
        check_regular(&stat)?;
        // Files of other users may be read, but not written.
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            check_ours(&stat)?;
        }
        Ok(RealFile { fd })
    }

    /// Opens a file, or creates it with the right mode, whatever the umask is.
    fn open_or_make(&self, path: &StorePath, flags: OFlags) -> io::Result<RealFile> {
        match self.open_file(path, flags) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match self.make(path, flags) {
            // Another process created it meanwhile.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open_file(path, flags),
            made => made,
        }
    }

    fn flock(&self, path: &StorePath, how: FlockOperation) -> io::Result<Option<Box<dyn LockGuard>>> {
        let file = self.open_or_make(path, OFlags::RDWR)?;
        match fs::flock(&file.fd, how) {
            Ok(()) => Ok(Some(Box::new(RealLock(Arc::new(file))))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn make(&self, path: &StorePath, flags: OFlags) -> io::Result<RealFile> {
        self.check_owner()?;
        let file = self.open_file(path, flags | OFlags::CREATE | OFlags::EXCL)?;
        fs::fchmod(&file.fd, FILE_MODE)?;
        Ok(file)
    }
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Creates the parents of a store's directory, and syncs each into the one above it.
fn make_dirs_above(path: &Path) -> io::Result<()> {
    let missing: Vec<_> =
        path.ancestors().skip(1).take_while(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
    for dir in missing.into_iter().rev() {
        match std::fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Ok(()) | Err(_) => sync_names_in(parent_of(dir))?,
        }
    }
    Ok(())
}

fn sync_names_in(dir: &Path) -> Result<(), Errno> {
    sync_dir(&fs::open(dir, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

#[cfg(not(target_vendor = "apple"))]
fn sync_content(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    fs::fdatasync(fd)
}

#[cfg(not(target_vendor = "apple"))]
fn sync_dir(dir: impl AsFd) -> Result<(), Errno> {
    fs::fsync(dir)
}

#[cfg(target_vendor = "apple")]
fn sync_content(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    sync_to_medium(fd)
}

#[cfg(target_vendor = "apple")]
fn sync_dir(dir: impl AsFd) -> Result<(), Errno> {
    sync_to_medium(dir.as_fd())
}

/// Syncs through the drive's cache, where Apple's `fsync` stops. File systems that cannot do so, such as those of
/// network shares, get the plain call.
#[cfg(target_vendor = "apple")]
fn sync_to_medium(fd: BorrowedFd<'_>) -> Result<(), Errno> {
    match fs::fcntl_fullfsync(fd) {
        Err(Errno::NOTSUP | Errno::INVAL | Errno::NOTTY) => fs::fsync(fd),
        synced => synced,
    }
}

#[cfg(target_os = "linux")]
fn open_beneath(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = fs::ResolveFlags::BENEATH | fs::ResolveFlags::NO_SYMLINKS;
    match fs::openat2(root, path, flags, creation_mode(flags), resolve) {
        // A kernel or a sandbox without openat2.
        Err(Errno::NOSYS | Errno::PERM) => open_by_parts(root, path, flags),
        opened => opened,
    }
}

#[cfg(not(target_os = "linux"))]
fn open_beneath(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_by_parts(root, path, flags)
}

/// Opens the path one directory at a time, without following links.
fn open_by_parts(root: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let dir_flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir: Option<OwnedFd> = None;
    let mut rest = path;
    while let Some((first, after)) = rest.split_once('/') {
        let from = dir.as_ref().map_or(root, AsFd::as_fd);
        dir = Some(fs::openat(from, first, dir_flags, Mode::empty())?);
        rest = after;
    }
    fs::openat(dir.as_ref().map_or(root, AsFd::as_fd), rest, flags, creation_mode(flags))
}

/// `openat2` refuses a mode when nothing is to be created.
fn creation_mode(flags: OFlags) -> Mode {
    if flags.contains(OFlags::CREATE) { FILE_MODE } else { Mode::empty() }
}

pub(crate) fn check_regular(stat: &Stat) -> Result<(), NotRegular> {
    let file_type = FileType::from_raw_mode(stat.st_mode);
    if !file_type.is_file() {
        return Err(NotRegular { found: name_of(file_type) });
    }
    Ok(())
}

fn check_ours(stat: &Stat) -> Result<(), NotRegular> {
    if stat.st_uid == this_user() { Ok(()) } else { Err(FOREIGN) }
}

pub(crate) fn this_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn name_of(file_type: FileType) -> &'static str {
    match file_type {
        FileType::RegularFile => "a regular file",
        FileType::Symlink => "a symbolic link",
        FileType::Fifo => "a FIFO",
        FileType::Directory => "a directory",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "something unknown",
    }
}

#[expect(clippy::unnecessary_cast, reason = "the widths of these fields differ between systems")]
pub(crate) fn identity_of(stat: &Stat) -> Identity {
    Identity {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        links: stat.st_nlink as u64,
        size_bytes: u64::try_from(stat.st_size).unwrap_or(0),
        changed_ns: (stat.st_ctime as i64)
            .saturating_mul(1_000_000_000)
            .saturating_add(i64::try_from(stat.st_ctime_nsec).unwrap_or(0)),
    }
}

impl Disk for RealDisk {
    fn make_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.check_owner()?;
        let around = self.open_dir(&dir.dir())?;
        match fs::mkdirat(&around, dir.file_name(), DIR_MODE) {
            // The owner needs all three permissions, whatever the umask is.
            Ok(()) => fs::chmodat(&around, dir.file_name(), DIR_MODE, AtFlags::empty())?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // Also when it exists: its creator may have died before its name was synced.
        Ok(sync_dir(around)?)
    }

    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(self.open_or_make(path, OFlags::WRONLY | OFlags::APPEND)?))
    }

    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>> {
        match self.open_file(path, OFlags::RDONLY) {
            Ok(file) => Ok(Some(Arc::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(self.open_file(path, OFlags::WRONLY)?))
    }

    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(self.make(path, OFlags::WRONLY | OFlags::APPEND)?))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        self.stat(to)?.as_ref().map_or(Ok(()), check_ours)?;
        let (from_dir, to_dir) = (self.open_dir(&from.dir())?, self.open_dir(&to.dir())?);
        Ok(fs::renameat(from_dir, from.file_name(), to_dir, to.file_name())?)
    }

    fn discard(&self, temporary: &StorePath) -> io::Result<()> {
        if !temporary.is_temporary() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(fs::unlinkat(self.open_dir(&temporary.dir())?, temporary.file_name(), AtFlags::empty())?)
    }

    fn remove(&self, path: &StorePath) -> io::Result<()> {
        match fs::unlinkat(self.open_dir(&path.dir())?, path.file_name(), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn remove_dir(&self, dir: &StorePath) -> io::Result<()> {
        match fs::unlinkat(self.open_dir(&dir.dir())?, dir.file_name(), AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn sync_dir(&self, dir: &StorePath) -> io::Result<()> {
        Ok(sync_dir(self.open_dir(dir)?)?)
    }

    #[cfg(target_os = "linux")]
    fn sync_whole(&self) -> io::Result<()> {
        if !*self.syncs_whole.get_or_init(|| whole::is_reliable(&self.root)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // This handle is as old as the disk, so a write that failed since then is reported here.
        Ok(fs::syncfs(&self.root)?)
    }

    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>> {
        match self.open_dir(dir) {
            Ok(dir) => directory::names(&dir, &|_| true),
            Err(Errno::NOENT) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>> {
        Ok(self.stat(path)?.as_ref().map(identity_of))
    }

    fn identities(
        &self,
        dir: &StorePath,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> io::Result<Vec<(String, Identity)>> {
        match self.open_dir(dir) {
            Ok(dir) => directory::identities(&dir, is_wanted),
            Err(Errno::NOENT) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn size_of_files(&self, dir: &StorePath) -> io::Result<u64> {
        match self.open_dir(dir) {
            Ok(dir) => directory::size_of_files(&dir),
            Err(Errno::NOENT) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.flock(path, FlockOperation::NonBlockingLockExclusive)
    }

    fn try_share(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.flock(path, FlockOperation::NonBlockingLockShared)
    }

    fn is_locked(&self, path: &StorePath) -> io::Result<bool> {
        let file = match self.open_file(path, OFlags::RDONLY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        match fs::flock(&file.fd, FlockOperation::NonBlockingLockShared) {
            Ok(()) => {
                drop(RealLock(Arc::new(file)));
                Ok(false)
            }
            Err(Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    fn locked_files(&self, dir: &StorePath, is_wanted: &dyn Fn(&str) -> bool) -> io::Result<Vec<String>> {
        match self.open_dir(dir) {
            Ok(dir) => directory::locked_files(&dir, is_wanted),
            Err(Errno::NOENT) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }

    fn host_path(&self, dir: &StorePath) -> Option<PathBuf> {
        Some(self.path.join(dir.as_str()))
    }
}

pub(crate) struct RealFile {
    fd: OwnedFd,
}

impl From<std::fs::File> for RealFile {
    fn from(file: std::fs::File) -> Self {
        Self { fd: file.into() }
    }
}

impl DiskFile for RealFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.fd, bytes)?)
    }

    #[cfg(target_os = "linux")]
    fn append_from_pipe(&self, pipe: BorrowedFd<'_>, len: usize) -> io::Result<usize> {
        use rustix::pipe::{SpliceFlags, splice};
        // The system refuses this for files that are open to append. Their position is at the end, and stays there.
        let flags = fs::fcntl_getfl(&self.fd)?;
        if flags.contains(OFlags::APPEND) {
            fs::fcntl_setfl(&self.fd, flags - OFlags::APPEND)?;
        }
        match splice(pipe, None, &self.fd, None, len, SpliceFlags::empty()) {
            Err(Errno::INVAL | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
            moved => Ok(moved?),
        }
    }

    #[cfg(target_os = "linux")]
    fn reserve(&self, offset: u64, len: u64) -> io::Result<()> {
        Ok(fs::fallocate(&self.fd, fs::FallocateFlags::KEEP_SIZE, offset, len)?)
    }

    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwrite(&self.fd, bytes, offset)?)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pread(&self.fd, into, offset)?)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(sync_content(self.fd.as_fd())?)
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        Ok(fs::ftruncate(&self.fd, len)?)
    }

    fn identity(&self) -> io::Result<Identity> {
        Ok(identity_of(&fs::fstat(&self.fd)?))
    }
}

/// A lock that is released when it is dropped.
struct RealLock(Arc<RealFile>);

impl Drop for RealLock {
    fn drop(&mut self) {
        // A process that is being started has copies of all descriptors for a moment, so closing ours would not release
        // the lock.
        fs::flock(&self.0.fd, FlockOperation::Unlock).ok();
    }
}

impl LockGuard for RealLock {
    fn read(&self) -> io::Result<String> {
        let mut text = vec![0; LOCK_TEXT_BYTES_MAX];
        let read = crate::read_full(&*self.0, &mut text, 0)?;
        text.truncate(read);
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn write_unsynced(&self, text: &str) -> io::Result<Arc<dyn DiskFile>> {
        crate::overwrite_all(&*self.0, text.as_bytes(), 0)?;
        crate::cut_behind(&*self.0, text.len() as u64)?;
        Ok(Arc::<RealFile>::clone(&self.0))
    }
}
