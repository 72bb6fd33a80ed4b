//! Cuts a source into lines, or into the records of a JSON document that takes many lines.
//!
//! A document is read as it comes. Only the record at hand is in memory, so a document may be of any size.

mod nesting;
mod object;
#[cfg(test)]
mod tests;

pub(crate) use self::nesting::Nesting;
use self::object::{ObjectPiece, ObjectReader, Progress};
use crate::lines::{Line, Lines};
use crate::repair::BYTE_ORDER_MARK;

/// The documents that a source may have besides lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentShape {
    /// One object at the beginning, with a list of records under this name. Its other fields are records too.
    Listing(&'static str),
    /// Objects anywhere, each one record.
    Whole,
}

/// How a source is cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SplitRule {
    /// Each line has its records.
    Lines,
    /// Lines, or documents.
    Documents(DocumentShape),
}

/// Cuts one lane of one generation of a source.
pub(crate) enum Splitter {
    Lines(Lines),
    Documents(Documents),
}

impl Splitter {
    pub(crate) fn new(splitting: SplitRule) -> Self {
        match splitting {
            SplitRule::Lines => Self::Lines(Lines::default()),
            SplitRule::Documents(shape) => Self::Documents(Documents::new(shape)),
        }
    }

    /// Takes the lane's next bytes and hands over each record or line that they complete, with its offset.
    pub(crate) fn feed(&mut self, offset: u64, bytes: &[u8], mut each: impl FnMut(u64, Line<'_>)) {
        match self {
            Self::Lines(lines) => lines.feed(offset, bytes, each),
            Self::Documents(documents) => documents.feed(offset, bytes, &mut each),
        }
    }

    /// Passes on what is incomplete. What follows is read as lines.
    pub(crate) fn finish(&mut self, each: impl FnMut(u64, Line<'_>)) {
        match self {
            Self::Lines(lines) => lines.finish(each),
            Self::Documents(documents) => documents.finish(each),
        }
    }

    /// Returns what is incomplete, if anything is.
    pub(crate) fn unfinished(&self) -> Option<(u64, Line<'_>)> {
        match self {
            Self::Lines(lines) => lines.unfinished(),
            Self::Documents(documents) => documents.unfinished(),
        }
    }
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new(SplitRule::Lines)
    }
}

/// A lane that may have documents.
pub(crate) struct Documents {
    shape: DocumentShape,
    stage: Stage,
    lines: Lines,
}

enum Stage {
    /// At the beginning of a line that may begin a document.
    Start,
    /// In an object that is a document, or a line that begins like one.
    Object(Box<ObjectReader>),
    /// In a line; with `Listing`, in the rest of the source.
    Line,
}

impl Documents {
    fn new(shape: DocumentShape) -> Self {
        Self { shape, stage: Stage::Start, lines: Lines::default() }
    }

    fn feed(&mut self, offset: u64, bytes: &[u8], each: &mut dyn FnMut(u64, Line<'_>)) {
        let mut at = 0;
        while at < bytes.len() {
            let (place, rest) = (offset + at as u64, &bytes[at..]);
            at += match &mut self.stage {
                Stage::Start => self.start(place, rest),
                Stage::Object(_) => self.object(place, rest, each),
                Stage::Line => self.line(place, rest, each),
            };
        }
    }

    /// Skips what may stand before a document, and decides by the first byte after it.
    fn start(&mut self, offset: u64, bytes: &[u8]) -> usize {
        let is_filling =
            |byte: &u8| byte.is_ascii_whitespace() || *byte == 0 || BYTE_ORDER_MARK.contains(byte);
        let filling = bytes.iter().take_while(|byte| is_filling(byte)).count();
        match bytes.get(filling) {
            None => {}
            Some(b'{') => {
                let reader = ObjectReader::new(self.shape, offset + filling as u64);
                self.stage = Stage::Object(Box::new(reader));
            }
            Some(_) => self.stage = Stage::Line,
        }
        filling
    }

    fn object(&mut self, offset: u64, bytes: &[u8], each: &mut dyn FnMut(u64, Line<'_>)) -> usize {
        let Stage::Object(reader) = &mut self.stage else { return 0 };
        let (used, progress) = reader.feed(offset, bytes, each);
        match progress {
            Progress::Open => {}
            Progress::Closed => self.stage = self.after_document(),
            Progress::Line => {
                let begun = reader.take();
                self.stage = Stage::Line;
                if let Some(ObjectPiece { start, bytes, len }) = begun {
                    self.lines.resume(start, bytes, len);
                }
            }
        }
        used
    }

    fn after_document(&self) -> Stage {
        match self.shape {
            DocumentShape::Listing(_) => Stage::Line,
            DocumentShape::Whole => Stage::Start,
        }
    }

    fn line(&mut self, offset: u64, bytes: &[u8], each: &mut dyn FnMut(u64, Line<'_>)) -> usize {
        let end = match self.shape {
            DocumentShape::Listing(_) => bytes.len(),
            DocumentShape::Whole => match memchr::memchr(b'\n', bytes) {
                Some(newline) => {
                    self.stage = Stage::Start;
                    newline + 1
                }
                None => bytes.len(),
            },
        };
        self.lines.feed(offset, &bytes[..end], each);
        end
    }

    fn finish(&mut self, mut each: impl FnMut(u64, Line<'_>)) {
        if let Some((start, line)) = self.unfinished() {
            each(start, line);
        }
        (self.stage, self.lines) = (Stage::Line, Lines::default());
    }

    fn unfinished(&self) -> Option<(u64, Line<'_>)> {
        match &self.stage {
            Stage::Start => None,
            Stage::Object(reader) => reader.unfinished(),
            Stage::Line => self.lines.unfinished(),
        }
    }
}
