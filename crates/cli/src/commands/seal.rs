//! `steno seal`: seals runs that are not being recorded, and prints their last seals.

use steno_journal::{Error as JournalError, Journal, Options, read_seals};
use steno_model::RunId;

use crate::args::SealArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SealArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let store = runs::need_store(settings)?;
    let wanted = if args.all {
        store.runs()?
    } else {
        args.runs.iter().map(|text| runs::find_run(text, settings)).collect::<Result<Vec<_>, _>>()?
    };
    let journal = Journal::new(runs::make_store(settings)?, Options::default());
    let mut exit = Exit::Done;
    for run in wanted {
        match seal(&journal, run) {
            Ok(Some(line)) => output.json_line(&line),
            Ok(None) => tracing::warn!("run {run} has no events, so it has no seal"),
            Err(JournalError::Locked { .. }) if args.all => {
                tracing::warn!("run {run} is being recorded and was skipped");
            }
            Err(error) if args.all => {
                let failure = Failure::from(error);
                tracing::error!("run {run}: {}", failure.message);
                exit = failure.exit;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(exit)
}

/// Opens and closes the run, which recovers and seals it; returns its last seal.
fn seal(journal: &Journal, run: RunId) -> Result<Option<String>, JournalError> {
    if !journal.store().has(run)? {
        return Err(JournalError::NoSuchRun { run });
    }
    journal.record(run)?.close()?;
    let seals = read_seals(&**journal.store().disk(), run)?;
    Ok(seals.last().map(steno_journal::Seal::to_line))
}
