//! The source of an adapter: a file or a stream.

use std::ffi::OsStr;
use std::path::Path;

use steno_model::json::JsonString;

/// What an adapter knows about its source besides the bytes.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in evidence.
    pub id: JsonString,
    /// Its file name without directories, if it is a file; some providers have ids only there.
    pub file_name: Option<String>,
    /// The name of the directory that the file is in; Gemini's subagents name their parent only there.
    pub directory: Option<String>,
    /// The directory that the agent worked in, if a file beside this one has it; Gemini's chats have only its hash.
    pub working_dir: Option<String>,
}

impl Source {
    /// Makes a source with an id only.
    #[must_use]
    pub fn named(id: &str) -> Self {
        Self { id: id.into(), file_name: None, directory: None, working_dir: None }
    }

    /// Makes the source of a file.
    #[must_use]
    pub fn of_file(id: &str, path: &Path) -> Self {
        let text = |name: &OsStr| name.to_string_lossy().into_owned();
        let directory = path.parent().and_then(Path::file_name).map(text);
        Self { id: id.into(), file_name: path.file_name().map(text), directory, working_dir: None }
    }
}
