//! `steno import`: one pass over the agents' homes, or over what is named.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM};

use crate::archiving::{self, Bar, Report};
use crate::args::ImportArgs;
use crate::failure::{Exit, Outcome};
use crate::output::Output;
use crate::settings::Settings;

pub fn run(args: &ImportArgs, settings: &Settings, output: &mut Output) -> Outcome {
    let places = archiving::places(&args.paths)?;
    let mut archive = archiving::open(settings)?;
    let found = places.list();
    archiving::warn_of_problems(&found);
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let is_stopped = Arc::clone(&stop);
    let mut bar = Bar::new(&found.files, move || is_stopped.load(Ordering::Relaxed));
    let health = archive.import(&found.files, &mut bar);
    let failed = bar.failed;
    drop(bar);
    archive.settle().map_err(archiving::failure)?;
    Report::of(archive.vault(), &found, health)?.print(output, args.json);
    if stop.load(Ordering::Relaxed) {
        return Ok(Exit::Signal(u8::try_from(SIGINT).unwrap_or(2)));
    }
    Ok(if failed > 0 { Exit::Could } else { Exit::Done })
}
