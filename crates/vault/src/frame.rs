//! Frames: how a chunk is stored in a pack. A frame is a header with its own checksum, then the chunk's bytes,
//! compressed.
//!
//! All numbers are little-endian. A header has the magic, the form, three zeros, the length of the chunk and of the
//! stored bytes, the sketch, the hash, the hash of the base if the form has one, the CRC-32 of the stored bytes, and
//! the CRC-32 of the header up to there. `docs/format/vault.md` is the normative text.

use crate::chunker::{SKETCH_LEN, Sketch};
use crate::ids::ChunkHash;
use crate::limits::CHUNK_BYTES_LIMIT;

/// The magic at the beginning of every frame.
pub(crate) const MAGIC: [u8; 4] = *b"SCHK";
/// The length of the header up to the hash.
const FIXED_BYTES: usize = 16 + 4 * SKETCH_LEN;
const HASH_BYTES: usize = 32;
const SUM_BYTES: usize = 4;
/// The length of the longest header.
pub(crate) const HEADER_BYTES_MAX: usize = FIXED_BYTES + 2 * HASH_BYTES + 2 * SUM_BYTES;

/// How a chunk's bytes are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Raw,
    /// Compressed.
    Packed,
    /// Compressed as a delta of a base, which has fewer links.
    Delta { base: ChunkHash, links: Links },
}

/// How many other chunks have to be read to decode one.
///
/// A delta is decoded with a frame of its base that has fewer links than itself. So there are no cycles, even if
/// processes that do not know of each other have stored the same chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Links(u8);

impl Links {
    /// A chunk without a base.
    pub(crate) const NONE: Self = Self(0);
    /// The maximum number of links.
    pub(crate) const MAX: Self = Self(2);
    /// More than any chunk has.
    pub(crate) const ANY: Self = Self(Self::MAX.0 + 1);

    /// Returns the links of a delta of a chunk with these links; `None` when that would be too many.
    pub(crate) fn and_one(self) -> Option<Self> {
        Some(Self(self.0 + 1)).filter(|links| *links <= Self::MAX)
    }

    /// Returns them as two bits.
    pub(crate) fn to_bits(self) -> u32 {
        self.0.into()
    }

    /// Reads them from the lowest two bits.
    pub(crate) fn from_bits(bits: u32) -> Self {
        Self((bits & 3) as u8)
    }
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) hash: ChunkHash,
    pub(crate) form: Form,
    pub(crate) chunk_len: u32,
    pub(crate) stored_len: u32,
    pub(crate) stored_sum: u32,
    pub(crate) sketch: Sketch,
}

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadHeader {
    /// They are too few.
    Cut,
    /// The magic, form, checksum or length is wrong.
    Wrong,
}

impl Header {
    /// Returns how many other chunks have to be read to decode this one.
    pub(crate) fn links(&self) -> Links {
        match self.form {
            Form::Raw | Form::Packed => Links::NONE,
            Form::Delta { links, .. } => links,
        }
    }

    /// Returns the base of the chunk, if it is a delta.
    pub(crate) fn base(&self) -> Option<ChunkHash> {
        match self.form {
            Form::Delta { base, .. } => Some(base),
            Form::Raw | Form::Packed => None,
        }
    }

    /// Returns the length of the header.
    pub(crate) fn header_len(&self) -> usize {
        let bases = usize::from(self.base().is_some());
        FIXED_BYTES + (1 + bases) * HASH_BYTES + 2 * SUM_BYTES
    }

    /// Returns the length of header and stored bytes.
    pub(crate) fn frame_len(&self) -> u64 {
        self.header_len() as u64 + u64::from(self.stored_len)
    }

    /// Writes the header.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let (form, base) = match self.form {
            Form::Raw => (0, None),
            Form::Packed => (1, None),
            Form::Delta { base, links } => (1 + links.0, Some(base)),
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[form, 0, 0, 0]);
        out.extend_from_slice(&self.chunk_len.to_le_bytes());
        out.extend_from_slice(&self.stored_len.to_le_bytes());
        self.sketch.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
        out.extend_from_slice(self.hash.as_bytes());
        if let Some(base) = base {
            out.extend_from_slice(base.as_bytes());
        }
        out.extend_from_slice(&self.stored_sum.to_le_bytes());
        let sum = crc32fast::hash(&out[start..]);
        out.extend_from_slice(&sum.to_le_bytes());
    }

    /// Reads a header from the beginning of some bytes.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, BadHeader> {
        let mut fields = HeaderFields { bytes, at: 0 };
        if fields.take::<4>()? != MAGIC {
            return Err(BadHeader::Wrong);
        }
        let [form, ..] = fields.take::<4>()?;
        let chunk_len = fields.number()?;
        let stored_len = fields.number()?;
        let mut sketch = [0; SKETCH_LEN];
        for number in &mut sketch {
            *number = fields.number()?;
        }
        let hash = ChunkHash::from_bytes(fields.take()?);
        let form = match form {
            0 => Form::Raw,
            1 => Form::Packed,
            2 | 3 => Form::Delta { base: ChunkHash::from_bytes(fields.take()?), links: Links(form - 1) },
            _ => return Err(BadHeader::Wrong),
        };
        let stored_sum = fields.number()?;
        let sum = crc32fast::hash(&bytes[..fields.at]);
        let limit = CHUNK_BYTES_LIMIT as u64;
        if fields.number()? != sum || u64::from(chunk_len) > limit || u64::from(stored_len) > limit {
            return Err(BadHeader::Wrong);
        }
        Ok(Self { hash, form, chunk_len, stored_len, stored_sum, sketch })
    }
}

/// Reads the fields of a header one after the other.
struct HeaderFields<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl HeaderFields<'_> {
    fn take<const LEN: usize>(&mut self) -> Result<[u8; LEN], BadHeader> {
        let field = self.bytes.get(self.at..self.at + LEN).ok_or(BadHeader::Cut)?;
        self.at += LEN;
        Ok(field.try_into().expect("the range has that length"))
    }

    fn number(&mut self) -> Result<u32, BadHeader> {
        Ok(u32::from_le_bytes(self.take()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(form: Form) -> Header {
        let hash = ChunkHash::of(b"chunk");
        Header { hash, form, chunk_len: 99, stored_len: 40, stored_sum: 7, sketch: [1, 2, 3, 4, 5, 6] }
    }

    #[test]
    fn headers_round_trip_and_changed_ones_are_refused() {
        let differing = |links| Form::Delta { base: ChunkHash::of(b"base"), links };
        for form in [Form::Raw, Form::Packed, differing(Links(1)), differing(Links::MAX)] {
            let mut bytes = Vec::new();
            header(form).write(&mut bytes);
            assert_eq!(bytes.len(), header(form).header_len());
            assert!(bytes.len() <= HEADER_BYTES_MAX);
            assert_eq!(Header::read(&bytes), Ok(header(form)));
            for at in 0..bytes.len() {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x10;
                assert!(Header::read(&flipped).is_err(), "byte {at}");
                assert!(Header::read(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
    }
}
