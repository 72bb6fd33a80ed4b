//! The diffs of a call, by the names that agents give to the arguments of their editing tools.
//!
//! | agent | arguments |
//! |---|---|
//! | Claude Code | `file_path` with `old_string` and `new_string`, with `content`, or with `edits`; `notebook_path` with `new_source` |
//! | Codex, Copilot | a patch for `apply_patch`, also in a `command`; `changes` with an object for each file |
//! | Gemini CLI | `file_path` with `old_string` and `new_string`, or with `content` |
//! | Copilot CLI | `path` with `old_str` and `new_str`, or with `file_text` |
//! | OpenCode | `filePath` with `oldString` and `newString`, or with `content` |
//! | ACP | `path` with `oldText` and `newText`, alone or in a list |

use serde_json::value::RawValue;
use steno_model::json::RawJson;
use steno_session::PayloadFields;

use super::patch::{BEGIN, apply_patch, push_line, unified};
use super::texts::{edit, write};
use super::{DiffLineKind, FileChangeKind, FileDiff, Hunk};

const PATHS: [&str; 6] = ["file_path", "filePath", "notebook_path", "absolute_path", "path", "fileName"];
const OLD: [&str; 4] = ["old_string", "oldString", "old_str", "oldText"];
const NEW: [&str; 5] = ["new_string", "newString", "new_str", "newText", "new_source"];
const WHOLE: [&str; 3] = ["content", "file_text", "fileText"];
const PATCHES: [&str; 3] = ["patch", "input", "diff"];
const LISTS: [&str; 3] = ["edits", "content", "diffs"];

/// The fields of a result that have what was changed.
pub const RECORDED_PATCHES: [&str; 2] = ["patch", "changes"];

/// How many changes of one call are read.
const CHANGES_MAX: usize = 1_000;

/// Returns what a call changes, read from its arguments and from the patch that its result has.
///
/// The patch has the numbers of lines, and for a file that is written as a whole, what was there before. It is a unified
/// diff, or Codex's object with a field for each file. No diff means that the arguments are of no known form.
#[must_use]
pub fn call_diffs(input: &RawJson, patch: Option<&RawJson>) -> Vec<FileDiff> {
    let files = argument_diffs(input);
    let recorded = patch.map(recorded_diffs).unwrap_or_default();
    if files.is_empty() {
        return recorded;
    }
    let is_only = files.len() == 1 && recorded.len() == 1;
    let is_of = |file: &FileDiff, recorded: &FileDiff| is_only || is_same_file(file, recorded);
    files
        .into_iter()
        .map(|file| match recorded.iter().find(|recorded| is_of(&file, recorded)) {
            Some(recorded) => with_recorded(file, recorded),
            None => file,
        })
        .collect()
}

/// Reads the patch of a result.
fn recorded_diffs(patch: &RawJson) -> Vec<FileDiff> {
    match patch.read::<String>() {
        Ok(text) => unified(&text, None),
        Err(_) => changes(&PayloadFields::parse(patch.as_str())),
    }
}

/// Tells whether two diffs are of one file: agents shorten paths in one place, and drop the first `/` in another.
fn is_same_file(a: &FileDiff, b: &FileDiff) -> bool {
    let name = |file: &FileDiff| {
        file.path.as_deref().map(|path| path.trim_start_matches("./").trim_start_matches('/').to_owned())
    };
    let Some((a, b)) = name(a).zip(name(b)) else { return false };
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    ends(&a, &b) || ends(&b, &a)
}

/// Returns a diff of the arguments with the hunks of the recorded patch.
fn with_recorded(file: FileDiff, recorded: &FileDiff) -> FileDiff {
    let has_old = |hunk: &Hunk| hunk.lines.iter().any(|line| line.kind != DiffLineKind::Added);
    if recorded.hunks.iter().any(has_old) {
        let kind = if file.kind == FileChangeKind::Write { FileChangeKind::Edit } else { file.kind };
        let hunks = recorded.hunks.clone();
        return FileDiff { kind, hunks, added: recorded.added, removed: recorded.removed, ..file };
    }
    // The arguments have all lines of a new file, and some agents count one too many.
    let is_new = !recorded.hunks.is_empty();
    match file.kind {
        FileChangeKind::Write if is_new => FileDiff { kind: FileChangeKind::Add, ..file },
        FileChangeKind::Write | FileChangeKind::Edit | FileChangeKind::Add | FileChangeKind::Delete => file,
    }
}

/// Returns what a call changes, read from its arguments.
fn argument_diffs(input: &RawJson) -> Vec<FileDiff> {
    if let Ok(text) = input.read::<String>() {
        return patch_text(&text, None);
    }
    let fields = PayloadFields::parse(input.as_str());
    let path = first_text(&fields, &PATHS);
    if let Some(text) = first_text(&fields, &PATCHES) {
        let files = patch_text(&text, path.as_deref());
        if !files.is_empty() {
            return files;
        }
    }
    if let Some(diff) = one_edit(&fields, path.clone()) {
        return vec![diff];
    }
    if let Some(patch) = command_patch(&fields) {
        return apply_patch(&patch);
    }
    let files = changes(&fields.object("changes"));
    if !files.is_empty() {
        return files;
    }
    LISTS
        .iter()
        .map(|name| list_of_edits(&fields, name, path.as_deref()))
        .find(|list| !list.is_empty())
        .unwrap_or_default()
}

/// Reads Codex's `changes`: an object with a field for each file.
fn changes(changes: &PayloadFields<'_>) -> Vec<FileDiff> {
    let files = changes.names().into_iter().take(CHANGES_MAX).map(|path| {
        let change = changes.object(&path);
        change_of(&change, path)
    });
    files.flatten().collect()
}

/// Returns the patch in a command, `apply_patch <<EOF`, which Codex carries out itself.
pub(crate) fn command_patch(fields: &PayloadFields<'_>) -> Option<String> {
    let command = ["command", "cmd"].iter().find_map(|name| fields.json(name))?;
    let words = || command.read::<Vec<String>>().ok()?.pop();
    let script = command.read::<String>().ok().or_else(words)?;
    let start = script.find(BEGIN)?;
    Some(script[start..].to_owned())
}

fn first_text(fields: &PayloadFields<'_>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| fields.text(name)).map(std::borrow::Cow::into_owned)
}

fn patch_text(text: &str, path: Option<&str>) -> Vec<FileDiff> {
    if text.trim_start().starts_with(BEGIN) { apply_patch(text) } else { unified(text, path) }
}

/// Reads one replacement, or one file as a whole.
fn one_edit(fields: &PayloadFields<'_>, path: Option<String>) -> Option<FileDiff> {
    let (old, new) = (first_text(fields, &OLD), first_text(fields, &NEW));
    if old.is_some() || new.is_some() {
        return Some(edit(path, &old.unwrap_or_default(), &new.unwrap_or_default()));
    }
    let whole = first_text(fields, &WHOLE)?;
    Some(write(Some(path?), FileChangeKind::Write, &whole))
}

/// Reads several replacements; those of one file are one diff.
fn list_of_edits(fields: &PayloadFields<'_>, name: &str, path: Option<&str>) -> Vec<FileDiff> {
    let Some(list) = fields.json(name) else { return Vec::new() };
    let items = list.read::<Vec<&RawValue>>().unwrap_or_default();
    let mut files: Vec<FileDiff> = Vec::new();
    for item in items.into_iter().take(CHANGES_MAX) {
        let fields = PayloadFields::parse(item.get());
        let path = first_text(&fields, &PATHS).or_else(|| path.map(str::to_owned));
        let Some(next) = one_edit(&fields, path) else { continue };
        match files.iter_mut().find(|file| file.path == next.path && file.kind == next.kind) {
            Some(file) => {
                file.added += next.added;
                file.removed += next.removed;
                file.hunks.extend(next.hunks);
            }
            None => files.push(next),
        }
    }
    files
}

/// Reads one entry of Codex's `changes`: `{"add": {"content": …}}`, or `{"type": "update", "unified_diff": …}`.
fn change_of(change: &PayloadFields<'_>, path: String) -> Option<FileDiff> {
    let kinds =
        [("add", FileChangeKind::Add), ("update", FileChangeKind::Edit), ("delete", FileChangeKind::Delete)];
    let (kind, inner) = kinds.iter().find_map(|(name, kind)| {
        let is_named =
            ["type", "kind"].iter().any(|field| change.text(field).is_some_and(|text| text == *name));
        if is_named {
            return Some((*kind, None));
        }
        change.json(name).map(|inner| (*kind, Some(inner)))
    })?;
    let inner = inner.as_ref().map(|inner| PayloadFields::parse(inner.as_str()));
    let fields = inner.as_ref().unwrap_or(change);
    let moved_to = fields.text("move_path").map(std::borrow::Cow::into_owned);
    let text = first_text(fields, &["unified_diff", "diff", "content"]).unwrap_or_default();
    let mut diff = match kind {
        FileChangeKind::Edit => unified(&text, Some(&path)).into_iter().next()?,
        FileChangeKind::Add | FileChangeKind::Write => write(Some(path.clone()), kind, &text),
        FileChangeKind::Delete => {
            let mut diff = FileDiff::new(Some(path.clone()), kind);
            diff.hunks.push(Hunk { old_start: Some(1), new_start: Some(0), ..Hunk::default() });
            text.lines().for_each(|line| push_line(&mut diff, &format!("-{line}")));
            diff.finish()
        }
    };
    (diff.path, diff.moved_to) = (Some(path), moved_to);
    Some(diff)
}
