//! Errors of reading an agent's file, or a transcript at a path.

use std::io;
use std::path::{Path, PathBuf};

use steno_adapters::{NoSession, Surface};
use steno_disk::NotRegular;

use super::surface_name;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The system refused.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    Io {
        /// The operation, as a verb.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path is not a regular file.
    #[error("`{}` is not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
    },
    /// It is a file of Stenograph, but not a session.
    #[error("`{}` is {}, not a session file", path.display(), no_session_words(*what))]
    NoSession {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: NoSession,
    },
    /// It is an agent's file that no adapter reads yet.
    #[error("`{}` is {}, which is not supported yet", path.display(), surface_name(*surface))]
    NotReadYet {
        /// The file.
        path: PathBuf,
        /// What it is.
        surface: Surface,
    },
    /// It is compressed in an unsupported format.
    #[error("`{}` is compressed with gzip, which is not supported", path.display())]
    Gzip {
        /// The file.
        path: PathBuf,
    },
    /// It is text in another encoding.
    #[error("`{}` is neither a transcript nor a supported agent's file: it is UTF-16", path.display())]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// It is a transcript without events.
    #[error("`{}` has no events", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Its format is not known.
    #[error("`{path}` is neither a transcript nor a supported agent's file")]
    Unknown {
        /// The file, as it was named.
        path: String,
    },
    /// Some of several paths could not be read; each was logged.
    #[error("could not read {unread} of {}", steno_views::count(*total, "path"))]
    Unread {
        /// How many could not.
        unread: u64,
        /// How many there are.
        total: u64,
    },
}

impl FileError {
    /// Returns the error of an operation on a path.
    #[must_use]
    pub fn of(doing: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        match NotRegular::inside(&source) {
            Some(_) => Self::NotRegular { path },
            None => Self::Io { doing, path, source },
        }
    }
}

fn no_session_words(what: NoSession) -> &'static str {
    match what {
        NoSession::Archive => "a tar archive",
        NoSession::Spine => "a segment of a trace spine",
    }
}
