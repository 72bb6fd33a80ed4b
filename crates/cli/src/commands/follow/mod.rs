//! `steno follow`: shows a session as it is recorded, as a conversation or as events.

mod conversation;
mod live_session;
mod live_view;
mod pace;

use std::time::Duration;

use steno_journal::{Error as JournalError, Follower, Store};
use steno_library::{Error as LibraryError, warn_about_broken_seals};
use steno_model::{RunId, Seq};

use super::event_lines;
use crate::args::FollowArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

/// How long to wait before checking again, if the system does not notify of changes.
const WAIT_MAX: Duration = Duration::from_secs(1);
const WAIT_FOR_RUN: Duration = Duration::from_millis(50);

pub fn run(args: &FollowArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let has_events = args.events || args.form.raw || args.form.json;
    let run = if let Some(name) = &args.run {
        runs::find_run(name, settings).map_err(|failure| {
            if args.wait && failure.exit == Exit::CheckFailed {
                failure.with_hint("to wait for a run that does not exist yet, use its whole UUID")
            } else {
                failure
            }
        })?
    } else {
        let find = if has_events { live_session::find_written } else { live_session::find };
        live_session::find_or_wait(find, settings, output)?
    };
    if has_events {
        events(run, args, settings, output)
    } else {
        conversation::follow(run, args, settings, output)
    }
}

/// Prints a line for each event of a run.
fn events(run: RunId, args: &FollowArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let from = Seq::new(args.from).ok_or_else(|| Failure::usage("events are numbered from 1"))?;
    let open = |store: &Store| Ok(Follower::open(store, run, from)?);
    let (store, mut follower) = open_when_there(args, settings, open)?;
    warn_about_broken_seals(&store, run);
    loop {
        while let Some(recorded) = follower.read_next()? {
            event_lines::print(&recorded, args.form, output);
            if output.is_broken() {
                return Ok(Exit::Done);
            }
        }
        if !output.flush() || Output::is_abandoned() {
            return Ok(Exit::Done);
        }
        // A completed run may be opened again; it has ended only when no process has it open.
        if follower.is_completed() && !store.is_locked(run)? {
            return Ok(Exit::Done);
        }
        follower.wait(WAIT_MAX).map_err(|error| ended(&store, run, error))?;
    }
}

/// Returns the failure that ends following. After a run was derived again, its events have other numbers.
fn ended(store: &Store, run: RunId, error: JournalError) -> Failure {
    let is_rederived = matches!(error, JournalError::Vanished { .. })
        && store.has(run).unwrap_or(false)
        && store.superseded(run).is_ok_and(|superseded| !superseded.is_empty());
    if !is_rederived {
        return error.into();
    }
    Failure::nothing(format!("run {run} was derived again, and its events have new numbers"))
        .with_hint("`steno follow` shows them from the beginning")
}

/// Opens something in the store, with `--wait` as soon as it is there.
fn open_when_there<T>(
    args: &FollowArgs,
    settings: &Settings,
    open: impl Fn(&Store) -> Result<T, LibraryError>,
) -> Result<(Store, T), Failure> {
    loop {
        let store = match runs::open_store(settings)? {
            Some(store) => store,
            None if args.wait => {
                std::thread::sleep(WAIT_FOR_RUN);
                continue;
            }
            None => runs::need_store(settings)?,
        };
        match open(&store) {
            Ok(opened) => return Ok((store, opened)),
            Err(LibraryError::Journal(JournalError::NoSuchRun { .. })) if args.wait => {
                std::thread::sleep(WAIT_FOR_RUN);
            }
            Err(error) => return Err(error.into()),
        }
    }
}
