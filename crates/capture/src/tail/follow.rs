//! Follows one path: which bytes are new, and whether they continue what was read or begin a new generation.
//!
//! A file that replaces another continues its generation if it begins with every byte that was read, as when an editor
//! saves a longer copy; otherwise it is a new generation. A new generation would be allowed in both cases, but would
//! return all bytes again.
//!
//! A file that loses its path is read to its end before the next one is begun: the bytes it has when the replacement is
//! found belong to its generation, in order. A writer that did not notice may add more; these are returned as
//! [`TailRead::Late`] while reads find some from time to time.

use std::mem;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::open_generation::{ChangeKind, CompareMode, OpenGeneration, ReadStep};
use super::prefix::Mark;
use super::stamp::{Stamp, open_followed};

/// After how many reads without a late byte a replaced file is closed.
pub const LATE_QUIET_READS_MAX: u32 = 32;

/// Everything needed to continue reading a file exactly where it stopped, also in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// How often the file was replaced, shortened or rewritten.
    pub generation: u32,
    /// The first bytes of what was read, [`MARK_BYTES_MAX`](super::MARK_BYTES_MAX) at most.
    pub head: Mark,
    /// Everything that was read. Its length is the offset to continue from.
    pub whole: Mark,
    /// The metadata of the file before the last read.
    pub stamp: Stamp,
}

impl Cursor {
    /// Returns how far the generation was read.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.whole.len_bytes
    }

    /// Tells whether a file with this stamp was read to its end and not changed since.
    fn is_all_of(&self, stamp: &Stamp) -> bool {
        self.stamp.settled && self.stamp.agrees_with(stamp) && stamp.size_bytes == self.offset()
    }
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TailRead {
    /// The buffer has the next bytes of the newest generation. There may be more.
    Bytes {
        /// The generation they belong to.
        generation: u32,
        /// Their offset in it.
        offset: u64,
        /// Their number.
        len: usize,
    },
    /// The buffer has bytes that were added to the previous generation after the newest had begun.
    ///
    /// They are evidence. They must not be turned into events, because events of the newer generation may exist
    /// already, and positions give the order.
    Late {
        /// The generation they belong to.
        generation: u32,
        /// Their offset in it.
        offset: u64,
        /// Their number.
        len: usize,
    },
    /// A new generation has begun. The next reads return its bytes, from offset 0, if it has any.
    NewGeneration {
        /// Its number.
        generation: u32,
        /// What happened to the previous one.
        why: ChangeKind,
    },
    /// Everything has been read.
    AtEnd,
    /// Everything was read, and the path does not exist now.
    Gone,
}

/// Follows one path.
///
/// A tail keeps a file open until it is parked, two after a replacement, also when they were deleted.
pub struct Tail {
    path: PathBuf,
    place: TailState,
    /// The file that was followed before the one at the path; one at most.
    former: Option<ReplacedFile>,
    care: CompareMode,
}

enum TailState {
    /// No file has been found at the path yet.
    Unread,
    /// A file is open. It may have lost its path.
    Open(Box<OpenGeneration>),
    /// Nothing is open; the cursor has the state.
    Parked(Cursor),
}

struct ReplacedFile {
    reading: Box<OpenGeneration>,
    quiet_reads: u32,
}

impl Tail {
    /// Follows a path from offset 0 of generation 0. Nothing is opened before the first read.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), place: TailState::Unread, former: None, care: CompareMode::Usual }
    }

    /// Continues at a cursor. Nothing is opened before the first read.
    #[must_use]
    pub fn resume(path: impl Into<PathBuf>, cursor: Cursor) -> Self {
        Self { path: path.into(), place: TailState::Parked(cursor), former: None, care: CompareMode::Usual }
    }

    /// Tells with a single stat whether the file was read to its end and did not change since.
    #[must_use]
    pub fn is_unchanged(path: &Path, cursor: &Cursor) -> bool {
        Stamp::at(path).is_ok_and(|found| found.is_some_and(|stamp| cursor.is_all_of(&stamp)))
    }

    /// Returns the path that is followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the cursor; `None` before a file was found at the path.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        match &self.place {
            TailState::Unread => None,
            TailState::Open(reading) => Some(reading.cursor()),
            TailState::Parked(cursor) => Some(*cursor),
        }
    }

    /// Closes the file. The next read opens it again, and compares what was read before if the file changed meanwhile.
    /// Bytes that are added to a replaced file while nothing is open are not seen.
    pub fn park(&mut self) {
        self.former = None;
        if let Some(cursor) = self.cursor() {
            self.place = TailState::Parked(cursor);
        }
    }

    /// Makes the next read compare everything that was read, regardless of the file's times.
    ///
    /// Growth hides a change in the middle of a file. Calling this when a file has been quiet for a while, before it is
    /// parked, finds such a change, at the cost of reading the file once.
    pub fn recheck(&mut self) {
        self.care = CompareMode::Full;
    }

    /// Reads once: replaces the content of the buffer by the next bytes, or reports what else there is.
    ///
    /// # Errors
    /// [`Error`], with nothing changed: the next read tries again. Bytes that can still be read are returned first.
    pub fn read_next(&mut self, buffer: &mut Vec<u8>, max_read_bytes: usize) -> Result<TailRead, Error> {
        // Reading zero bytes would look like the end of the file.
        let new_bytes_max = max_read_bytes.max(1);
        let look = match self.read_late(buffer, new_bytes_max) {
            Some(late) => Ok(late),
            None => self.read_at_path(buffer, new_bytes_max),
        };
        if !matches!(look, Ok(TailRead::Bytes { .. } | TailRead::Late { .. })) {
            buffer.clear();
        }
        look
    }

    fn read_late(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Option<TailRead> {
        let former = self.former.as_mut()?;
        match former.reading.read_on(buffer, new_bytes_max, CompareMode::Usual) {
            Ok(ReadStep::Read { offset }) => {
                former.quiet_reads = 0;
                let generation = former.reading.generation();
                return Some(TailRead::Late { generation, offset, len: buffer.len() });
            }
            Ok(ReadStep::End) if former.quiet_reads < LATE_QUIET_READS_MAX => former.quiet_reads += 1,
            // The file has no path any more, so its errors affect no generation.
            Ok(ReadStep::End | ReadStep::Changed(_)) | Err(_) => self.former = None,
        }
        None
    }

    fn read_at_path(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Result<TailRead, Error> {
        // The path is checked before the handle is read. In this order, an end is that of a file that had already lost
        // its path. In the other order, bytes written between the two steps would be lost.
        let at_path = Stamp::at(&self.path).map_err(|error| Error::system(&self.path, "stat", error));
        match &self.place {
            TailState::Unread => {}
            TailState::Open(_) => {
                let look = self.read_open(buffer, new_bytes_max)?;
                if look != TailRead::AtEnd {
                    return Ok(look);
                }
            }
            TailState::Parked(cursor) => {
                let is_known = |stamp: &Stamp| self.care == CompareMode::Usual && cursor.is_all_of(stamp);
                if matches!(&at_path, Ok(Some(stamp)) if is_known(stamp)) {
                    return Ok(TailRead::AtEnd);
                }
            }
        }
        match at_path? {
            None => Ok(TailRead::Gone),
            Some(stamp) if self.reads_to_the_end_of(&stamp) => Ok(TailRead::AtEnd),
            Some(_) => self.take_up(buffer, new_bytes_max),
        }
    }

    /// Tells whether the open file, which was read to its end, is the one at the path.
    ///
    /// The file at the path must not be longer than what was read: on an overlay file system, the first write copies a
    /// file under the same inode number, and an older handle does not see that.
    fn reads_to_the_end_of(&self, at_path: &Stamp) -> bool {
        match &self.place {
            TailState::Open(reading) => {
                reading.file_id() == at_path.file && at_path.size_bytes <= reading.offset()
            }
            TailState::Unread | TailState::Parked(_) => false,
        }
    }

    /// Continues to read through the open handle.
    fn read_open(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Result<TailRead, Error> {
        let TailState::Open(reading) = &mut self.place else { return Ok(TailRead::AtEnd) };
        let step = reading
            .read_on(buffer, new_bytes_max, self.care)
            .map_err(|error| Error::system(&self.path, "read", error))?;
        self.care = CompareMode::Usual;
        let generation = reading.generation();
        Ok(match step {
            ReadStep::Read { offset } => TailRead::Bytes { generation, offset, len: buffer.len() },
            ReadStep::End => TailRead::AtEnd,
            ReadStep::Changed(why) => {
                reading.begin_again();
                TailRead::NewGeneration { generation: reading.generation(), why }
            }
        })
    }

    /// Opens the file at the path, and continues the generation or begins a new one.
    fn take_up(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Result<TailRead, Error> {
        let Some((file, stamp)) = open_followed(&self.path)? else { return Ok(TailRead::Gone) };
        let Some(cursor) = self.cursor() else {
            self.place = TailState::Open(Box::new(OpenGeneration::begin(file, stamp, 0)));
            return self.read_open(buffer, new_bytes_max);
        };
        let went_on = OpenGeneration::go_on(file, stamp, &cursor)
            .map_err(|error| Error::system(&self.path, "read", error))?;
        self.care = CompareMode::Usual;
        match went_on {
            Ok(reading) => {
                // The old handle is closed: bytes added there are not part of the generation that continues here.
                self.place = TailState::Open(Box::new(reading));
                self.read_open(buffer, new_bytes_max)
            }
            Err(file) => {
                let generation = cursor.generation.saturating_add(1);
                let next = TailState::Open(Box::new(OpenGeneration::begin(file, stamp, generation)));
                let is_another = cursor.stamp.file != stamp.file;
                if let (TailState::Open(reading), true) = (mem::replace(&mut self.place, next), is_another) {
                    self.former = Some(ReplacedFile { reading, quiet_reads: 0 });
                }
                Ok(TailRead::NewGeneration { generation, why: why_not(&cursor, &stamp) })
            }
        }
    }
}

/// Returns why a file does not continue what was read.
fn why_not(cursor: &Cursor, stamp: &Stamp) -> ChangeKind {
    if cursor.stamp.file != stamp.file {
        ChangeKind::Replaced
    } else if stamp.size_bytes < cursor.offset() {
        ChangeKind::Shortened
    } else {
        ChangeKind::Rewritten
    }
}
