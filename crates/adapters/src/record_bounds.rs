//! Finds where records begin and end in a source, to check evidence.
//!
//! Uses the same lines and repairs as the adapters.

use steno_model::Lane;
use steno_model::wrap::WRAP_MAGIC;

use crate::conversation::is_envelope;
use crate::documents::{DocumentShape, SplitRule, Splitter};
use crate::gemini;
use crate::lines::Line;
use crate::repair::{self, IsRecord};
use crate::wrap::{LinePlace, WrapContent, WrapDocument, WrapItem, WrapLines, WrapSink};

/// Finds the lines of one generation of a source, unpacked, or the parts of its documents.
#[derive(Default)]
pub struct SourceLines {
    framing: SourceFraming,
}

/// How the lines are framed.
enum SourceFraming {
    /// Not known yet: the source begins as a wrap does, with these bytes.
    Unknown(Vec<u8>, SplitRule),
    Split(Splitter),
    /// A wrap, whose output may be a document.
    Wrap(Box<WrapLines>, Option<WrapDocument>),
}

impl Default for SourceFraming {
    fn default() -> Self {
        Self::Unknown(Vec::new(), SplitRule::Lines)
    }
}

/// How the records of a source may be framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFraming {
    /// In lines.
    Lines,
    /// In a document with a list of them.
    Listing,
    /// In documents that are one record each.
    Documents,
}

impl RecordFraming {
    /// All of them; most sources have lines.
    pub const ALL: [Self; 3] = [Self::Lines, Self::Listing, Self::Documents];
}

/// A line of a source, which holds one record, several, or none; or a part of a document.
#[derive(Clone, Copy)]
pub struct SourceLine<'a> {
    /// Where it begins.
    pub offset: u64,
    place: LinePlace<'a>,
    line: Line<'a>,
}

/// Passes on the lines of a wrap.
struct WrapSourceLines<'a, 'b>(&'a mut Option<WrapDocument>, &'b mut dyn FnMut(SourceLine<'_>));

impl WrapSink for WrapSourceLines<'_, '_> {
    fn item(&mut self, item: WrapItem<'_>) {
        let Self(document, each) = self;
        let line = match item.content {
            WrapContent::Line(Lane::FromAgent, Line::Whole(line)) if document.is_some() => {
                let document = document.iter_mut();
                return document.for_each(|document| {
                    document.feed(item.place, line, |place, line| each(SourceLine::at(place, line)));
                });
            }
            WrapContent::Line(_, line) => line,
            WrapContent::Header(_, text) | WrapContent::Note(_, text) => Line::Whole(text.as_bytes()),
            WrapContent::Damage(length) => Line::TooLong(length),
        };
        each(SourceLine::at(item.place, line));
    }
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
    /// Finds the lines of a source with this framing.
    #[must_use]
    pub fn framed(framing: RecordFraming) -> Self {
        let splitting = match framing {
            RecordFraming::Lines => SplitRule::Lines,
            RecordFraming::Listing => SplitRule::Documents(gemini::CHAT_SHAPE),
            RecordFraming::Documents => SplitRule::Documents(DocumentShape::Whole),
        };
        Self { framing: SourceFraming::Unknown(Vec::new(), splitting) }
    }

    /// Takes the next bytes and hands over each line that they complete. Lines come in the order in which they begin.
    pub fn feed(&mut self, offset: u64, bytes: &[u8], mut each: impl FnMut(SourceLine<'_>)) {
        if let SourceFraming::Unknown(begin, splitting) = &mut self.framing {
            let splitting = *splitting;
            let begin_len = begin.len() as u64;
            begin.extend_from_slice(bytes);
            if begin.len() < WRAP_MAGIC.len() && WRAP_MAGIC.starts_with(begin) {
                return;
            }
            let begin = std::mem::take(begin);
            self.framing = if begin.starts_with(WRAP_MAGIC) {
                let is_document = splitting == SplitRule::Documents(DocumentShape::Whole);
                SourceFraming::Wrap(Box::default(), is_document.then(|| WrapDocument::new(splitting)))
            } else {
                SourceFraming::Split(Splitter::new(splitting))
            };
            return self.feed_known(offset - begin_len, &begin, &mut each);
        }
        self.feed_known(offset, bytes, &mut each);
    }

    fn feed_known(&mut self, offset: u64, bytes: &[u8], each: &mut dyn FnMut(SourceLine<'_>)) {
        match &mut self.framing {
            SourceFraming::Unknown(..) => {}
            SourceFraming::Split(lines) => {
                lines.feed(offset, bytes, |offset, line| each(SourceLine::whole(offset, line)));
            }
            SourceFraming::Wrap(lines, document) => {
                lines.feed(offset, bytes, &mut WrapSourceLines(document, each));
            }
        }
    }

    /// Passes on the text after the last newline, if there is any.
    pub fn finish(&mut self, mut each: impl FnMut(SourceLine<'_>)) {
        match &mut self.framing {
            SourceFraming::Unknown(begin, _) => {
                if !begin.is_empty() {
                    each(SourceLine::whole(0, Line::Whole(begin)));
                }
            }
            SourceFraming::Split(lines) => {
                lines.finish(|offset, line| each(SourceLine::whole(offset, line)));
            }
            SourceFraming::Wrap(lines, document) => {
                lines.finish(&mut WrapSourceLines(document, &mut each));
                let document = document.iter_mut();
                document.for_each(|document| {
                    document.finish(|place, line| each(SourceLine::at(place, line)));
                });
            }
        }
    }
}

impl<'a> SourceLine<'a> {
    fn whole(offset: u64, line: Line<'a>) -> Self {
        Self::at(LinePlace::at(offset), line)
    }

    fn at(place: LinePlace<'a>, line: Line<'a>) -> Self {
        Self { offset: place.start, place, line }
    }

    fn len(&self) -> u64 {
        match self.line {
            Line::Whole(bytes) | Line::Listed(bytes) | Line::Fields(bytes) => bytes.len() as u64,
            Line::TooLong(len) => len,
            Line::End => 0,
        }
    }

    /// Tells whether a byte of the source is one of the line, or its newline. Bytes of other lines may be between them.
    #[must_use]
    pub fn covers(&self, offset: u64) -> bool {
        self.place.covers(offset, self.len())
    }

    /// Returns where the line ends, its newline not counted.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset + self.place.span(0, self.len())
    }

    /// Returns the line without its newline; `None` if it is too long to keep in memory.
    #[must_use]
    pub fn bytes(&self) -> Option<&'a [u8]> {
        match self.line {
            Line::Whole(bytes) | Line::Listed(bytes) | Line::Fields(bytes) => Some(bytes),
            Line::TooLong(_) | Line::End => None,
        }
    }

    /// Returns the record that begins at an offset of the source and has a length.
    #[must_use]
    pub fn record(&self, offset: u64, length: u64) -> RecordAt<'a> {
        let is_whole = (offset, length) == (self.offset, self.place.span(0, self.len()));
        let bytes = match self.line {
            Line::Whole(bytes) | Line::Listed(bytes) | Line::Fields(bytes) => bytes,
            Line::TooLong(_) if is_whole => return RecordAt::TooLong,
            Line::TooLong(_) | Line::End => return RecordAt::Nothing,
        };
        if length == 0 {
            return RecordAt::Nothing;
        }
        let is_here = |at: usize, len: usize| {
            let (at, len) = (at as u64, len as u64);
            len > 0 && (self.place.offset(at), self.place.span(at, len)) == (offset, length)
        };
        let usual = bytes.strip_suffix(b"\r").unwrap_or(bytes).len();
        if let Some(len) = [usual, bytes.len()].into_iter().find(|len| is_here(0, *len)) {
            return RecordAt::Record(&bytes[..len]);
        }
        let piece = |is_record: IsRecord| {
            let pieces = repair::pieces(bytes, is_record);
            pieces.iter().map(|piece| (piece.at, piece.len)).find(|(at, len)| is_here(*at, *len))
        };
        match piece(repair::is_record).or_else(|| piece(is_envelope)) {
            Some((at, len)) => RecordAt::Record(&bytes[at..at + len]),
            None => RecordAt::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &[u8]) -> Vec<(u64, u64)> {
        records_framed(RecordFraming::Lines, text)
    }

    /// Returns every range in which a record stands.
    fn records_framed(framing: RecordFraming, text: &[u8]) -> Vec<(u64, u64)> {
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
        let mut lines = SourceLines::framed(framing);
        lines.feed(0, text, &mut look);
        lines.finish(&mut look);
        found
    }

    #[test]
    fn record_is_a_line_or_a_part_of_one() {
        assert_eq!(records(b"{\"a\":1}\n\n{\"b\":22}"), [(0, 7), (9, 8)]);
        assert_eq!(records(b"{\"a\":1}\r\n"), [(0, 7), (0, 8)], "with what ends the line or without");
        assert_eq!(records(b"{\"a\":1}{\"b\":2}\n"), [(0, 7), (0, 14), (7, 7)], "glued together");
        assert_eq!(records(b"{\"a\":1} torn\n"), [(0, 7), (0, 12), (8, 4)]);
        assert_eq!(records(b"\n\n"), []);
    }

    #[test]
    fn record_is_a_part_of_a_document() {
        let text = b"{\n\"a\":1,\n\"messages\":[\n{\"b\":2},3],\"c\":4}\n";
        assert_eq!(records_framed(RecordFraming::Listing, text), [(2, 5), (22, 7), (30, 1), (33, 5)]);
        assert_eq!(records_framed(RecordFraming::Documents, text), [(0, 39)]);
    }
}
