//! What stood in the way of finding files: told to whoever asked, and never a reason to stop.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use super::layout::DEPTH_MAX;

/// Something at a path that could not be looked at, or that is not as it should be.
///
/// As text it is one sentence without its cause, which is its source.
#[derive(Debug)]
pub struct Problem {
    /// Where.
    pub path: PathBuf,
    /// What is the matter.
    pub why: Why,
}

/// What is the matter with a path. As text it goes on after the path.
#[derive(Debug, thiserror::Error)]
pub enum Why {
    /// A variable names a home that is not there.
    #[error("is named by `{variable}` and is not there")]
    NotThere {
        /// The variable.
        variable: &'static str,
    },
    /// A variable names a home, and something else than a directory is there.
    #[error("is named by `{variable}` and is no directory")]
    NoDirectory {
        /// The variable.
        variable: &'static str,
    },
    /// A file or directory cannot be read.
    #[error("cannot be read")]
    Unreadable(#[source] io::Error),
    /// A link, where links are not followed.
    #[error("is a link, which is not followed")]
    Link,
    /// Neither a file nor a directory, in the place of a file.
    #[error("is not a regular file")]
    NotRegular,
    /// A directory deeper than [`DEPTH_MAX`]; what is below it was not looked at.
    #[error("lies more than {DEPTH_MAX} directories deep and is not looked into")]
    TooDeep,
    /// A settings file that is longer than any is.
    #[error("has more than {size_bytes_max} bytes, which no settings have")]
    TooLong {
        /// How much would have been read.
        size_bytes_max: u64,
    },
    /// A settings file that cannot be parsed.
    #[error("is no JSON that its agent could read")]
    NotJson(#[source] serde_json::Error),
    /// A setting that has no value its agent would take.
    #[error("sets `{key}` to `{value}`: {effect}")]
    BadSetting {
        /// The setting.
        key: &'static str,
        /// What stands there, as JSON.
        value: String,
        /// What the agent makes of it.
        effect: &'static str,
    },
}

impl Problem {
    pub(super) fn new(path: &Path, why: Why) -> Self {
        Self { path: path.to_owned(), why }
    }

    pub(super) fn unreadable(path: &Path, error: io::Error) -> Self {
        Self::new(path, Why::Unreadable(error))
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
