//! One pass over places, with a progress bar, and the report of it.

use std::sync::atomic::Ordering;

use steno_recorder::archive::{Archive, Found, Places};

use super::stop::Stop;
use super::{Bar, Report, failure, pausing, warn_of_problems};
use crate::failure::{Exit, Failure, with_causes};
use crate::output::Output;

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything was archived.
    Done,
    /// Some files could not be; it was said which.
    Failed,
    /// Somebody stopped it before its end, with this signal.
    Stopped(u8),
}

impl Ended {
    /// Returns the exit code of a command that is over with the pass.
    pub fn exit(self) -> Exit {
        match self {
            Self::Done => Exit::Done,
            Self::Failed => Exit::Could,
            Self::Stopped(signal) => Exit::Signal(signal),
        }
    }
}

/// What a pass is about.
pub struct Pass<'a> {
    pub archive: &'a mut Archive,
    pub places: &'a Places,
    pub stop: &'a Stop,
    pub as_json: bool,
}

impl Pass<'_> {
    /// Archives what is in the places, and prints what the archive holds then.
    pub fn run(self, output: &mut Output) -> Result<Ended, Failure> {
        if pausing::is_paused(&**self.archive.disk()) {
            return Err(Failure::nothing("recording is paused").with_hint("`steno resume` lets it go on"));
        }
        let found = self.places.list();
        let named = !self.places.given.is_empty();
        if named && found.files.is_empty() && found.excluded == 0 {
            return Err(nothing_found(self.places, &found));
        }
        warn_of_problems(&found);
        let told = self.stop.flag();
        let mut bar = Bar::new(&found.files, move || told.load(Ordering::Relaxed));
        let health = self.archive.import(&found.files, &mut bar);
        let failed = bar.failed;
        drop(bar);
        self.archive.settle().map_err(failure)?;
        Report::of(self.archive.vault(), &found, health)?.print(output, self.as_json);
        output.flush();
        // Of paths that somebody named, one that cannot be read is a failure; in a home it is told.
        let failed = failed + if named { found.problems.len() as u64 } else { 0 };
        Ok(match (self.stop.is_told(), failed) {
            (true, _) => Ended::Stopped(self.stop.signal()),
            (false, 0) => Ended::Done,
            (false, _) => Ended::Failed,
        })
    }
}

/// Says that nothing can be archived of what was named, and why.
fn nothing_found(places: &Places, found: &Found) -> Failure {
    if let Some(problem) = found.problems.first() {
        return Failure::could_not(with_causes(problem));
    }
    let names: Vec<String> = places.given.iter().map(|path| format!("`{}`", path.display())).collect();
    Failure::nothing(format!("there is no file of an agent in {}", names.join(", ")))
}
