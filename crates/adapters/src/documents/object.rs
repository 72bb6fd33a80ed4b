//! Reads one object that takes many lines: as one record, or as its fields and the elements of its list.

use steno_model::limits::LINE_BYTES_MAX;

use super::DocumentShape;
use super::nesting::Nesting;
use crate::lines::Line;

/// The longest name of a list.
const NAME_BYTES_MAX: usize = 32;

/// How far an object has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// More is to come.
    Open,
    /// It has ended.
    Closed,
    /// It is not a document: it ends on its line, or the line ends inside it.
    Line,
}

/// The part of an object that is being read.
#[derive(Default)]
pub(super) struct ObjectPiece {
    pub(super) start: u64,
    /// Its bytes; empty if it is too long.
    pub(super) bytes: Vec<u8>,
    pub(super) len: u64,
}

impl ObjectPiece {
    fn begin(&mut self, start: u64) {
        self.start = start;
        self.bytes.clear();
        self.len = 0;
    }

    fn grow(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        if self.len <= LINE_BYTES_MAX as u64 {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.bytes = Vec::new();
        }
    }

    fn is_too_long(&self) -> bool {
        self.len > LINE_BYTES_MAX as u64
    }
}

/// Where the reader is in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectSection {
    /// Among the fields outside the list.
    Fields,
    /// Between two elements of the list.
    List,
    /// In an element of the list.
    Element,
}

/// Reads one object.
pub(super) struct ObjectReader {
    /// The name of the list, if its elements are records.
    list: Option<&'static str>,
    /// Whether it is known that the object is a document and not a line.
    is_document: bool,
    /// Whether anything but white space follows the first bracket.
    has_content: bool,
    place: ObjectSection,
    piece: ObjectPiece,
    nesting: Nesting,
    /// The last string directly in the object, cut at the length of the longest name of a list.
    name: Vec<u8>,
    /// Whether a colon follows that string and nothing else so far.
    is_key: bool,
    /// How much of the piece comes before the last comma directly in the object.
    before_comma: usize,
}

impl ObjectReader {
    /// Makes a reader for an object that begins at `start`.
    pub(super) fn new(shape: DocumentShape, start: u64) -> Self {
        let list = match shape {
            DocumentShape::Listing(name) => Some(name),
            DocumentShape::Whole => None,
        };
        let piece = ObjectPiece { start, ..ObjectPiece::default() };
        Self {
            list,
            is_document: false,
            has_content: false,
            place: ObjectSection::Fields,
            piece,
            nesting: Nesting::default(),
            name: Vec::new(),
            is_key: false,
            before_comma: 0,
        }
    }

    /// Takes the next bytes, up to the end of the object; returns how many it took.
    pub(super) fn feed(
        &mut self,
        offset: u64,
        bytes: &[u8],
        each: &mut dyn FnMut(u64, Line<'_>),
    ) -> (usize, Progress) {
        let mut at = 0;
        while at < bytes.len() {
            let (place, rest) = (offset + at as u64, &bytes[at..]);
            let (used, progress) = match self.place {
                ObjectSection::Fields => self.fields(place, rest, each),
                ObjectSection::List => (self.between(place, rest), Progress::Open),
                ObjectSection::Element => (self.element(place, rest, each), Progress::Open),
            };
            at += used;
            if progress != Progress::Open {
                return (at, progress);
            }
        }
        (at, Progress::Open)
    }

    /// Returns the incomplete part, if there is one.
    pub(super) fn unfinished(&self) -> Option<(u64, Line<'_>)> {
        let is_there = self.place != ObjectSection::List && self.piece.len > 0;
        let line = if self.piece.is_too_long() {
            Line::TooLong(self.piece.len)
        } else {
            Line::Whole(&self.piece.bytes)
        };
        is_there.then_some((self.piece.start, line))
    }

    /// Returns what was read of an object that is not a document.
    pub(super) fn take(&mut self) -> Option<ObjectPiece> {
        (self.piece.len > 0).then(|| std::mem::take(&mut self.piece))
    }

    /// Reads fields outside the list, byte by byte: they are short.
    fn fields(
        &mut self,
        offset: u64,
        bytes: &[u8],
        each: &mut dyn FnMut(u64, Line<'_>),
    ) -> (usize, Progress) {
        for (at, &byte) in bytes.iter().enumerate() {
            if !self.is_document && byte == b'\n' {
                if self.has_content {
                    self.piece.grow(&bytes[..at]);
                    return (at, Progress::Line);
                }
                // Only a document has nothing but white space between its first bracket and the end of the line.
                self.is_document = true;
            }
            self.has_content |= self.nesting.depth > 0 && !byte.is_ascii_whitespace();
            if self.has_content && !self.is_document && self.list.is_none() {
                self.piece.grow(&bytes[..at]);
                return (at, Progress::Line);
            }
            let is_list = byte == b'[' && self.is_list_next();
            let place = usize::try_from(self.piece.len).unwrap_or(usize::MAX).saturating_add(at);
            self.note(byte, place);
            self.nesting.take(byte);
            if is_list {
                self.piece.grow(&bytes[..at]);
                self.is_document = true;
                self.hand_fields(self.before_comma, each);
                self.place = ObjectSection::List;
                return (at + 1, Progress::Open);
            }
            if self.nesting.depth == 0 && !self.nesting.is_in_string {
                self.piece.grow(&bytes[..=at]);
                return (at + 1, self.close(offset + at as u64 + 1, each));
            }
        }
        self.piece.grow(bytes);
        (bytes.len(), Progress::Open)
    }

    /// Follows the names and commas directly in the object.
    fn note(&mut self, byte: u8, place: usize) {
        if self.nesting.depth != 1 {
            return;
        }
        match byte {
            b'"' if !self.nesting.is_in_string => {
                self.name.clear();
                self.is_key = false;
            }
            _ if self.nesting.is_in_string => {
                if self.name.len() < NAME_BYTES_MAX {
                    self.name.push(byte);
                }
            }
            b':' => self.is_key = true,
            b',' => (self.before_comma, self.is_key) = (place, false),
            _ if byte.is_ascii_whitespace() => {}
            _ => self.is_key = false,
        }
    }

    fn is_list_next(&self) -> bool {
        let Some(list) = self.list else { return false };
        // The last byte is the quotation mark that ends the name.
        let name = self.name.strip_suffix(b"\"").unwrap_or_default();
        self.nesting.depth == 1 && !self.nesting.is_in_string && self.is_key && name == list.as_bytes()
    }

    fn close(&mut self, end: u64, each: &mut dyn FnMut(u64, Line<'_>)) -> Progress {
        if !self.is_document {
            return Progress::Line;
        }
        match self.list {
            Some(_) => {
                let len = self.piece.bytes.len().saturating_sub(1);
                self.hand_fields(len, each);
                each(end, Line::End);
            }
            None => {
                if let Some((start, line)) = self.unfinished() {
                    each(start, line);
                }
            }
        }
        Progress::Closed
    }

    /// Hands over the fields in the first `len` bytes of the piece.
    fn hand_fields(&mut self, len: usize, each: &mut dyn FnMut(u64, Line<'_>)) {
        if self.piece.is_too_long() {
            return each(self.piece.start, Line::TooLong(self.piece.len));
        }
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || matches!(*byte, b'{' | b',');
        let before = self.piece.bytes.iter().take_while(|byte| is_between(byte)).count();
        let fields = self.piece.bytes.get(before..len).unwrap_or_default().trim_ascii_end();
        let fields = fields.strip_suffix(b",").unwrap_or(fields);
        if !fields.is_empty() {
            each(self.piece.start + before as u64, Line::Fields(fields));
        }
    }

    /// Skips what is between two elements, and finds where the next one begins or the list ends.
    fn between(&mut self, offset: u64, bytes: &[u8]) -> usize {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let skipped = bytes.iter().take_while(|byte| is_between(byte)).count();
        let next = offset + skipped as u64;
        match bytes.get(skipped) {
            None => skipped,
            Some(b']' | b'}') => {
                self.place = ObjectSection::Fields;
                self.piece.begin(next + 1);
                (self.nesting, self.before_comma) = (Nesting { depth: 1, ..Nesting::default() }, 0);
                skipped + 1
            }
            Some(_) => {
                self.place = ObjectSection::Element;
                self.piece.begin(next);
                self.nesting = Nesting::default();
                skipped
            }
        }
    }

    fn element(&mut self, _offset: u64, bytes: &[u8], each: &mut dyn FnMut(u64, Line<'_>)) -> usize {
        let Some(end) = self.nesting.element_end(bytes) else {
            self.piece.grow(bytes);
            return bytes.len();
        };
        self.place = ObjectSection::List;
        if self.piece.len == 0 {
            // The usual case: nothing is copied.
            each(self.piece.start, Line::Listed(bytes[..end].trim_ascii_end()));
            return end;
        }
        self.piece.grow(&bytes[..end]);
        if self.piece.is_too_long() {
            each(self.piece.start, Line::TooLong(self.piece.len));
        } else {
            each(self.piece.start, Line::Listed(self.piece.bytes.trim_ascii_end()));
        }
        end
    }
}
