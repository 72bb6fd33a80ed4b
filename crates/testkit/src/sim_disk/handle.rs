//! Open files and held locks of the simulated disk.

use std::io;
use std::sync::Arc;

use steno_disk::{DiskFile, Identity, LockGuard};

use super::SimDisk;
use super::world::Call;

pub(super) struct Handle {
    pub(super) disk: SimDisk,
    pub(super) inode: usize,
}

impl DiskFile for Handle {
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut world = self.disk.world();
        let offset = world.inodes[self.inode].cache.len();
        world.write(self.disk.process, self.inode, offset, bytes)
    }

    fn overwrite(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let offset = usize::try_from(offset).map_err(io::Error::other)?;
        self.disk.world().write(self.disk.process, self.inode, offset, bytes)
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let world = self.disk.world();
        world.check_alive(self.disk.process)?;
        let cache = &world.inodes[self.inode].cache;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(cache.len());
        let count = into.len().min(cache.len() - from);
        into[..count].copy_from_slice(&cache[from..from + count]);
        Ok(count)
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.disk.world();
        match world.begin(self.disk.process, Call::Sync) {
            Ok(()) => {
                world.inodes[self.inode].sync();
                Ok(())
            }
            Err(error) => {
                world.inodes[self.inode].forget_dirty();
                Err(error)
            }
        }
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        let mut world = self.disk.world();
        world.begin(self.disk.process, Call::Truncate)?;
        world.inodes[self.inode].truncate(len);
        Ok(())
    }

    fn identity(&self) -> io::Result<Identity> {
        let world = self.disk.world();
        world.check_alive(self.disk.process)?;
        Ok(world.identity(self.inode))
    }
}

pub(super) struct SimLockGuard {
    pub(super) disk: SimDisk,
    pub(super) inode: usize,
}

impl SimLockGuard {
    fn handle(&self) -> Handle {
        Handle { disk: self.disk.clone(), inode: self.inode }
    }
}

impl LockGuard for SimLockGuard {
    fn read(&self) -> io::Result<String> {
        let mut text = vec![0; 4096];
        let count = self.handle().read_at(&mut text, 0)?;
        Ok(String::from_utf8_lossy(&text[..count]).into_owned())
    }

    fn write_unsynced(&self, text: &str) -> io::Result<Arc<dyn DiskFile>> {
        steno_disk::overwrite_all(&self.handle(), text.as_bytes(), 0)?;
        steno_disk::cut_behind(&self.handle(), text.len() as u64)?;
        Ok(Arc::new(self.handle()))
    }
}

impl Drop for SimLockGuard {
    fn drop(&mut self) {
        let mut world = self.disk.world();
        // The locks of a dead process are already released, and another process may hold them by now.
        if world.process == self.disk.process {
            world.unlock(self.inode);
        }
    }
}
