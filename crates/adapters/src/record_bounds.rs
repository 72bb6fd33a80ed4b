//! Finds where records begin and end in a source, to check evidence.
//!
//! Uses the same lines and repairs as the adapters.

use crate::conversation::is_envelope;
use crate::lines::{Line, Lines};
use crate::repair::{self, IsRecord};

/// Finds the lines of one generation of a source, unpacked.
#[derive(Default)]
pub struct SourceLines(Lines);

/// A line of a source, which holds one record, several, or none.
#[derive(Clone, Copy)]
pub struct SourceLine<'a> {
    /// Where it begins.
    pub offset: u64,
    line: Line<'a>,
}

/// A record where evidence says that there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordAt<'a> {
    /// The record's bytes.
    Record(&'a [u8]),
    /// A line that is too long to read, which is one piece.
    TooLong,
    /// No record begins and ends there.
    Nothing,
}

impl SourceLines {
    /// Takes the next bytes and hands over each line that they complete.
    pub fn feed(&mut self, offset: u64, bytes: &[u8], mut each: impl FnMut(SourceLine<'_>)) {
        self.0.feed(offset, bytes, |offset, line| each(SourceLine { offset, line }));
    }

    /// Passes on the text after the last newline, if there is any.
    pub fn finish(&mut self, mut each: impl FnMut(SourceLine<'_>)) {
        self.0.finish(|offset, line| each(SourceLine { offset, line }));
    }
}

impl<'a> SourceLine<'a> {
    /// Returns where the line ends, its newline not counted.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset
            + match self.line {
                Line::Whole(bytes) => bytes.len() as u64,
                Line::TooLong(len) => len,
            }
    }

    /// Returns the record that begins at an offset of the source and has a length.
    #[must_use]
    pub fn record(&self, offset: u64, length: u64) -> RecordAt<'a> {
        let bytes = match self.line {
            Line::Whole(bytes) => bytes,
            Line::TooLong(len) if (offset, length) == (self.offset, len) => return RecordAt::TooLong,
            Line::TooLong(_) => return RecordAt::Nothing,
        };
        let at = offset.checked_sub(self.offset).and_then(|at| usize::try_from(at).ok());
        let (Some(at), Ok(len)) = (at, usize::try_from(length)) else { return RecordAt::Nothing };
        let usual = bytes.strip_suffix(b"\r").unwrap_or(bytes).len();
        let is_line = at == 0 && len > 0 && (len == usual || len == bytes.len());
        let is_piece = |is_record: IsRecord| {
            repair::pieces(bytes, is_record).iter().any(|piece| (piece.at, piece.len) == (at, len))
        };
        if is_line || is_piece(repair::is_record) || is_piece(is_envelope) {
            RecordAt::Record(&bytes[at..at + len])
        } else {
            RecordAt::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns every range in which a record stands.
    fn records(text: &[u8]) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        let mut look = |line: SourceLine<'_>| {
            for (offset, length) in
                (line.offset..=line.end()).flat_map(|from| (0..=line.end() + 2).map(move |len| (from, len)))
            {
                match line.record(offset, length) {
                    RecordAt::Record(bytes) => {
                        let at = usize::try_from(offset).unwrap();
                        assert_eq!(bytes, &text[at..at + bytes.len()]);
                        assert_eq!(bytes.len() as u64, length);
                        found.push((offset, length));
                    }
                    RecordAt::TooLong => panic!("no line is long"),
                    RecordAt::Nothing => {}
                }
            }
        };
        let mut lines = SourceLines::default();
        lines.feed(0, text, &mut look);
        lines.finish(&mut look);
        found
    }

    #[test]
    fn a_record_is_a_line_or_a_piece_of_one() {
        assert_eq!(records(b"{\"a\":1}\n\n{\"b\":22}"), [(0, 7), (9, 8)]);
        assert_eq!(records(b"{\"a\":1}\r\n"), [(0, 7), (0, 8)], "with what ends the line or without");
        assert_eq!(records(b"{\"a\":1}{\"b\":2}\n"), [(0, 7), (0, 14), (7, 7)], "glued together");
        assert_eq!(records(b"{\"a\":1} torn\n"), [(0, 7), (0, 12), (8, 4)]);
        assert_eq!(records(b"\n\n"), []);
    }
}
