//! Frames and evidence: captured bytes, and how an event refers to the bytes it was made from.

use crate::json::{JsonString, ObjectWriter, RawJson};
use crate::word::vocabulary;
use crate::{Timestamp, Word};

/// The direction of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lane {
    /// Written by the agent: its file, its output.
    FromAgent,
    /// Sent to the agent.
    ToAgent,
}

vocabulary! {
    /// The compression of bytes. Adapters read them decompressed.
    Packing, "packing" {
        /// Frames of zstd.
        Zstd = "zstd",
    }
}

/// A captured part of a source, cut at any byte.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The direction of the bytes.
    pub lane: Lane,
    /// How often the source had been rewritten or truncated before.
    pub generation: u32,
    /// The offset of the bytes in this generation of the source, decompressed.
    pub offset: u64,
    /// Their compression, if they were compressed.
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

/// A position in a source, and which of the events made from it is meant.
///
/// Positions of one source have the order of its events, so that after a crash the events already written are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Which generation of the source.
    pub generation: u32,
    /// The offset of the record, in the decompressed bytes if the generation is compressed.
    pub offset: u64,
    /// The number of the event within the record, from 0.
    pub part: u32,
}

/// The bytes that an event was made from: the extra envelope field `evidence`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// Which source.
    pub source: JsonString,
    /// The position in it.
    pub position: Position,
    /// How many bytes the record has.
    pub length: u64,
    /// The compression of these bytes. Events of older versions lack it: a reader recognizes it by the first bytes.
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

    /// Reads the field's value; `None` when it is not valid.
    #[must_use]
    pub fn read(raw: &RawJson) -> Option<Self> {
        Self::parse(raw.as_str())
    }

    /// Reads the field's value as it stands in a line; `None` when it is not valid.
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
    fn evidence_round_trips() {
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
