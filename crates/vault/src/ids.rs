//! Ids of sources, chunks and packs.

use std::fmt;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The namespace for ids of sources. Any UUID would do, but it must never change.
const NAMESPACE: Uuid = Uuid::from_u128(0x8f6d_3d1c_0b52_4b0e_9a51_5e2c_77a4_19d3);

/// The id of a source: one file of an agent in all its generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceId(Uuid);

impl SourceId {
    /// Derives the id of a source from its first path, so the same history gives the same ids in every store. `turn`
    /// distinguishes files that were at the same path one after the other.
    #[must_use]
    pub fn derive(path: &Path, turn: u32) -> Self {
        let mut name = path.as_os_str().as_encoded_bytes().to_vec();
        name.push(0);
        name.extend_from_slice(&turn.to_be_bytes());
        Self(Uuid::new_v5(&NAMESPACE, &name))
    }

    /// Parses the id; `None` unless it is in canonical form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_ours = text.len() == Hyphenated::LENGTH && !text.bytes().any(|byte| byte.is_ascii_uppercase());
        is_ours.then(|| Uuid::try_parse(text).ok().map(Self)).flatten()
    }
}

impl TryFrom<String> for SourceId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not the id of a source")
    }
}

impl From<SourceId> for String {
    fn from(id: SourceId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for SourceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(out)
    }
}

/// The BLAKE3 hash of a chunk's bytes. It identifies the chunk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkHash([u8; 32]);

impl ChunkHash {
    /// Hashes bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }

    /// Takes the bytes of a hash.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Parses 64 hexadecimal digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let hash = blake3::Hash::from_hex(text).ok()?;
        Some(Self(*hash.as_bytes()))
    }
}

impl fmt::Display for ChunkHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(out)
    }
}

impl fmt::Debug for ChunkHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

/// The id of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackId(Uuid);

impl PackId {
    /// Makes an id that no other pack has.
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    /// Parses the id; `None` unless it is in canonical form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        SourceId::parse(text).map(|id| Self(id.0))
    }
}

impl fmt::Display for PackId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_ids_depend_on_path_and_turn() {
        let path = Path::new("/agents/claude/projects/p/s.jsonl");
        assert_eq!(SourceId::derive(path, 0), SourceId::derive(path, 0));
        assert_ne!(SourceId::derive(path, 0), SourceId::derive(path, 1));
        assert_eq!(SourceId::derive(path, 0).to_string(), "e6dec3ee-0dbd-5b41-90a6-972c56a7cddc");
    }

    #[test]
    fn ids_round_trip_in_canonical_form_only() {
        let id = SourceId::derive(Path::new("x"), 0);
        assert_eq!(SourceId::parse(&id.to_string()), Some(id));
        assert_eq!(SourceId::parse(&id.to_string().to_uppercase()), None);
        let pack = PackId::random();
        assert_eq!(PackId::parse(&pack.to_string()), Some(pack));
        let hash = ChunkHash::of(b"x");
        assert_eq!(ChunkHash::parse(&hash.to_string()), Some(hash));
        assert_eq!(ChunkHash::parse("12"), None);
    }
}
