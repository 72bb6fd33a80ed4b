//! `steno completions`: prints completions for a shell.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs};
use crate::failure::Exit;
use crate::output::Output;

pub fn run(args: &CompletionsArgs, output: &mut Output) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "steno", &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end());
    Exit::Done
}
