//! Follows a session as a conversation: all its runs, and those that join it.

use std::time::Duration;

use steno_journal::{Error as JournalError, Store};
use steno_library::{Error as LibraryError, Library, LiveScope, LiveSession, warn_about_broken_seals};
use steno_model::{RunId, Seq};
use steno_views::State;
use steno_views::conversation::Conversation;

use super::live_session;
use super::live_view::{LiveView, SessionNow};
use super::pace::Pace;
use super::{WAIT_MAX, ended, open_when_there};
use crate::args::FollowArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

/// A session that is followed.
struct FollowedSession {
    live: LiveSession,
    view: LiveView,
    /// The event of the run to start with, until the run has it.
    from: Option<(RunId, Seq)>,
    /// Whether there are events that are not drawn.
    has_news: bool,
    draw_pace: Pace,
    find_pace: Pace,
}

pub fn follow(run: RunId, args: &FollowArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let from = Seq::new(args.from).filter(|from| *from > Seq::FIRST).map(|from| (run, from));
    // The number of an event is that of one run.
    let scope = if from.is_some() { LiveScope::Run } else { LiveScope::Session };
    let (store, live) = open_when_there(args, settings, |store| LiveSession::open(store, run, scope))?;
    for run in live.runs() {
        warn_about_broken_seals(&store, run);
    }
    let is_live = live_session::is_live(live.runs(), settings);
    let view = LiveView::new(args.detail, title_of(run, settings), is_live);
    let (draw_pace, find_pace) = (Pace::default(), Pace::default());
    let mut session = FollowedSession { live, view, from, has_news: false, draw_pace, find_pace };
    loop {
        session.read(&store).map_err(|error| session.failure(&store, error))?;
        let has_ended = session.live.has_ended()?;
        if session.live.is_behind() || (has_ended && session.find_runs(&store)?) {
            continue;
        }
        session.draw(has_ended, output)?;
        if !output.flush() || Output::is_abandoned() {
            return Ok(Exit::Done);
        }
        // A completed run may be opened again; the session has ended only when no process has one open.
        if has_ended {
            return Ok(Exit::Done);
        }
        session.live.wait(session.rest());
    }
}

impl FollowedSession {
    /// Reads new events, also of runs that have joined the session.
    fn read(&mut self, store: &Store) -> Result<(), LibraryError> {
        if self.find_pace.rest().is_zero() {
            self.find_runs(store)?;
        }
        self.has_news |= self.live.read()?;
        Ok(())
    }

    /// Finds runs that have joined the session; returns whether there are any.
    fn find_runs(&mut self, store: &Store) -> Result<bool, LibraryError> {
        let Self { live, find_pace, .. } = self;
        let new = find_pace.measure(|| live.find_runs())?;
        for run in &new {
            warn_about_broken_seals(store, *run);
        }
        Ok(!new.is_empty())
    }

    /// Draws new events, unless they were drawn a short time ago.
    fn draw(&mut self, has_ended: bool, output: &mut Output) -> Result<(), LibraryError> {
        let Self { live, view, .. } = self;
        if let Some((run, seq)) = self.from {
            if live.seq_last(run).is_none_or(|last| last < seq) {
                return Ok(());
            }
            view.skip(&live.session_before(run, seq)?);
            self.from = None;
        }
        // At the end, nothing is held back any more.
        if !has_ended && (!self.has_news || !self.draw_pace.rest().is_zero()) {
            return Ok(());
        }
        self.has_news = false;
        self.draw_pace.measure(|| {
            let read_child = |child: RunId| {
                let child = Conversation::of(&live.child(child)?);
                // Its record may be behind that of its call.
                let is_whole = has_ended || child.turns.last().is_some_and(|turn| turn.state != State::Open);
                Some(child).filter(|_| is_whole)
            };
            let now = SessionNow { session: live.session()?, has_ended, read_child: &read_child };
            view.draw(&now, output);
            Ok(())
        })
    }

    /// Returns how long to wait for changes.
    fn rest(&self) -> Duration {
        let pace = if self.has_news { &self.draw_pace } else { &self.find_pace };
        match pace.rest() {
            Duration::ZERO => WAIT_MAX,
            rest => rest.min(WAIT_MAX),
        }
    }

    fn failure(&self, store: &Store, error: LibraryError) -> Failure {
        match (error, self.live.gone_run()) {
            (LibraryError::Journal(error @ JournalError::Vanished { .. }), Some(run)) => {
                ended(store, run, error)
            }
            (error, _) => error.into(),
        }
    }
}

/// Returns the title of a run's session, as lists show it.
fn title_of(run: RunId, settings: &Settings) -> Option<String> {
    let library: Library = runs::open_library(settings).ok()?;
    let session = library.relations().ok()?.owner(run);
    library.title(session)
}
