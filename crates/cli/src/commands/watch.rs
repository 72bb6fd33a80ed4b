//! `steno watch`: one pass over the agents' homes, or over what is named, and then every change as it comes.

use crate::archiving::{self, Report, follow};
use crate::args::WatchArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &WatchArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let places = archiving::places(&args.paths)?;
    let mut archive = archiving::open(settings)?;
    let found = places.list();
    archiving::warn_of_problems(&found);
    let (health, exit) = follow(&mut archive, places, args.tailing, "following; Ctrl-C ends it")?;
    Report::of(archive.vault(), &found, health)?.print(output, args.json);
    Ok(exit)
}
