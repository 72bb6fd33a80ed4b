//! The role of a file in its session, as manifests and tombstones name it.

use serde::{Deserialize, Serialize};

/// The role of a file in its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Role {
    /// The session's own record.
    Transcript,
    /// Another file that belongs to the session.
    Sidecar,
    /// A file that belongs to no single session.
    Shared,
    /// An unknown role, kept as it is.
    Other(String),
}

impl Role {
    /// Returns the word that is stored in files.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Transcript => "transcript",
            Self::Sidecar => "sidecar",
            Self::Shared => "shared",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for Role {
    fn from(word: String) -> Self {
        match word.as_str() {
            "transcript" => Self::Transcript,
            "sidecar" => Self::Sidecar,
            "shared" => Self::Shared,
            _ => Self::Other(word),
        }
    }
}

impl From<Role> for String {
    fn from(role: Role) -> Self {
        match role {
            Role::Other(word) => word,
            Role::Transcript | Role::Sidecar | Role::Shared => role.as_str().to_owned(),
        }
    }
}
