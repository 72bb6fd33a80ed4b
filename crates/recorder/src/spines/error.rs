//! Why a spine could not be written.

use std::path::PathBuf;

use steno_model::ThreadId;

/// Why a spine could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The spine was made from something else, which would say everything twice.
    #[error(
        "the spine of thread {thread} was recorded from `{has}`; recording `{wanted}` too would duplicate it"
    )]
    OtherSource {
        /// The thread.
        thread: ThreadId,
        /// What it was made from.
        has: String,
        /// What it was to be made from.
        wanted: String,
    },
    /// The thread was forgotten, and is not to be recorded again.
    #[error("the session of thread {thread} was forgotten, and is not recorded again")]
    Forgotten {
        /// The thread.
        thread: ThreadId,
    },
    /// What was forgotten cannot be read, or not be taken away.
    #[error("cannot check whether thread {thread} was forgotten")]
    Forgetting {
        /// The thread.
        thread: ThreadId,
        /// Why.
        #[source]
        source: crate::forget::ForgetError,
    },
    /// What the source says of itself names no thread.
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
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// What was said over a connection cannot be written down.
    #[error("cannot write `{}`", path.display())]
    Spool {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// What the library says of a session file.
    #[error(transparent)]
    Library(#[from] steno_library::Error),
    /// The journal says no.
    #[error("cannot write the spine of thread {thread}")]
    Journal {
        /// The thread.
        thread: ThreadId,
        /// What it says.
        #[source]
        source: steno_journal::Error,
    },
}

impl Error {
    /// Tells whether another process writes the spine.
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
