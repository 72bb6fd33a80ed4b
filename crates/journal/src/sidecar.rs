//! Files beside a transcript or a spine that grow by single lines: seals and notes.

use std::collections::BTreeMap;
// Not shuttle's locks: nothing here yields to another thread, and these statics outlive a shuttle run.
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use steno_disk::{Disk, StorePath, SyncSet, append_all, sync_dir, sync_file};

use crate::error::Error;
use crate::line_check::{LineCheck as _, ObjectLines};
use crate::recovery;
use crate::run_ends::last_line;
use crate::scan::{Ending, scan};

/// How much of the end of a file is rewritten in place before a line is added.
const AGAIN_BYTES: u64 = 16 * 1024;

/// The files that lines are being added to, each with a lock for the threads of this process. Other processes are
/// excluded by the lock of the run or spine.
static TURNS: Mutex<BTreeMap<StorePath, Arc<Mutex<()>>>> = Mutex::new(BTreeMap::new());

/// Returns a value as a line of JSON, without a newline.
pub(crate) fn json_line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("our own records are strings and numbers")
}

/// Appends one line and syncs it. A torn tail, left by a crash, is moved aside first.
///
/// # Errors
/// I/O errors. The line is then removed, if that is possible.
pub(crate) fn append_line(disk: &dyn Disk, path: &StorePath, line: &str) -> Result<(), Error> {
    in_turn(path, || append_alone(disk, path, line))
}

/// Appends one line, as [`append_line`] does, and adds the file to those that have to be synced. Until then a power cut
/// may leave a part of the line, which the next append moves aside.
pub(crate) fn append_unsynced(
    disk: &dyn Disk,
    path: &StorePath,
    line: &str,
    set: &mut SyncSet,
) -> Result<(), Error> {
    in_turn(path, || {
        let failed = |doing| move |source| Error::io(doing, path, source);
        prepare(disk, path)?;
        let file = disk.open_append(path).map_err(failed("open"))?;
        append_all(&*file, format!("{line}\n").as_bytes()).map_err(failed("write"))?;
        set.file(file);
        set.dir(path.dir());
        Ok(())
    })
}

fn append_alone(disk: &dyn Disk, path: &StorePath, line: &str) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    prepare(disk, path)?;
    let file = disk.open_append(path).map_err(failed("open"))?;
    let before = file.identity().map_err(failed("access"))?.size_bytes;
    let written = append_all(&*file, format!("{line}\n").as_bytes()).map_err(failed("write"));
    let outcome = written.and_then(|()| sync_file(&*file).map_err(failed("sync")));
    if outcome.is_err() {
        // Best effort: what remains is a torn tail, which the next append moves aside, or an unsynced line, which it
        // rewrites.
        file.truncate(before).ok();
        return outcome;
    }
    sync_dir(disk, &path.dir()).map_err(failed("sync the directory of"))
}

/// Makes sure that the file ends with a good line, and that the next sync writes to disk what reading shows.
///
/// Only the end is checked, since each line was synced or removed before the next one was added. If both failed, the
/// disk may lack what reading shows, and a new line would follow a hole. So the end is rewritten in place, which costs
/// the same for every length of the file.
fn prepare(disk: &dyn Disk, path: &StorePath) -> Result<(), Error> {
    let failed = |doing| move |source| Error::io(doing, path, source);
    let Some(file) = disk.open_read(path).map_err(failed("open"))? else { return Ok(()) };
    let len = file.identity().map_err(failed("access"))?.size_bytes;
    if len == 0 {
        return Ok(());
    }
    let last = match last_line(&*file, path, len) {
        Err(Error::Damaged { .. }) => None,
        found => found?,
    };
    let is_good =
        |line: &(u64, Vec<u8>)| line.0 + line.1.len() as u64 + 1 == len && ObjectLines.seq(&line.1).is_ok();
    if let Some((offset, _)) = last.filter(is_good) {
        let from = offset.min(len.saturating_sub(AGAIN_BYTES));
        return recovery::write_again(disk, path, from, len);
    }
    let found = scan(file, path, &ObjectLines, Vec::new())?;
    if let Ending::Torn { offset, len } = found.ending {
        recovery::keep_torn(disk, path, offset, len)?;
        recovery::cut(disk, path, offset)?;
    }
    recovery::write_again(disk, path, 0, found.good.len)
}

/// Runs `work` while no other thread changes the file.
fn in_turn<R>(path: &StorePath, work: impl FnOnce() -> R) -> R {
    let turn = Arc::clone(lock(&TURNS).entry(path.clone()).or_default());
    let outcome = {
        let _alone = lock(&turn);
        work()
    };
    let mut turns = lock(&TURNS);
    // Only the map and we have a reference: no other thread waits, and a later one makes a new entry.
    if Arc::strong_count(&turn) == 2 {
        turns.remove(path);
    }
    outcome
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
