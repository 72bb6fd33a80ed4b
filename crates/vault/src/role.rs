//! What a file is to its session, in the words of manifests and tombstones.

use serde::{Deserialize, Serialize};

/// What a file is to its session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Role {
    /// The session's own record.
    Transcript,
    /// Something else that belongs to it.
    Sidecar,
    /// What belongs to no session.
    Shared,
    /// A word that we do not know, kept as it is.
    Other(String),
}

impl Role {
    /// Returns the word that files have for it.
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
