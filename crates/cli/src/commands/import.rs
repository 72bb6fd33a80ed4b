//! `steno import`: one pass over the agents' homes, or over what is named.

use crate::args::ImportArgs;
use crate::failure::Outcome;
use crate::output::Output;
use crate::recording::{self, ForgottenFiles, ImportPass, StopSignal, check_no_demo, notice_losses};
use crate::settings::Settings;

pub fn run(args: &ImportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    check_no_demo(settings)?;
    let stop = StopSignal::listen()?;
    let mut places = recording::places(&args.paths, settings)?;
    recording::leave_out_log(&mut places, &args.entries, settings);
    recording::collecting(&args.entries, settings, |entries| {
        let forgotten = if args.again { ForgottenFiles::Import } else { ForgottenFiles::Skip };
        let archive = &mut recording::open(settings, entries, forgotten)?;
        let pass = ImportPass { archive, places: &places, stop: &stop, as_json: args.json, rederives: true };
        let outcome = pass.once(output);
        if args.paths.is_empty() {
            notice_losses(settings);
        }
        outcome
    })
}
