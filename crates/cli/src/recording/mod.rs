//! Code that recording commands share: homes, opening the store, progress bars, the report.

mod entries;
pub mod follow;
mod import_pass;
mod indexing;
mod losses;
mod progress;
pub mod rederive;
mod report;
mod stop_signal;
mod store_check;

use std::path::PathBuf;

use jiff::Timestamp;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use steno_capture::discovery::{self, Environment};
use steno_journal::{Journal, Options};
use steno_model::with_causes;
use steno_recorder::entries::EntryCollector;
use steno_recorder::sources::{
    Exclusions, SourceError, SourceListing, SourceLocations, SourceRecorder, SourceRecorderOptions, Verdict,
};
use steno_views::{Lines, visible};

use crate::failure::{Exit, Failure};
use crate::settings::Settings;
use crate::{connections, runs, wraps};

pub use entries::{EntriesLog, collecting, leave_out_log};
pub use follow::Follow;
pub use import_pass::ImportPass;
pub use losses::notice_losses;
pub use progress::ImportBar;
pub use report::Report;
pub use stop_signal::StopSignal;
pub use store_check::{check_for_own_sessions, check_no_demo};

/// Returns the environment for discovery.
pub fn environment() -> Environment {
    let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    Environment::from_lookup(home, |name| std::env::var_os(name))
}

/// Returns where to look: the given paths, or else the agents' homes. The store itself is excluded.
pub fn places(paths: &[PathBuf], settings: &Settings) -> Result<SourceLocations, Failure> {
    let mut exclusions = settings.capture.exclusions();
    if let Ok(store) = settings.store.value.canonicalize() {
        exclusions.paths.push(store.to_string_lossy().into_owned());
    }
    if paths.is_empty() {
        let homes = discovery::homes(&environment());
        for problem in &homes.problems {
            warn(&with_causes(problem));
        }
        return Ok(SourceLocations { homes: homes.found, exclusions, ..SourceLocations::default() });
    }
    let absolute = |path: &PathBuf| path.canonicalize().or_else(|_| std::path::absolute(path));
    let given = paths.iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
    Ok(SourceLocations { given, exclusions, ..SourceLocations::default() })
}

/// What to do with forgotten files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgottenFiles {
    /// Skip them.
    Skip,
    /// Archive them as if they were new.
    Import,
}

/// Opens the store for archiving, and creates it if needed.
pub fn open(
    settings: &Settings,
    entries: Option<EntryCollector>,
    forgotten: ForgottenFiles,
) -> Result<SourceRecorder, Failure> {
    let again = forgotten == ForgottenFiles::Import;
    raise_file_limit();
    let journal = Journal::new(runs::make_store(settings)?, journal_options(settings));
    if !journal.store().is_paused(Timestamp::now()) {
        connections::import_leftover_connections(&journal, settings);
        wraps::import_leftover_wraps(&journal, settings);
    }
    let max_read_bytes = settings.capture.max_read_bytes.value;
    let mut options =
        SourceRecorderOptions { max_read_bytes, entries, again, ..SourceRecorderOptions::default() };
    options.open_files_max = open_files_max().unwrap_or(options.open_files_max);
    let mut archive = SourceRecorder::open(journal, options).map_err(failure)?;
    archive.end_pause(&places(&[], settings)?).map_err(failure)?;
    Ok(archive)
}

/// The store, opened for a command that records a program in the current directory.
pub struct StoreHere {
    pub journal: Journal,
    pub exclusions: Exclusions,
    /// The current directory.
    pub dir: Option<String>,
}

impl StoreHere {
    /// Opens the store, and creates it if needed. Fails if the current directory is excluded.
    pub fn open(settings: &Settings) -> Result<Self, Failure> {
        let journal = Journal::new(runs::make_store(settings)?, journal_options(settings));
        end_pause(&journal, settings)?;
        let exclusions = settings.capture.exclusions();
        let dir = std::env::current_dir().ok().map(|dir| dir.to_string_lossy().into_owned());
        if exclusions.judge_dir(dir.as_deref()) == Verdict::Excluded {
            return Err(Failure::nothing("`exclude_projects` excludes this directory"));
        }
        Ok(Self { journal, exclusions, dir })
    }
}

/// Ends a pause with `--skip` whose time is over: what was written during it is left out.
pub fn end_pause(journal: &Journal, settings: &Settings) -> Result<(), Failure> {
    let is_over = journal.store().pause_set().is_some_and(|pause| pause.is_over(Timestamp::now()));
    if !is_over {
        return Ok(());
    }
    let mut archive =
        SourceRecorder::open(journal.clone(), SourceRecorderOptions::default()).map_err(failure)?;
    archive.end_pause(&places(&[], settings)?).map_err(failure)
}

/// Returns how runs are written.
pub fn journal_options(settings: &Settings) -> Options {
    Options { seal_idle: settings.seal_idle.value, ..Options::default() }
}

/// Warns of problems with places. None of them is fatal.
pub fn warn_of_problems(listing: &SourceListing) {
    for problem in &listing.problems {
        warn(&with_causes(problem));
    }
}

pub fn warn(text: &str) {
    tracing::warn!("{}", visible(text, Lines::Escape));
}

/// Returns the failure for an error while archiving.
#[expect(clippy::needless_pass_by_value, reason = "it stands where errors are mapped")]
pub fn failure(error: SourceError) -> Failure {
    if matches!(error, SourceError::NoEvidence { .. }) {
        return Failure::nothing(error.to_string()).with_hint("`steno events RUN` shows the undamaged part");
    }
    let exit = if error.is_held() { Exit::Held } else { Exit::Failed };
    let hint = error.is_no_room().then(|| "free some disk space; what was archived is safe".to_owned());
    Failure { exit, hint, ..Failure::could_not(error_text(&error)) }
}

/// The most that macOS grants a process, also where it says that there is no limit.
const MACOS_OPEN_FILES_MAX: u64 = 10_240;

/// Raises the limit of open files as far as the system allows: each source that is being recorded needs some.
///
/// The limit at the start is low: 256 for a service of macOS.
pub fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raise = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum }).is_ok();
    let is_raised = limit.current == limit.maximum
        || raise(limit.maximum)
        || limit.current < Some(MACOS_OPEN_FILES_MAX) && raise(Some(MACOS_OPEN_FILES_MAX));
    if !is_raised {
        tracing::debug!("cannot raise the limit of open files");
    }
}

/// Returns why a file could not be recorded, with a hint if too many files are open.
pub fn error_text(error: &SourceError) -> String {
    let text = with_causes(error);
    match open_files_max().filter(|_| error.is_too_many_files()) {
        Some(limit) => format!("{text}; the limit is {limit} open files, and `ulimit -n` raises it"),
        None => text,
    }
}

/// Returns the limit of open files, if there is one.
pub fn open_files_max() -> Option<usize> {
    getrlimit(Resource::Nofile).current.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}
