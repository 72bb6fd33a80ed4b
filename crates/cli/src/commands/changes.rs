//! `steno changes`: which session changed which file, each change as a patch.

use anstyle::{AnsiColor, Style};
use steno_index::{CallFilter, IndexedCall};
use steno_library::Library;
use steno_model::json::RawJson;
use steno_views::nodes::{DiffLineKind, FileChangeKind, FileDiff};
use steno_views::{Lines, columns_of, count, cut, thousands, visible};

use super::call_lines::{CallLines, check_matches, shown_count, text};
use super::session_filter::read_filter;
use crate::args::ChangesArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;
use crate::time_words::now;

/// The least number of columns for a title.
const TITLE_COLUMNS_MIN: usize = 12;

/// A change of one file by one call.
struct Change<'a> {
    call: &'a IndexedCall,
    path: &'a str,
}

pub fn run(args: &ChangesArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let filter = read_filter(&args.filter, &[])?;
    let library = runs::need_library(settings)?;
    let now = now();
    let list = library.calls(&CallFilter::Changed(args.path.clone()), &filter, now.timestamp())?;
    let changes: Vec<Change<'_>> = list
        .calls
        .iter()
        .flat_map(|call| call.call.digest.paths.iter().map(move |path| Change { call, path }))
        .collect();
    if !args.json && !args.no_pager {
        output.page();
    }
    let lines =
        CallLines { ids: library.index()?, list: &list, now, time: args.time.form(), width: output.width() };
    let shown = shown_count(args.limit, output.width(), changes.len());
    for change in &changes[..shown] {
        let diff = diff_of(&library, change);
        if args.json {
            output.json_line(json(&lines, change, diff.as_ref()).as_str());
        } else {
            output.line(&head(&lines, change, diff.as_ref()));
            diff.iter().flat_map(patch_lines).for_each(|line| output.line(&line));
        }
        if output.is_broken() {
            break;
        }
    }
    if shown < changes.len() && !args.json {
        let dim = Style::new().dimmed();
        let total = count(changes.len() as u64, "change");
        output.line(&format!("{dim}{} of {total}; `--limit 0` lists all{dim:#}", thousands(shown as u64)));
    }
    if changes.is_empty() {
        check_matches(&filter, &list)?;
        let what = args.path.as_ref().map_or_else(|| "any file".to_owned(), |path| format!("`{path}`"));
        return Err(Failure::empty(format!("no session changed {what}"))
            .with_hint("changes by shell commands are not known; `steno search PATH` finds every mention"));
    }
    Ok(Exit::Done)
}

/// Reads what a call changed in a file.
fn diff_of(library: &Library, change: &Change<'_>) -> Option<FileDiff> {
    let diffs = library.call_diffs(change.call);
    let is = |path: &Option<String>| path.as_deref().is_some_and(|path| path.trim() == change.path);
    let place =
        diffs.iter().position(|diff| is(&diff.path)).or(diffs.iter().position(|diff| is(&diff.moved_to)))?;
    diffs.into_iter().nth(place)
}

/// Returns the line above a patch.
fn head(lines: &CallLines<'_>, change: &Change<'_>, diff: Option<&FileDiff>) -> String {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let (start, used) = lines.start(change.call);
    let path = visible(change.path, Lines::Escape);
    let counts = diff
        .map(|diff| format!("  +{} −{}", thousands(diff.added), thousands(diff.removed)))
        .unwrap_or_default();
    let row = lines.list.sessions.get(&change.call.root);
    let title = row.and_then(|row| row.digest.title.as_deref()).unwrap_or_default();
    let title = visible(title, Lines::Escape);
    let used = used + columns_of(&path) + columns_of(&counts) + 2;
    let title = match lines.width {
        Some(width) if width < used + TITLE_COLUMNS_MIN => String::new(),
        Some(width) => cut(&title, width - used - 1),
        None => title.into_owned(),
    };
    format!("{start}{bold}{path}{bold:#}{counts}  {dim}{title}{dim:#}").trim_end().to_owned()
}

/// Returns a patch as lines with colours.
fn patch_lines(diff: &FileDiff) -> Vec<String> {
    let hunk_style = AnsiColor::Cyan.on_default();
    let mut lines = vec![];
    let name = |path: Option<&String>| {
        path.map_or("/dev/null".to_owned(), |path| visible(path, Lines::Escape).into_owned())
    };
    let old = if diff.kind == FileChangeKind::Add { None } else { diff.path.as_ref() };
    let new = if diff.kind == FileChangeKind::Delete {
        None
    } else {
        diff.moved_to.as_ref().or(diff.path.as_ref())
    };
    lines.push(format!("--- {}", name(old)));
    lines.push(format!("+++ {}", name(new)));
    for hunk in &diff.hunks {
        lines.push(format!("{hunk_style}{}{hunk_style:#}", hunk_head(hunk)));
        for line in &hunk.lines {
            let (sign, style) = match line.kind {
                DiffLineKind::Context => (' ', Style::new()),
                DiffLineKind::Added => ('+', AnsiColor::Green.on_default()),
                DiffLineKind::Removed => ('-', AnsiColor::Red.on_default()),
            };
            lines.push(format!("{style}{sign}{}{style:#}", visible(&line.text(), Lines::Escape)));
        }
    }
    lines
}

/// Returns the line above a hunk. Line numbers are not always recorded.
fn hunk_head(hunk: &steno_views::nodes::Hunk) -> String {
    let count =
        |kinds: [DiffLineKind; 2]| hunk.lines.iter().filter(|line| kinds.contains(&line.kind)).count();
    let (old, new) = (
        count([DiffLineKind::Context, DiffLineKind::Removed]),
        count([DiffLineKind::Context, DiffLineKind::Added]),
    );
    let place =
        hunk.place.as_ref().map(|place| format!(" {}", visible(place, Lines::Escape))).unwrap_or_default();
    match (hunk.old_start, hunk.new_start) {
        (Some(from), Some(to)) => format!("@@ -{from},{old} +{to},{new} @@{place}"),
        (Some(_) | None, _) => format!("@@{place}"),
    }
}

/// Returns a change as JSON.
fn json(lines: &CallLines<'_>, change: &Change<'_>, diff: Option<&FileDiff>) -> RawJson {
    let patch = diff.map(|diff| {
        let lines = patch_lines(diff).join("\n");
        anstream::adapter::strip_str(&lines).to_string() + "\n"
    });
    RawJson::object(|object| {
        lines.fields(change.call, object);
        text(object, "path", Some(change.path));
        let kind = diff.map(|diff| match diff.kind {
            FileChangeKind::Edit => "edit",
            FileChangeKind::Write => "write",
            FileChangeKind::Add => "add",
            FileChangeKind::Delete => "delete",
        });
        text(object, "change", kind);
        text(object, "moved_to", diff.and_then(|diff| diff.moved_to.as_deref()));
        object.number("added", diff.map_or(0, |diff| diff.added));
        object.number("removed", diff.map_or(0, |diff| diff.removed));
        text(object, "patch", patch.as_deref());
    })
}
