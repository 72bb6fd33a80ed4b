//! Why something was not found, or cannot be read.

use std::io;
use std::path::PathBuf;

use steno_journal::Error as JournalError;
use steno_vault::Error as VaultError;

use crate::{Candidate, FileError, TargetKind};

/// Why something was not found, or cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no store to look in.
    #[error("there is no store")]
    NoStore,
    /// The index cannot be used.
    #[error(transparent)]
    Index(#[from] steno_index::Error),
    /// A regular expression cannot be used.
    #[error(transparent)]
    Pattern(#[from] crate::PatternError),
    /// A text that cannot name anything.
    #[error("`{text}` is not a {want}")]
    InvalidName {
        /// The text.
        text: String,
        /// What it should name.
        want: TargetKind,
    },
    /// A text without a match.
    #[error("no {want} begins or ends with `{text}`")]
    NotFound {
        /// The text.
        text: String,
        /// What it should name.
        want: TargetKind,
    },
    /// There are fewer sessions.
    #[error("`{text}` does not exist: the store has {sessions} sessions")]
    LastOutOfRange {
        /// The text.
        text: String,
        /// How many there are.
        sessions: usize,
    },
    /// A text with several matches.
    #[error("`{text}` names {} {want}s", candidates.len())]
    Ambiguous {
        /// The text.
        text: String,
        /// What it should name.
        want: TargetKind,
        /// All matches.
        candidates: Vec<Candidate>,
    },
    /// A path that cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// Its target, if it is a link.
        link: Option<PathBuf>,
        /// The error of the system.
        source: io::Error,
    },
    /// A path that is neither a file nor a directory.
    #[error("`{}` is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// A session that is stored as files without events.
    #[error("session `{session}` is stored as files without events")]
    WithoutEvents {
        /// The session, as its agent names it.
        session: String,
    },
    /// An error of the journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An error of a file at a path.
    #[error(transparent)]
    File(#[from] FileError),
    /// An error of the vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}
