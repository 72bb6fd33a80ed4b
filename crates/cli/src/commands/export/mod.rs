//! `steno export`: exports sessions to other formats, and checks such files.

mod atif;
mod check;
mod destination;
mod families;

use crate::args::{ExportArgs, ExportCommand};
use crate::failure::Outcome;
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &ExportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    match &args.command {
        ExportCommand::Atif(args) => atif::run(args, settings, output),
        ExportCommand::Check(args) => check::run(args, output),
    }
}
