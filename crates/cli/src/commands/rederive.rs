//! `steno rederive`: derives runs again from the stored files: after an update, or if they are damaged or missing.

use serde_json::json;
use steno_library::parse_id;
use steno_model::RunId;
use steno_recorder::sources::{RederiveReport, SourceRecorder, runs_with_evidence};
use steno_views::count;

use crate::args::RederiveArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::recording::{self, ForgottenFiles, StopSignal, failure, rederive};
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &RederiveArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let stop = StopSignal::listen()?;
    Failure::unless_paused(&runs::need_store(settings)?)?;
    let archive = &mut recording::open(settings, None, ForgottenFiles::Skip)?;
    let wanted = args.runs.iter().map(|text| find(text, archive, settings));
    let wanted = wanted.collect::<Result<Vec<_>, _>>()?;
    let awaiting =
        if wanted.is_empty() { archive.rederive_plan() } else { archive.rederive_plan_of(&wanted) };
    let awaiting = awaiting.map_err(failure)?;
    let done = rederive::rederive(archive, &awaiting, &stop)?;
    // If everything else was derived before, the named runs may have been the last ones.
    if wanted.is_empty() || !archive.may_need_rederive() {
        rederive::note(archive, &done);
    }
    print(&done, args.json, output);
    output.flush();
    match done {
        _ if stop.is_set() => Ok(Exit::Signal(stop.signal())),
        RederiveReport { sources_failed: 1.., .. } => Ok(Exit::Failed),
        RederiveReport { sources_held: 1.., .. } => {
            let message = format!("{} skipped", count(done.sources_held, "file"));
            Err(Failure {
                exit: Exit::Held,
                message,
                list: Vec::new(),
                hint: Some("another `steno` is recording, and derives them again itself".into()),
            })
        }
        _ => Ok(Exit::Done),
    }
}

/// Resolves a RUN argument. The whole id of a missing run means that run, even if its session has other runs.
fn find(text: &str, archive: &SourceRecorder, settings: &Settings) -> Result<RunId, Failure> {
    let made = runs_with_evidence(archive.vault()).map_err(failure)?;
    match parse_id(text) {
        Ok(run) if made.contains(&run) => Ok(run),
        Ok(_) | Err(_) => runs::find_run(text, settings),
    }
}

fn print(done: &RederiveReport, as_json: bool, output: &mut Output) {
    if as_json {
        return output.json_line(&rederived_json(done).to_string());
    }
    let lines = rederive::report_lines(done);
    if lines.is_empty() {
        output.line("no run has to be derived again");
    }
    for line in &lines {
        output.line(line);
    }
}

fn rederived_json(done: &RederiveReport) -> serde_json::Value {
    json!({
        "sources": done.sources,
        "runs": done.runs,
        "runs_new": done.runs_new,
        "runs_mended": done.runs_mended,
        "runs_withdrawn": done.runs_withdrawn,
        "runs_kept": done.runs_kept,
        "runs_without_evidence": done.runs_without_evidence,
        "events": done.events,
        "events_carried": done.events_carried,
        "sources_held": done.sources_held,
        "sources_failed": done.sources_failed,
        "sources_left": done.sources_left,
    })
}
