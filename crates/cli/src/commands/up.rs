//! `steno up`: the main job. Finds every agent on this machine, archives its history, and follows it.

use steno_recorder::archive::Places;

use super::import::exit_of;
use crate::archiving::{self, Ended, follow::tell};
use crate::args::UpArgs;
use crate::demo;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &UpArgs, settings: &Settings, output: &mut Output) -> Outcome {
    archiving::logging_entries(&args.entries, || archive(args, settings, output))
}

fn archive(args: &UpArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let mut archive = archiving::open(settings, &args.entries)?;
    let places = if args.demo { sample_places(settings)? } else { archiving::places(&[], settings)? };
    if places.homes.is_empty() {
        tell("no agent has kept anything on this machine yet");
    }
    if args.once {
        return Ok(exit_of(archiving::pass(&mut archive, &places, args.json, output)?));
    }
    if let ended @ Ended::Stopped = archiving::pass_unless_paused(&mut archive, &places, args.json, output)? {
        return Ok(exit_of(ended));
    }
    let again = || if args.demo { None } else { archiving::places(&[], settings).ok() };
    archiving::follow(&mut archive, places, args.tailing.options(settings), &again)
}

/// Returns the homes of the sample sessions, which lie in the store.
fn sample_places(settings: &Settings) -> Result<Places, Failure> {
    let dir = settings.store.value.join("demo");
    let homes = demo::homes(&dir).map_err(|error| {
        Failure::could_not(format!("cannot write the samples to `{}`: {error}", dir.display()))
    })?;
    Ok(Places { homes, ..Places::default() })
}
