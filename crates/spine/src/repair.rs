//! Seals what a crash left open, after everything was checked: a torn end is moved aside, the rest made durable, the meta
//! file written. Nothing else is changed, and a spine with an error in it is left alone.

use steno_disk::{Disk, StorePath};
use steno_journal::{Error, SegmentIndex, Store, UnsealedSegment, seal_segment};
use steno_model::{Seq, ThreadId};

use super::directory::{check_stored, layout_of, validate_directory};
use super::segment_check::Segment;
use super::validator::{Layout, Report};

/// What mending a spine has done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// A segment was sealed.
    Sealed {
        /// Its file.
        file: String,
        /// How many records it has.
        records: u64,
    },
    /// A torn end was moved to a file of its own.
    SetAside {
        /// The file that it stood in.
        file: String,
        /// How many bytes it had.
        bytes: u64,
        /// The file that keeps it, beside the other.
        kept: String,
    },
}

/// Checks a spine of a store and seals what a crash left open, unless there is an error in it.
///
/// # Errors
/// [`Error::Locked`] while somebody writes to it, or what the system says; doing it again later is safe.
pub fn repair_spine(
    store: &Store,
    thread: &ThreadId,
    now: jiff::Timestamp,
) -> Result<(Report, Vec<Repair>), Error> {
    let disk = &**store.disk();
    // The lock is ours now, so no writer is at its end.
    let _lock = store.lock_spine(thread, now)?;
    let report = check_stored(disk, thread, false)?;
    let repairs = SpineRepair { disk, dir: StorePath::spine_of(thread), now }.seal_all(&report)?;
    Ok((report, repairs))
}

/// Checks a spine or a bundle in a directory like [`validate_directory`], and seals what a crash left open, unless there is
/// an error in it.
///
/// # Errors
/// What the system says; doing it again later is safe.
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
