//! `steno watch`: one pass over the agents' homes, or over what is named, and then every change as it comes.

use super::import::exit_of;
use crate::archiving::{self, Ended};
use crate::args::WatchArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &WatchArgs, settings: &Settings, output: &mut Output) -> Outcome {
    archiving::logging_entries(&args.entries, || archive(args, settings, output))
}

fn archive(args: &WatchArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let places = archiving::places(&args.paths, settings)?;
    let mut archive = archiving::open(settings, &args.entries)?;
    if let ended @ Ended::Stopped = archiving::pass_unless_paused(&mut archive, &places, args.json, output)? {
        return Ok(exit_of(ended));
    }
    let again = || archiving::places(&args.paths, settings).ok();
    archiving::follow(&mut archive, places, args.tailing.options(settings), &again)
}
