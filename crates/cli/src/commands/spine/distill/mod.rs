//! `steno spine distill`: windows of a recorded session as Harbor tasks.

mod list;
mod output;
mod recorded;
mod repository;
mod trial;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use steno_capture::git::{self, Snapshot};
use steno_exports::harbor::{Check, Concern, Plan, Refusal, Session, Span, TaskFile, TaskInputs, Wish};
use steno_views::{Lines, count, visible};

use self::recorded::TaskSession;
use super::target;
use crate::args::SpineDistillArgs;
use crate::failure::{Exit, Failure, Outcome, already_exists};
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &SpineDistillArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let mut done = DistillSummary::default();
    let is_one = args.bundles.len() == 1 && args.turns.len() + args.seqs.len() == 1;
    let into = args.output.as_deref().map(|path| Into { path, is_one });
    if let Some(into) = &into {
        into.check()?;
    }
    if let Some(repository) = args.repo.as_ref().filter(|repository| !git::is_repository(repository)) {
        let what = if repository.is_dir() { "is not a git repository" } else { "is not a directory" };
        return Err(Failure::usage(format!("`{}` {what}", repository.display())));
    }
    for name in &args.bundles {
        let read = target::find(name, settings).and_then(|target| TaskSession::read(&target));
        let recorded = match read {
            Ok(recorded) => recorded,
            Err(failure) if args.bundles.len() == 1 => return Err(failure),
            Err(failure) => {
                tracing::warn!("{}", visible(&failure.message, Lines::Escape));
                done.unread += 1;
                continue;
            }
        };
        match &into {
            None => list::show(&recorded, &wish(args), args.json, output),
            Some(into) => Distiller { args, recorded: &recorded, into }.windows(&mut done, output)?,
        }
    }
    done.outcome(args)
}

/// The results of all windows.
#[derive(Default)]
struct DistillSummary {
    made: u64,
    refused: u64,
    unread: u64,
    last: Option<Refusal>,
}

impl DistillSummary {
    fn outcome(self, args: &SpineDistillArgs) -> Outcome {
        if self.unread > 0 {
            let bundles = count(args.bundles.len() as u64, "bundle");
            return Err(Failure::could_not(format!("{} of {bundles} could not be read", self.unread)));
        }
        match self.last {
            Some(refusal) if self.refused == 1 && self.made == 0 => {
                let failure = Failure::nothing(format!("no task was made: {}", refusal.why));
                Err(match refusal.hint {
                    Some(hint) => failure.with_hint(hint),
                    None => failure,
                })
            }
            Some(_) if !args.each_turn || self.made == 0 => {
                let all = count(self.made + self.refused, "window");
                Err(Failure::nothing(format!("{} of {all} did not become a task", self.refused))
                    .with_hint("`--list` shows what each turn would become"))
            }
            Some(_) | None => Ok(Exit::Done),
        }
    }
}

/// The destination of tasks.
struct Into<'a> {
    path: &'a Path,
    /// Whether it is the path of a single task, or the directory of several.
    is_one: bool,
}

impl Into<'_> {
    fn check(&self) -> Result<(), Failure> {
        if self.is_one && self.path.symlink_metadata().is_ok() {
            return Err(already_exists(self.path));
        }
        Ok(())
    }

    fn of(&self, name: &str) -> PathBuf {
        if self.is_one { self.path.to_owned() } else { self.path.join(name) }
    }
}

struct Distiller<'a> {
    args: &'a SpineDistillArgs,
    recorded: &'a TaskSession,
    into: &'a Into<'a>,
}

impl Distiller<'_> {
    fn windows(&self, done: &mut DistillSummary, output: &mut Output) -> Result<(), Failure> {
        for span in spans(self.args, &self.recorded.session) {
            match self.window(span, output)? {
                Ok(()) => done.made += 1,
                Err(refusal) => {
                    list::refused(&self.recorded.session, span, &refusal, self.args, output);
                    done.refused += 1;
                    done.last = Some(refusal);
                }
            }
        }
        Ok(())
    }

    fn window(&self, span: Span, output: &mut Output) -> Result<Result<(), Refusal>, Failure> {
        let mut plan = match Plan::make(&self.recorded.session, span, wish(self.args)) {
            Ok(plan) => plan,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let path = self.into.of(&plan.name());
        if path.symlink_metadata().is_ok() {
            let why = format!("`{}` already exists, and was not changed", path.display());
            return Ok(Err(Refusal::new(why)));
        }
        let files = match self.files(&mut plan, &path)? {
            Ok(files) => files,
            Err(refusal) => return Ok(Err(refusal)),
        };
        output::write(&path, &files)?;
        list::made(&plan, &path, &files, self.args.json, output);
        self.warn(&plan);
        Ok(Ok(()))
    }

    fn files(&self, plan: &mut Plan<'_>, path: &Path) -> Result<Result<Vec<TaskFile>, Refusal>, Failure> {
        let artifact =
            |diff: &steno_exports::harbor::Diff| self.recorded.artifacts.read(&diff.path, &diff.sha256);
        let is_wanted = !self.args.no_trajectory;
        let before = if is_wanted {
            self.recorded.session.before(&plan.turns[0])
        } else {
            Err("`--no-trajectory` was given".to_owned())
        };
        let segments = self.recorded.segments.clone();
        let mut given = TaskInputs { artifact: &artifact, snapshot: None, before, segments };
        if let Some(repository) = &self.args.repo {
            let snapshot = match Snapshot::read(repository, &plan.start.commit) {
                Ok(snapshot) => snapshot,
                Err(why) => return Ok(Err(Refusal::new(why))),
            };
            for submodule in snapshot.submodules() {
                plan.start.doubts.push(format!("the submodule `{submodule}` is not included"));
            }
            let dir = output::sibling(path, "try")?;
            if let Err(refusal) = repository::try_patches(&snapshot, plan, &given, &dir)? {
                return Ok(Err(refusal));
            }
            given.snapshot = Some(repository::to_tar(&snapshot)?);
            let files = plan.files(&given);
            if let (Ok(files), true) = (&files, self.args.trial)
                && let Err(refusal) = trial::run(plan, files, &snapshot, path)?
            {
                return Ok(Err(refusal));
            }
            return Ok(files);
        }
        Ok(plan.files(&given))
    }

    /// Reports what is uncertain about a task.
    fn warn(&self, plan: &Plan<'_>) {
        let name = plan.name();
        for doubt in &plan.start.doubts {
            tracing::warn!("{name}: {}", visible(doubt, Lines::Escape));
        }
        if let (None, Check::Command(chosen)) = (&self.args.image, &plan.check) {
            let script = visible(&chosen.script, Lines::Escape);
            tracing::warn!(
                "{name}: the record does not name the session's image; use `--image` to name one that has what `{script}` needs"
            );
        }
        if let Err(why) = &plan.solution {
            tracing::warn!("{name} has no solution: {}", visible(why, Lines::Escape));
        }
    }
}

fn wish(args: &SpineDistillArgs) -> Wish {
    Wish {
        allowed: args.allow.iter().filter_map(|word| Concern::named(word)).collect::<BTreeSet<_>>(),
        root: args.root.clone(),
        has_repository: args.repo.is_some(),
        image: args.image.clone(),
    }
}

fn spans(args: &SpineDistillArgs, session: &Session) -> Vec<Span> {
    if args.each_turn {
        return session.turns.iter().map(|turn| Span::Turns(turn.number, turn.number)).collect();
    }
    args.turns.iter().chain(&args.seqs).copied().collect()
}
