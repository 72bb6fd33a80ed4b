//! A disk that calls a test before each operation, and counts bytes.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use steno_disk::{Disk, DiskFile, Identity, LockGuard, StorePath};
use steno_testkit::sim_disk::SimDisk;

/// An operation on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    Append,
    Read,
    Sync,
    /// The identity of an open file.
    Look,
    /// The identity of a path.
    Find,
}

type Hook = dyn Fn(Doing, &StorePath) -> io::Result<()> + Send + Sync;

/// Passes everything on to a simulated disk.
#[derive(Clone)]
pub struct WatchedDisk {
    disk: SimDisk,
    hook: Arc<Mutex<Arc<Hook>>>,
    moved: Arc<AtomicU64>,
}

struct WatchedFile {
    file: Arc<dyn DiskFile>,
    path: StorePath,
    disk: WatchedDisk,
}

impl WatchedDisk {
    pub fn new(disk: &SimDisk) -> Self {
        let hook: Arc<Hook> = Arc::new(|_, _| Ok(()));
        Self { disk: disk.clone(), hook: Arc::new(Mutex::new(hook)), moved: Arc::default() }
    }

    /// Calls `hook` before each append, read, sync and identity check; its result is the result of the call.
    pub fn set_hook(&self, hook: impl Fn(Doing, &StorePath) -> io::Result<()> + Send + Sync + 'static) {
        *self.hook.lock().unwrap() = Arc::new(hook);
    }

    /// Returns how many bytes were read and written since the last call.
    pub fn take_moved(&self) -> u64 {
        self.moved.swap(0, Ordering::Relaxed)
    }

    fn watched(&self, file: Arc<dyn DiskFile>, path: &StorePath) -> Arc<dyn DiskFile> {
        Arc::new(WatchedFile { file, path: path.clone(), disk: self.clone() })
    }

    fn tell(&self, doing: Doing, path: &StorePath) -> io::Result<()> {
        let hook = Arc::clone(&self.hook.lock().unwrap());
        hook(doing, path)
    }

    fn count(&self, moved: io::Result<usize>) -> io::Result<usize> {
        self.moved.fetch_add(*moved.as_ref().unwrap_or(&0) as u64, Ordering::Relaxed);
        moved
    }
}

impl Disk for WatchedDisk {
    fn make_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.disk.make_dir(dir)
    }

    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.watched(self.disk.open_append(path)?, path))
    }

    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>> {
        Ok(self.disk.open_read(path)?.map(|file| self.watched(file, path)))
    }

    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.watched(self.disk.open_overwrite(path)?, path))
    }

    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.watched(self.disk.create(path)?, path))
    }

    fn remove(&self, path: &StorePath) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn remove_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.disk.remove_dir(dir)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>> {
        self.tell(Doing::Find, path)?;
        self.disk.identity(path)
    }

    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.disk.try_lock(path)
    }

    fn try_share(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.disk.try_share(path)
    }

    fn is_locked(&self, path: &StorePath) -> io::Result<bool> {
        self.disk.is_locked(path)
    }

    fn host_path(&self, dir: &StorePath) -> Option<PathBuf> {
        self.disk.host_path(dir)
    }
}

impl DiskFile for WatchedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.tell(Doing::Append, &self.path)?;
        self.disk.count(self.file.append(bytes))
    }

    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.disk.count(self.file.overwrite(bytes, offset))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.tell(Doing::Read, &self.path)?;
        self.disk.count(self.file.read_at(into, offset))
    }

    fn sync(&self) -> io::Result<()> {
        self.disk.tell(Doing::Sync, &self.path)?;
        self.file.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.file.truncate(len)
    }

    fn identity(&self) -> io::Result<Identity> {
        let found = self.file.identity();
        self.disk.tell(Doing::Look, &self.path)?;
        found
    }
}
