//! A disk that asks the test before it syncs a file or looks at a name.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use steno_journal::StorePath;
use steno_journal::disk::{Disk, DiskFile, Identity, LockGuard};

/// Decides whether a call on a path goes through.
pub type Hook = Arc<dyn Fn(&StorePath) -> io::Result<()> + Send + Sync>;

pub struct HookedDisk {
    pub inner: Arc<dyn Disk>,
    pub before_sync: Hook,
    pub before_identity: Hook,
}

impl HookedDisk {
    pub fn new(inner: Arc<dyn Disk>) -> Self {
        Self { inner, before_sync: Arc::new(|_| Ok(())), before_identity: Arc::new(|_| Ok(())) }
    }

    fn hooked(&self, inner: Arc<dyn DiskFile>, path: &StorePath) -> Arc<dyn DiskFile> {
        Arc::new(HookedFile { inner, path: path.clone(), before_sync: Arc::clone(&self.before_sync) })
    }
}

impl Disk for HookedDisk {
    fn make_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.inner.make_dir(dir)
    }

    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.hooked(self.inner.open_append(path)?, path))
    }

    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.inner.open_read(path)
    }

    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.hooked(self.inner.open_overwrite(path)?, path))
    }

    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        Ok(self.hooked(self.inner.create(path)?, path))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn sync_dir(&self, dir: &StorePath) -> io::Result<()> {
        self.inner.sync_dir(dir)
    }

    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>> {
        (self.before_identity)(path)?;
        self.inner.identity(path)
    }

    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.inner.try_lock(path)
    }

    fn is_locked(&self, path: &StorePath) -> io::Result<bool> {
        self.inner.is_locked(path)
    }

    fn host_path(&self, dir: &StorePath) -> Option<PathBuf> {
        self.inner.host_path(dir)
    }
}

struct HookedFile {
    inner: Arc<dyn DiskFile>,
    path: StorePath,
    before_sync: Hook,
}

impl DiskFile for HookedFile {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        self.inner.append(bytes)
    }

    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.overwrite(bytes, offset)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.inner.read_at(into, offset)
    }

    fn sync(&self) -> io::Result<()> {
        (self.before_sync)(&self.path)?;
        self.inner.sync()
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        self.inner.truncate(len)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.inner.identity()
    }
}
