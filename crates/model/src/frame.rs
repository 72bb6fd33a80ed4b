//! Frames and evidence: bytes as they were captured, and how an event names the ones it was made from.

use crate::json::{JsonString, ObjectWriter, RawJson};
use crate::word::vocabulary;
use crate::{Timestamp, Word};

/// Which way bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// What the agent wrote: its file, its output.
    FromAgent,
    /// What was sent to it.
    ToAgent,
}

vocabulary! {
    /// How bytes are packed that an adapter reads unpacked.
    Packing, "packing" {
        /// Frames of zstd.
        Zstd = "zstd",
    }
}

/// A piece of a source as it was captured, cut anywhere.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Which way the bytes went.
    pub lane: Lane,
    /// How often the source had been rewritten or truncated before.
    pub generation: u32,
    /// Where the bytes begin in this generation of the source, unpacked.
    pub offset: u64,
    /// What they were unpacked from, if they were packed.
    pub unpacked: Option<Packing>,
    /// When they were captured, if they were captured live.
    pub captured: Option<&'a Timestamp>,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Makes a frame of a file's first generation, as an import reads it.
    #[must_use]
    pub fn of_file(offset: u64, bytes: &'a [u8]) -> Self {
        Self { lane: Lane::FromAgent, generation: 0, offset, unpacked: None, captured: None, bytes }
    }
}

/// Where in a source something stands, and which of the events made from it this is.
///
/// Positions of one source are ordered as its events are, so that after a crash the ones written already can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Which generation of the source.
    pub generation: u32,
    /// Where the record begins, in the unpacked bytes if the generation is packed.
    pub offset: u64,
    /// Which of the record's events, from 0.
    pub part: u32,
}

/// The bytes that an event was made from: the extra envelope field `evidence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Which source.
    pub source: JsonString,
    /// Where in it.
    pub position: Position,
    /// How many bytes the record has.
    pub length: u64,
    /// What these bytes were unpacked from. Events of older versions do not say it: whoever reads the bytes tells by
    /// their beginning.
    pub unpacked: Option<Word<Packing>>,
}

impl Evidence {
    /// Returns the field's value.
    #[must_use]
    pub fn to_json(&self) -> RawJson {
        let mut out = String::with_capacity(96);
        let mut object = ObjectWriter::begin(&mut out);
        object.string("source", &self.source);
        object.number("generation", self.position.generation.into());
        object.number("offset", self.position.offset);
        object.number("length", self.length);
        object.number("part", self.position.part.into());
        object.optional("unpacked", self.unpacked.as_ref(), ObjectWriter::vocabulary);
        object.end();
        RawJson::trusted(out)
    }

    /// Reads the field's value; `None` when it is no evidence.
    #[must_use]
    pub fn read(raw: &RawJson) -> Option<Self> {
        Self::parse(raw.as_str())
    }

    /// Reads the field's value as it stands in a line; `None` when it is no evidence.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut fields = crate::json::Fields::parse(text).ok()?;
        let unpacked = fields.take_string("unpacked").ok()?.map(Word::read);
        let source = fields.take_string("source").ok()??;
        let mut number = |name| fields.take(name).ok()??.get().parse::<u64>().ok();
        let (generation, offset) = (number("generation")?, number("offset")?);
        let (length, part) = (number("length")?, number("part")?);
        let position =
            Position { generation: generation.try_into().ok()?, offset, part: part.try_into().ok()? };
        Some(Self { source, position, length, unpacked })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_is_read_as_it_was_written() {
        let position = Position { generation: 2, offset: 9012, part: 1 };
        let plain = r#"{"source":"s\"1","generation":2,"offset":9012,"length":88,"part":1}"#;
        let with = |word: &str| plain.replace('}', &format!(r#","unpacked":"{word}"}}"#));
        for (text, unpacked) in [
            (plain.to_owned(), None),
            (with("zstd"), Some(Word::Known(Packing::Zstd))),
            (with("of the future"), Some(Word::Unknown("of the future".into()))),
        ] {
            let evidence = Evidence { source: "s\"1".into(), position, length: 88, unpacked };
            let json = evidence.to_json();
            assert_eq!(json.as_str(), text);
            assert_eq!(Evidence::read(&json), Some(evidence));
        }
        assert_eq!(Evidence::read(&RawJson::null()), None);
    }

    #[test]
    fn positions_are_ordered_by_generation_then_offset_then_part() {
        let at = |generation, offset, part| Position { generation, offset, part };
        assert!(at(0, 9, 9) < at(1, 0, 0) && at(1, 0, 9) < at(1, 1, 0) && at(1, 1, 0) < at(1, 1, 1));
    }
}
