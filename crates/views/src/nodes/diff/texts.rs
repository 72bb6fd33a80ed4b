//! The difference of two texts.

use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::{DiffLine, DiffLineKind, FileChangeKind, FileDiff, Hunk};

/// How many lines around a change are shown.
const CONTEXT_LINES: usize = 3;
/// How many lines are compared: beyond it, all old lines are removed and all new ones added.
pub(super) const LINES_MAX: usize = 6_000;

/// Returns the difference of two texts that replace each other in a file.
pub(super) fn edit(path: Option<String>, old: &str, new: &str) -> FileDiff {
    let mut diff = FileDiff::new(path, FileChangeKind::Edit);
    diff.hunks = hunks(old, new);
    diff.finish()
}

/// Returns a file that is written as a whole.
pub(super) fn write(path: Option<String>, kind: FileChangeKind, text: &str) -> FileDiff {
    let lines = text.lines().map(|line| DiffLine::new(DiffLineKind::Added, line)).collect();
    let mut diff = FileDiff::new(path, kind);
    let old_start = (kind == FileChangeKind::Add).then_some(0);
    diff.hunks.push(Hunk { old_start, new_start: Some(1), lines, ..Hunk::default() });
    diff.finish()
}

pub(super) fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let ops = if old.len() + new.len() > LINES_MAX {
        vec![DiffOp::Replace { old_index: 0, old_len: old.len(), new_index: 0, new_len: new.len() }]
    } else {
        capture_diff_slices(Algorithm::Myers, &old, &new)
    };
    let hunk = |ops: Vec<DiffOp>| Hunk { lines: lines(&ops, &old, &new), ..Hunk::default() };
    group_diff_ops(ops, CONTEXT_LINES).into_iter().map(hunk).collect()
}

fn lines(ops: &[DiffOp], old: &[&str], new: &[&str]) -> Vec<DiffLine> {
    let mut lines = Vec::new();
    for op in ops {
        let (old, new) = (&old[op.old_range()], &new[op.new_range()]);
        if matches!(op, DiffOp::Equal { .. }) {
            lines.extend(old.iter().map(|line| DiffLine::new(DiffLineKind::Context, line)));
        } else {
            lines.extend(old.iter().map(|line| DiffLine::new(DiffLineKind::Removed, line)));
            lines.extend(new.iter().map(|line| DiffLine::new(DiffLineKind::Added, line)));
        }
    }
    lines
}
