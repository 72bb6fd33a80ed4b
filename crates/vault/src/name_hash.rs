//! Hashes of names. A tombstone uses them to recognize what was forgotten, without storing its name.

use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const HASH_LEN: usize = 16;

/// The first 16 bytes of the BLAKE3 hash of a kind, a zero byte and a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NameHash([u8; HASH_LEN]);

impl NameHash {
    /// Hashes the name of a session. If the name ends in a UUID, only the UUID is hashed, so the directory of the
    /// session's files does not matter.
    #[must_use]
    pub fn of_session(session: &str) -> Self {
        let id = session.rsplit('/').next().unwrap_or_default();
        let name = Uuid::try_parse(id).map_or_else(|_| session.to_owned(), |id| id.hyphenated().to_string());
        Self::of("session", name.as_bytes())
    }

    /// Hashes the path of a file.
    #[must_use]
    pub fn of_path(path: &Path) -> Self {
        Self::of("path", path.as_os_str().as_bytes())
    }

    /// Hashes a line, or another part, of a file that several sessions share. Surrounding white space is ignored.
    #[must_use]
    pub fn of_piece(piece: &[u8]) -> Self {
        Self::of("piece", piece.trim_ascii())
    }

    fn of(kind: &str, name: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(kind.as_bytes()).update(&[0]).update(name);
        let mut hash = [0; HASH_LEN];
        hasher.finalize_xof().fill(&mut hash);
        Self(hash)
    }
}

impl fmt::Display for NameHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(out)
    }
}

impl From<NameHash> for String {
    fn from(hash: NameHash) -> Self {
        hash.to_string()
    }
}

impl TryFrom<String> for NameHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let hash = HEXLOWER.decode(text.as_bytes()).ok().and_then(|bytes| bytes.try_into().ok());
        hash.map(Self).ok_or("the hash of a name must have 32 lower-case hex digits")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_names_hash_by_uuid() {
        let uuid = "550e8400-e29b-41d4-a716-446655440000";
        let known = NameHash::of_session(uuid);
        assert_eq!(NameHash::of_session(&format!("-src-shop/{uuid}")), known);
        assert_eq!(NameHash::of_session(&uuid.to_uppercase()), known);
        assert_ne!(NameHash::of_session("-src-shop/agent-1"), NameHash::of_session("-src-web/agent-1"));
    }

    #[test]
    fn hashes_round_trip_in_canonical_form_only() {
        let hash = NameHash::of_path(Path::new("/a"));
        assert_eq!(NameHash::try_from(hash.to_string()), Ok(hash));
        for text in ["", "12", "0123456789ABCDEF0123456789abcdef", &format!("{hash}0"), &"é".repeat(16)] {
            assert!(NameHash::try_from(text.to_owned()).is_err(), "{text}");
        }
        assert_ne!(NameHash::of_path(Path::new("a")), NameHash::of_piece(b"a"));
        assert_eq!(NameHash::of_piece(b" a\n"), NameHash::of_piece(b"a"));
    }
}
