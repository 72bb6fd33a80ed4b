//! A quick look at a spine: how much there is of it, and in which state, without reading what is sealed.

use steno_disk::{Disk, StorePath};
use steno_model::ThreadId;

use crate::error::Error;
use crate::lines::{Lines, NextLine};
use crate::names::{SegmentIndex, SegmentName};
use crate::segment::read_meta;
use crate::store::Store;

/// What a quick look at a spine shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpineLook {
    /// How many segments there are.
    pub segments: u64,
    /// How many of them have a meta file.
    pub sealed: u64,
    /// How many records, as meta files say; those of unsealed segments are counted.
    pub records: u64,
    /// How many bytes the segments have.
    pub bytes: u64,
    /// How it stands.
    pub state: SpineState,
}

/// How a spine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpineState {
    /// Somebody writes to it.
    Recording,
    /// All of it has meta files.
    Sealed,
    /// A crash left something open.
    Unsealed,
    /// It is not valid; a quick look sees that a meta file cannot be read or fits no segment, or a segment is missing.
    Damaged,
}

impl SpineState {
    /// Returns its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recording => "recording",
            Self::Sealed => "sealed",
            Self::Unsealed => "unsealed",
            Self::Damaged => "damaged",
        }
    }
}

/// Looks at a spine of a store. `Damaged` is certain; any other state is no promise, which
/// `steno_spine::validate_spine` can give.
///
/// # Errors
/// What the system says.
pub fn look_at_spine(store: &Store, thread: &ThreadId) -> Result<SpineLook, Error> {
    let disk = &**store.disk();
    let dir = StorePath::spine_of(thread);
    let names = disk.list(&dir).map_err(|source| Error::io("list", &dir, source))?;
    let (mut segments, mut metas) = (Vec::new(), Vec::new());
    for name in &names {
        match SegmentName::parse(name) {
            Some(SegmentName::Records(index)) => segments.push(index),
            Some(SegmentName::Meta(index)) => metas.push(index),
            None => {}
        }
    }
    segments.sort_unstable();
    let mut look = SpineLook { segments: 0, sealed: 0, records: 0, bytes: 0, state: SpineState::Sealed };
    let is_whole = segments.iter().zip(0_u32..).all(|(index, want)| index.0 == want);
    let mut is_damaged = !is_whole || metas.iter().any(|index| !segments.contains(index));
    let mut is_open = false;
    for index in segments {
        let path = SegmentName::Records(index).path(thread);
        let found = disk.identity(&path).map_err(|source| Error::io("access", &path, source))?;
        let bytes = found.map_or(0, |found| found.size_bytes);
        look.segments += 1;
        look.bytes += bytes;
        match read_meta(disk, thread, index) {
            Ok(Some(meta)) => {
                look.sealed += 1;
                look.records += meta.record_count;
                is_damaged |= meta.bytes != bytes || meta.segment_index != index.0;
            }
            Ok(None) => {
                is_open |= bytes > 0;
                look.records += count_lines(disk, thread, index)?;
            }
            Err(Error::Damaged { .. } | Error::NotRegular { .. }) => is_damaged = true,
            Err(error) => return Err(error),
        }
    }
    look.state = match (is_damaged, store.is_spine_locked(thread)?, is_open) {
        (true, ..) => SpineState::Damaged,
        (false, true, _) => SpineState::Recording,
        (false, false, true) => SpineState::Unsealed,
        (false, false, false) => SpineState::Sealed,
    };
    Ok(look)
}

fn count_lines(disk: &dyn Disk, thread: &ThreadId, index: SegmentIndex) -> Result<u64, Error> {
    let path = SegmentName::Records(index).path(thread);
    let failed = |source| Error::io("read", &path, source);
    let file = match disk.open_read(&path).map_err(failed) {
        Ok(Some(file)) => file,
        // Whether it is damage is for others to say; there is nothing to count.
        Ok(None) | Err(Error::NotRegular { .. }) => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut lines = Lines::new(file, 0).until_now().map_err(failed)?;
    let mut count = 0;
    loop {
        match lines.next().map_err(failed)? {
            NextLine::Line { .. } => count += 1,
            NextLine::TooLong { end, .. } => lines.skip_to(end),
            NextLine::End { .. } => return Ok(count),
        }
    }
}
