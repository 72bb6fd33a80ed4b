//! Problems of a listing: reported to the caller, and never a reason to stop.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::layout::DEPTH_MAX;

/// A path that could not be read, or that is not as it should be.
///
/// As text it is one sentence without its cause, which is the error source.
#[derive(Debug)]
pub struct Problem {
    /// The path.
    pub path: PathBuf,
    /// The problem.
    pub why: ProblemKind,
}

/// The problem of a path. As text it continues after the path.
#[derive(Debug, thiserror::Error)]
pub enum ProblemKind {
    /// A variable names a home that does not exist.
    #[error("is named by `{variable}` and does not exist")]
    NotThere {
        /// The variable.
        variable: &'static str,
    },
    /// A variable names a home that is not a directory.
    #[error("is named by `{variable}` and is not a directory")]
    NoDirectory {
        /// The variable.
        variable: &'static str,
    },
    /// A file or directory cannot be read.
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    /// A link, where links are not followed.
    #[error("is a link and is not followed")]
    Link,
    /// Neither a file nor a directory, where a file should be.
    #[error("is not a regular file")]
    NotRegular,
    /// A directory deeper than [`DEPTH_MAX`]; its content was not listed.
    #[error("is more than {DEPTH_MAX} directories deep and is not listed")]
    TooDeep,
    /// A settings file that is too long.
    #[error("is too large for a settings file: more than {size_bytes_max} bytes")]
    TooLong {
        /// The limit.
        size_bytes_max: u64,
    },
    /// A settings file that cannot be parsed.
    #[error("is not JSON that its agent can read")]
    NotJson(#[source] serde_json::Error),
    /// A setting with a value that its agent does not accept.
    #[error("sets `{key}` to `{value}`: {effect}")]
    BadSetting {
        /// The setting.
        key: &'static str,
        /// The value, as JSON.
        value: String,
        /// What the agent does with it.
        effect: &'static str,
    },
}

impl Problem {
    pub(super) fn new(path: &Path, why: ProblemKind) -> Self {
        Self { path: path.to_owned(), why }
    }

    pub(super) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::new(path, ProblemKind::Unreadable(error))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` {}", self.path.display(), self.why)
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.why.source()
    }
}
