//! What an editing tool changed, as nodes: files, hunks, lines, and the parts of a line that changed.

mod call;
mod marks;
mod patch;
#[cfg(test)]
mod tests;
mod texts;

use serde::Serialize;

pub(crate) use call::command_patch;
pub use call::{RECORDED_PATCHES, call_diffs};

/// The change of one file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// The file, as the tool names it.
    pub path: Option<String>,
    /// Its new name, if it was moved.
    pub moved_to: Option<String>,
    /// What was done.
    pub kind: FileChangeKind,
    /// How many lines were added.
    pub added: u64,
    /// How many lines were removed.
    pub removed: u64,
    /// The changed parts.
    pub hunks: Vec<Hunk>,
}

/// What was done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChangeKind {
    /// It was changed.
    Edit,
    /// It was written as a whole; whether it existed before is not known.
    Write,
    /// It is new.
    Add,
    /// It was deleted.
    Delete,
}

/// A changed part of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// The number of its first line before the change, if it is known.
    pub old_start: Option<u64>,
    /// The number of its first line after the change.
    pub new_start: Option<u64>,
    /// Where it is, in the words of the patch.
    pub place: Option<String>,
    /// Its lines.
    pub lines: Vec<DiffLine>,
}

/// A line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DiffLine {
    /// What happened to it.
    pub kind: DiffLineKind,
    /// Its text, without the line feed.
    pub parts: Vec<LinePart>,
}

/// What happened to a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DiffLineKind {
    /// It is the same.
    Context,
    /// It is new.
    Added,
    /// It is gone.
    Removed,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinePart {
    /// The text.
    pub text: String,
    /// Whether this part of a changed line is what changed.
    pub is_changed: bool,
}

impl DiffLine {
    fn new(kind: DiffLineKind, text: &str) -> Self {
        Self { kind, parts: vec![LinePart { text: text.to_owned(), is_changed: false }] }
    }

    /// Returns the whole text of the line.
    #[must_use]
    pub fn text(&self) -> String {
        self.parts.iter().map(|part| part.text.as_str()).collect()
    }
}

impl FileDiff {
    fn new(path: Option<String>, kind: FileChangeKind) -> Self {
        Self { path, moved_to: None, kind, added: 0, removed: 0, hunks: Vec::new() }
    }

    /// Counts the lines and marks the changed parts of lines.
    fn finish(mut self) -> Self {
        self.hunks.retain(|hunk| !hunk.lines.is_empty());
        let count = |kind| {
            let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
            lines.filter(|line| line.kind == kind).count() as u64
        };
        (self.added, self.removed) = (count(DiffLineKind::Added), count(DiffLineKind::Removed));
        self.hunks.iter_mut().for_each(|hunk| marks::mark(&mut hunk.lines));
        self
    }
}
