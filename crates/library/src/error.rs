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
    /// A text that can name nothing.
    #[error("`{text}` is no {want}")]
    InvalidName {
        /// The text.
        text: String,
        /// What it was to name.
        want: TargetKind,
    },
    /// A text that could name something, and does not.
    #[error("no {want} begins or ends with `{text}`")]
    NotFound {
        /// The text.
        text: String,
        /// What it was to name.
        want: TargetKind,
    },
    /// There are not as many sessions.
    #[error("there is no `{text}`: the store has {sessions} sessions")]
    LastOutOfRange {
        /// The text.
        text: String,
        /// How many there are.
        sessions: usize,
    },
    /// A text that names several.
    #[error("`{text}` names {} {want}s", candidates.len())]
    Ambiguous {
        /// The text.
        text: String,
        /// What it was to name.
        want: TargetKind,
        /// All that it names.
        candidates: Vec<Candidate>,
    },
    /// A path at which there is nothing that could be read.
    #[error("cannot read `{}`: {source}", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
        /// Where it leads, if it is a link.
        link: Option<PathBuf>,
        /// What the system says.
        source: io::Error,
    },
    /// A path of something that is no file and no directory.
    #[error("`{}` is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// A session that the archive has as files, without events.
    #[error("the archive has session `{session}` as files, without events")]
    WithoutEvents {
        /// The session, as its agent calls it.
        session: String,
    },
    /// What the journal says.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// What is wrong with a file at a path.
    #[error(transparent)]
    File(#[from] FileError),
    /// What the vault says.
    #[error(transparent)]
    Vault(#[from] VaultError),
}
