//! Errors of following a file.

use std::io;
use std::path::{Path, PathBuf};

/// Why a file could not be read. The next read tries again.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path is not a regular file.
    #[error("`{}` is {found}, not a regular file", path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// The operating system reported an error.
    #[error("cannot {doing} `{}`", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Error {
    pub(super) fn system(path: &Path, doing: &'static str, source: io::Error) -> Self {
        Self::System { path: path.to_owned(), doing, source }
    }
}
