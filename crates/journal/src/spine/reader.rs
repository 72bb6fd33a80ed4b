//! Reads the records of a spine in order, over all its segments. Readers never repair.

use std::sync::Arc;

use steno_disk::{Disk, StorePath};
use steno_model::SpineRecord;

use crate::error::{Damage, Error};
use crate::lines::{Lines, NextLine};
use crate::names::{SegmentIndex, SegmentName};

/// Reads a spine from its first record on.
///
/// It ends where the last segment does, or before a torn end of it; whether everything is as it was sealed is for
/// `steno_spine::validate_spine` to say.
pub struct SpineReader {
    disk: Arc<dyn Disk>,
    dir: StorePath,
    next: SegmentIndex,
    open: Option<(StorePath, Lines)>,
}

impl SpineReader {
    /// Reads nothing yet of the segments in a directory.
    #[must_use]
    pub fn new(disk: Arc<dyn Disk>, dir: StorePath) -> Self {
        Self { disk, dir, next: SegmentIndex(0), open: None }
    }

    /// Returns the next record; `None` at the end.
    ///
    /// # Errors
    /// [`Error::Damaged`] with the place, or what the system says.
    pub fn read_next(&mut self) -> Result<Option<SpineRecord>, Error> {
        loop {
            let Some((path, lines)) = &mut self.open else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
            match lines.next().map_err(|source| Error::io("read", path, source))? {
                NextLine::Line { offset, bytes } => {
                    return SpineRecord::parse(bytes)
                        .map(Some)
                        .map_err(|error| damaged(offset, error.into()));
                }
                NextLine::TooLong { offset, .. } => return Err(damaged(offset, Damage::TooLong)),
                NextLine::End { .. } => self.open = None,
            }
        }
    }

    fn open_next(&mut self) -> Result<bool, Error> {
        let path = self.dir.below(SegmentName::Records(self.next));
        let failed = |source| Error::io("open", &path, source);
        let Some(file) = self.disk.open_read(&path).map_err(failed)? else { return Ok(false) };
        let lines = Lines::new(file, 0).until_now().map_err(failed)?;
        self.next = self.next.next();
        self.open = Some((path, lines));
        Ok(true)
    }
}
