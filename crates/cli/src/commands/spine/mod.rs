//! `steno spine`: trace spines of the store, or elsewhere.

mod bundle;
mod bundle_output;
mod distill;
mod ls;
mod record;
mod rollouts;
mod target;
mod validate;

use steno_journal::Store;
use steno_model::ThreadId;

use crate::args::{SpineArgs, SpineDo};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::settings::Settings;

pub(super) use rollouts::thread_of;

pub fn run(args: &SpineArgs, settings: &Settings, output: &mut Output) -> Outcome {
    match &args.what {
        SpineDo::Ls(args) => ls::run(args, settings, output),
        SpineDo::Record(args) => record::run(args, settings, output),
        SpineDo::Validate(args) => validate::run(args, settings, output),
        SpineDo::Bundle(args) => bundle::run(args, settings, output),
        SpineDo::Distill(args) => distill::run(args, settings, output),
    }
}

/// How much of a thread's id is the least to know it by.
const PREFIX_LEN_MIN: usize = 4;

/// Says that there is none, and what makes one.
fn no_spines() -> Failure {
    Failure::nothing("the store has no spines")
        .with_hint("`steno spine record` makes them of Codex's sessions, `steno app-server` while they go on")
}

/// Finds the thread of the store that somebody means: its id, or the beginning of it.
pub(super) fn find_thread(text: &str, store: &Store) -> Result<ThreadId, Failure> {
    let hint = "`steno spine ls` lists the threads that have one";
    let threads = store.spines()?;
    if let Some(thread) = threads.iter().find(|thread| thread.as_str() == text) {
        return Ok(thread.clone());
    }
    let mut begun = threads.iter().filter(|thread| thread.as_str().starts_with(text));
    match (begun.next(), begun.count()) {
        (Some(thread), 0) if text.len() >= PREFIX_LEN_MIN => Ok(thread.clone()),
        (Some(_), others) if text.len() >= PREFIX_LEN_MIN => {
            let message = format!("`{text}` begins {} threads; give more of it", others + 1);
            Err(Failure::usage(message).with_hint(hint))
        }
        _ => Err(Failure::nothing(format!("the store has no spine of `{text}`")).with_hint(hint)),
    }
}
