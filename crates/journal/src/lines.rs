//! Splits an open file into lines, each with its offset, in bounded memory.

use std::io;
use std::sync::Arc;

use steno_model::limits::LINE_BYTES_MAX;

use crate::disk::DiskFile;

const BUFFER_BYTES: usize = 256 * 1024;

/// Reads lines from an offset on. At the end it can be asked again, and finds what was appended since.
pub(crate) struct Lines {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    /// Where in the buffer the line that comes next begins, up to where it was searched, and where data ends.
    start: usize,
    searched: usize,
    end: usize,
    /// Where in the file `start` is.
    offset: u64,
    /// Where reading ends, however much the file has grown meanwhile.
    end_at: u64,
}

/// What comes next in the file.
pub(crate) enum Piece<'a> {
    /// A line, without its newline.
    Line {
        /// Where it begins.
        offset: u64,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The end, with what stands there unterminated.
    End {
        /// Where the rest begins.
        offset: u64,
        /// Its bytes; none when the last line is whole.
        rest: &'a [u8],
    },
    /// A line longer than a line may be.
    TooLong {
        /// Where it begins.
        offset: u64,
    },
}

impl Lines {
    pub(crate) fn new(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self { file, buffer: vec![0; BUFFER_BYTES], start: 0, searched: 0, end: 0, offset, end_at: u64::MAX }
    }

    /// Reads up to where the file ends now: a writer may be faster than we are, and reading has to end.
    pub(crate) fn until_now(mut self) -> io::Result<Self> {
        self.end_at = self.file.identity()?.size_bytes;
        Ok(self)
    }

    /// Returns the offset of the line that comes next.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes back to the line that was returned last and began at `offset`, so that it is returned again.
    pub(crate) fn go_back_to(&mut self, offset: u64) {
        // A line lies whole in the buffer, so this is never more than `start`.
        let back = usize::try_from(self.offset - offset).unwrap_or(self.start).min(self.start);
        self.start -= back;
        self.searched = self.start;
        self.offset -= back as u64;
    }

    pub(crate) fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    pub(crate) fn next(&mut self) -> io::Result<Piece<'_>> {
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
                let (start, newline, offset) = (self.start, self.searched + found, self.offset);
                self.start = newline + 1;
                self.searched = self.start;
                self.offset += (self.start - start) as u64;
                return Ok(Piece::Line { offset, bytes: &self.buffer[start..newline] });
            }
            self.searched = self.end;
            if self.end - self.start >= LINE_BYTES_MAX {
                return Ok(Piece::TooLong { offset: self.offset });
            }
            if !self.fill()? {
                return Ok(Piece::End { offset: self.offset, rest: &self.buffer[self.start..self.end] });
            }
        }
    }

    /// Reads more; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        if self.end == self.buffer.len() {
            self.make_room();
        }
        let at = self.offset + (self.end - self.start) as u64;
        let left = usize::try_from(self.end_at.saturating_sub(at)).unwrap_or(usize::MAX);
        let until = self.buffer.len().min(self.end.saturating_add(left));
        loop {
            match self.file.read_at(&mut self.buffer[self.end..until], at) {
                Ok(count) => {
                    self.end += count;
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn make_room(&mut self) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.searched -= self.start;
            self.start = 0;
        }
        // Only a line that fills more than half of the buffer makes it grow, so memory follows the longest line.
        if self.end > self.buffer.len() / 2 {
            let grown = (self.buffer.len() * 2).min(LINE_BYTES_MAX + BUFFER_BYTES);
            self.buffer.resize(grown.max(self.end + 1), 0);
        }
    }
}
