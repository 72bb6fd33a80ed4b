//! The right to write: one lock file per run or spine, held by one writer, never deleted.
//!
//! While the disk is full, the lock file also has the number of refused records. It has its full length from the
//! beginning, so this needs no space.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, LockGuard, StorePath, SyncSet, read_full};
use steno_model::Epoch;

use crate::error::Error;
use crate::refusals::Refusals;
use crate::sidecar::json_line;

/// The length of a lock file, padded with spaces: one sector, which a disk writes as a whole or not at all.
const LOCK_BYTES: usize = 512;
/// How much of a lock file is read at most.
const LOCK_BYTES_MAX: usize = 4096;

/// A check whether a run is locked takes the lock for an instant; a writer must not fail because of that.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A held lock and the number of this opening.
pub(crate) struct Lease {
    pub(crate) epoch: Epoch,
    path: StorePath,
    guard: Box<dyn LockGuard>,
    /// The content of the lock file.
    holder: LockFile,
}

/// The content of a lock file.
#[derive(Clone, Serialize, Deserialize)]
struct LockFile {
    epoch: u64,
    pid: u32,
    since: String,
    /// Refusals that are not noted, by this holder or an earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refused: Option<Refusals>,
}

impl LockFile {
    fn to_text(&self) -> String {
        format!("{:<width$}\n", json_line(self), width = LOCK_BYTES - 1)
    }
}

/// Reads the refusals that are not noted from a lock file, locked or not.
pub(crate) fn read_refused(disk: &dyn Disk, path: &StorePath) -> Result<Option<Refusals>, Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    let Some(file) = disk.open_read(path).map_err(failed("open"))? else { return Ok(None) };
    let mut text = vec![0; LOCK_BYTES_MAX];
    let read = read_full(&*file, &mut text, 0).map_err(failed("read"))?;
    Ok(serde_json::from_slice::<LockFile>(&text[..read]).ok().and_then(|holder| holder.refused))
}

impl Lease {
    /// Takes the lock and writes the holder into the lock file.
    pub(crate) fn take(disk: &dyn Disk, path: &StorePath, now: jiff::Timestamp) -> Result<Self, Error> {
        let mut set = SyncSet::default();
        let lease = Self::take_unsynced(disk, path, now, &mut set)?;
        set.sync_each(disk).map_err(|source| Error::io("sync", path, source))?;
        Ok(lease)
    }

    /// Takes the lock and writes the holder into the lock file, which has to be synced.
    pub(crate) fn take_unsynced(
        disk: &dyn Disk,
        path: &StorePath,
        now: jiff::Timestamp,
        set: &mut SyncSet,
    ) -> Result<Self, Error> {
        let failed = |doing| move |source| Error::io(doing, path, source);
        let guard = Self::try_often(disk, path)?;
        let text = guard.read().map_err(failed("read"))?;
        let before = serde_json::from_str::<LockFile>(&text);
        let epoch = match &before {
            // Starting again at 1 would give two openings the same number.
            Ok(before) => before.epoch.checked_add(1).ok_or_else(|| Error::Damaged {
                path: path.clone(),
                offset: 0,
                why: steno_model::Error::WrongField { field: "epoch", wanted: "below 18446744073709551615" }
                    .into(),
            })?,
            Err(_) if text.trim().is_empty() => 1,
            // A crash has garbled the lock file. Seconds since 1970 are a larger number than any epoch before.
            Err(_) => u64::try_from(now.as_second()).unwrap_or(1),
        };
        let since = steno_model::Timestamp::from_instant(now).to_string();
        let refused = before.ok().and_then(|before| before.refused);
        let holder = LockFile { epoch, pid: std::process::id(), since, refused };
        set.file(guard.write_unsynced(&holder.to_text()).map_err(failed("write"))?);
        set.dir(path.dir());
        Ok(Self { epoch: Epoch(epoch), path: path.clone(), guard, holder })
    }

    /// Returns the refusals in the lock file that are not noted.
    pub(crate) fn refused(&self) -> Option<&Refusals> {
        self.holder.refused.as_ref()
    }

    /// Writes refusals that are not noted into the lock file, for the next holder of the lock.
    ///
    /// # Errors
    /// I/O errors: a copy-on-write file system may need space even to overwrite.
    pub(crate) fn set_refused(&mut self, refused: Option<Refusals>) -> Result<(), Error> {
        if self.holder.refused == refused {
            return Ok(());
        }
        let holder = LockFile { refused, ..self.holder.clone() };
        self.guard.write(&holder.to_text()).map_err(|source| Error::io("write", &self.path, source))?;
        self.holder = holder;
        Ok(())
    }

    fn try_often(disk: &dyn Disk, path: &StorePath) -> Result<Box<dyn LockGuard>, Error> {
        for tried in 1..=TRIES {
            if let Some(guard) = disk.try_lock(path).map_err(|source| Error::io("lock", path, source))? {
                return Ok(guard);
            }
            if tried < TRIES {
                std::thread::sleep(BETWEEN_TRIES);
            }
        }
        Err(Error::Locked { path: path.clone() })
    }
}
