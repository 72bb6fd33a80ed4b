//! What lists say of a call.

use steno_model::json::RawJson;
use steno_session::{Call, Effect, PayloadFields};

use crate::nodes::command_patch;

/// What lists say of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallDigest {
    /// The id that the agent gave it.
    pub id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The class of the tool.
    pub class: Option<String>,
    /// The exit code, if it is known.
    pub exit_code: Option<i64>,
    /// The time from the call to its result.
    pub duration_ms: Option<i64>,
    /// The files that it changed.
    pub paths: Vec<String>,
}

impl CallDigest {
    /// Returns the digest of a call.
    #[must_use]
    pub fn of(call: &Call) -> Self {
        let result = call.result.as_ref();
        let began = call.time.instant();
        let ended = result.and_then(|result| result.time.as_ref()?.instant());
        Self {
            id: call.id.as_ref().map(|id| id.to_text().into_owned()),
            tool: call.name.as_ref().map(|name| name.to_text().into_owned()).unwrap_or_default(),
            class: call.class.as_ref().map(|class| class.to_text().into_owned()),
            exit_code: call.exit_code(),
            duration_ms: began
                .zip(ended)
                .map(|(began, ended)| ended.as_millisecond() - began.as_millisecond()),
            paths: if call.effect() == Effect::Change {
                paths_changed(call.input.as_ref())
            } else {
                Vec::new()
            },
        }
    }
}

/// The arguments that name the file of an edit.
const PATH_FIELDS: [&str; 5] = ["file_path", "filePath", "notebook_path", "absolute_path", "path"];
/// The arguments that have a patch.
const PATCH_FIELDS: [&str; 3] = ["patch", "input", "diff"];
/// The lines of Codex's patches that name a file.
const PATCH_HEADS: [&str; 4] = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "];

/// Returns the files that a call to an editing tool names in its arguments, each once.
#[must_use]
pub fn paths_changed(input: Option<&RawJson>) -> Vec<String> {
    let Some(input) = input else { return Vec::new() };
    let mut paths = Vec::new();
    if let Ok(patch) = input.read::<String>() {
        push_patch(&patch, &mut paths);
        return paths;
    }
    let fields = PayloadFields::parse(input.as_str());
    paths.extend(PATH_FIELDS.iter().find_map(|name| fields.text(name)).map(std::borrow::Cow::into_owned));
    for patch in PATCH_FIELDS.iter().filter_map(|name| fields.text(name)) {
        push_patch(&patch, &mut paths);
    }
    if let Some(patch) = command_patch(&fields) {
        push_patch(&patch, &mut paths);
    }
    // Codex's own report of a change is an object with a field per file.
    let changes = fields.object("changes");
    for path in changes.names() {
        push_once(path, &mut paths);
    }
    paths
}

fn push_patch(patch: &str, paths: &mut Vec<String>) {
    for line in patch.lines() {
        if let Some(path) = PATCH_HEADS.iter().find_map(|head| line.strip_prefix(head)) {
            push_once(path.trim().to_owned(), paths);
        }
    }
}

fn push_once(path: String, paths: &mut Vec<String>) {
    if !paths.contains(&path) {
        paths.push(path);
    }
}
