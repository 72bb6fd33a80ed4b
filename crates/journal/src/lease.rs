//! The right to write: one lock file per run or spine, held by one writer, never deleted.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use steno_disk::{Disk, LockGuard, StorePath};
use steno_model::Epoch;

use crate::error::Error;
use crate::side::json_line;

/// Whoever asks whether a run is held takes the lock for an instant; a writer must not stumble over that.
const TRIES: u32 = 5;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A held lock and the number of this opening.
pub(crate) struct Lease {
    pub(crate) epoch: Epoch,
    _guard: Box<dyn LockGuard>,
}

/// What a lock file holds.
#[derive(Serialize, Deserialize)]
struct Holder {
    epoch: u64,
    pid: u32,
    since: String,
}

impl Lease {
    /// Takes the lock, and leaves word of who holds it.
    pub(crate) fn take(disk: &dyn Disk, path: &StorePath, now: jiff::Timestamp) -> Result<Self, Error> {
        let failed = |doing| move |source| Error::io(doing, path, source);
        let guard = Self::try_often(disk, path)?;
        let text = guard.read().map_err(failed("read"))?;
        let before = serde_json::from_str::<Holder>(&text).map(|holder| holder.epoch);
        let epoch = match before {
            // Beginning anew would give live streams the same name for two openings.
            Ok(before) => before.checked_add(1).ok_or_else(|| Error::Damaged {
                path: path.clone(),
                offset: 0,
                why: steno_model::Error::WrongField { field: "epoch", wanted: "below 18446744073709551615" }
                    .into(),
            })?,
            Err(_) if text.trim().is_empty() => 1,
            // A lock file that a crash has garbled: seconds since 1970 are more than anybody has counted to.
            Err(_) => u64::try_from(now.as_second()).unwrap_or(1),
        };
        let since = steno_model::Timestamp::from_instant(now).to_string();
        let holder = Holder { epoch, pid: std::process::id(), since };
        guard.write(&format!("{}\n", json_line(&holder))).map_err(failed("write"))?;
        steno_disk::sync_dir(disk, &path.dir()).map_err(failed("sync the directory of"))?;
        Ok(Self { epoch: Epoch(epoch), _guard: guard })
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
        Err(Error::Held { path: path.clone() })
    }
}
