//! `steno spine record`: makes spines of Codex sessions, from session files, traces or the store.

use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use steno_journal::Journal;
use steno_library::{Error as LibraryError, Files, Library, TargetKind};
use steno_model::ThreadId;
use steno_recorder::sources::{SessionIdentity, Verdict};
use steno_recorder::spines::{
    Error, ForgottenRule, SpineWriteReport, record_file, record_thread, record_trace,
};
use steno_views::{Lines, count, visible};

use super::find_thread;
use crate::args::SpineRecordArgs;
use crate::connections;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::recording;
use crate::runs;
use crate::settings::Settings;

pub fn run(args: &SpineRecordArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let journal = Journal::new(runs::make_store(settings)?, recording::journal_options(settings));
    Failure::unless_paused(journal.store())?;
    recording::end_pause(&journal, settings)?;
    let forgotten = if args.again { ForgottenRule::Again } else { ForgottenRule::Stays };
    let library = Library::new(Some(journal.store().clone()));
    let recording = RecordJob { journal: &journal, library, forgotten, settings };
    let mut jobs = Vec::new();
    for source in &args.sources {
        recording.jobs_of(source, &mut jobs)?;
    }
    if args.all {
        jobs.extend(recording.library.rollout_threads()?.into_iter().map(Job::Thread));
        if jobs.is_empty() {
            return Err(Failure::nothing("the store has no sessions of Codex").with_hint(HINT));
        }
    }
    let (bar, all, mut failed) = (bar(jobs.len() as u64), jobs.len(), 0);
    for job in jobs {
        let is_named = !matches!(job, Job::Found(_));
        match recording.record(job) {
            Ok(recorded) => bar.suspend(|| tell(&recorded, args.json, output)),
            Err(failure) if all == 1 => return Err(failure),
            Err(failure) => {
                // A forgotten session is not a failure if the user did not name its file.
                failed += u64::from(is_named || failure.exit != Exit::CheckFailed);
                bar.suspend(|| recording::warn(&failure.message));
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if failed > 0 {
        let message = format!("{failed} of {} could not be recorded", count(all as u64, "source"));
        return Err(Failure::could_not(message));
    }
    Ok(Exit::Done)
}

const HINT: &str =
    "give a session file, a directory of session files, a trace directory, or a thread of the store";

fn bar(sources: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(sources), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} sources");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

type RecordedSpine = (Vec<ThreadId>, SpineWriteReport);

/// The source of one spine.
enum Job {
    Trace(PathBuf),
    /// A session file that the user named.
    File(PathBuf),
    /// A session file below a directory.
    Found(PathBuf),
    /// A directory that cannot be listed.
    Unlisted(Failure),
    /// A thread in the store.
    Thread(ThreadId),
}

struct RecordJob<'a> {
    journal: &'a Journal,
    library: Library,
    forgotten: ForgottenRule,
    settings: &'a Settings,
}

impl RecordJob<'_> {
    /// Finds the sources that an argument names: a trace, a session file, all session files below a directory, or a
    /// thread.
    fn jobs_of(&self, source: &str, jobs: &mut Vec<Job>) -> Result<(), Failure> {
        let path = Path::new(source);
        if path.join("manifest.json").is_file() && path.join("trace.jsonl").is_file() {
            jobs.push(Job::Trace(path.to_owned()));
        } else if path.is_dir() {
            let files = Files::find(&[path.to_owned()]);
            let before = jobs.len();
            jobs.extend(files.paths().iter().filter(|path| is_rollout(path)).cloned().map(Job::Found));
            jobs.extend(files.into_failures().into_iter().map(|error| Job::Unlisted(error.into())));
            if jobs.len() == before {
                let message = format!(
                    "`{source}` has no session files of Codex, and is not a trace: it has no `manifest.json` and `trace.jsonl`"
                );
                return Err(Failure::nothing(message).with_hint(HINT));
            }
        } else if path.symlink_metadata().is_ok() {
            jobs.push(Job::File(path.to_owned()));
        } else {
            jobs.push(Job::Thread(self.thread(source)?));
        }
        Ok(())
    }

    /// Finds a thread in the store.
    fn thread(&self, source: &str) -> Result<ThreadId, Failure> {
        let threads: Vec<ThreadId> = self.library.rollout_threads()?.into_iter().collect();
        let failure = match self.library.resolve_thread(source, &threads) {
            Ok(thread) => return Ok(thread),
            Err(error @ LibraryError::Ambiguous { .. }) => return Err(error.into()),
            Err(error) => Failure::from(error),
        };
        if let Ok(thread) = find_thread(source, &self.library) {
            let message =
                format!("`{thread}` has a spine, but the store has no session file to continue it from");
            return Err(Failure::nothing(message).with_hint("`steno spine ls` lists the spines"));
        }
        Err(match self.library.resolve_stored(source, TargetKind::Run) {
            Ok(run) if self.library.has(run)? => {
                let message = format!("run {run} was not derived from a session file of Codex");
                Failure::nothing(message).with_hint("only sessions of Codex become spines")
            }
            Err(error @ LibraryError::Ambiguous { .. }) => error.into(),
            Ok(_) | Err(_) => {
                let message = format!("`{source}` is neither a file nor a thread of the store");
                Failure { message, ..failure }.with_hint(HINT)
            }
        })
    }

    /// Fails for a session of a project that is or may be excluded.
    fn check_excluded(&self, job: &Job) -> Result<(), Failure> {
        let exclusions = self.settings.capture.exclusions();
        let (name, dir) = match job {
            Job::File(path) | Job::Found(path) => {
                (path.display().to_string(), SessionIdentity::of_file(path).dir)
            }
            Job::Trace(path) => (path.display().to_string(), trace_dir(path)),
            Job::Thread(thread) => (thread.to_string(), self.library.rollout_dir(thread)?),
            Job::Unlisted(_) => return Ok(()),
        };
        let path = Path::new(&name).canonicalize().unwrap_or_default();
        if exclusions.names_path(&path) {
            return Err(Failure::nothing(format!("`exclude_paths` excludes `{name}`")));
        }
        match exclusions.judge_dir(dir.as_deref()) {
            Verdict::Included => Ok(()),
            Verdict::Excluded => {
                Err(Failure::nothing(format!("`exclude_projects` excludes the project of `{name}`")))
            }
            Verdict::Unknown => Err(Failure::nothing(format!(
                "the project of `{name}` is not known, and `exclude_projects` is set"
            ))),
        }
    }

    fn record(&self, job: Job) -> Result<RecordedSpine, Failure> {
        self.check_excluded(&job)?;
        match job {
            Job::Trace(path) => record_trace(self.journal, &path, self.forgotten)
                .map_err(|error| no_session(error, &path.display().to_string())),
            Job::File(path) | Job::Found(path) => record_file(self.journal, &path, self.forgotten)
                .map_err(|error| no_session(error, &path.display().to_string())),
            Job::Thread(thread) => {
                let recorded = record_thread(self.journal, &self.library, &thread, self.forgotten);
                let recorded = recorded.map_err(|error| no_session(error, thread.as_str()))?;
                recorded.ok_or_else(|| {
                    Failure::nothing(format!("the store has no session file of `{thread}`")).with_hint(HINT)
                })
            }
            Job::Unlisted(failure) => Err(failure),
        }
    }
}

/// Returns the directory in which a traced session was started.
fn trace_dir(path: &Path) -> Option<String> {
    let dir_in = |name: &str| SessionIdentity::of_file(&path.join(name)).dir;
    dir_in("manifest.json").or_else(|| dir_in("trace.jsonl"))
}

/// Returns true if a path has the name of a session file of Codex, compressed or not.
fn is_rollout(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("rollout-"))
}

fn no_session(error: Error, source: &str) -> Failure {
    let hint = match &error {
        Error::NoThread { .. } => Some("only session files and traces of Codex can be recorded".to_owned()),
        Error::Forgotten { .. } => Some(format!("`steno spine record --again {source}` records it anyway")),
        Error::OtherSource { .. }
        | Error::Forgetting { .. }
        | Error::Source { .. }
        | Error::Library(_)
        | Error::Spool { .. }
        | Error::Journal { .. } => None,
    };
    let failure = connections::failure(error);
    Failure { hint: hint.or(failure.hint), ..failure }
}

fn tell((threads, written): &RecordedSpine, is_json: bool, output: &mut Output) {
    let names: Vec<&str> = threads.iter().map(ThreadId::as_str).collect();
    if is_json {
        let line = json!({
            "threads": names, "records": written.records, "known": written.known, "refused": written.refused,
        });
        return output.json_line(&line.to_string());
    }
    let new = count(written.records, "new record");
    let known = if written.known > 0 { format!(", {} known", written.known) } else { String::new() };
    output.line(&format!("recorded  {}  {new}{known}", visible(&names.join(", "), Lines::Escape)));
    if written.refused > 0 {
        recording::warn(&format!("{} too long for a spine", count(written.refused, "record")));
    }
}
