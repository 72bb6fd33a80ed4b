//! One path, followed: which bytes are new, and whether they go on with what was read or begin something else.
//!
//! A file that takes the path of another goes on with its generation if it begins with every byte that was read, as
//! when an editor saves a longer copy; otherwise it is a new generation. Starting anew would be allowed in both cases,
//! and would hand on all bytes again.
//!
//! A file that loses its path is read to its end before the next one is begun: bytes that were in it when we found it
//! replaced are of its generation, in order. A writer who did not notice may add more; these are handed on as
//! [`Look::Late`] as long as a look finds some every so often.

use std::mem;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::prefix::Mark;
use super::reading::{Care, Reading, Step, Why};
use super::stamp::{Stamp, open_followed};

/// After how many looks without a late byte a file that lost its path is let go.
pub const LATE_QUIET_LOOKS_MAX: u32 = 32;

/// All that must be remembered of a file to go on exactly where reading stopped, also in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// How often the file had been replaced, shortened or rewritten.
    pub generation: u32,
    /// The first bytes of what was read, [`MARK_BYTES_MAX`](super::MARK_BYTES_MAX) at most.
    pub head: Mark,
    /// All that was read. Its length is the offset to go on from.
    pub whole: Mark,
    /// What the file was like before the last read.
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

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The buffer holds the next bytes of the newest generation. There may be more.
    Bytes {
        /// The generation they belong to.
        generation: u32,
        /// Where they begin in it.
        offset: u64,
        /// How many they are.
        len: usize,
    },
    /// The buffer holds bytes that were added to the generation before the newest after that one had begun.
    ///
    /// They are evidence. Whoever reads positions as an order must not read them: events of the newer generation may
    /// have been made already.
    Late {
        /// The generation they belong to.
        generation: u32,
        /// Where they begin in it.
        offset: u64,
        /// How many they are.
        len: usize,
    },
    /// A new generation has begun. Its bytes, from offset 0, come with the looks that follow, if it has any.
    NewGeneration {
        /// Its number.
        generation: u32,
        /// What happened to the one before.
        why: Why,
    },
    /// All there is has been read.
    AtEnd,
    /// All there was has been read, and nothing is at the path now.
    Gone,
}

/// One path, followed.
///
/// Until it is parked a tail holds a file open, two after a replacement, also when they have been deleted.
pub struct Tail {
    path: PathBuf,
    place: Place,
    /// The file that was followed before the one at the path; one at most.
    former: Option<Former>,
    care: Care,
}

enum Place {
    /// No file was found at the path yet.
    Unread,
    /// A file is open, which may have lost the path.
    Open(Box<Reading>),
    /// What was read is remembered, and nothing is open.
    Parked(Cursor),
}

struct Former {
    reading: Box<Reading>,
    quiet_looks: u32,
}

impl Tail {
    /// Begins to follow a path from offset 0 of generation 0. Nothing is opened before the first look.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), place: Place::Unread, former: None, care: Care::Usual }
    }

    /// Goes on where the cursor says. Nothing is opened before the first look.
    #[must_use]
    pub fn resume(path: impl Into<PathBuf>, cursor: Cursor) -> Self {
        Self { path: path.into(), place: Place::Parked(cursor), former: None, care: Care::Usual }
    }

    /// Tells by a single stat whether there is nothing to do: the file was read to its end and not changed since.
    #[must_use]
    pub fn is_unchanged(path: &Path, cursor: &Cursor) -> bool {
        Stamp::at(path).is_ok_and(|found| found.is_some_and(|stamp| cursor.is_all_of(&stamp)))
    }

    /// Returns the path that is followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns what to remember; `None` before a file was found at the path.
    #[must_use]
    pub fn cursor(&self) -> Option<Cursor> {
        match &self.place {
            Place::Unread => None,
            Place::Open(reading) => Some(reading.cursor()),
            Place::Parked(cursor) => Some(*cursor),
        }
    }

    /// Closes the file. The next look opens it again, and reads what was read before once more if the file changed
    /// meanwhile. What is added to a file that lost its path while nothing is open is not seen.
    pub fn park(&mut self) {
        self.former = None;
        if let Some(cursor) = self.cursor() {
            self.place = Place::Parked(cursor);
        }
    }

    /// Has the next look compare all that was read, whatever the file's times say.
    ///
    /// Growth hides a change in the middle of a file. Doing this when a file has been quiet for a while, before it is
    /// parked, makes sure of it at the price of reading it once.
    pub fn recheck(&mut self) {
        self.care = Care::Full;
    }

    /// Looks once: replaces the buffer's content by the next bytes, or says what else there is.
    ///
    /// # Errors
    /// [`Error`], with nothing changed: the next look tries again. Bytes that can still be had come first.
    pub fn look(&mut self, buffer: &mut Vec<u8>, max_read_bytes: usize) -> Result<Look, Error> {
        // Nothing may read like the end of a file when it is not.
        let new_bytes_max = max_read_bytes.max(1);
        let look = match self.read_late(buffer, new_bytes_max) {
            Some(late) => Ok(late),
            None => self.look_at_path(buffer, new_bytes_max),
        };
        if !matches!(look, Ok(Look::Bytes { .. } | Look::Late { .. })) {
            buffer.clear();
        }
        look
    }

    fn read_late(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Option<Look> {
        let former = self.former.as_mut()?;
        match former.reading.read_on(buffer, new_bytes_max, Care::Usual) {
            Ok(Step::Read { offset }) => {
                former.quiet_looks = 0;
                let generation = former.reading.generation();
                return Some(Look::Late { generation, offset, len: buffer.len() });
            }
            Ok(Step::End) if former.quiet_looks < LATE_QUIET_LOOKS_MAX => former.quiet_looks += 1,
            // It is nobody's file any more: whatever is wrong with it concerns no generation.
            Ok(Step::End | Step::Changed(_)) | Err(_) => self.former = None,
        }
        None
    }

    fn look_at_path(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Result<Look, Error> {
        // The path is asked before the handle is read. An end found in this order is that of a file that had lost its
        // path already; the other way round, bytes written between the two questions would be lost with it.
        let at_path = Stamp::at(&self.path).map_err(|error| Error::system(&self.path, "stat", error));
        match &self.place {
            Place::Unread => {}
            Place::Open(_) => {
                let look = self.read_open(buffer, new_bytes_max)?;
                if look != Look::AtEnd {
                    return Ok(look);
                }
            }
            Place::Parked(cursor) => {
                let is_known = |stamp: &Stamp| self.care == Care::Usual && cursor.is_all_of(stamp);
                if matches!(&at_path, Ok(Some(stamp)) if is_known(stamp)) {
                    return Ok(Look::AtEnd);
                }
            }
        }
        match at_path? {
            None => Ok(Look::Gone),
            Some(stamp) if self.reads_to_the_end_of(&stamp) => Ok(Look::AtEnd),
            Some(_) => self.take_up(buffer, new_bytes_max),
        }
    }

    /// Tells whether the open file, which was read to its end, is the one at the path.
    ///
    /// Before it was read the path had no more bytes than were found in it: an overlay gives a file that is written to
    /// for the first time a new home under the same number, and a handle from before sees nothing of that.
    fn reads_to_the_end_of(&self, at_path: &Stamp) -> bool {
        match &self.place {
            Place::Open(reading) => {
                reading.file_id() == at_path.file && at_path.size_bytes <= reading.offset()
            }
            Place::Unread | Place::Parked(_) => false,
        }
    }

    /// Reads on through the handle that is open.
    fn read_open(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Result<Look, Error> {
        let Place::Open(reading) = &mut self.place else { return Ok(Look::AtEnd) };
        let step = reading
            .read_on(buffer, new_bytes_max, self.care)
            .map_err(|error| Error::system(&self.path, "read", error))?;
        self.care = Care::Usual;
        let generation = reading.generation();
        Ok(match step {
            Step::Read { offset } => Look::Bytes { generation, offset, len: buffer.len() },
            Step::End => Look::AtEnd,
            Step::Changed(why) => {
                reading.begin_again();
                Look::NewGeneration { generation: reading.generation(), why }
            }
        })
    }

    /// Opens what is at the path, and goes on with it or begins a generation.
    fn take_up(&mut self, buffer: &mut Vec<u8>, new_bytes_max: usize) -> Result<Look, Error> {
        let Some((file, stamp)) = open_followed(&self.path)? else { return Ok(Look::Gone) };
        let Some(cursor) = self.cursor() else {
            self.place = Place::Open(Box::new(Reading::begin(file, stamp, 0)));
            return self.read_open(buffer, new_bytes_max);
        };
        let went_on =
            Reading::go_on(file, stamp, &cursor).map_err(|error| Error::system(&self.path, "read", error))?;
        self.care = Care::Usual;
        match went_on {
            Ok(reading) => {
                // The handle from before goes: what is added there has no place in a generation that goes on here.
                self.place = Place::Open(Box::new(reading));
                self.read_open(buffer, new_bytes_max)
            }
            Err(file) => {
                let generation = cursor.generation.saturating_add(1);
                let next = Place::Open(Box::new(Reading::begin(file, stamp, generation)));
                let is_another = cursor.stamp.file != stamp.file;
                if let (Place::Open(reading), true) = (mem::replace(&mut self.place, next), is_another) {
                    self.former = Some(Former { reading, quiet_looks: 0 });
                }
                Ok(Look::NewGeneration { generation, why: why_not(&cursor, &stamp) })
            }
        }
    }
}

/// Says why a file does not go on with what was read.
fn why_not(cursor: &Cursor, stamp: &Stamp) -> Why {
    if cursor.stamp.file != stamp.file {
        Why::Replaced
    } else if stamp.size_bytes < cursor.offset() {
        Why::Shortened
    } else {
        Why::Rewritten
    }
}
