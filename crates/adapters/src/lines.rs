//! Joins bytes that are cut anywhere to lines.
//!
//! `documents` reads sources that are not only lines.

use memchr::memchr;
use steno_model::limits::LINE_BYTES_MAX;

/// A line without its newline, or a part of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// The line's bytes.
    Whole(&'a [u8]),
    /// The length of a line or part that is too long to keep in memory.
    TooLong(u64),
    /// An element of a document's list.
    Listed(&'a [u8]),
    /// The fields of a document before or after its list, without brackets.
    Fields(&'a [u8]),
    /// The end of a document that is complete.
    End,
}

/// One lane of one generation of a source.
#[derive(Default)]
pub(crate) struct Lines {
    /// The beginning of an incomplete line.
    partial: Vec<u8>,
    /// Where that line begins.
    start: u64,
    /// Its length so far; more than `partial` has if it is too long.
    len: u64,
}

impl Lines {
    /// Takes the lane's next bytes and hands over each line that they complete, with its offset in the source.
    pub(crate) fn feed(&mut self, offset: u64, bytes: &[u8], mut each: impl FnMut(u64, Line<'_>)) {
        let (mut rest, mut position) = (bytes, offset);
        while let Some(at) = memchr(b'\n', rest) {
            let (line, after) = (&rest[..at], &rest[at + 1..]);
            if self.len == 0 {
                // The usual case: nothing is copied.
                each(position, Line::Whole(line));
            } else {
                self.grow(line);
                self.finish(&mut each);
            }
            position += at as u64 + 1;
            rest = after;
        }
        if self.len == 0 {
            self.start = position;
        }
        self.grow(rest);
    }

    /// Continues a line whose beginning was read elsewhere.
    pub(crate) fn resume(&mut self, start: u64, bytes: Vec<u8>, len: u64) {
        (self.start, self.partial, self.len) = (start, bytes, len);
    }

    fn grow(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.len <= LINE_BYTES_MAX as u64 {
            self.partial.extend_from_slice(bytes);
        } else {
            self.partial = Vec::new();
        }
    }

    /// Passes on the text after the last newline, if there is any.
    ///
    /// If bytes are missing after it, the line is passed on as it is, and the caller decides what it contains.
    pub(crate) fn finish(&mut self, mut each: impl FnMut(u64, Line<'_>)) {
        if let Some((start, line)) = self.unfinished() {
            each(start, line);
            self.partial.clear();
            self.len = 0;
        }
    }

    /// Returns the incomplete last line, if there is one.
    pub(crate) fn unfinished(&self) -> Option<(u64, Line<'_>)> {
        let is_too_long = self.len > LINE_BYTES_MAX as u64;
        let line = if is_too_long { Line::TooLong(self.len) } else { Line::Whole(&self.partial) };
        (self.len > 0).then_some((self.start, line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[(u64, &[u8])]) -> Vec<(u64, String)> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut keep = |offset: u64, line: Line<'_>| match line {
            Line::Whole(bytes) => found.push((offset, String::from_utf8_lossy(bytes).into_owned())),
            Line::TooLong(len) => found.push((offset, format!("too long: {len}"))),
            Line::Listed(_) | Line::Fields(_) | Line::End => panic!("these are lines"),
        };
        for (offset, bytes) in pieces {
            lines.feed(*offset, bytes, &mut keep);
        }
        lines.finish(&mut keep);
        found
    }

    #[test]
    fn lines_do_not_depend_on_how_bytes_are_cut() {
        let text = b"one\n\ntwo and more\nthree";
        let whole = all(&[(0, text)]);
        assert_eq!(whole.len(), 4);
        for cut in 0..=text.len() {
            assert_eq!(all(&[(0, &text[..cut]), (cut as u64, &text[cut..])]), whole, "cut at {cut}");
        }
    }

    #[test]
    fn line_continues_at_a_later_offset() {
        let found = all(&[(0, b"one\ntw"), (9, b"o\nthree\n")]);
        assert_eq!(found, [(0, "one".into()), (4, "two".into()), (11, "three".into())]);
    }

    #[test]
    fn too_long_line_is_reported_with_its_length() {
        let piece = vec![b'x'; 1024 * 1024];
        let mut pieces: Vec<(u64, &[u8])> = Vec::new();
        let count = (LINE_BYTES_MAX / piece.len()) as u64 + 1;
        for number in 0..count {
            pieces.push((number * piece.len() as u64, &piece));
        }
        let end = count * piece.len() as u64;
        pieces.push((end, b"\nshort\n"));
        assert_eq!(all(&pieces), [(0, format!("too long: {end}")), (end + 1, "short".into())]);
    }
}
