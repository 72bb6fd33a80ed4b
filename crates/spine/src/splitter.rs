//! Splits bytes that arrive in pieces into lines, in bounded memory. Files and tar entries are read in the same way.

use steno_model::limits::LINE_BYTES_MAX;

/// A line.
pub(super) enum Line<'a> {
    /// A complete line, without its newline.
    Whole(&'a [u8]),
    /// A line that is longer than the limit.
    TooLong {
        /// True if it contains zeros.
        hole: bool,
    },
}

/// The bytes after the last newline.
pub(super) struct Remainder {
    pub(super) offset: u64,
    pub(super) len: u64,
    /// True if it is longer than the limit, not counting the zeros that a crash leaves.
    pub(super) is_too_long: bool,
}

/// The position in the bytes.
#[derive(Default)]
pub(super) struct Splitter {
    /// The beginning of a line without its newline, unless it is too long.
    begun: Vec<u8>,
    /// The offset of that line, and its length so far.
    offset: u64,
    len: u64,
    /// For a line that is too long: whether it contains zeros.
    too_long: Option<bool>,
}

impl Splitter {
    /// Passes on the lines that end in a piece, each with its offset.
    pub(super) fn push(&mut self, mut piece: &[u8], mut each: impl FnMut(u64, Line<'_>)) {
        while let Some(at) = memchr::memchr(b'\n', piece) {
            let (head, tail) = (&piece[..at], &piece[at + 1..]);
            let offset = self.offset;
            if self.len == 0 && head.len() < LINE_BYTES_MAX {
                self.offset += head.len() as u64 + 1;
                each(offset, Line::Whole(head));
            } else {
                self.go_on(head);
                match self.too_long {
                    Some(hole) => each(offset, Line::TooLong { hole }),
                    None => each(offset, Line::Whole(&self.begun)),
                }
                let offset = self.offset + self.len + 1;
                // The buffer is kept, because many lines are cut by pieces.
                self.begun.clear();
                (self.offset, self.len, self.too_long) = (offset, 0, None);
            }
            piece = tail;
        }
        self.go_on(piece);
    }

    fn go_on(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        let zeros = |bytes: &[u8]| memchr::memchr(0, bytes).is_some();
        match &mut self.too_long {
            Some(hole) => *hole = *hole || zeros(bytes),
            // The newline counts too.
            None if self.len >= LINE_BYTES_MAX as u64 => {
                self.too_long = Some(zeros(&self.begun) || zeros(bytes));
                self.begun = Vec::new();
            }
            None => self.begun.extend_from_slice(bytes),
        }
    }

    /// Returns the bytes at the end without a newline.
    pub(super) fn rest(&self) -> Option<Remainder> {
        let is_too_long = self.too_long == Some(false);
        (self.len > 0).then_some(Remainder { offset: self.offset, len: self.len, is_too_long })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines with their offsets (none for lines that are too long), and the rest.
    type Pieces = (Vec<(u64, Option<Vec<u8>>)>, Option<(u64, u64, bool)>);

    fn split(pieces: &[&[u8]]) -> Pieces {
        let (mut splitter, mut lines) = (Splitter::default(), Vec::new());
        for piece in pieces {
            splitter.push(piece, |offset, line| {
                lines.push((
                    offset,
                    match line {
                        Line::Whole(bytes) => Some(bytes.to_vec()),
                        Line::TooLong { .. } => None,
                    },
                ));
            });
        }
        (lines, splitter.rest().map(|rest| (rest.offset, rest.len, rest.is_too_long)))
    }

    #[test]
    fn lines_do_not_depend_on_how_bytes_are_cut() {
        let text = b"a\n\nbcd\nef\n\ng";
        let want = split(&[text]);
        assert_eq!(want.0.len(), 5);
        assert_eq!(want.1, Some((11, 1, false)));
        for first in 0..=text.len() {
            for second in first..=text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(split(&pieces), want, "{first} {second}");
            }
        }
    }

    #[test]
    fn line_longer_than_the_limit_is_too_long() {
        let long = vec![b'x'; LINE_BYTES_MAX - 1];
        let (lines, rest) = split(&[&long, b"\n", &long, b"x\ny\n", &long, b"x"]);
        let places: Vec<_> =
            lines.iter().map(|(offset, line)| (*offset, line.as_ref().map(Vec::len))).collect();
        let max = LINE_BYTES_MAX as u64;
        assert_eq!(places, [(0, Some(LINE_BYTES_MAX - 1)), (max, None), (2 * max + 1, Some(1))]);
        assert_eq!(rest, Some((2 * max + 3, max, true)));
    }
}
