//! `steno export atif`: writes sessions as ATIF trajectories.

use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use steno_exports::atif::{Trajectory, TrajectoryCounts};
use steno_model::RunId;
use steno_views::{Lines, count, visible};

use super::destination::{Destination, MediaDir};
use super::families::{SessionFamily, SessionQueue};
use crate::args::AtifArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, size};
use crate::runs;
use crate::settings::Settings;

/// How many files are listed one by one.
const LISTED_MAX: u64 = 20;

pub fn run(args: &AtifArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let library = if args.all { runs::need_library(settings)? } else { runs::open_library(settings)? };
    let mut wanted = if args.all {
        SessionQueue::all(&library)?
    } else {
        SessionQueue::find(&args.runs, &library, settings)?
    };
    let destination = Destination::open(&args.output, args.force)?;
    if destination.is_stdout() && args.json {
        return Err(Failure::usage("`--json` and `-o -` cannot both use stdout")
            .with_hint("write the trajectories to a file"));
    }
    let bar = bar(wanted.len() as u64);
    let media = destination.media();
    let empty = if args.all { EmptySessions::LeftOut } else { EmptySessions::Failure };
    let (as_json, totals) = (args.json, ExportTotals::default());
    let mut export = AtifExport { destination, media, as_json, empty, output, bar, totals };
    while let Some(session) = wanted.next() {
        match session {
            Ok(session) => export.session(&session)?,
            Err(failure) => export.failed(None, failure),
        }
        export.bar.inc(1);
        if export.destination.is_stdout() && export.output.is_broken() {
            break;
        }
    }
    export.finish(&args.output)
}

fn bar(sessions: u64) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(sessions), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{bar:30} {human_pos}/{human_len} sessions");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// What to do with a session without steps, which ATIF cannot represent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EmptySessions {
    /// It was named: fail.
    Failure,
    /// It is one of all sessions: leave it out.
    LeftOut,
}

/// Counts of what was exported and what was not.
#[derive(Default)]
struct ExportTotals {
    sessions: u64,
    failed: u64,
    left_out: u64,
    bytes: u64,
    counted: TrajectoryCounts,
    /// The exit code of the worst failure.
    exit: Option<Exit>,
}

struct AtifExport<'a> {
    destination: Destination,
    media: MediaDir,
    as_json: bool,
    empty: EmptySessions,
    output: &'a mut Output,
    bar: ProgressBar,
    totals: ExportTotals,
}

impl AtifExport<'_> {
    fn session(&mut self, session: &SessionFamily) -> Result<(), Failure> {
        for root in &session.roots {
            if let Err(failure) = self.root(session, *root) {
                // Wrong use fails for every session alike.
                if failure.exit == Exit::Usage {
                    return Err(failure);
                }
                self.failed(Some(*root), failure);
            }
        }
        if let Some(trouble) = &session.trouble {
            let failure = Failure {
                exit: trouble.exit,
                hint: trouble.hint.clone(),
                ..Failure::could_not(&trouble.message)
            };
            self.failed(None, failure);
        }
        Ok(())
    }

    fn root(&mut self, session: &SessionFamily, root: RunId) -> Result<(), Failure> {
        self.destination.check(root)?;
        let trajectory = session.family.trajectory(root, &mut self.media);
        self.media.check()?;
        let Some(trajectory) = trajectory else {
            let words = "it has no steps, and ATIF cannot represent an empty session";
            if self.empty == EmptySessions::Failure {
                return Err(Failure::nothing(words));
            }
            self.left_out(root, words);
            return Ok(());
        };
        let Trajectory { json, counted } = trajectory;
        let bytes = json.len() as u64 + 1;
        let path = self.destination.write(root, json, self.output)?;
        self.totals.sessions += 1;
        self.totals.bytes += bytes;
        add(&mut self.totals.counted, counted);
        if let Some(path) = path {
            self.tell(root, &path, counted, bytes);
        }
        Ok(())
    }

    fn tell(&mut self, run: RunId, path: &Path, counted: TrajectoryCounts, bytes: u64) {
        if self.as_json {
            let object = json!({
                "run_id": run.to_string(),
                "file": path.to_string_lossy(),
                "bytes": bytes,
                "steps": counted.steps,
                "responses": counted.responses,
                "calls": counted.calls,
                "results": counted.results,
                "subagents": counted.trajectories - 1,
                "media": counted.media,
            });
            return self.output.json_line(&object.to_string());
        }
        if self.totals.sessions <= LISTED_MAX {
            self.output.line(&format!("{run}  {}", what(counted)));
        } else if self.totals.sessions == LISTED_MAX + 1 {
            self.output.line("…");
        }
    }

    fn left_out(&mut self, run: RunId, words: &str) {
        self.totals.left_out += 1;
        if self.as_json {
            let object = json!({"run_id": run.to_string(), "left_out": words});
            return self.output.json_line(&object.to_string());
        }
        self.bar.suspend(|| tracing::warn!("run {run} was left out: {words}"));
    }

    fn failed(&mut self, run: Option<RunId>, failure: Failure) {
        self.totals.failed += 1;
        let worst = self.totals.exit.is_none_or(|exit| exit.code() < failure.exit.code());
        if worst {
            self.totals.exit = Some(failure.exit);
        }
        let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        let run_text = run.map(|run| format!("run {run} was not exported: ")).unwrap_or_default();
        let message = format!("{run_text}{}{hint}", failure.message);
        self.bar.suspend(|| tracing::warn!("{}", visible(&message, Lines::Escape)));
        if self.as_json {
            let object = json!({"run_id": run.map(|run| run.to_string()), "error": failure.message});
            self.output.json_line(&object.to_string());
        }
    }

    fn finish(self, path: &Path) -> Outcome {
        let Self { destination, as_json, output, bar, totals, .. } = self;
        bar.finish_and_clear();
        let is_stdout = destination.is_stdout();
        destination.finish()?;
        if as_json {
            let object = json!({
                "exported": totals.sessions,
                "failed": totals.failed,
                "left_out": totals.left_out,
                "bytes": totals.bytes,
                "steps": totals.counted.steps,
                "calls": totals.counted.calls,
                "results": totals.counted.results,
            });
            output.json_line(&object.to_string());
        } else if !is_stdout && totals.sessions > 0 {
            let left_out = match totals.left_out {
                0 => String::new(),
                number => format!("; {} without steps left out", sessions(number)),
            };
            output.line(&format!(
                "{} written to {}: {}, {}{left_out}",
                sessions(totals.sessions),
                visible(&path.display().to_string(), Lines::Escape),
                what(totals.counted),
                size(totals.bytes)
            ));
        }
        match (totals.failed, totals.sessions, totals.exit) {
            (0, 0, _) => {
                Err(Failure::empty("there is no session to export")
                    .with_hint("`steno ls` lists the sessions"))
            }
            (0, _, _) => Ok(Exit::Done),
            (failed, all, exit) => {
                let message = format!("{} of {} not exported", failed, sessions(failed + all));
                Err(Failure { exit: exit.unwrap_or(Exit::CheckFailed), ..Failure::nothing(message) })
            }
        }
    }
}

fn sessions(number: u64) -> String {
    count(number, "session")
}

/// Returns the content of trajectories in words.
fn what(counted: TrajectoryCounts) -> String {
    let mut parts = vec![count(counted.steps, "step"), count(counted.calls, "call")];
    if counted.media > 0 {
        parts.push(if counted.media == 1 {
            "1 media file".to_owned()
        } else {
            format!("{} media files", counted.media)
        });
    }
    parts.join(", ")
}

fn add(sum: &mut TrajectoryCounts, more: TrajectoryCounts) {
    sum.trajectories += more.trajectories;
    sum.steps += more.steps;
    sum.responses += more.responses;
    sum.calls += more.calls;
    sum.results += more.results;
    sum.media += more.media;
}
