//! `steno import`: one pass over the agents' homes, or over what is named.

use crate::archiving::{self, Ended};
use crate::args::ImportArgs;
use crate::failure::{Exit, Outcome};
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &ImportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    archiving::logging_entries(&args.entries, || archive(args, settings, output))
}

fn archive(args: &ImportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let places = archiving::places(&args.paths, settings)?;
    let mut archive = archiving::open(settings, &args.entries)?;
    let ended = archiving::pass(&mut archive, &places, args.json, output)?;
    Ok(exit_of(ended))
}

/// Returns the exit code that the end of a pass stands for.
pub fn exit_of(ended: Ended) -> Exit {
    const INTERRUPT: u8 = 2;
    match ended {
        Ended::Done => Exit::Done,
        Ended::Failed => Exit::Could,
        Ended::Stopped => Exit::Signal(INTERRUPT),
    }
}
