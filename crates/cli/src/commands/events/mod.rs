//! `steno events`: shows the events of a run.

mod agent_files;

use std::collections::HashMap;
use std::ops::ControlFlow;

use steno_journal::{Error as JournalError, Reader, RecordedEvent};
use steno_library::{Files, Origin, fitting_seals, split_event};
use steno_model::{ExchangeEvent, Payload, RunId, Seq, Unknowns, Vocabulary as _, Word};
use steno_views::count;

use crate::args::{EventFormat, EventsArgs};
use crate::commands::event_lines;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs::{self, RunOrFile};
use crate::settings::Settings;

pub fn run(args: &EventsArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let (name, only) = split_event(&args.run);
    let target = runs::find(name, settings)?;
    if let RunOrFile::File(path) = &target
        && let Some(files) = Files::unless_transcript(path)?
    {
        return show_foreign(files, args, only, output);
    }
    if args.completeness {
        let message =
            format!("`{}` is not an agent's file: `--completeness` is only for agents' files", args.run);
        return Err(Failure::usage(message).with_hint("`steno verify` checks a transcript"));
    }
    let mut reader = runs::open_reader(&target, settings)?;
    let (mut shown, mut unknown) = (0_u64, 0_u64);
    while let Some(recorded) = reader.read_next().map_err(|error| {
        // The events before the damage were shown; now report the damage.
        output.flush();
        damage(error)
    })? {
        if is_wanted(&recorded.event, args, only) {
            if args.strict {
                check_strict(&recorded)?;
            }
            unknown += u64::from(recorded.event.unknowns() != Unknowns::default());
            event_lines::print(&recorded, args.form, output);
            shown += 1;
        }
        if output.is_broken() || only.is_some() && shown > 0 {
            break;
        }
    }
    if unknown > 0 {
        tracing::warn!(
            "{} with types or words that this version of `steno` does not know",
            count(unknown, "event")
        );
    }
    if only.is_none() {
        warn_of_torn_tail(&reader, &target, settings)?;
    }
    if shown == 0 {
        return Err(Failure::empty(format!("no matching events in `{}`", args.run)));
    }
    Ok(Exit::Done)
}

/// Returns the failure for damage. Its hint does not name `steno events`, which has just run.
fn damage(error: JournalError) -> Failure {
    let failure = Failure::from(error);
    if failure.exit != Exit::CheckFailed {
        return failure;
    }
    failure
        .with_hint("the events before the damage were shown, and nothing was changed; `steno verify` shows what is wrong")
}

/// Shows the events of agents' files.
fn show_foreign(files: Files, args: &EventsArgs, only: Option<Seq>, output: &mut Output) -> Outcome {
    if args.completeness {
        agent_files::show_completeness(files, args.form.json, output)?.check_known(&args.run)?;
        return Ok(Exit::Done);
    }
    let mut shown = 0_u64;
    let mut headings = RunHeadings::default();
    let mut strange = None;
    let tally = agent_files::read(files, |origin, event| {
        if is_wanted(&event, args, only) {
            if args.strict
                && let Err(failure) = check_made(&event)
            {
                strange = Some(failure);
                return ControlFlow::Break(());
            }
            headings.before(origin, &event, args.form, output);
            event_lines::print_made(event, args.form, output);
            shown += 1;
        }
        if output.is_broken() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(failure) = strange {
        output.flush();
        return Err(failure);
    }
    tally.check_known(&args.run)?;
    if args.strict && tally.unreadable > 0 {
        let records = count(tally.unreadable, "record");
        return Err(Failure::nothing(format!("`{}`: {records} could not be parsed", args.run)));
    }
    if shown == 0 && !tally.is_enough {
        return Err(Failure::empty(format!("no matching events in `{}`", args.run)));
    }
    Ok(Exit::Done)
}

/// The lines that name the run whose events come next.
#[derive(Default)]
struct RunHeadings {
    /// The run and the file that were named last.
    last: Option<(RunId, u64)>,
    /// In which file each run was met first.
    first: HashMap<RunId, u64>,
}

impl RunHeadings {
    /// Prints the run of an event if it differs from the last one; a copy in another file is shown with its file.
    fn before(&mut self, origin: &Origin, event: &ExchangeEvent, form: EventFormat, output: &mut Output) {
        let now = Some((event.run_id, origin.number));
        if std::mem::replace(&mut self.last, now) == now {
            return;
        }
        let is_again = *self.first.entry(event.run_id).or_insert(origin.number) != origin.number;
        if !form.raw && !form.json {
            event_lines::print_run(event, origin, is_again, output);
        }
    }
}

/// Fails for an event from a record that the adapter does not know, or with unknown words.
fn check_made(event: &ExchangeEvent) -> Result<(), Failure> {
    let run = event.run_id;
    if let Payload::Step(step) = event.payload()
        && step.kind.to_string() == "unknown"
    {
        let name = step.name.to_string();
        return Err(Failure::nothing(format!("event {run}:{}: unknown record `{name}`", event.seq)));
    }
    match ExchangeEvent::parse_strict(event.to_line().as_bytes()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::nothing(format!("event {run}:{}: {error}", event.seq))),
    }
}

fn is_wanted(event: &ExchangeEvent, args: &EventsArgs, only: Option<Seq>) -> bool {
    let is_of = |wanted: &String| match &event.event_type {
        Word::Known(known) => known.as_str() == wanted,
        Word::Unknown(text) => text.is(wanted),
    };
    let is_there = only.is_none_or(|only| event.seq == only) && event.seq.get() >= args.from;
    is_there && (args.types.is_empty() || args.types.iter().any(is_of))
}

fn check_strict(recorded: &RecordedEvent) -> Result<(), Failure> {
    match ExchangeEvent::parse_strict(&recorded.line) {
        Ok(_) => Ok(()),
        Err(error) => {
            let ExchangeEvent { run_id, seq, .. } = &recorded.event;
            Err(Failure::nothing(format!("event {run_id}:{seq}: {error}")))
        }
    }
}

/// Warns of a torn end, unless a process is writing it, or a seal covers it: then a warning was printed, and the
/// bytes may have been acknowledged.
fn warn_of_torn_tail(reader: &Reader, target: &RunOrFile, settings: &Settings) -> Result<(), Failure> {
    let explained = match target {
        RunOrFile::Run(run) => {
            let store = runs::need_store(settings)?;
            store.is_locked(*run)? || fitting_seals(&store, *run).is_err()
        }
        RunOrFile::File(_) => false,
    };
    if reader.rest_bytes() > 0 && !explained {
        tracing::warn!(
            "the last {} bytes are not a whole line and were never acknowledged",
            reader.rest_bytes()
        );
    }
    Ok(())
}
