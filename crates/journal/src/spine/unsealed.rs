//! Seals a segment that a crash left open, after somebody has checked it.

use sha2::Digest as _;
use steno_disk::{Disk, StorePath};
use steno_model::Seq;

use crate::error::Error;
use crate::names::{SegmentIndex, SegmentName};
use crate::note::{NoteKind, note_once_in};
use crate::recovery;
use crate::seal::Prefix;
use crate::segment::{SegmentFacts, write_meta};

/// A segment without a meta file, as a check has found it.
#[derive(Clone, Copy, Debug)]
pub struct UnsealedSegment<'a> {
    /// Which segment.
    pub index: SegmentIndex,
    /// How many bytes its file had.
    pub bytes: u64,
    /// The thread that its records name; `None` without a record.
    pub thread: Option<&'a str>,
    /// How many records it has.
    pub records: u64,
    /// The numbers of its first and last record.
    pub seqs: Option<(Seq, Seq)>,
    /// The last number before this segment.
    pub seq_before: Option<Seq>,
    /// The time of its first record.
    pub created_at: &'a str,
    /// Where a torn end begins, and how many bytes it has.
    pub torn: Option<(u64, u64)>,
}

/// Seals a segment in a directory: a torn end is moved aside and noted, the rest is made durable, the meta file written.
/// Returns the name of the file that keeps the torn end, if there was one.
///
/// # Errors
/// [`Error::Changed`] when somebody has written to it since, or what the system says; doing it again later is safe.
pub fn seal_segment(
    disk: &dyn Disk,
    dir: &StorePath,
    segment: &UnsealedSegment<'_>,
    now: jiff::Timestamp,
) -> Result<Option<String>, Error> {
    let path = dir.below(SegmentName::Records(segment.index));
    let identity = disk.identity(&path).map_err(|source| Error::io("access", &path, source))?;
    let found = identity.map_or(0, |identity| identity.size_bytes);
    if found != segment.bytes {
        // Without a store there is no lock: somebody writes to it.
        return Err(Error::Changed { path, found, wanted: segment.bytes });
    }
    let mut kept = None;
    if let Some((offset, len)) = segment.torn {
        let seq_last = segment.seqs.map(|(_, last)| last).or(segment.seq_before);
        let name = recovery::keep_torn(disk, &path, offset, len)?.file_name().to_owned();
        let seq_last = seq_last.map_or(0, Seq::get);
        let noted = NoteKind::Recovered { offset, bytes: len, kept: name.clone(), seq_last };
        note_once_in(disk, &dir.below("notes.jsonl"), now, noted)?;
        recovery::cut(disk, &path, offset)?;
        kept = Some(name);
    }
    let (Some((seq_first, seq_last)), Some(thread)) = (segment.seqs, segment.thread) else { return Ok(kept) };
    let len = segment.torn.map_or(segment.bytes, |(offset, _)| offset);
    recovery::make_durable(disk, &path, 0, len)?;
    let mut prefix = Prefix { len, seq_last: Some(seq_last), ..Prefix::default() };
    recovery::read_range(disk, &path, 0..len, |piece| prefix.hash.update(piece))?;
    let (thread, created_at) = (thread.to_owned(), segment.created_at.to_owned());
    let made = SegmentFacts { thread, index: segment.index, seq_first, records: segment.records, created_at };
    write_meta(disk, dir, &made, &prefix, now)?;
    Ok(kept)
}
