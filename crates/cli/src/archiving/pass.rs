//! One pass over places, with a progress bar, and the report of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use steno_recorder::archive::{Archive, Places};

use super::follow::tell;
use super::{Bar, Report, failure, pausing, warn_of_problems};
use crate::failure::Failure;
use crate::output::Output;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was archived.
    Done,
    /// Some files could not be; it was said which.
    Failed,
    /// Somebody stopped it before its end.
    Stopped,
}

/// Archives what is in places, as [`pass`] does, unless recording is paused: whoever follows waits for its end.
pub fn pass_unless_paused(
    archive: &mut Archive,
    places: &Places,
    as_json: bool,
    output: &mut Output,
) -> Result<Ended, Failure> {
    if pausing::is_paused(&**archive.disk()) {
        tell("recording is paused; `steno resume` lets it go on");
        return Ok(Ended::Done);
    }
    pass(archive, places, as_json, output)
}

/// Archives what is in places, and prints what the archive holds then.
pub fn pass(
    archive: &mut Archive,
    places: &Places,
    as_json: bool,
    output: &mut Output,
) -> Result<Ended, Failure> {
    if pausing::is_paused(&**archive.disk()) {
        return Err(Failure::nothing("recording is paused").with_hint("`steno resume` lets it go on"));
    }
    let found = places.list();
    warn_of_problems(&found);
    let stop = Stop::listen()?;
    let is_stopped = stop.flag();
    let mut bar = Bar::new(&found.files, move || is_stopped.load(Ordering::Relaxed));
    let health = archive.import(&found.files, &mut bar);
    let failed = bar.failed;
    drop(bar);
    archive.settle().map_err(failure)?;
    Report::of(archive.vault(), &found, health)?.print(output, as_json);
    output.flush();
    Ok(match (stop.is_told(), failed) {
        (true, _) => Ended::Stopped,
        (false, 0) => Ended::Done,
        (false, _) => Ended::Failed,
    })
}

/// Hears of Ctrl-C and its like while a pass goes on, so that it ends between two files and not inside of one.
struct Stop {
    told: Arc<AtomicBool>,
    handlers: Vec<SigId>,
}

impl Stop {
    fn listen() -> Result<Self, Failure> {
        let told = Arc::new(AtomicBool::new(false));
        let handlers = [SIGINT, SIGTERM].map(|signal| signal_hook::flag::register(signal, Arc::clone(&told)));
        let handlers = handlers.into_iter().collect::<Result<_, _>>()?;
        Ok(Self { told, handlers })
    }

    fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.told)
    }

    fn is_told(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}
