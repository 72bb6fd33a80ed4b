//! How far a connection's file was written, and how much of it is synced.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use steno_disk::{Disk, DiskFile, StorePath, overwrite_all, read_full, sync_dir, sync_file};

use super::spool::unwritten;
use crate::spines::Error;

/// How long unimportant messages may wait, so that one sync covers several.
const PATIENCE: Duration = Duration::from_millis(200);
/// The most unsynced bytes.
const WAITING_BYTES_MAX: u64 = 1024 * 1024;
/// The wait before a failed sync is retried.
const RETRY: Duration = Duration::from_secs(1);

/// Shares how far the file is written between writer and reader.
#[derive(Default)]
pub(super) struct SpoolProgress {
    state: Mutex<ProgressState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct ProgressState {
    len: u64,
    /// Up to where messages are important.
    weighty: u64,
    /// Up to where it is synced.
    safe: u64,
    is_closed: bool,
}

impl SpoolProgress {
    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the length of the file.
    pub(super) fn tell(&self, len: u64, is_weighty: bool) {
        let mut state = self.state();
        state.len = len;
        if is_weighty {
            state.weighty = len;
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Notes that nothing more is written.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_one();
    }

    /// Waits until the file is longer than `done`; returns its length, and whether it is complete.
    pub(super) fn wait(&self, done: u64) -> (u64, bool) {
        let ignore = PoisonError::into_inner;
        let state = self.changed.wait_while(self.state(), |state| !state.is_closed && state.len <= done);
        let may_wait = |state: &mut ProgressState| {
            !state.is_closed && state.weighty <= done && state.len - done < WAITING_BYTES_MAX
        };
        let waited = self.changed.wait_timeout_while(state.unwrap_or_else(ignore), PATIENCE, may_wait);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        (state.len, state.is_closed)
    }

    /// Sets up to where the file is synced.
    pub(super) fn tell_safe(&self, len: u64) {
        self.state().safe = len;
    }

    /// Returns up to where the file is synced.
    pub(super) fn safe(&self) -> u64 {
        self.state().safe
    }

    /// Waits before a retry, unless nothing more is written.
    pub(super) fn pause(&self) {
        drop(self.changed.wait_timeout_while(self.state(), RETRY, |state| !state.is_closed));
    }
}

/// The synced part of the file.
pub(super) struct SyncedSpool {
    disk: Arc<dyn Disk>,
    path: StorePath,
    file: Arc<dyn DiskFile>,
    len: u64,
    /// Whether the unsynced rest is in doubt: after a failed sync, reads may return data that is not on the disk.
    is_in_doubt: bool,
}

impl SyncedSpool {
    /// Begins with a file that this process created.
    pub(super) fn begin(disk: Arc<dyn Disk>, path: StorePath, file: Arc<dyn DiskFile>) -> Self {
        Self { disk, path, file, len: 0, is_in_doubt: false }
    }

    /// Begins with a file that another process has left.
    pub(super) fn doubt(disk: Arc<dyn Disk>, path: StorePath) -> Result<Self, Error> {
        let file = disk.open_append(&path).map_err(unwritten(&path))?;
        Ok(Self { disk, path, file, len: 0, is_in_doubt: true })
    }

    /// Returns how long it is.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Syncs the file up to a byte.
    ///
    /// # Errors
    /// An I/O error. A retry may succeed.
    pub(super) fn reach(&mut self, len: u64) -> Result<(), Error> {
        let synced = self.write_again(len).and_then(|()| sync_file(&*self.file));
        self.is_in_doubt = synced.is_err();
        synced.map_err(unwritten(&self.path))?;
        self.len = len;
        Ok(())
    }

    /// Rewrites the part in doubt with its own content, so that the next sync writes it to the disk.
    fn write_again(&self, len: u64) -> std::io::Result<()> {
        const PIECE_BYTES: usize = 1024 * 1024;
        if !self.is_in_doubt {
            return Ok(());
        }
        let read = self.disk.open_read(&self.path)?.ok_or(std::io::ErrorKind::NotFound)?;
        let file = self.disk.open_overwrite(&self.path)?;
        let (mut offset, mut piece) = (self.len, vec![0; PIECE_BYTES]);
        while offset < len {
            let wanted = usize::try_from(len - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let read_len = read_full(&*read, &mut piece[..wanted], offset)?;
            if read_len == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            overwrite_all(&*file, &piece[..read_len], offset)?;
            offset += read_len as u64;
        }
        sync_dir(&*self.disk, &self.path.dir())
    }
}
