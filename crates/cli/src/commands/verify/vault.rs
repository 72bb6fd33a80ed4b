//! Evidence in `steno verify`: every pack, manifest and tail, and the sessions that damage affects.

use std::sync::Arc;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use steno_journal::Store;
use steno_model::with_causes;
use steno_vault::{AffectedSource, Finding, Vault, VerifyReport};
use steno_views::{Lines, count, visible};

use super::CheckCounts;
use crate::failure::Failure;
use crate::output::{Output, damaged, size};

/// Checks the vault of a store; returns how many files it has and how many problems.
pub fn verify_vault(store: &Store, as_json: bool, output: &mut Output) -> Result<CheckCounts, Failure> {
    let vault = Vault::open(Arc::clone(store.disk()));
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {bytes}/{total_bytes} of evidence");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    let verified = vault.verify(|progress| {
        bar.set_length(progress.bytes_total);
        bar.set_position(progress.bytes_done);
    })?;
    bar.finish_and_clear();
    if verified.sources == 0 && verified.packs == 0 && verified.findings.is_empty() {
        return Ok(CheckCounts::default());
    }
    for finding in &verified.findings {
        if as_json { output.json_line(&finding_json(finding)) } else { print_finding(finding, output) }
    }
    if as_json {
        output.json_line(&summary_json(&verified));
    } else {
        print_summary(&verified, output);
    }
    Ok(CheckCounts { good: verified.sources as u64, bad: verified.findings.len() as u64 })
}

fn print_finding(finding: &Finding, output: &mut Output) {
    output.line(&format!("{}  {}", damaged(), visible(&with_causes(&finding.error), Lines::Escape)));
    for source in &finding.affects {
        output.line(&format!("         affects {}", visible(&source_words(source), Lines::Escape)));
    }
    if finding.affects.is_empty() {
        output.line("         all sources can still be read");
    }
}

/// Describes a source by its session and path.
fn source_words(touched: &AffectedSource) -> String {
    match &touched.info {
        None => format!("source {}", touched.source),
        Some(info) => {
            let session =
                info.session.as_ref().map_or(String::new(), |session| format!("session {session}, "));
            format!("{session}`{}`", info.path.0.display())
        }
    }
}

fn print_summary(verified: &VerifyReport, output: &mut Output) {
    let word = if verified.findings.is_empty() { "ok     ".to_owned() } else { damaged() };
    output.line(&format!(
        "{word}  evidence: {} in {}; {}, {} stored in {}",
        count(verified.sources as u64, "file"),
        count(verified.packs as u64, "pack"),
        count(verified.chunks as u64, "chunk"),
        size(verified.chunk_bytes),
        size(verified.stored_bytes),
    ));
}

fn finding_json(finding: &Finding) -> String {
    let touches: Vec<_> = finding
        .affects
        .iter()
        .map(|touched| {
            let info = touched.info.as_ref();
            json!({
                "source": touched.source.to_string(),
                "session": info.and_then(|info| info.session.clone()),
                "path": info.map(|info| info.path.0.to_string_lossy().into_owned()),
            })
        })
        .collect();
    json!({"kind": "evidence_finding", "error": with_causes(&finding.error), "touches": touches}).to_string()
}

fn summary_json(verified: &VerifyReport) -> String {
    json!({
        "kind": "evidence",
        "state": if verified.findings.is_empty() { "ok" } else { "damaged" },
        "sources": verified.sources,
        "packs": verified.packs,
        "chunks": verified.chunks,
        "chunk_bytes": verified.chunk_bytes,
        "stored_bytes": verified.stored_bytes,
        "tail_bytes": verified.tail_bytes,
        "garbage_bytes": verified.garbage_bytes,
        "findings": verified.findings.len(),
    })
    .to_string()
}
