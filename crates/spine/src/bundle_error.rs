//! Errors of writing a bundle.

use std::io;
use std::path::{Path, PathBuf};

use steno_journal::Error as JournalError;
use steno_model::ThreadId;

/// The reason why a bundle was not written.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The name is that of another format.
    #[error("a bundle cannot be written to `{}`", path.display())]
    Name {
        /// The path.
        path: PathBuf,
    },
    /// The path has no name.
    #[error("the output has no name")]
    NoName,
    /// The path exists.
    #[error("`{}` already exists; nothing was written", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// The spine has an error.
    #[error("the spine of `{thread}` is not valid; nothing was written")]
    InvalidSpine {
        /// The thread.
        thread: ThreadId,
    },
    /// The spine has a segment that a crash left open.
    #[error("the spine of `{thread}` was left open by a crash; nothing was written")]
    OpenSegment {
        /// The thread.
        thread: ThreadId,
    },
    /// The spine has no sealed segment.
    #[error("the spine of `{thread}` has no sealed segment yet")]
    NoSegment {
        /// The thread.
        thread: ThreadId,
    },
    /// The bundle did not pass its check.
    #[error("the written bundle is not valid, and was removed")]
    WrittenInvalid,
    /// An operation of the system failed.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

impl BundleError {
    pub(super) fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> Self + Copy {
        move |source| Self::Io { action, path: path.to_owned(), source }
    }

    pub(super) fn naming(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::AlreadyExists {
            return Self::Exists { path: path.to_owned() };
        }
        Self::Io { action: "name", path: path.to_owned(), source }
    }
}
