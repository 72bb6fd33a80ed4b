//! The diffs of a call, by the names that agents give to the arguments of their editing tools.
//!
//! | agent | arguments |
//! |---|---|
//! | Claude Code | `file_path` with `old_string` and `new_string`, with `content`, or with `edits`; `notebook_path` with `new_source` |
//! | Codex, Copilot | a patch for `apply_patch`; `changes` with an object for each file |
//! | Gemini CLI | `file_path` with `old_string` and `new_string`, or with `content` |
//! | Copilot CLI | `path` with `old_str` and `new_str`, or with `file_text` |
//! | OpenCode | `filePath` with `oldString` and `newString`, or with `content` |
//! | ACP | `path` with `oldText` and `newText`, alone or in a list |

use serde_json::value::RawValue;
use steno_model::json::RawJson;
use steno_session::PayloadFields;

use super::patch::{BEGIN, apply_patch, push_line, unified};
use super::texts::{edit, write};
use super::{FileChangeKind, FileDiff, Hunk};

const PATHS: [&str; 6] = ["file_path", "filePath", "notebook_path", "absolute_path", "path", "fileName"];
const OLD: [&str; 4] = ["old_string", "oldString", "old_str", "oldText"];
const NEW: [&str; 5] = ["new_string", "newString", "new_str", "newText", "new_source"];
const WHOLE: [&str; 3] = ["content", "file_text", "fileText"];
const PATCHES: [&str; 3] = ["patch", "input", "diff"];
const LISTS: [&str; 3] = ["edits", "content", "diffs"];

/// How many changes of one call are read.
const CHANGES_MAX: usize = 1_000;

/// Returns what a call changes, read from its arguments, or from the patch that its result has.
///
/// `hunks` is the list that Claude Code records with a result: it has the numbers of the lines. No diff means that
/// the arguments are of no known form.
#[must_use]
pub fn call_diffs(input: &RawJson, hunks: Option<&RawJson>) -> Vec<FileDiff> {
    if let Ok(text) = input.read::<String>() {
        return patch_text(&text, None);
    }
    let fields = PayloadFields::parse(input.as_str());
    let path = first_text(&fields, &PATHS);
    if let Some(diff) = hunks.and_then(|hunks| structured(path.clone(), hunks)) {
        return vec![diff];
    }
    if let Some(text) = first_text(&fields, &PATCHES) {
        let files = patch_text(&text, path.as_deref());
        if !files.is_empty() {
            return files;
        }
    }
    if let Some(diff) = one_edit(&fields, path.clone()) {
        return vec![diff];
    }
    let changes = fields.object("changes");
    let files = changes.names().into_iter().take(CHANGES_MAX).map(|path| {
        let change = changes.object(&path);
        change_of(&change, path)
    });
    let files: Vec<FileDiff> = files.flatten().collect();
    if !files.is_empty() {
        return files;
    }
    LISTS
        .iter()
        .map(|name| list_of_edits(&fields, name, path.as_deref()))
        .find(|list| !list.is_empty())
        .unwrap_or_default()
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
            text.lines().for_each(|line| push_line(&mut diff, &format!("-{line}")));
            diff.finish()
        }
    };
    (diff.path, diff.moved_to) = (Some(path), moved_to);
    Some(diff)
}

/// Reads the hunks that Claude Code records: `[{"oldStart": 12, "newStart": 12, "lines": [" a", "-b", "+c"]}]`.
fn structured(path: Option<String>, list: &RawJson) -> Option<FileDiff> {
    let hunks = list.read::<Vec<&RawValue>>().ok().filter(|hunks| !hunks.is_empty())?;
    let mut diff = FileDiff::new(path, FileChangeKind::Edit);
    for hunk in hunks.into_iter().take(CHANGES_MAX) {
        let fields = PayloadFields::parse(hunk.get());
        let number = |name| fields.json(name).and_then(|number| number.read::<u64>().ok());
        let (old_start, new_start) = (number("oldStart"), number("newStart"));
        diff.hunks.push(Hunk { old_start, new_start, ..Hunk::default() });
        for line in fields.items("lines") {
            push_line(&mut diff, &steno_model::json::text_of(line)?);
        }
    }
    Some(diff.finish())
}
