//! `steno import`: one pass over the agents' homes, or over what is named.

use crate::archiving::{self, Forgotten, Pass, Stop, check_no_demo};
use crate::args::ImportArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &ImportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    check_no_demo(settings)?;
    let stop = Stop::listen()?;
    let mut places = archiving::places(&args.paths, settings)?;
    archiving::leave_out_log(&mut places, &args.entries, settings);
    archiving::collecting(&args.entries, settings, |entries| {
        let forgotten = if args.again { Forgotten::Again } else { Forgotten::Stays };
        let archive = &mut archiving::open(settings, entries, forgotten)?;
        let pass = Pass { archive, places: &places, stop: &stop, as_json: args.json, rederives: true };
        pass.once(output)
    })
}
