//! Splits an open file into lines, each with its offset, in bounded memory.
//!
//! The end of a growing file is not final before its newline: a crashed or refused write is cut off there, and another
//! line is written at the same offset. So unterminated bytes are never kept for later, and a line that took several
//! reads is compared with the file before it is returned.

use std::io;
use std::sync::Arc;

use steno_disk::{DiskFile, read_full};
use steno_model::limits::LINE_BYTES_MAX;

const BUFFER_BYTES: usize = 256 * 1024;

/// How much of an unterminated line is read again each time the end is reached.
const REREAD_BYTES_MAX: u64 = BUFFER_BYTES as u64;

/// Reads lines from an offset on. At the end, a later call returns what was appended since.
pub(crate) struct Lines {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    /// Positions in the buffer: the start of the next line, the end of the searched part, and the end of the data.
    start: usize,
    searched: usize,
    end: usize,
    /// The position in the buffer where the last read began.
    joined: usize,
    /// The offset of `start` in the file.
    offset: u64,
    /// The offset at which reading ends, even if the file grows.
    end_at: u64,
    rest: PartialLine,
}

/// The unterminated line at the end of the file when it was last reached. Its bytes are not kept.
#[derive(Default)]
struct PartialLine {
    len: u64,
    /// How far it has been read again.
    looked: u64,
}

/// The result of reading the next line.
pub(crate) enum NextLine<'a> {
    /// A line, without its newline.
    Line {
        /// Its offset.
        offset: u64,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The end of the file, with an unterminated rest that is not longer than a line may be or contains zeros.
    End {
        /// The offset of the rest.
        offset: u64,
        /// How long it is; 0 when the last line is whole.
        rest_bytes: u64,
    },
    /// A line longer than the limit.
    TooLong {
        /// Its offset.
        offset: u64,
        /// The offset of the next line.
        end: u64,
        /// Whether it contains zeros.
        hole: bool,
    },
}

impl Lines {
    pub(crate) fn new(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self::with_buffer(file, offset, BUFFER_BYTES)
    }

    /// Reads from the beginning with a small buffer, for callers that need a line or two of many files.
    pub(crate) fn few(file: Arc<dyn DiskFile>) -> Self {
        const FEW_BYTES: usize = 8 * 1024;
        Self::with_buffer(file, 0, FEW_BYTES)
    }

    fn with_buffer(file: Arc<dyn DiskFile>, offset: u64, buffer_bytes: usize) -> Self {
        Self {
            file,
            buffer: vec![0; buffer_bytes],
            start: 0,
            searched: 0,
            end: 0,
            joined: 0,
            offset,
            end_at: u64::MAX,
            rest: PartialLine::default(),
        }
    }

    /// Reads up to the current end of the file, so that reading ends even if a writer is faster.
    pub(crate) fn until_now(self) -> io::Result<Self> {
        let end_at = self.file.identity()?.size_bytes;
        Ok(self.until(end_at))
    }

    /// Begins at an offset, which must be the start of a line.
    pub(crate) fn from(self, offset: u64) -> Self {
        Self::new(self.file, offset)
    }

    /// Reads no further than an offset.
    pub(crate) fn until(mut self, end_at: u64) -> Self {
        self.end_at = end_at;
        self
    }

    /// Returns the offset of the next line.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes back to the last returned line, which began at `offset`, so that it is returned again.
    pub(crate) fn go_back_to(&mut self, offset: u64) {
        // A whole line is in the buffer, so this is never more than `start`.
        let back = usize::try_from(self.offset - offset).unwrap_or(self.start).min(self.start);
        self.start -= back;
        self.searched = self.start;
        self.offset -= back as u64;
    }

    /// Continues after a line that is too long.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.drop_buffer();
        self.offset = offset;
    }

    /// Makes a long rest at the end be read again as a whole, not in parts.
    pub(crate) fn look_again(&mut self) {
        self.rest = PartialLine::default();
    }

    pub(crate) fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    pub(crate) fn next(&mut self) -> io::Result<NextLine<'_>> {
        if self.rest.len > REREAD_BYTES_MAX && !self.may_be_a_line_now()? {
            return Ok(NextLine::End { offset: self.offset, rest_bytes: self.rest.len });
        }
        self.rest = PartialLine::default();
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[self.searched..self.end]) {
                let newline = self.searched + found;
                if newline - self.start < LINE_BYTES_MAX {
                    if self.is_as_in_the_file(newline)? {
                        return Ok(self.line_to(newline));
                    }
                    self.drop_buffer();
                }
            }
            self.searched = self.end;
            if self.end - self.start >= LINE_BYTES_MAX {
                if let Some(piece) = self.too_long()? {
                    return Ok(piece);
                }
            } else if !self.fill()? {
                return Ok(self.end_with((self.end - self.start) as u64));
            }
        }
    }

    fn line_to(&mut self, newline: usize) -> NextLine<'_> {
        let (start, offset) = (self.start, self.offset);
        self.start = newline + 1;
        self.searched = self.start;
        self.offset += (self.start - start) as u64;
        NextLine::Line { offset, bytes: &self.buffer[start..newline] }
    }

    fn end_with(&mut self, rest_bytes: u64) -> NextLine<'static> {
        self.drop_buffer();
        self.rest = PartialLine { len: rest_bytes, looked: 0 };
        NextLine::End { offset: self.offset, rest_bytes }
    }

    fn drop_buffer(&mut self) {
        (self.start, self.searched, self.end, self.joined) = (0, 0, 0, 0);
    }

    /// Compares the part of a line that earlier reads returned with the file, now that its newline is there.
    ///
    /// The newline makes a line final. Before it, the bytes that were read may have been cut off and another line
    /// written there; the end of that line would then be joined to the beginning of one that never existed.
    fn is_as_in_the_file(&self, newline: usize) -> io::Result<bool> {
        const PIECE_BYTES: usize = 64 * 1024;
        if self.joined <= self.start || newline < self.joined {
            return Ok(true);
        }
        let head = &self.buffer[self.start..self.joined];
        let mut now = vec![0; head.len().min(PIECE_BYTES)];
        let mut offset = self.offset;
        for piece in head.chunks(PIECE_BYTES) {
            let read = read_full(&*self.file, &mut now[..piece.len()], offset)?;
            if now[..read] != *piece {
                return Ok(false);
            }
            offset += read as u64;
        }
        Ok(true)
    }

    /// Classifies a line that is longer than the limit, in bounded memory; `None` when it is no longer too long.
    ///
    /// Any number of zeros up to the end is what a crash leaves. Anything else of that length was not written by us.
    fn too_long(&mut self) -> io::Result<Option<NextLine<'static>>> {
        let offset = self.offset;
        self.drop_buffer();
        let (mut at, mut hole) = (offset, false);
        loop {
            let read = self.read_piece(at)?;
            let newline = memchr::memchr(b'\n', &self.buffer[..read]);
            let len = newline.unwrap_or(read);
            hole |= memchr::memchr(0, &self.buffer[..len]).is_some();
            at += len as u64;
            if newline.is_none() && read > 0 {
                continue;
            }
            let is_too_long = at - offset >= LINE_BYTES_MAX as u64;
            return Ok(match newline {
                Some(_) if is_too_long => Some(NextLine::TooLong { offset, end: at + 1, hole }),
                None if is_too_long && !hole => Some(NextLine::TooLong { offset, end: at, hole }),
                None => Some(self.end_with(at - offset)),
                Some(_) => None,
            });
        }
    }

    /// Tells whether there may be a whole line now where the end was reached before.
    ///
    /// A long rest is not read from its beginning each time, because a slow writer would make us read the same bytes
    /// again and again. New bytes are read once, and a part of the older ones each time. A newline at the end of the
    /// file is found at once, since the last byte is either new or the last of the older ones.
    fn may_be_a_line_now(&mut self) -> io::Result<bool> {
        let size = self.file.identity()?.size_bytes.min(self.end_at);
        let known = self.offset + self.rest.len;
        let grows_too_long = self.rest.len <= LINE_BYTES_MAX as u64
            && size.saturating_sub(self.offset) > LINE_BYTES_MAX as u64;
        if size < known || grows_too_long || self.has_newline(known - 1, size)? {
            return Ok(true);
        }
        self.rest.len = size - self.offset;
        let from = self.rest.looked;
        let to = (from + REREAD_BYTES_MAX).min(self.rest.len);
        self.rest.looked = if to == self.rest.len { 0 } else { to };
        self.has_newline(self.offset + from, self.offset + to)
    }

    fn has_newline(&mut self, from: u64, to: u64) -> io::Result<bool> {
        let mut at = from;
        while at < to {
            let read = self.read_piece(at)?;
            if read == 0 {
                break;
            }
            if memchr::memchr(b'\n', &self.buffer[..read]).is_some() {
                return Ok(true);
            }
            at += read as u64;
        }
        Ok(false)
    }

    /// Reads into the beginning of the empty buffer.
    fn read_piece(&mut self, at: u64) -> io::Result<usize> {
        let left = usize::try_from(self.end_at.saturating_sub(at)).unwrap_or(usize::MAX);
        let most = BUFFER_BYTES.min(self.buffer.len()).min(left);
        read_full(&*self.file, &mut self.buffer[..most], at)
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
                    self.joined = self.end;
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
        // The buffer grows only for a line that fills more than half of it, so memory use follows the longest line.
        if self.end > self.buffer.len() / 2 {
            let grown = (self.buffer.len() * 2).min(LINE_BYTES_MAX + BUFFER_BYTES);
            self.buffer.resize(grown.max(self.end + 1), 0);
        }
    }
}
