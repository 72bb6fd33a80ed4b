//! Splits an open file into lines, each with its offset, in bounded memory.
//!
//! The end of a file that grows is not settled before its newline: a crashed or refused write is cut off there, and
//! another line is written in its place. So what stands unterminated is never kept to be gone on with, and a line
//! that took several reads is compared with the file before it is passed on.

use std::io;
use std::sync::Arc;

use steno_disk::{DiskFile, read_full};
use steno_model::limits::LINE_BYTES_MAX;

const BUFFER_BYTES: usize = 256 * 1024;

/// How much of an unterminated rest is read again each time the end is asked for.
const REREAD_BYTES_MAX: u64 = BUFFER_BYTES as u64;

/// Reads lines from an offset on. At the end it can be asked again, and finds what was appended since.
pub(crate) struct Lines {
    file: Arc<dyn DiskFile>,
    buffer: Vec<u8>,
    /// Where in the buffer the line that comes next begins, up to where it was searched, and where data ends.
    start: usize,
    searched: usize,
    end: usize,
    /// Where in the buffer the last read began.
    joined: usize,
    /// Where in the file `start` is.
    offset: u64,
    /// Where reading ends, however much the file has grown meanwhile.
    end_at: u64,
    rest: Rest,
}

/// What stood unterminated at the end when it was last reached. Its bytes are not kept.
#[derive(Default)]
struct Rest {
    len: u64,
    /// Up to where it has been looked at again.
    looked: u64,
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
    /// The end, and what stands there unterminated: no longer than a line may be, or with zeros in it.
    End {
        /// Where the rest begins.
        offset: u64,
        /// How long it is; 0 when the last line is whole.
        rest_bytes: u64,
    },
    /// A line longer than a line may be.
    TooLong {
        /// Where it begins.
        offset: u64,
        /// Where the next one would begin.
        end: u64,
        /// Whether there are zeros in it.
        hole: bool,
    },
}

impl Lines {
    pub(crate) fn new(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        Self::with_buffer(file, offset, BUFFER_BYTES)
    }

    /// Reads from the beginning in small pieces, for those who want a line or two of many files.
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
            rest: Rest::default(),
        }
    }

    /// Reads up to where the file ends now: a writer may be faster than we are, and reading has to end.
    pub(crate) fn until_now(self) -> io::Result<Self> {
        let end_at = self.file.identity()?.size_bytes;
        Ok(self.until(end_at))
    }

    /// Begins at an offset, which is where a line begins.
    pub(crate) fn from(self, offset: u64) -> Self {
        Self::new(self.file, offset)
    }

    /// Reads no further than to an offset.
    pub(crate) fn until(mut self, end_at: u64) -> Self {
        self.end_at = end_at;
        self
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

    /// Goes on behind a line that is too long.
    pub(crate) fn skip_to(&mut self, offset: u64) {
        self.drop_buffer();
        self.offset = offset;
    }

    /// Has a long rest at the end read again as a whole, and not piece by piece.
    pub(crate) fn look_again(&mut self) {
        self.rest = Rest::default();
    }

    pub(crate) fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    pub(crate) fn next(&mut self) -> io::Result<Piece<'_>> {
        if self.rest.len > REREAD_BYTES_MAX && !self.may_be_a_line_now()? {
            return Ok(Piece::End { offset: self.offset, rest_bytes: self.rest.len });
        }
        self.rest = Rest::default();
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

    fn line_to(&mut self, newline: usize) -> Piece<'_> {
        let (start, offset) = (self.start, self.offset);
        self.start = newline + 1;
        self.searched = self.start;
        self.offset += (self.start - start) as u64;
        Piece::Line { offset, bytes: &self.buffer[start..newline] }
    }

    fn end_with(&mut self, rest_bytes: u64) -> Piece<'static> {
        self.drop_buffer();
        self.rest = Rest { len: rest_bytes, looked: 0 };
        Piece::End { offset: self.offset, rest_bytes }
    }

    fn drop_buffer(&mut self) {
        (self.start, self.searched, self.end, self.joined) = (0, 0, 0, 0);
    }

    /// Compares what earlier reads have given of a line with the file, now that its newline is there.
    ///
    /// The newline settles a line. Before it, what was read may have been cut off and another line written there,
    /// whose end would then stand behind the beginning of one that never was.
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

    /// Says what a line is that is longer than a line may be, in the memory that there is; `None` when it is no
    /// longer one.
    ///
    /// Zeros up to the end, however many, are what a crash leaves. Anything else of that length is not of our making.
    fn too_long(&mut self) -> io::Result<Option<Piece<'static>>> {
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
                Some(_) if is_too_long => Some(Piece::TooLong { offset, end: at + 1, hole }),
                None if is_too_long && !hole => Some(Piece::TooLong { offset, end: at, hole }),
                None => Some(self.end_with(at - offset)),
                Some(_) => None,
            });
        }
    }

    /// Looks whether there may be a line by now where the end was reached without one.
    ///
    /// A long rest is not read again from its beginning each time: whoever writes it slowly would have us read the
    /// same bytes for ever. New bytes are read once, and of those before them a part each time. If the file ends
    /// with a newline, that is seen at once, since the last byte is either new or the last of those before.
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

    /// Reads into the beginning of the buffer, which holds nothing.
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
        // Only a line that fills more than half of the buffer makes it grow, so memory follows the longest line.
        if self.end > self.buffer.len() / 2 {
            let grown = (self.buffer.len() * 2).min(LINE_BYTES_MAX + BUFFER_BYTES);
            self.buffer.resize(grown.max(self.end + 1), 0);
        }
    }
}
