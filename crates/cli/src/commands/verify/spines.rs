//! Spines in `steno verify`: every segment, meta file and artifact of every thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use anstyle::AnsiColor;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use steno_adapters::codex::session_run;
use steno_journal::{Error as JournalError, SpineState, Store};
use steno_library::Library;
use steno_model::{RunId, ThreadId, with_causes};
use steno_spine::{Report, Severity, validate_spine};
use steno_vault::Vault;
use steno_views::{Lines, count, visible};

use super::CheckCounts;
use crate::failure::Failure;
use crate::output::{self, Output, notice, size};

/// Prints that the spines of the given runs were not checked.
pub fn notice_unchecked_spines(library: &Library, runs: &[RunId]) -> Result<(), Failure> {
    let relations = library.relations()?;
    let sessions: BTreeSet<RunId> =
        runs.iter().map(|run| relations.owner(*run)).chain(runs.iter().copied()).collect();
    for thread in library.spines()?.iter().filter(|thread| sessions.contains(&session_run(thread.as_str()))) {
        notice(&format!(
            "the spine of {thread} was not checked: `steno spine validate {thread}` checks it, and so does `steno verify` without RUN"
        ));
    }
    Ok(())
}

/// Checks all spines of a store. Those that are being written are checked up to their current end.
pub fn verify_spines(store: &Store, as_json: bool, output: &mut Output) -> Result<CheckCounts, Failure> {
    let threads = store.spines()?;
    let bar = ProgressBar::with_draw_target(Some(threads.len() as u64), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} spines, {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let mut tally = CheckCounts::default();
    // The rest of a forgotten spine may be incomplete, and is not checked. Unreadable tombstones are reported with
    // the evidence.
    let forgotten = Vault::open(Arc::clone(store.disk())).spine_tombstones().unwrap_or_default();
    let is_going = |thread: &ThreadId| forgotten.iter().any(|one| one.is_of(thread) && !one.is_swept);
    for thread in &threads {
        if is_going(thread) {
            bar.inc(1);
            tally.add(true);
            bar.suspend(|| {
                if as_json { output.json_line(&going_json(thread)) } else { output.line(&going(thread)) }
            });
            continue;
        }
        // An unreadable spine does not stop the check of the others.
        let checked = validate_spine(store, thread);
        bar.inc(1);
        tally.add(checked.as_ref().is_ok_and(Report::is_valid));
        bar.suspend(|| match (&checked, as_json) {
            (Ok(report), true) => output.json_line(&line_json(thread, report)),
            (Ok(report), false) => output.line(&line(thread, report)),
            (Err(error), true) => output.json_line(&unread_json(thread, error)),
            (Err(error), false) => output.line(&damaged(thread, &with_causes(error))),
        });
        if output.is_broken() {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(tally)
}

fn line(thread: &ThreadId, report: &Report) -> String {
    if let Some(words) = first_error(report) {
        return damaged(thread, &words);
    }
    let ok = AnsiColor::Green.on_default();
    let mut line = format!(
        "{ok}ok{ok:#}       spine {thread}  {}, {}, {}",
        count(report.records, "record"),
        count(report.segments, "segment"),
        size(report.bytes),
    );
    line.push_str(&match report.state() {
        SpineState::Sealed => ", sealed".to_owned(),
        SpineState::Recording => ", being recorded".to_owned(),
        SpineState::Unsealed | SpineState::Damaged => unsealed_words(thread, report),
    });
    if report.warnings > 0 {
        line.push_str(&format!(", {}", count(report.warnings, "warning")));
    }
    line
}

fn unsealed_words(thread: &ThreadId, report: &Report) -> String {
    let mut words = format!(", the last {} unsealed", size(report.unsealed_bytes() - report.torn_bytes()));
    if report.torn_bytes() > 0 {
        let torn = size(report.torn_bytes());
        words.push_str(&format!(", and a torn end of {torn} that was never acknowledged"));
    }
    words.push_str(&format!("; `steno spine validate {thread} --repair` seals it"));
    words
}

fn going(thread: &ThreadId) -> String {
    let ok = AnsiColor::Green.on_default();
    format!(
        "{ok}ok{ok:#}       spine {thread}  forgotten; the next `steno forget` or `steno up` deletes the rest"
    )
}

fn going_json(thread: &ThreadId) -> String {
    json!({ "kind": "spine", "thread_id": thread.as_str(), "ok": true, "state": "forgotten" }).to_string()
}

fn damaged(thread: &ThreadId, words: &str) -> String {
    format!("{}  spine {thread}  {}", output::damaged(), visible(words, Lines::Escape))
}

/// Returns the first error of a spine in words, and how many others there are.
fn first_error(report: &Report) -> Option<String> {
    let finding = report.findings.iter().find(|finding| finding.severity == Severity::Error)?;
    let mut words = format!("{} ({}): {}", finding.place, finding.rule.as_str(), finding.words);
    if report.errors > 1 {
        words.push_str(&format!(", and {}", count(report.errors - 1, "more error")));
    }
    Some(words)
}

fn line_json(thread: &ThreadId, report: &Report) -> String {
    let first = report.findings.iter().find(|finding| finding.severity == Severity::Error);
    json!({
        "kind": "spine",
        "thread_id": thread.as_str(),
        "ok": report.is_valid(),
        "state": report.state().as_str(),
        "segments": report.segments,
        "sealed": report.sealed,
        "records": report.records,
        "bytes": report.bytes,
        "unsealed_bytes": report.unsealed_bytes(),
        "torn_bytes": report.torn_bytes(),
        "errors": report.errors,
        "warnings": report.warnings,
        "error": first_error(report),
        "rule": first.map(|finding| finding.rule.as_str()),
        "file": first.map(|finding| finding.place.file.as_str()),
        "offset": first.and_then(|finding| finding.place.offset),
    })
    .to_string()
}

fn unread_json(thread: &ThreadId, error: &JournalError) -> String {
    let state = SpineState::Damaged.as_str();
    let error = with_causes(error);
    json!({ "kind": "spine", "thread_id": thread.as_str(), "ok": false, "state": state, "error": error })
        .to_string()
}
