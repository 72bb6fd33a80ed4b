//! Marks inside changed lines: which words of a line changed.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{DiffLine, DiffLineKind, LinePart};

/// The longest line in which parts are marked.
const LINE_BYTES_MAX: usize = 1_000;
/// The most lines of one block of changes that are compared.
const LINES_MAX: usize = 60;

/// Marks what changed in each removed line that an added line replaces.
pub(super) fn mark(lines: &mut [DiffLine]) {
    let mut start = 0;
    while start < lines.len() {
        let removed = run(&lines[start..], DiffLineKind::Removed);
        let added = run(&lines[start + removed..], DiffLineKind::Added);
        if removed > 0 && added > 0 && removed + added <= LINES_MAX {
            let (before, after) = lines[start..start + removed + added].split_at_mut(removed);
            pair_up(before, after);
        }
        start += (removed + added).max(1);
    }
}

/// Returns how many lines of a kind come first.
fn run(lines: &[DiffLine], kind: DiffLineKind) -> usize {
    lines.iter().take_while(|line| line.kind == kind).count()
}

/// Pairs each removed line with the next added line that is similar, in order.
fn pair_up(removed: &mut [DiffLine], added: &mut [DiffLine]) {
    let mut next = 0;
    for old in removed {
        for (offset, new) in added[next..].iter_mut().enumerate() {
            if mark_pair(old, new) {
                next += offset + 1;
                break;
            }
        }
    }
}

/// Marks the parts of two lines that differ, if more than half of them is the same.
fn mark_pair(old: &mut DiffLine, new: &mut DiffLine) -> bool {
    let (old_text, new_text) = (old.text(), new.text());
    if old_text.len().max(new_text.len()) > LINE_BYTES_MAX {
        return false;
    }
    let (old_words, new_words) = (words(&old_text), words(&new_text));
    let ops = capture_diff_slices(Algorithm::Myers, &old_words, &new_words);
    let is_equal = |op: &&DiffOp| matches!(op, DiffOp::Equal { .. });
    let letters = |words: &[&str]| words.iter().map(|word| word.trim().len()).sum::<usize>();
    let same: usize = ops.iter().filter(is_equal).map(|op| letters(&old_words[op.old_range()])).sum();
    if same * 2 <= letters(&old_words).max(letters(&new_words)) {
        return false;
    }
    let part = |words: &[&str], op: &DiffOp| {
        let text = words.concat();
        // White space alone is not worth a mark: most of it is indentation.
        let is_changed = !matches!(op, DiffOp::Equal { .. }) && !text.trim().is_empty();
        LinePart { text, is_changed }
    };
    let parts = |parts: Vec<LinePart>| parts.into_iter().filter(|part| !part.text.is_empty()).collect();
    old.parts = parts(ops.iter().map(|op| part(&old_words[op.old_range()], op)).collect());
    new.parts = parts(ops.iter().map(|op| part(&new_words[op.new_range()], op)).collect());
    true
}

/// Splits a line into names, numbers, spaces and single other letters.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut last: Option<char> = None;
    for (at, letter) in line.char_indices() {
        if last.is_some_and(|last| !(is_name(last) && is_name(letter) || last == ' ' && letter == ' ')) {
            words.push(&line[start..at]);
            start = at;
        }
        last = Some(letter);
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

fn is_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
