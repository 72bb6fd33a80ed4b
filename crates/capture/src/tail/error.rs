//! What can be wrong with a file that is followed.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be looked at. The next look tries again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is something at the path, and it is not a regular file.
    #[error("`{}` is {found} and not a regular file", path.display())]
    NotRegular {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: &'static str,
    },
    /// The system would not let us.
    #[error("cannot {doing} `{}`", path.display())]
    System {
        /// Which file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// I/O errors.
        #[source]
        source: io::Error,
    },
}

impl Error {
    pub(super) fn system(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::System { path: path.to_owned(), doing, source }
    }
}
