//! A quick overview of a spine: its size and state, without reading sealed segments.

use steno_disk::{Disk, StorePath};
use steno_model::ThreadId;

use crate::error::Error;
use crate::lines::{Lines, NextLine};
use crate::names::{SegmentIndex, SegmentName};
use crate::segment::read_meta;
use crate::store::Store;

/// The overview of a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpineOverview {
    /// The number of segments.
    pub segments: u64,
    /// The number of segments with a meta file.
    pub sealed: u64,
    /// The number of records according to meta files; those of unsealed segments are counted.
    pub records: u64,
    /// The length of all segments.
    pub bytes: u64,
    /// The state.
    pub state: SpineState,
}

/// The state of a spine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpineState {
    /// A process writes it.
    Recording,
    /// All segments have meta files.
    Sealed,
    /// A crash left a segment open.
    Unsealed,
    /// It is not valid. The overview notices unreadable meta files, meta files that fit no segment, and missing
    /// segments.
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

/// Returns the overview of a spine in a store. `Damaged` is certain. Any other state is not a proof of validity;
/// `steno_spine::validate_spine` checks everything.
///
/// # Errors
///
/// An error of the system.
pub fn spine_overview(store: &Store, thread: &ThreadId) -> Result<SpineOverview, Error> {
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
    let mut overview =
        SpineOverview { segments: 0, sealed: 0, records: 0, bytes: 0, state: SpineState::Sealed };
    let is_whole = segments.iter().zip(0_u32..).all(|(index, want)| index.0 == want);
    let mut is_damaged = !is_whole || metas.iter().any(|index| !segments.contains(index));
    let mut is_open = false;
    for index in segments {
        let path = SegmentName::Records(index).path(thread);
        let found = disk.identity(&path).map_err(|source| Error::io("access", &path, source))?;
        let bytes = found.map_or(0, |found| found.size_bytes);
        overview.segments += 1;
        overview.bytes += bytes;
        match read_meta(disk, thread, index) {
            Ok(Some(meta)) => {
                overview.sealed += 1;
                overview.records += meta.record_count;
                is_damaged |= meta.bytes != bytes || meta.segment_index != index.0;
            }
            Ok(None) => {
                is_open |= bytes > 0;
                overview.records += count_lines(disk, thread, index)?;
            }
            Err(Error::Damaged { .. } | Error::NotRegular { .. }) => is_damaged = true,
            Err(error) => return Err(error),
        }
    }
    overview.state = match (is_damaged, store.is_spine_locked(thread)?, is_open) {
        (true, ..) => SpineState::Damaged,
        (false, true, _) => SpineState::Recording,
        (false, false, true) => SpineState::Unsealed,
        (false, false, false) => SpineState::Sealed,
    };
    Ok(overview)
}

fn count_lines(disk: &dyn Disk, thread: &ThreadId, index: SegmentIndex) -> Result<u64, Error> {
    let path = SegmentName::Records(index).path(thread);
    let failed = |source| Error::io("read", &path, source);
    let file = match disk.open_read(&path).map_err(failed) {
        Ok(Some(file)) => file,
        // The validator reports it. There is nothing to count.
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
