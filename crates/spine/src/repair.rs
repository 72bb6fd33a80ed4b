//! Seals what a crash left open, after a complete check: moves a torn end aside, makes the rest durable, and writes the
//! meta file. Changes nothing else, and nothing at all if the spine has an error.

use steno_disk::{Disk, StorePath};
use steno_journal::{Error, SegmentIndex, Store, UnsealedSegment, seal_segment};
use steno_model::{Seq, ThreadId};

use super::directory::{check_stored, layout_of, validate_directory};
use super::segment_check::Segment;
use super::validator::{Layout, Report};

/// A change by the repair of a spine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A segment was sealed.
    Sealed {
        /// Its file.
        file: String,
        /// The number of its records.
        records: u64,
    },
    /// A torn end was moved to its own file.
    SetAside {
        /// The file that it was in.
        file: String,
        /// Its length.
        bytes: u64,
        /// The file that keeps it, in the same directory.
        kept: String,
    },
}

/// Checks a spine of a store and seals what a crash left open, unless the spine has an error.
///
/// # Errors
///
/// [`Error::Locked`] while another process writes it, or an error of the system. The repair can then be repeated.
pub fn repair_spine(
    store: &Store,
    thread: &ThreadId,
    now: jiff::Timestamp,
) -> Result<(Report, Vec<Repair>), Error> {
    let disk = &**store.disk();
    // We hold the lock, so no process writes at its end.
    let _lock = store.lock_spine(thread, now)?;
    let report = check_stored(disk, thread, false)?;
    let repairs = SpineRepair { disk, dir: StorePath::spine_of(thread), now }.seal_all(&report)?;
    Ok((report, repairs))
}

/// Checks a spine or a bundle in a directory like [`validate_directory`], and seals what a crash left open, unless it
/// has an error.
///
/// # Errors
///
/// An error of the system. The repair can then be repeated.
pub fn repair_directory(disk: &dyn Disk, now: jiff::Timestamp) -> Result<(Report, Vec<Repair>), Error> {
    let report = validate_directory(disk)?;
    let dir = match layout_of(disk)? {
        Layout::Spine => StorePath::root(),
        Layout::Bundle => StorePath::root().below("spine"),
    };
    let repairs = SpineRepair { disk, dir, now }.seal_all(&report)?;
    Ok((report, repairs))
}

/// A directory of segments, and the time of the repair.
struct SpineRepair<'a> {
    disk: &'a dyn Disk,
    dir: StorePath,
    now: jiff::Timestamp,
}

impl SpineRepair<'_> {
    fn seal_all(&self, report: &Report) -> Result<Vec<Repair>, Error> {
        let mut repairs = Vec::new();
        if !report.is_valid() {
            return Ok(repairs);
        }
        let mut seq_before = None;
        for (index, segment) in &report.parts.segments {
            if !report.parts.metas.contains_key(index) {
                self.seal(SegmentIndex(*index), segment, seq_before, &mut repairs)?;
            }
            seq_before = segment.seq_last.or(seq_before);
        }
        Ok(repairs)
    }

    fn seal(
        &self,
        index: SegmentIndex,
        segment: &Segment,
        seq_before: Option<Seq>,
        repairs: &mut Vec<Repair>,
    ) -> Result<(), Error> {
        let unsealed = UnsealedSegment {
            index,
            bytes: segment.bytes,
            thread: segment.thread.as_deref(),
            records: segment.records,
            seqs: segment.seq_first.zip(segment.seq_last),
            seq_before,
            created_at: &segment.time_first,
            torn: segment.torn.map(|torn| (torn.offset, torn.len)),
        };
        let kept = seal_segment(self.disk, &self.dir, &unsealed, self.now)?;
        if let (Some(torn), Some(kept)) = (segment.torn, kept) {
            repairs.push(Repair::SetAside { file: segment.file.clone(), bytes: torn.len, kept });
        }
        if unsealed.seqs.is_some() && unsealed.thread.is_some() {
            repairs.push(Repair::Sealed { file: segment.file.clone(), records: segment.records });
        }
        Ok(())
    }
}
