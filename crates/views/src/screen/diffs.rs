//! Draws diffs: numbers of lines where they are known, signs, and marks inside changed lines.

use super::call_words::relative;
use super::segments::{Line, Segment};
use super::{ScreenTone, one};
use crate::nodes::{DiffLine, DiffLineKind, FileChangeKind, FileDiff, Hunk};
use crate::text_format::thousands;

/// Returns how many lines a diff adds and removes, as `+9 −4`.
pub(super) fn counts(diffs: &[FileDiff]) -> Line {
    let sum = |part: fn(&FileDiff) -> u64| diffs.iter().map(part).sum::<u64>();
    let (added, removed) = (sum(|diff| diff.added), sum(|diff| diff.removed));
    let mut line = Line::new();
    if added > 0 {
        line.push(Segment::new(ScreenTone::Added, &format!("+{}", thousands(added))));
    }
    if removed > 0 {
        let gap = if added > 0 { " " } else { "" };
        line.push(Segment::new(ScreenTone::Removed, &format!("{gap}−{}", thousands(removed))));
    }
    line
}

/// Returns what happened to a file, if it is more than a change.
pub(super) fn kind_word(diff: &FileDiff) -> Option<&'static str> {
    match diff.kind {
        FileChangeKind::Edit | FileChangeKind::Write => None,
        FileChangeKind::Add => Some("new"),
        FileChangeKind::Delete => Some("deleted"),
    }
}

/// Returns the lines of the diffs of a call. Several files have headings, with paths relative to a directory.
pub(super) fn diff_lines(diffs: &[FileDiff], directory: Option<&str>) -> Vec<Line> {
    let mut lines = Vec::new();
    for diff in diffs {
        if diffs.len() > 1 {
            lines.push(heading(diff, directory));
        }
        let columns = number_columns(diff);
        for (number, hunk) in diff.hunks.iter().enumerate() {
            if number > 0 || hunk.place.is_some() {
                let place = hunk.place.as_deref().map(|place| format!(" {place}")).unwrap_or_default();
                lines.push(one(ScreenTone::Frame, &format!("⋯{place}")));
            }
            lines.extend(hunk_lines(hunk, columns));
        }
    }
    lines
}

fn heading(diff: &FileDiff, directory: Option<&str>) -> Line {
    let path = diff.path.as_deref().map_or_else(|| "a file".to_owned(), |path| relative(path, directory));
    let mut line = one(ScreenTone::Call, &path);
    let moved_to = diff.moved_to.as_deref().map(|path| format!(" → {}", relative(path, directory)));
    line.extend(moved_to.map(|words| Segment::new(ScreenTone::Call, &words)));
    line.extend(kind_word(diff).map(|word| Segment::new(ScreenTone::Frame, &format!("  {word}"))));
    line.push(Segment::new(ScreenTone::Plain, "  "));
    line.extend(counts(std::slice::from_ref(diff)));
    line
}

/// Returns the columns of the largest number of a line, so that all hunks of a file are aligned.
fn number_columns(diff: &FileDiff) -> usize {
    let last = |start: Option<u64>, other: DiffLineKind, hunk: &Hunk| {
        let len = hunk.lines.iter().filter(|line| line.kind != other).count() as u64;
        Some(start?.saturating_add(len).saturating_sub(1))
    };
    let lasts = diff.hunks.iter().flat_map(|hunk| {
        [last(hunk.old_start, DiffLineKind::Added, hunk), last(hunk.new_start, DiffLineKind::Removed, hunk)]
    });
    lasts.flatten().max().map_or(0, |last| last.to_string().len())
}

fn hunk_lines(hunk: &Hunk, columns: usize) -> Vec<Line> {
    let (mut old, mut new) = (hunk.old_start, hunk.new_start);
    let mut lines = Vec::with_capacity(hunk.lines.len());
    for line in &hunk.lines {
        let number = match line.kind {
            DiffLineKind::Removed => old,
            DiffLineKind::Context | DiffLineKind::Added => new.or(old),
        };
        let step = |number: &mut Option<u64>| *number = number.map(|number| number.saturating_add(1));
        if line.kind != DiffLineKind::Added {
            step(&mut old);
        }
        if line.kind != DiffLineKind::Removed {
            step(&mut new);
        }
        let number = number.map(|number| Segment::new(ScreenTone::Frame, &format!("{number:>columns$} ")));
        lines.push(number.into_iter().chain(one_line(line)).collect());
    }
    lines
}

fn one_line(line: &DiffLine) -> Line {
    let (sign, tone, part_tone) = match line.kind {
        DiffLineKind::Context => ("  ", ScreenTone::Frame, ScreenTone::Frame),
        DiffLineKind::Added => ("+ ", ScreenTone::Added, ScreenTone::AddedPart),
        DiffLineKind::Removed => ("- ", ScreenTone::Removed, ScreenTone::RemovedPart),
    };
    let parts = line.parts.iter().map(|part| {
        let tone = if part.is_changed { part_tone } else { tone };
        Segment::new(tone, &part.text)
    });
    std::iter::once(Segment::new(tone, sign)).chain(parts).collect()
}
