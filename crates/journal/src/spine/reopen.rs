//! Opening a spine whose last records can be made again from what they were made from.

use steno_disk::{Disk, StorePath};
use steno_model::{Seq, ThreadId};

use crate::error::Error;
use crate::lease::Lease;
use crate::names::{SegmentIndex, SegmentName};
use crate::recorder::Journal;
use crate::recovery;
use crate::scan::Ending;
use crate::seal::Prefix;
use crate::segment::{Rotation, SpineWriter, check_none_after, read_meta, set_aside};

impl Journal {
    /// Opens a thread's spine as [`Journal::spine`] does, for somebody who feeds again what its last records were made from.
    ///
    /// A power cut can lose bytes in the middle of what was not synced. Where that has damaged the last segment, which
    /// nothing vouches for yet, what comes behind the last good record is set aside and noted like a torn end.
    ///
    /// # Errors
    /// As [`Journal::spine`]; damage anywhere else stays what it is.
    pub fn spine_to_make_again(&self, thread: &ThreadId, rotation: Rotation) -> Result<SpineWriter, Error> {
        let opened = self.spine(thread, rotation);
        let Err(Error::Damaged { path, offset, .. }) = &opened else { return opened };
        if self.set_rest_aside(thread, path, *offset)? { self.spine(thread, rotation) } else { opened }
    }

    /// Sets aside what stands behind the good records of a last segment without a meta file; false for any other file.
    fn set_rest_aside(&self, thread: &ThreadId, path: &StorePath, offset: u64) -> Result<bool, Error> {
        let (disk, now) = (&**self.store.disk(), (self.options.clock)());
        let Some(SegmentName::Records(index)) = SegmentName::parse(path.file_name()) else {
            return Ok(false);
        };
        let _lease = Lease::take(disk, &StorePath::spine_lock(thread), now)?;
        let is_last = check_none_after(disk, thread, index).is_ok();
        if !is_last || read_meta(disk, thread, index)?.is_some() {
            return Ok(false);
        }
        let mut lines = 0;
        recovery::read_range(disk, path, 0..offset, |piece| {
            lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        })?;
        let seq_last = Seq::new(seq_before(disk, thread, index)? + lines);
        let found = disk.identity(path).map_err(|source| Error::io("access", path, source))?;
        let len = found.map_or(0, |found| found.size_bytes).saturating_sub(offset);
        let prefix = Prefix { seq_last, ..Prefix::default() };
        set_aside(disk, thread, path, &(prefix, Ending::Torn { offset, len }), now)?;
        Ok(true)
    }
}

/// Returns the last number of the segments before one.
fn seq_before(disk: &dyn Disk, thread: &ThreadId, index: SegmentIndex) -> Result<u64, Error> {
    let Some(before) = index.0.checked_sub(1) else { return Ok(0) };
    Ok(read_meta(disk, thread, SegmentIndex(before))?.map_or(0, |meta| meta.max_seq))
}
