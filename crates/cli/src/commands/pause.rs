//! `steno pause` and `steno resume`: pauses and resumes recording.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use steno_journal::{Journal, Pause};
use steno_recorder::sources::{SkipReport, SourceRecorder, SourceRecorderOptions, follower};
use steno_views::count;

use crate::args::PauseArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::notice;
use crate::recording::{self, journal_options};
use crate::runs;
use crate::settings::Settings;

pub fn pause(args: &PauseArgs, settings: &Settings) -> Outcome {
    let store = runs::make_store(settings)?;
    let now = Timestamp::now();
    let until = match args.time {
        None => None,
        Some(time) => Some(
            now.checked_add(time).map_err(|error| Failure::usage(format!("`--for` is too long: {error}")))?,
        ),
    };
    // A pause with `--skip` that is over is applied before the next one begins.
    if let Some(over) = store.pause_set().filter(|pause| pause.skips && pause.is_over(now)) {
        skip(&over, settings)?;
        store.resume()?;
    }
    // An active pause with `--skip` keeps its beginning.
    let before = store.pause_set().filter(|pause| !pause.is_over(now));
    let skipped = before.filter(|pause| pause.skips);
    let since = skipped.and_then(|pause| pause.since).unwrap_or(now);
    let pause = Pause { since: Some(since), until, skips: args.skip || skipped.is_some() };
    store.pause(&pause).map_err(|error| {
        let path = settings.store.value.display();
        Failure::could_not(format!("cannot pause recording into `{path}`: {error}"))
    })?;
    if !store.wait_for_pause() {
        recording::warn("a recording that began before the pause has not stopped yet");
    }
    let local = |until: Timestamp| until.to_zoned(TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string();
    let end = until.map_or("`steno resume`".to_owned(), local);
    notice(&format!("recording is paused until {end}"));
    notice(if pause.skips {
        "sessions that agents write to until then are not archived any further"
    } else {
        "what agents write to their files until then is archived afterwards; `--skip` leaves it out"
    });
    Ok(Exit::Done)
}

pub fn resume(settings: &Settings) -> Outcome {
    let store = runs::need_store(settings)?;
    let pause = store.pause_set().ok_or_else(|| Failure::nothing("recording is not paused"))?;
    let skipped = if pause.skips { Some(skip(&pause, settings)?) } else { None };
    store.resume()?;
    if let Some(SkipReport { sessions, pieces }) = skipped {
        let lines = if pieces > 0 {
            format!(" and {} of shared files", count(pieces, "line"))
        } else {
            String::new()
        };
        notice(&format!("{}{lines} left out permanently", count(sessions, "session")));
    }
    let is_followed = follower(&**store.disk()).is_some();
    notice(match (is_followed, pause.skips) {
        (true, false) => "recording continues; what agents wrote during the pause is archived now",
        (true, true) => "recording continues",
        (false, _) => "the pause is over, but `steno up` is not running: nothing is recorded",
    });
    Ok(Exit::Done)
}

/// Leaves out what agents wrote since the pause began.
fn skip(pause: &Pause, settings: &Settings) -> Result<SkipReport, Failure> {
    let journal = Journal::new(runs::make_store(settings)?, journal_options(settings));
    let mut archive =
        SourceRecorder::open(journal, SourceRecorderOptions::default()).map_err(recording::failure)?;
    archive.skip(pause, &recording::places(&[], settings)?).map_err(recording::failure)
}
