//! One open file, read from where reading stopped, with a check that the bytes before are unchanged.

use std::fs::File;
use std::io;

use super::follow::Cursor;
use super::prefix::Prefix;
use super::stamp::{FileId, Stamp};

/// Why a new generation began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeKind {
    /// Another file is at the path.
    Replaced,
    /// The file became shorter than what had been read.
    Shortened,
    /// Bytes that had been read have changed.
    Rewritten,
}

/// How much is compared before bytes are returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CompareMode {
    /// The beginning and the last bytes read; everything if the file was changed and did not grow.
    Usual,
    /// Everything.
    Full,
}

/// The result of one attempt to read.
pub(super) enum ReadStep {
    /// The buffer has bytes from this offset on.
    Read { offset: u64 },
    /// There is no more at the moment.
    End,
    /// Bytes that were read before have changed.
    Changed(ChangeKind),
}

/// A generation of a file, and the handle it is read through.
pub(super) struct OpenGeneration {
    file: File,
    generation: u32,
    prefix: Prefix,
    /// The metadata of the file before the last successful read, so that changes during the read are noticed later.
    seen: Stamp,
}

impl OpenGeneration {
    /// Begins a generation.
    pub(super) fn begin(file: File, seen: Stamp, generation: u32) -> Self {
        Self { file, generation, prefix: Prefix::empty(), seen }
    }

    /// Continues a generation in this file; returns the file unless it begins with everything that was read.
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
    /// The file is stamped, then read, then checked: content that replaced ours before the read is still there at the
    /// check, which recognizes it by its head or by the window that was read together with the new bytes. A writer that
    /// changes other bytes between these calls, or whose change is read half, can go unnoticed here. But then the
    /// file's times differ from the stamp, which is older, or the marks of the mixed bytes do not match: the next read
    /// finds it and begins a new generation. [`CompareMode::Full`] exists because growth hides a change in the middle of a
    /// file.
    pub(super) fn read_on(
        &mut self,
        buffer: &mut Vec<u8>,
        new_bytes_max: usize,
        care: CompareMode,
    ) -> io::Result<ReadStep> {
        let offset = self.prefix.len();
        let mut before = Stamp::of(&self.file)?;
        let is_as_seen = before.agrees_with(&self.seen);
        let is_known = is_as_seen && self.seen.settled && care == CompareMode::Usual;
        if is_known && before.size_bytes == offset {
            return Ok(ReadStep::End);
        }
        self.prefix.read_piece(&self.file, buffer, new_bytes_max)?;
        if !is_known || !Stamp::of(&self.file)?.agrees_with(&before) {
            // Appending also changes the times of a file, and is not a rewrite.
            let was_touched = !is_as_seen && before.size_bytes <= self.seen.size_bytes;
            let compare_all = was_touched || care == CompareMode::Full;
            if let Some(why) = self.find_change(buffer, compare_all)? {
                return Ok(ReadStep::Changed(why));
            }
            // Times that were too recent to prove that nothing changed then cannot prove it now; only a full comparison
            // can.
            before.settled &= offset == 0 || compare_all || !is_as_seen || self.seen.settled;
        }
        self.seen = before;
        if buffer.len() <= self.prefix.window_len() {
            return Ok(ReadStep::End);
        }
        let window_len = self.prefix.window_len();
        self.prefix.extend(buffer);
        buffer.drain(..window_len);
        Ok(ReadStep::Read { offset })
    }

    fn find_change(&self, piece: &[u8], compare_all: bool) -> io::Result<Option<ChangeKind>> {
        if piece.len() < self.prefix.window_len() {
            return Ok(Some(ChangeKind::Shortened));
        }
        let is_ours = self.prefix.is_continued_by(piece) && self.prefix.has_head_of(&self.file)?;
        if !is_ours || (compare_all && !self.holds_all()?) {
            return Ok(Some(ChangeKind::Rewritten));
        }
        Ok(None)
    }

    fn holds_all(&self) -> io::Result<bool> {
        Ok(Prefix::read_same(&self.file, &self.prefix.head(), &self.prefix.whole())?.is_some())
    }
}
