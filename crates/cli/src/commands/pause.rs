//! `steno pause` and `steno resume`: recording stands still, and goes on.

use steno_recorder::archive::follower;

use crate::archiving::follow::tell;
use crate::archiving::pausing;
use crate::args::PauseArgs;
use crate::failure::{Exit, Failure, Outcome};
use crate::runs;
use crate::settings::Settings;

pub fn pause(args: &PauseArgs, settings: &Settings) -> Outcome {
    let store = runs::make_store(settings)?;
    let until = match args.time {
        None => None,
        Some(time) => Some(
            jiff::Timestamp::now()
                .checked_add(time)
                .map_err(|error| Failure::usage(format!("`--for` reaches beyond all calendars: {error}")))?,
        ),
    };
    pausing::pause(&**store.disk(), until).map_err(|error| {
        Failure::could_not(format!(
            "cannot pause recording into `{}`: {error}",
            settings.store.value.display()
        ))
    })?;
    match until {
        None => tell("recording is paused until `steno resume`"),
        Some(until) => {
            tell(&format!("recording is paused until {}", until.strftime("%Y-%m-%d %H:%M:%S UTC")));
        }
    }
    Ok(Exit::Done)
}

pub fn resume(settings: &Settings) -> Outcome {
    let store = runs::need_store(settings)?;
    if !pausing::is_paused(&**store.disk()) {
        return Err(Failure::nothing("recording is not paused"));
    }
    pausing::resume(&**store.disk())?;
    if follower(&**store.disk()).is_some() {
        tell("recording goes on; what agents wrote meanwhile is archived in a moment");
    } else {
        tell("recording is no longer paused; nobody follows the agents now, `steno up` does");
    }
    Ok(Exit::Done)
}
