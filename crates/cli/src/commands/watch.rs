//! `steno watch`: one pass over the agents' homes, or over what is named, and then every change as it comes.

use crate::args::WatchArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::recording::{self, Follow, ForgottenFiles, StopSignal, check_no_demo};
use crate::settings::Settings;

pub fn run(args: &WatchArgs, settings: &Settings, output: &mut Output) -> Outcome {
    check_no_demo(settings)?;
    let stop = StopSignal::listen()?;
    let mut places = recording::places(&args.paths, settings)?;
    recording::leave_out_log(&mut places, &args.entries, settings);
    let options = args.tailing.options(settings);
    recording::collecting(&args.entries, settings, |entries| {
        let archive = &mut recording::open(settings, entries, ForgottenFiles::Skip)?;
        let store_flags = settings.store_flags();
        Follow { archive, places, stop: &stop, options, store_flags, as_json: args.json }.run(output)
    })
}
