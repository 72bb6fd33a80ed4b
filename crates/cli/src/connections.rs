//! Archives recorded connections: their bytes go to the vault, their events to runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_journal::Journal;
use steno_model::with_causes;
use steno_recorder::connection::{RecordedConnection, UnrecordedMessages, connections, rebuild_spines};
use steno_recorder::sources::{
    ImportOutcome, ImportProgress, SourceError, SourceFile, SourceLocations, SourceRecorder,
    SourceRecorderOptions,
};
use steno_recorder::{forget, spines};
use steno_vault::Vault;
use steno_views::count;

use crate::failure::{Exit, Failure};
use crate::recording::{self, warn};
use crate::settings::Settings;

/// How many gaps are reported one by one.
const GAPS_SHOWN_MAX: usize = 10;

/// Archives the connections whose recording was interrupted. Failures are warnings, and tried again the next time.
pub fn import_leftover_connections(journal: &Journal, settings: &Settings) {
    let spooled = connections(journal.store()).unwrap_or_else(|error| {
        warn(&with_causes(&error));
        Vec::new()
    });
    for spooled in spooled {
        if let Err(failure) = import_leftover(journal, settings, spooled) {
            warn(&failure.message);
        }
    }
}

fn import_leftover(
    journal: &Journal,
    settings: &Settings,
    spooled: RecordedConnection,
) -> Result<(), Failure> {
    // A connection that is being recorded is archived by its recorder.
    let Some(_guard) = spooled.lock(journal.store()).map_err(failure)? else { return Ok(()) };
    let vault = Vault::open(Arc::clone(journal.store().disk()));
    let store_dir = settings.store.value.canonicalize()?;
    if forget::is_connection_forgotten(&vault, &store_dir, spooled).map_err(forget_failure)? {
        return spooled.remove(journal.store()).map_err(failure);
    }
    if spooled.is_http(journal.store()).map_err(failure)? {
        return import_exchanges(journal, settings, spooled);
    }
    let recorded = rebuild_spines(journal, &spooled).map_err(failure)?;
    recorded.problems.iter().for_each(|problem| warn(problem));
    import_connection(journal, settings, spooled, recorded.is_left)
}

/// Archives a recording of HTTP exchanges, and deletes its file. One without exchanges is only deleted.
pub fn import_exchanges(
    journal: &Journal,
    settings: &Settings,
    spooled: RecordedConnection,
) -> Result<(), Failure> {
    if spooled.check(journal.store()).is_ok_and(|check| check.messages == 0 && check.damage.is_none()) {
        return spooled.remove(journal.store()).map_err(failure);
    }
    spooled.end_http(journal.store()).map_err(failure)?;
    import_connection(journal, settings, spooled, false)
}

/// Archives one connection, and deletes its file when the vault has it and nothing is left to derive from it.
pub fn import_connection(
    journal: &Journal,
    settings: &Settings,
    spooled: RecordedConnection,
    is_left: bool,
) -> Result<(), Failure> {
    let path = settings.store.value.canonicalize()?.join(spooled.path().as_str());
    if import_file(journal, path)? && !is_left {
        spooled.remove(journal.store()).map_err(failure)?;
    }
    Ok(())
}

/// Archives one file of the store; returns whether the vault has all of it.
pub fn import_file(journal: &Journal, path: PathBuf) -> Result<bool, Failure> {
    let mut archive = SourceRecorder::open(journal.clone(), SourceRecorderOptions::default())
        .map_err(recording::failure)?;
    let listing = SourceLocations { given: vec![path], ..SourceLocations::default() }.list();
    let mut result = ImportResult::default();
    archive.import(&listing.files, &mut result);
    archive.settle().map_err(recording::failure)?;
    match result.failed {
        Some(message) => Err(Failure::could_not(message)),
        None => Ok(result.is_recorded),
    }
}

/// Warns of messages that were forwarded but not recorded.
pub fn warn_of_gaps(unrecorded: &UnrecordedMessages) {
    for gap in unrecorded.gaps.iter().take(GAPS_SHOWN_MAX) {
        warn(&format!("forwarded but not recorded: {gap}"));
    }
    let gaps = unrecorded.gaps.len() as u64 + unrecorded.gaps_more;
    if gaps > 1 {
        let messages = count(unrecorded.messages, "message");
        warn(&format!("{messages} forwarded but not recorded, in {}", count(gaps, "gap")));
    }
    if unrecorded.is_untold {
        warn("the last gap could not be noted in the record");
    }
}

/// Notes whether a file was archived.
#[derive(Default)]
struct ImportResult {
    is_recorded: bool,
    failed: Option<String>,
}

impl ImportProgress for ImportResult {
    fn bytes(&mut self, _path: &Path, _count: u64) {}

    fn done(&mut self, _file: &SourceFile, outcome: ImportOutcome) {
        self.is_recorded |=
            matches!(outcome, ImportOutcome::Recorded | ImportOutcome::Unchanged | ImportOutcome::Forgotten);
    }

    fn failed(&mut self, _file: &SourceFile, error: &SourceError) {
        self.failed = Some(recording::error_text(error));
    }
}

/// Returns the failure for a connection or a spine that cannot be recorded.
pub fn failure(error: spines::Error) -> Failure {
    if let spines::Error::Library(error) = error {
        return error.into();
    }
    let is_forgotten = matches!(error, spines::Error::Forgotten { .. });
    let exit = match (is_forgotten, error.is_held()) {
        (true, _) => Exit::CheckFailed,
        (false, true) => Exit::Held,
        (false, false) => Exit::Failed,
    };
    Failure { exit, ..Failure::could_not(with_causes(&error)) }
}

/// Returns the failure for something that cannot be forgotten.
pub fn forget_failure(error: forget::ForgetError) -> Failure {
    let is_held = error.is_held();
    let failure = match error {
        forget::ForgetError::SpineHeld { .. } | forget::ForgetError::ConnectionHeld { .. } => {
            let hint = "nothing was forgotten; try again when `steno app-server`, `steno mcp`, `steno proxy` or `steno spine record` has ended";
            let failure = Failure { exit: Exit::Held, ..Failure::could_not(with_causes(&error)) };
            return failure.with_hint(hint);
        }
        forget::ForgetError::Connection { .. } => Failure::could_not(with_causes(&error)),
        forget::ForgetError::Library(error) => error.into(),
        forget::ForgetError::Vault(error) => error.into(),
        forget::ForgetError::Journal(error) => error.into(),
    };
    let hint = "stop recording with `steno pause`, try again, then run `steno resume`";
    if is_held { failure.with_hint(hint) } else { failure }
}
