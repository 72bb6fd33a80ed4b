//! The sources of `steno usage`: the store, agents' files that are not archived yet, or named files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::SystemTime;

use steno_adapters::Sink;
use steno_capture::discovery::{self, Home};
use steno_library::{AgentFile, FileError, FileReport, Files, Library, RunCounts, Tally, warn_about_unread};
use steno_model::Provider;
use steno_model::{Draft, EventType, ExchangeEvent, RunId, Seq, Timestamp};
use steno_recorder::sources::{SourceLocations, unrecorded_files};
use steno_session::usage::UsageBuilder;
use steno_views::{count, thousands};

use crate::failure::Failure;
use crate::output::{Output, notice};
use crate::recording::{self, environment, places};
use crate::settings::Settings;

/// What was read.
pub struct UsageResult {
    pub usage: UsageBuilder,
    /// Runs of the store.
    pub runs: RunCounts,
    /// Files of agents.
    pub files: Tally,
    /// A description of both.
    pub sources: String,
}

/// Reads the files that were named, with those of their subagents.
pub fn from_paths(paths: &[PathBuf]) -> Result<UsageResult, Failure> {
    read_files(UsageBuilder::new(), Files::find_with_subagents(paths))
}

/// Reads only the agents' homes, and prints the reason.
pub fn from_homes(why: &str) -> Result<UsageResult, Failure> {
    let dirs: Vec<_> = discovery::homes(&environment()).found.iter().flat_map(session_dirs).collect();
    if dirs.is_empty() {
        let failure = Failure::empty("no agent's sessions found");
        return Err(failure.with_hint("give a file or directory: `steno usage PATH`"));
    }
    notice(&format!("read only the agents' files, without deleted sessions: {why}"));
    read_files(UsageBuilder::new(), Files::find(&dirs))
}

/// Reads Claude's files that were changed at or after a time, without a word about others.
pub fn from_changed_claude_files(since: SystemTime) -> Result<UsageBuilder, Failure> {
    let homes = discovery::homes(&environment()).found;
    let claude = homes.iter().filter(|home| home.provider == Provider::Claude);
    let dirs: Vec<_> = claude.flat_map(session_dirs).collect();
    Ok(read_files(UsageBuilder::new(), Files::find(&dirs).changed_since(since))?.usage)
}

/// Reads all runs of the store, and the files that are not archived completely.
pub fn from_store(library: &Library, settings: &Settings) -> Result<UsageResult, Failure> {
    let mut usage = UsageBuilder::new();
    let runs = library.usage(&mut usage, &|| !Output::is_abandoned())?;
    // The samples are independent of the agents on this machine.
    let waits_for = if settings.is_demo { SourceLocations::default() } else { places(&[], settings)? };
    let waiting = unrecorded_files(library.vault()?, &waits_for).map_err(recording::failure)?;
    let waiting = waiting.into_iter().map(|file| (file.path, file.source.map(|source| source.to_string())));
    let answer = read_files(usage, Files::of_sources(waiting.collect()))?;
    let runs_read = count(runs.total, "run");
    let sources = match answer.files.known {
        0 => format!("{runs_read} in the store"),
        files => format!("{runs_read} in the store and {} not archived yet", count(files, "file")),
    };
    Ok(UsageResult { runs, sources, ..answer })
}

fn read_files(mut usage: UsageBuilder, files: Files) -> Result<UsageResult, Failure> {
    let files = files.each_in_threads(read, |read, report| {
        for event in &read.events {
            usage.push(event);
        }
        if let Some(report) = report {
            warn_about_unread(report);
            if report.completeness.unreadable > 0 || report.completeness.torn_bytes > 0 {
                // Usage may be missing.
                for run in &read.runs {
                    usage.mark_incomplete(*run);
                }
            }
        }
    })?;
    let sources =
        format!("{} ({} of them readable agents' files)", count(files.total, "file"), thousands(files.known));
    Ok(UsageResult { usage, runs: RunCounts::default(), files, sources })
}

fn read(file: AgentFile) -> Result<(UsageEvents, Option<FileReport>), FileError> {
    if file.surface().is_none() {
        tracing::debug!("`{}` is not an agent's file", file.path().display());
    }
    let mut read = UsageEvents::default();
    let report = file.read(&mut read, |_| Output::is_abandoned())?;
    Ok((read, report))
}

/// Returns where an agent that has an adapter keeps its sessions.
fn session_dirs(home: &Home) -> Vec<PathBuf> {
    let dirs: &[&str] = match home.provider {
        Provider::Claude => &["projects"],
        Provider::Codex => &["sessions", "archived_sessions"],
        Provider::Gemini => &["tmp"],
        Provider::Copilot => &["session-state"],
        // Its database is not read.
        Provider::OpenCode => &[],
    };
    dirs.iter().map(|dir| home.root.join(dir)).filter(|dir| dir.is_dir()).collect()
}

/// The events of a file that usage is counted from.
#[derive(Default)]
struct UsageEvents {
    events: Vec<ExchangeEvent>,
    runs: BTreeSet<RunId>,
}

impl Sink for UsageEvents {
    fn draft(&mut self, run: RunId, draft: Draft) {
        if draft.event_type() == EventType::RunStarted {
            self.runs.insert(run);
        }
        let unknown = || Timestamp::from_record("".into());
        self.events.push(draft.into_event(run, Seq::FIRST, unknown));
    }

    fn wants(&self, event_type: EventType) -> bool {
        UsageBuilder::wants(event_type)
    }

    fn wants_whole(&self) -> bool {
        false
    }
}
