//! Errors of writing a spine.

use std::path::PathBuf;

use steno_model::ThreadId;

/// The reason why a spine was not written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The spine was made from another source, and the same records would be in it twice.
    #[error(
        "the spine of thread {thread} was recorded from `{has}`; recording `{wanted}` too would duplicate it"
    )]
    OtherSource {
        /// The thread.
        thread: ThreadId,
        /// The source of the spine.
        has: String,
        /// The other source.
        wanted: String,
    },
    /// The thread was forgotten, and must not be recorded again.
    #[error("the session of thread {thread} was forgotten, and is not recorded again")]
    Forgotten {
        /// The thread.
        thread: ThreadId,
    },
    /// A forgotten spine cannot be read or deleted.
    #[error("cannot check whether thread {thread} was forgotten")]
    Forgetting {
        /// The thread.
        thread: ThreadId,
        /// The cause.
        #[source]
        source: crate::forget::ForgetError,
    },
    /// The source names no thread.
    #[error("`{}` does not name a thread", path.display())]
    NoThread {
        /// The source.
        path: PathBuf,
    },
    /// The source cannot be read.
    #[error("cannot read `{}`", path.display())]
    Source {
        /// The source, or a file of it.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The file of a connection cannot be written.
    #[error("cannot write `{}`", path.display())]
    Spool {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The library failed to read a session file.
    #[error(transparent)]
    Library(#[from] steno_library::Error),
    /// The journal refused a record.
    #[error("cannot write the spine of thread {thread}")]
    Journal {
        /// The thread.
        thread: ThreadId,
        /// Its error.
        #[source]
        source: steno_journal::Error,
    },
}

impl Error {
    /// Returns true if another process writes the spine.
    #[must_use]
    pub fn is_held(&self) -> bool {
        match self {
            Self::Journal { source, .. } => matches!(source, steno_journal::Error::Locked { .. }),
            Self::Forgetting { source, .. } => source.is_held(),
            Self::OtherSource { .. }
            | Self::Forgotten { .. }
            | Self::NoThread { .. }
            | Self::Source { .. }
            | Self::Library(_)
            | Self::Spool { .. } => false,
        }
    }
}
