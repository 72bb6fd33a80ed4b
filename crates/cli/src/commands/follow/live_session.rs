//! Finds the session that is being recorded.

use std::time::Duration;

use steno_library::{Library, SessionOverview};
use steno_model::RunId;

use crate::failure::{Exit, Failure};
use crate::output::{Output, notice};
use crate::runs::{need_library, open_library};
use crate::settings::Settings;
use crate::time_words::{age, now};

/// How long to wait before looking again.
const WAIT: Duration = Duration::from_secs(2);
/// How old the last event of a live session is at most.
const LIVE_SECONDS_MAX: i64 = 60;

/// Returns the run to follow. If nothing is being recorded, it waits on a terminal until something is, and fails elsewhere.
pub fn find_or_wait(
    find: fn(&Library) -> Result<RunId, Failure>,
    settings: &Settings,
    output: &Output,
) -> Result<RunId, Failure> {
    let mut failure = match find(&need_library(settings)?) {
        Err(failure) if output.width().is_some() && failure.exit == Exit::NothingFound => failure,
        found => return found,
    };
    notice(&failure.message);
    notice("waiting for one; `steno up` records sessions as they run, Ctrl-C stops");
    loop {
        std::thread::sleep(WAIT);
        if Output::is_abandoned() {
            return Err(failure);
        }
        match find(&need_library(settings)?) {
            Err(again) if again.exit == Exit::NothingFound => failure = again,
            found => return found,
        }
    }
}

/// Returns a run of the session to follow: of the sessions that are being recorded, the one with the latest event.
pub fn find(library: &Library) -> Result<RunId, Failure> {
    let session = find_session(library)?;
    session.session.runs.first().copied().or_else(|| session.first_run()).ok_or_else(no_run)
}

/// Returns the run to follow if each event is shown: one that is being written, also of a subagent.
pub fn find_written(library: &Library) -> Result<RunId, Failure> {
    let session = find_session(library)?;
    let store = library.store()?;
    let runs = || session.session.runs.iter().chain(&session.session.below).copied();
    let written = runs().find(|run| store.is_locked(*run).unwrap_or(false));
    written.or_else(|| session.first_run()).ok_or_else(no_run)
}

fn no_run() -> Failure {
    Failure::empty("no session is being recorded")
}

fn find_session(library: &Library) -> Result<SessionOverview, Failure> {
    let now = now().timestamp();
    let sessions = library.sessions()?;
    let is_recent = |session: &SessionOverview| {
        session.last_instant().is_some_and(|last| now.as_second() - last.as_second() <= LIVE_SECONDS_MAX)
    };
    let live = sessions.iter().filter(|session| session.state == "recording" || is_recent(session));
    let latest = live.max_by_key(|session| session.last_instant());
    latest.cloned().ok_or_else(|| nothing_live(library, &sessions, now))
}

/// Tells whether one of a session's runs is being recorded, or grew within a minute and has no end.
pub fn is_live(session: impl Iterator<Item = RunId>, settings: &Settings) -> bool {
    let Ok(library) = open_library(settings) else { return false };
    let is_run_live = |run: RunId| {
        let overview = library.overview(run).ok().flatten();
        overview.is_some_and(|overview| match overview.state {
            "recording" => true,
            "completed" | "failed" => false,
            _ => overview
                .last()
                .is_some_and(|last| now().timestamp().as_second() - last.as_second() <= LIVE_SECONDS_MAX),
        })
    };
    session.into_iter().any(is_run_live)
}

/// Returns the failure that names the latest session.
fn nothing_live(library: &Library, sessions: &[SessionOverview], now: jiff::Timestamp) -> Failure {
    let latest = sessions.iter().max_by_key(|session| session.last_instant());
    let words = latest.map(|session| {
        let title = library.title(session.session.id).map(|title| format!(", \"{title}\""));
        let ago = session.last_instant().map(|last| format!(", {} ago", age(last, now)));
        format!(
            "; the latest is {}{}{}",
            session.session.id,
            title.unwrap_or_default(),
            ago.unwrap_or_default()
        )
    });
    Failure::empty(format!("no session is being recorded{}", words.unwrap_or_default()))
        .with_hint("`steno show last` shows the latest, `steno up` records sessions as they run")
}
