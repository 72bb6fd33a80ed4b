//! Evidence positions in `steno verify`: checks that the bytes of every event and spine record are in the vault.

use std::sync::Arc;

use serde_json::json;
use steno_disk::StorePath;
use steno_journal::{SpineReader, Store};
use steno_model::ThreadId;
use steno_recorder::evidence::{EvidenceCheck, EvidenceHolder, EvidenceReport, WrongEvidence};
use steno_vault::Vault;
use steno_views::{Lines, count, thousands, visible};

use super::CheckCounts;
use crate::failure::Failure;
use crate::output::{Output, damaged};

/// Starts a check against the vault of a store.
pub fn follow_evidence(store: &Store) -> EvidenceCheck {
    EvidenceCheck::new(Vault::open(Arc::clone(store.disk())))
}

/// Adds the records of a spine. Unreadable records are reported by the check of the spine.
pub fn take_spine(store: &Store, thread: &ThreadId, check: &mut EvidenceCheck) -> Result<(), Failure> {
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    while let Ok(Some(record)) = reader.read_next() {
        check.spine_record(&record);
    }
    Ok(check.look_up_some()?)
}

/// Looks up all positions, and prints the result. Prints nothing if no record has evidence.
pub fn verify_positions(
    check: EvidenceCheck,
    as_json: bool,
    output: &mut Output,
) -> Result<CheckCounts, Failure> {
    let report = check.finish()?;
    if report.all == report.without {
        return Ok(CheckCounts::default());
    }
    for wrong in &report.findings {
        if as_json {
            output.json_line(&wrong_json(wrong));
        } else {
            output.line(&wrong_line(wrong));
        }
    }
    if as_json {
        output.json_line(&report_json(&report));
    } else {
        output.line(&report_line(&report));
    }
    Ok(CheckCounts { good: report.found, bad: report.wrong })
}

fn wrong_line(wrong: &WrongEvidence) -> String {
    let who = match &wrong.holder {
        EvidenceHolder::Run(run) => format!("event {run}:{}", wrong.seq),
        EvidenceHolder::Spine(thread) => format!("record {} of spine {thread}", wrong.seq),
    };
    let source = match &wrong.path {
        Some(path) => format!("`{}`", path.display()),
        None => format!("source {}", wrong.source),
    };
    let (generation, from, len) = (wrong.generation, wrong.offset, count(wrong.length, "byte"));
    let words =
        format!("{who} points to {len} at byte {from} in generation {generation} of {source}: {}", wrong.why);
    format!("{}  {}", damaged(), visible(&words, Lines::Escape))
}

fn report_line(report: &EvidenceReport) -> String {
    let mut words =
        format!("evidence of events: {} of {} found", thousands(report.found), thousands(report.all));
    for (number, what) in [
        (report.wrong, "wrong"),
        (report.without, "without evidence"),
        (report.forgotten, "in forgotten files"),
        (report.elsewhere, "in files that the vault does not have"),
        (report.unreadable, "in damaged evidence"),
    ] {
        if number > 0 {
            words.push_str(&format!(", {} {what}", thousands(number)));
        }
    }
    if report.wrong > 0 { format!("{}  {words}", damaged()) } else { format!("ok       {words}") }
}

fn wrong_json(wrong: &WrongEvidence) -> String {
    let (run, thread) = match &wrong.holder {
        EvidenceHolder::Run(run) => (Some(run.to_string()), None),
        EvidenceHolder::Spine(thread) => (None, Some(thread.as_str())),
    };
    json!({
        "kind": "position_finding",
        "error": wrong.why,
        "run_id": run,
        "thread_id": thread,
        "seq": wrong.seq,
        "source": wrong.source,
        "path": wrong.path.as_ref().map(|path| path.to_string_lossy().into_owned()),
        "generation": wrong.generation,
        "offset": wrong.offset,
        "length": wrong.length,
    })
    .to_string()
}

fn report_json(report: &EvidenceReport) -> String {
    json!({
        "kind": "positions",
        "state": if report.wrong == 0 { "ok" } else { "damaged" },
        "records": report.all,
        "found": report.found,
        "wrong": report.wrong,
        "without_evidence": report.without,
        "forgotten": report.forgotten,
        "elsewhere": report.elsewhere,
        "unreadable": report.unreadable,
    })
    .to_string()
}
