//! One open file, read on from where reading stopped, with a check that what was read before is still there.

use std::fs::File;
use std::io;

use super::follow::Cursor;
use super::prefix::Prefix;
use super::stamp::{FileId, Stamp};

/// Why a new generation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// Another file has taken the path.
    Replaced,
    /// The file became shorter than what had been read of it.
    Shortened,
    /// Bytes that had been read are no longer those.
    Rewritten,
}

/// How much is compared before bytes are handed on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Care {
    /// The beginning and the last bytes read; everything when the file was touched and did not grow.
    Usual,
    /// Everything.
    Full,
}

/// What one attempt to read came to.
pub(super) enum Step {
    /// The buffer holds bytes from here on.
    Read { offset: u64 },
    /// There is no more, at the moment.
    End,
    /// What was read before is no longer there.
    Changed(Why),
}

/// A generation of a file, and the handle it is read through.
pub(super) struct Reading {
    file: File,
    generation: u32,
    prefix: Prefix,
    /// What the file was like before the last successful read, so that all that happens during the read shows later.
    seen: Stamp,
}

impl Reading {
    /// Begins a generation with nothing read.
    pub(super) fn begin(file: File, seen: Stamp, generation: u32) -> Self {
        Self { file, generation, prefix: Prefix::empty(), seen }
    }

    /// Goes on with a generation in this file; gives the file back unless it begins with all that was read.
    pub(super) fn go_on(file: File, seen: Stamp, cursor: &Cursor) -> io::Result<Result<Self, File>> {
        let prefix = Prefix::read_same(&file, &cursor.head, &cursor.whole)?;
        Ok(match prefix {
            Some(prefix) => Ok(Self { file, generation: cursor.generation, prefix, seen }),
            None => Err(file),
        })
    }

    /// Begins the next generation in the same file.
    pub(super) fn begin_again(&mut self) {
        self.generation = self.generation.saturating_add(1);
        self.prefix = Prefix::empty();
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    pub(super) fn file_id(&self) -> FileId {
        self.seen.file
    }

    pub(super) fn offset(&self) -> u64 {
        self.prefix.len()
    }

    pub(super) fn cursor(&self) -> Cursor {
        let (head, whole) = (self.prefix.head(), self.prefix.whole());
        Cursor { generation: self.generation, head, whole, stamp: self.seen }
    }

    /// Reads the next bytes into the buffer.
    ///
    /// The file is stamped, then read, then checked: content that was put in place before the read is there at the
    /// check too, and the check tells it from ours by its head or by the window, which comes with the bytes in one
    /// read. What can slip through is a writer who changes bytes between two of these calls where neither reaches, or
    /// half of whose change the read saw. But then the file's times differ from the stamp, which is from before, or
    /// the marks made of the mixed bytes do not fit: the next read finds it, and the next generation begins. That
    /// growth hides a change in the middle of a file is why there is [`Care::Full`].
    pub(super) fn read_on(
        &mut self,
        buffer: &mut Vec<u8>,
        new_bytes_max: usize,
        care: Care,
    ) -> io::Result<Step> {
        let offset = self.prefix.len();
        let mut before = Stamp::of(&self.file)?;
        let is_as_seen = before.agrees_with(&self.seen);
        let is_known = is_as_seen && self.seen.settled && care == Care::Usual;
        if is_known && before.size_bytes == offset {
            return Ok(Step::End);
        }
        self.prefix.read_piece(&self.file, buffer, new_bytes_max)?;
        if !is_known || !Stamp::of(&self.file)?.agrees_with(&before) {
            // Appending is the one thing that changes a file's times and is none of this.
            let was_touched = !is_as_seen && before.size_bytes <= self.seen.size_bytes;
            let compare_all = was_touched || care == Care::Full;
            if let Some(why) = self.find_change(buffer, compare_all)? {
                return Ok(Step::Changed(why));
            }
            // Times that could not vouch for what was read then cannot do so now; only a full comparison can.
            before.settled &= offset == 0 || compare_all || !is_as_seen || self.seen.settled;
        }
        self.seen = before;
        if buffer.len() <= self.prefix.window_len() {
            return Ok(Step::End);
        }
        let window_len = self.prefix.window_len();
        self.prefix.extend(buffer);
        buffer.drain(..window_len);
        Ok(Step::Read { offset })
    }

    fn find_change(&self, piece: &[u8], compare_all: bool) -> io::Result<Option<Why>> {
        if piece.len() < self.prefix.window_len() {
            return Ok(Some(Why::Shortened));
        }
        let is_ours = self.prefix.is_continued_by(piece) && self.prefix.has_head_of(&self.file)?;
        if !is_ours || (compare_all && !self.holds_all()?) {
            return Ok(Some(Why::Rewritten));
        }
        Ok(None)
    }

    fn holds_all(&self) -> io::Result<bool> {
        Ok(Prefix::read_same(&self.file, &self.prefix.head(), &self.prefix.whole())?.is_some())
    }
}
