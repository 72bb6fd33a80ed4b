//! Seals what a crash left open, after everything was checked: a torn end is moved aside, the rest made durable, the meta
//! file written. Nothing else is changed, and a spine with an error in it is left alone.

use sha2::Digest as _;
use steno_disk::{Disk, StorePath};
use steno_model::{Seq, ThreadId};

use super::directory::{check_stored, layout_of, validate_directory};
use super::segment_check::{Segment, Torn};
use super::validator::{Layout, Report};
use crate::error::Error;
use crate::lease::Lease;
use crate::names::{SegmentIndex, SegmentName};
use crate::note::{NoteKind, note_once_in};
use crate::recorder::Journal;
use crate::recovery;
use crate::seal::Prefix;
use crate::segment::{SegmentFacts, write_meta};

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

impl Journal {
    /// Checks a spine of the store and seals what a crash left open, unless there is an error in it.
    ///
    /// # Errors
    /// [`Error::Locked`] while somebody writes to it, or what the system says; doing it again later is safe.
    pub fn repair_spine(&self, thread: &ThreadId) -> Result<(Report, Vec<Repair>), Error> {
        let disk = &**self.store.disk();
        let now = (self.options.clock)();
        let _lease = Lease::take(disk, &StorePath::spine_lock(thread), now)?;
        // The lock is ours now, so nobody is at the end of it.
        let report = check_stored(disk, thread, false)?;
        let repairs = Mending { disk, dir: StorePath::spine_of(thread), now }.all(&report)?;
        Ok((report, repairs))
    }
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
    let repairs = Mending { disk, dir, now }.all(&report)?;
    Ok((report, repairs))
}

/// Where, and when.
struct Mending<'a> {
    disk: &'a dyn Disk,
    dir: StorePath,
    now: jiff::Timestamp,
}

impl Mending<'_> {
    fn all(&self, report: &Report) -> Result<Vec<Repair>, Error> {
        let mut repairs = Vec::new();
        if !report.is_valid() {
            return Ok(repairs);
        }
        let mut seq_before = None;
        for (index, segment) in &report.parts.segments {
            if !report.parts.metas.contains_key(index) {
                self.segment(SegmentIndex(*index), segment, seq_before, &mut repairs)?;
            }
            seq_before = segment.seq_last.or(seq_before);
        }
        Ok(repairs)
    }

    fn segment(
        &self,
        index: SegmentIndex,
        segment: &Segment,
        seq_before: Option<Seq>,
        repairs: &mut Vec<Repair>,
    ) -> Result<(), Error> {
        let path = self.dir.below(SegmentName::Records(index));
        let looked = self.disk.identity(&path).map_err(|source| Error::io("look at", &path, source))?;
        let found = looked.map_or(0, |looked| looked.size_bytes);
        if found != segment.bytes {
            // Without a store there is no lock: somebody writes to it.
            return Err(Error::Changed { path, found, wanted: segment.bytes });
        }
        if let Some(torn) = segment.torn {
            let kept = self.set_aside(&path, torn, segment.seq_last.or(seq_before))?;
            repairs.push(Repair::SetAside { file: segment.file.clone(), bytes: torn.len, kept });
        }
        let (Some(seq_first), Some(thread)) = (segment.seq_first, &segment.thread) else { return Ok(()) };
        let len = segment.torn.map_or(segment.bytes, |torn| torn.offset);
        recovery::make_durable(self.disk, &path, 0, len)?;
        let mut prefix = Prefix { len, seq_last: segment.seq_last, ..Prefix::default() };
        recovery::read_range(self.disk, &path, 0..len, |piece| prefix.hash.update(piece))?;
        let created_at = segment.time_first.clone();
        let made =
            SegmentFacts { thread: thread.clone(), index, seq_first, records: segment.records, created_at };
        write_meta(self.disk, &self.dir, &made, &prefix, self.now)?;
        repairs.push(Repair::Sealed { file: segment.file.clone(), records: segment.records });
        Ok(())
    }

    /// Moves a torn end aside and notes it; returns the name of the file that keeps it.
    fn set_aside(&self, path: &StorePath, torn: Torn, seq_last: Option<Seq>) -> Result<String, Error> {
        let Torn { offset, len, .. } = torn;
        let kept = recovery::keep_torn(self.disk, path, offset, len)?.file_name().to_owned();
        let seq_last = seq_last.map_or(0, Seq::get);
        let noted = NoteKind::Recovered { offset, bytes: len, kept: kept.clone(), seq_last };
        note_once_in(self.disk, &self.dir.below("notes.jsonl"), self.now, noted)?;
        recovery::cut(self.disk, path, offset)?;
        Ok(kept)
    }
}
