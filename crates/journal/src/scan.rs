//! Finds the good prefix of a file, and what comes after it: nothing, a torn tail, or damage.

use std::sync::Arc;

use steno_disk::{DiskFile, StorePath};

use crate::error::{Damage, Error};
use crate::line_check::LineCheck;
use crate::lines::{Lines, NextLine};
use crate::seal::{Prefix, Seal, SealCheck};

/// The result of a scan.
pub(crate) struct Scan {
    /// The newline-terminated lines that parse, numbered without gaps.
    pub(crate) good: Prefix,
    /// How many bytes of it are sealed.
    pub(crate) sealed: u64,
    /// How many seals match.
    pub(crate) seals_held: u64,
    /// What comes after it.
    pub(crate) ending: Ending,
}

/// What comes after the good prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing.
    Whole,
    /// Bytes that a crash left. They were never acknowledged, because the newline is the commit mark.
    Torn {
        /// Where they begin.
        offset: u64,
        /// How many there are.
        len: u64,
    },
}

/// Reads the whole file and compares it with its seals.
///
/// # Errors
/// [`Error::Damaged`] when bad bytes are not a torn tail, [`Error::SealBroken`] when a seal does not match.
pub(crate) fn scan(
    file: Arc<dyn DiskFile>,
    path: &StorePath,
    check: &dyn LineCheck,
    seals: Vec<Seal>,
) -> Result<Scan, Error> {
    let mut lines = Lines::new(file, 0).until_now().map_err(|source| Error::io("access", path, source))?;
    let mut good = Prefix::default();
    let mut seals = SealCheck::new(path, seals);
    seals.at(&good)?;
    let ending = loop {
        let damaged = |offset, why| Error::Damaged { path: path.clone(), offset, why };
        match lines.next().map_err(|source| Error::io("read", path, source))? {
            NextLine::End { rest_bytes: 0, .. } => break Ending::Whole,
            NextLine::End { offset, rest_bytes } => break Ending::Torn { offset, len: rest_bytes },
            NextLine::TooLong { offset, hole, .. } => {
                let hole = hole.then_some(offset);
                break torn_hole(lines, path, check, hole)?
                    .ok_or_else(|| damaged(offset, Damage::TooLong))?;
            }
            NextLine::Line { offset, bytes } => match check_next(check, bytes, &good) {
                Ok(seq) => {
                    good.push_line(seq, bytes);
                    seals.at(&good)?;
                }
                Err(why) => {
                    let hole = has_hole(bytes).then_some(offset);
                    break torn_hole(lines, path, check, hole)?.ok_or_else(|| damaged(offset, why))?;
                }
            },
        }
    };
    seals.finish(&good)?;
    Ok(Scan { good, sealed: seals.sealed, seals_held: seals.held, ending })
}

fn check_next(check: &dyn LineCheck, line: &[u8], good: &Prefix) -> Result<Option<steno_model::Seq>, Damage> {
    let seq = check.seq(line)?;
    let wanted = steno_model::Seq::after(good.seq_last);
    match seq {
        Some(found) if found != wanted => {
            Err(Damage::OutOfOrder { wanted: wanted.get(), found: found.get() })
        }
        Some(_) | None => Ok(seq),
    }
}

/// Tells whether these bytes may be a line of ours with zeros in place of what did not reach the disk.
#[must_use]
pub fn has_hole(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'{' | 0)) && memchr::memchr(0, line).is_some()
}

/// Classifies a bad line: a hole of zeros with nothing good after it is a torn tail, anything else is damage.
///
/// After a power cut, blocks that were not synced read as zeros, and a newline written after them may survive.
fn torn_hole(
    mut lines: Lines,
    path: &StorePath,
    check: &dyn LineCheck,
    hole: Option<u64>,
) -> Result<Option<Ending>, Error> {
    let Some(begin) = hole else { return Ok(None) };
    let mut only_holes = true;
    loop {
        match lines.next().map_err(|source| Error::io("read", path, source))? {
            NextLine::Line { bytes, .. } => only_holes &= has_hole(bytes) && check.seq(bytes).is_err(),
            NextLine::TooLong { hole, end, .. } => {
                only_holes &= hole;
                lines.skip_to(end);
            }
            NextLine::End { offset, rest_bytes } => {
                let end = offset + rest_bytes;
                return Ok(only_holes.then_some(Ending::Torn { offset: begin, len: end - begin }));
            }
        }
    }
}
