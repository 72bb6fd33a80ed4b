//! A disk in memory that loses what was not synced.
//!
//! After a power cut every unsynced sector may be there, be lost, or come back as zeros, in any combination; names
//! that were not synced with their directory are undone from some point on. A sync that fails drops what it should
//! have saved and forgets that it was dirty, as ext4 does, so that a second sync succeeds and proves nothing. A sync of
//! the whole disk that fails does so for all files.

mod handle;
mod world;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steno_disk::{Disk, DiskFile, Identity, LockGuard, StorePath};

use handle::{Handle, SimLockGuard};
use world::{LockState, World};

pub use world::{Call, Fault};

/// A simulated disk as one process sees it. Once the process has died, everything it does fails.
#[derive(Clone)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    process: u64,
}

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Death {
    /// The process is killed: what it wrote stays, synced or not.
    Kill,
    /// The machine loses power: what was not synced may be lost, torn or reordered.
    PowerCut,
}

impl SimDisk {
    /// Makes an empty disk; all randomness comes from the seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let world = Arc::new(Mutex::new(World::new(seed)));
        let process = world.lock().unwrap_or_else(PoisonError::into_inner).process;
        Self { world, process }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the process that used this disk and returns the disk as the next one finds it.
    #[must_use]
    pub fn die(&self, death: Death) -> Self {
        let mut world = self.world();
        world.end_process(death);
        Self { world: Arc::clone(&self.world), process: world.process }
    }

    /// Plans a fault; it fires once.
    pub fn plan(&self, fault: Fault) {
        self.world().plan(fault);
    }

    /// Makes a share of writes short or interrupted: one in `times` calls.
    pub fn make_writes_short(&self, once_in: usize) {
        self.world().short_writes = Some(once_in);
    }

    /// Sets how many bytes files may have in all; `None` takes the limit away.
    pub fn set_room(&self, bytes: Option<u64>) {
        self.world().room = bytes;
    }

    /// Makes the disk one that cannot be synced as a whole.
    pub fn refuse_whole_syncs(&self) {
        self.world().syncs_whole = false;
    }

    /// Returns how many planned faults have fired.
    #[must_use]
    pub fn fired(&self) -> u64 {
        self.world().fired
    }

    /// Returns how many calls that change something were made.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.world().calls
    }

    /// Returns the content of a file as a reader sees it.
    #[must_use]
    pub fn content(&self, path: &StorePath) -> Option<Vec<u8>> {
        let world = self.world();
        world.inode_at(path.as_str()).map(|inode| world.inodes[inode].cache.clone())
    }

    /// Replaces the content of a file from outside, synced.
    pub fn tamper(&self, path: &StorePath, bytes: &[u8]) {
        self.world().tamper(path.as_str(), bytes);
    }

    /// Deletes a file from outside.
    pub fn delete(&self, path: &StorePath) {
        self.world().delete(path.as_str());
    }

    /// Returns all names and contents, to compare before and after.
    #[must_use]
    pub fn snapshot(&self) -> Vec<(String, Vec<u8>)> {
        self.world().snapshot()
    }

    fn open(&self, path: &StorePath) -> io::Result<Option<usize>> {
        let world = self.world();
        world.check_alive(self.process)?;
        Ok(world.inode_at(path.as_str()))
    }

    fn lock(&self, path: &StorePath, how: LockState) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.open_append(path)?;
        let mut world = self.world();
        let inode = world.inode_at(path.as_str()).ok_or(io::ErrorKind::NotFound)?;
        if !world.lock(inode, how) {
            return Ok(None);
        }
        Ok(Some(Box::new(SimLockGuard { disk: self.clone(), inode })))
    }

    fn handle(&self, inode: usize) -> Arc<dyn DiskFile> {
        Arc::new(Handle { disk: self.clone(), inode })
    }
}

impl Disk for SimDisk {
    fn make_dir(&self, dir: &StorePath) -> io::Result<()> {
        let mut world = self.world();
        world.begin(self.process, Call::MakeDir)?;
        world.make_dir(dir.as_str());
        Ok(())
    }

    fn open_append(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(inode) = self.open(path)? {
            return Ok(self.handle(inode));
        }
        let mut world = self.world();
        world.begin(self.process, Call::Create)?;
        let inode = world.create(path.as_str())?;
        drop(world);
        Ok(self.handle(inode))
    }

    fn open_read(&self, path: &StorePath) -> io::Result<Option<Arc<dyn DiskFile>>> {
        self.world().begin(self.process, Call::OpenRead)?;
        Ok(self.open(path)?.map(|inode| self.handle(inode)))
    }

    fn open_overwrite(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.open(path)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(self.handle(inode))
    }

    fn create(&self, path: &StorePath) -> io::Result<Arc<dyn DiskFile>> {
        if self.open(path)?.is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.open_append(path)
    }

    fn discard(&self, temporary: &StorePath) -> io::Result<()> {
        let mut world = self.world();
        world.check_alive(self.process)?;
        world.delete(temporary.as_str());
        Ok(())
    }

    fn remove(&self, path: &StorePath) -> io::Result<()> {
        let mut world = self.world();
        world.begin(self.process, Call::Remove)?;
        world.remove(path.as_str());
        Ok(())
    }

    fn remove_dir(&self, dir: &StorePath) -> io::Result<()> {
        let mut world = self.world();
        world.begin(self.process, Call::Remove)?;
        world.remove_dir(dir.as_str())
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        let mut world = self.world();
        world.begin(self.process, Call::Rename)?;
        world.rename(from.as_str(), to.as_str())
    }

    fn sync_dir(&self, dir: &StorePath) -> io::Result<()> {
        let mut world = self.world();
        world.begin(self.process, Call::SyncDir)?;
        world.sync_dir(dir.as_str());
        Ok(())
    }

    fn sync_whole(&self) -> io::Result<()> {
        let mut world = self.world();
        if !world.syncs_whole {
            return Err(io::ErrorKind::Unsupported.into());
        }
        world.sync_whole(self.process)
    }

    fn list(&self, dir: &StorePath) -> io::Result<Vec<String>> {
        let world = self.world();
        world.check_alive(self.process)?;
        Ok(world.list(dir.as_str()))
    }

    fn identity(&self, path: &StorePath) -> io::Result<Option<Identity>> {
        let inode = self.open(path)?;
        Ok(inode.map(|inode| self.world().identity(inode)))
    }

    fn try_lock(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.lock(path, LockState::Alone)
    }

    fn try_share(&self, path: &StorePath) -> io::Result<Option<Box<dyn LockGuard>>> {
        self.lock(path, LockState::Shared(1))
    }

    fn is_locked(&self, path: &StorePath) -> io::Result<bool> {
        let inode = self.open(path)?;
        Ok(inode.is_some_and(|inode| self.world().is_held_alone(inode)))
    }

    fn host_path(&self, _dir: &StorePath) -> Option<PathBuf> {
        None
    }
}
