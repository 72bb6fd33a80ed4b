//! Patches as agents write them: the format of `apply_patch`, and unified diffs.

use super::{DiffLine, DiffLineKind, FileChangeKind, FileDiff, Hunk};

/// The first line of a patch for `apply_patch`.
pub(super) const BEGIN: &str = "*** Begin Patch";
/// The last line of such a patch.
const END: &str = "*** End Patch";

/// How Copilot CLI names the old side of a new file and the new side of a deleted one. It counts the empty text after the last
/// line feed of such a file as a line.
const NOTHING_COPILOT: [&str; 2] = ["a/dev/null", "b/dev/null"];

/// Reads a patch for `apply_patch`: the format that Codex and others give to the model.
pub(super) fn apply_patch(text: &str) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    for line in text.lines().take_while(|line| line.trim_end() != END) {
        if let Some(file) = file_heading(line) {
            files.push(file);
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if let Some(name) = line.strip_prefix("*** Move to: ") {
            file.moved_to = Some(name.trim().to_owned());
        } else if let Some(place) = line.strip_prefix("@@") {
            let place = place.trim();
            let place = (!place.is_empty()).then(|| place.to_owned());
            file.hunks.push(Hunk { place, ..Hunk::default() });
        } else if !line.starts_with("*** ") {
            push_line(file, line);
        }
    }
    for file in files.iter_mut().filter(|file| file.kind == FileChangeKind::Add) {
        file.hunks.iter_mut().for_each(|hunk| (hunk.old_start, hunk.new_start) = (Some(0), Some(1)));
    }
    files.into_iter().map(FileDiff::finish).collect()
}

fn file_heading(line: &str) -> Option<FileDiff> {
    const HEADINGS: [(&str, FileChangeKind); 3] = [
        ("*** Update File: ", FileChangeKind::Edit),
        ("*** Add File: ", FileChangeKind::Add),
        ("*** Delete File: ", FileChangeKind::Delete),
    ];
    HEADINGS.iter().find_map(|(heading, kind)| {
        let path = line.strip_prefix(heading)?.trim();
        Some(FileDiff::new(Some(path.to_owned()), *kind))
    })
}

/// Reads a unified diff of one or more files. `path` names a file that the diff does not name.
pub(super) fn unified(text: &str, path: Option<&str>) -> Vec<FileDiff> {
    let mut files: Vec<FileDiff> = Vec::new();
    // The files whose diff counts the end of the file as a line.
    let mut with_end: Vec<usize> = Vec::new();
    let mut lines = text.lines().peekable();
    // How many old and new lines the hunk still has: inside it, `--- a` is a removed line.
    let mut left = (0_u64, 0_u64);
    while let Some(line) = lines.next() {
        if left == (0, 0) {
            if let (Some(old), Some(new)) =
                (line.strip_prefix("--- "), lines.peek().and_then(|next| next.strip_prefix("+++ ")))
            {
                if NOTHING_COPILOT.contains(&old.trim_end()) || NOTHING_COPILOT.contains(&new.trim_end()) {
                    with_end.push(files.len());
                }
                files.push(named_file(old, new));
                lines.next();
                continue;
            }
            if let Some((hunk, lens)) = hunk_heading(line) {
                if files.is_empty() {
                    files.push(FileDiff::new(path.map(str::to_owned), FileChangeKind::Edit));
                }
                files.last_mut().expect("one was just added").hunks.push(hunk);
                left = lens;
            }
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        match line.as_bytes().first() {
            Some(b'\\') => continue,
            Some(b'+') => left.1 = left.1.saturating_sub(1),
            Some(b'-') => left.0 = left.0.saturating_sub(1),
            _ => left = (left.0.saturating_sub(1), left.1.saturating_sub(1)),
        }
        push_line(file, line);
    }
    for file in with_end {
        let last = files[file].hunks.last_mut().map(|hunk| &mut hunk.lines);
        last.and_then(|lines| lines.pop_if(|line| line.text().is_empty()));
    }
    files.into_iter().map(FileDiff::finish).collect()
}

/// Adds a line to the last hunk of a file; its first letter says what happened to it.
pub(super) fn push_line(file: &mut FileDiff, line: &str) {
    let (kind, text) = match line.as_bytes().first() {
        Some(b'+') => (DiffLineKind::Added, &line[1..]),
        Some(b'-') => (DiffLineKind::Removed, &line[1..]),
        Some(b' ') => (DiffLineKind::Context, &line[1..]),
        _ => (DiffLineKind::Context, line),
    };
    if file.hunks.is_empty() {
        file.hunks.push(Hunk::default());
    }
    file.hunks.last_mut().expect("one was just added").lines.push(DiffLine::new(kind, text));
}

fn named_file(old: &str, new: &str) -> FileDiff {
    let name = |name: &str| {
        let name = name.split('\t').next().unwrap_or_default().trim_end();
        let name = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(name);
        (name != "/dev/null" && name != "dev/null").then(|| name.to_owned())
    };
    match (name(old), name(new)) {
        (None, new) => FileDiff::new(new, FileChangeKind::Add),
        (old, None) => FileDiff::new(old, FileChangeKind::Delete),
        (old, new) if old == new => FileDiff::new(old, FileChangeKind::Edit),
        (old, new) => FileDiff { moved_to: new, ..FileDiff::new(old, FileChangeKind::Edit) },
    }
}

/// Reads `@@ -12,7 +12,9 @@ place`: the hunk, and how many old and new lines it has.
fn hunk_heading(line: &str) -> Option<(Hunk, (u64, u64))> {
    let (ranges, place) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| -> Option<(u64, u64)> {
        let (start, len) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, len.parse().ok()?))
    };
    let (old, new, place) = (range(old)?, range(new)?, place.trim());
    let place = (!place.is_empty()).then(|| place.to_owned());
    Some((Hunk { old_start: Some(old.0), new_start: Some(new.0), place, lines: Vec::new() }, (old.1, new.1)))
}
