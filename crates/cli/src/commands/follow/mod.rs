//! `steno follow`: shows a session as it is recorded, as a conversation or as events.

mod live_session;
mod live_view;

use std::time::Duration;

use steno_journal::{Error as JournalError, Follower, RecordedEvent, Store};
use steno_library::warn_about_broken_seals;
use steno_model::{RunId, Seq};
use steno_session::Content;
use steno_views::conversation::Conversation;
use steno_views::count;

use super::event_lines;
use crate::args::FollowArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, notice};
use crate::runs;
use crate::settings::Settings;
use live_view::LiveView;

/// How long to wait before checking again, if the system does not notify of changes.
const WAIT_MAX: Duration = Duration::from_secs(1);
const WAIT_FOR_RUN: Duration = Duration::from_millis(50);

pub fn run(args: &FollowArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let run = match &args.run {
        Some(name) => runs::find_run(name, settings).map_err(|failure| {
            if args.wait && failure.exit == Exit::CheckFailed {
                failure.with_hint("to wait for a run that does not exist yet, use its whole UUID")
            } else {
                failure
            }
        })?,
        None => live_session::find_or_wait(settings, output)?,
    };
    let from = Seq::new(args.from).ok_or_else(|| Failure::usage("events are numbered from 1"))?;
    let has_events = args.events || args.form.raw || args.form.json;
    // A conversation needs all events; those before `--from` are not shown.
    let first = if has_events { from } else { Seq::FIRST };
    let (store, mut follower) = open(run, first, args, settings)?;
    warn_about_broken_seals(&store, run);
    if !has_events {
        notice_other_runs(run, settings);
    }
    let title = if has_events { None } else { title_of(run, settings) };
    let mut view = LiveView::new(run, from, args.detail, Box::new(|child| read_child(child, settings)))
        .with_title(title)
        .with_live(!has_events && live_session::is_live(run, settings));
    let take = |recorded: RecordedEvent, view: &mut LiveView<'_>, output: &mut Output| {
        if has_events {
            event_lines::print(&recorded, args.form, output);
        } else {
            view.push(recorded.event, output);
        }
    };
    loop {
        while let Some(recorded) = follower.read_next()? {
            take(recorded, &mut view, output);
            if output.is_broken() {
                return Ok(Exit::Done);
            }
        }
        if !has_events {
            view.draw(output);
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

/// Reads what is recorded of a subagent so far; `None` if nothing is.
fn read_child(child: RunId, settings: &Settings) -> Option<Conversation> {
    let library = runs::open_library(settings).ok()?;
    let session = library.session(child, Content::Whole).ok()?;
    Some(Conversation::of(&session)).filter(|child| !child.turns.is_empty() || !child.outside.is_empty())
}

/// Returns the title of a run's session, as lists show it.
fn title_of(run: RunId, settings: &Settings) -> Option<String> {
    let library = runs::open_library(settings).ok()?;
    let session = library.relations().ok()?.owner(run);
    library.title(session)
}

/// Says that other runs record the same session: only `show` merges them.
fn notice_other_runs(run: RunId, settings: &Settings) {
    let Ok(library) = runs::open_library(settings) else { return };
    let Ok(sessions) = library.sessions() else { return };
    let session = sessions.iter().map(|session| &session.session).find(|session| session.runs.contains(&run));
    if let Some(session) = session.filter(|session| session.runs.len() > 1) {
        let others = count(session.runs.len() as u64 - 1, "other run");
        notice(&format!(
            "this is one run of its session; {others} not shown: `steno show {}` shows the whole session",
            session.id
        ));
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

fn open(run: RunId, from: Seq, args: &FollowArgs, settings: &Settings) -> Result<(Store, Follower), Failure> {
    loop {
        let store = match runs::open_store(settings)? {
            Some(store) => store,
            None if args.wait => {
                std::thread::sleep(WAIT_FOR_RUN);
                continue;
            }
            None => runs::need_store(settings)?,
        };
        match Follower::open(&store, run, from) {
            Ok(follower) => return Ok((store, follower)),
            Err(JournalError::NoSuchRun { .. }) if args.wait => std::thread::sleep(WAIT_FOR_RUN),
            Err(error) => return Err(error.into()),
        }
    }
}
