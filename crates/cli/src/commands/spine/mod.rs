//! `steno spine`: trace spines in the store and elsewhere.

mod bundle;
mod distill;
mod ls;
mod record;
mod target;
mod validate;

use steno_library::{Error as LibraryError, Library};
use steno_model::ThreadId;

use crate::args::{SpineArgs, SpineCommand};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &SpineArgs, settings: &Settings, output: &mut Output) -> Outcome {
    match &args.command {
        SpineCommand::Ls(args) => ls::run(args, settings, output),
        SpineCommand::Record(args) => record::run(args, settings, output),
        SpineCommand::Validate(args) => validate::run(args, settings, output),
        SpineCommand::Bundle(args) => bundle::run(args, settings, output),
        SpineCommand::Distill(args) => distill::run(args, settings, output),
    }
}

/// Returns the answer that there is no spine, with a hint.
fn no_spines() -> Failure {
    Failure::empty("the store has no spines").with_hint(
        "`steno spine record` creates them from sessions of Codex, `steno app-server` records them live",
    )
}

/// Finds the thread with a spine that a text names.
fn find_thread(text: &str, library: &Library) -> Result<ThreadId, Failure> {
    let threads = library.spines()?;
    library.resolve_thread(text, &threads).map_err(|error| {
        if !matches!(error, LibraryError::NotFound { .. }) {
            return error.into();
        }
        Failure::nothing(format!("no spine of `{text}`"))
            .with_hint("`steno spine ls` lists the threads that have one")
    })
}
