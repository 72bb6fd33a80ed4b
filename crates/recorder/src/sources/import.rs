//! One pass over files: what is new in them is recorded, and nothing is left open.

use std::path::Path;

use super::source::{OpenSource, Pace, Turn};
use super::{Archive, Error, Health, ToArchive, is_unchanged};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was nothing new.
    Unchanged,
    /// What was new is recorded.
    Recorded,
    /// Another process records it.
    Held,
    /// It was forgotten, and is left alone.
    Forgotten,
    /// It could not be recorded, for a reason that was told.
    Failed,
}

/// Hears how a pass goes on.
pub trait Progress {
    /// Some bytes of a file were recorded.
    fn bytes(&mut self, path: &Path, count: u64);

    /// A file is done.
    fn done(&mut self, file: &ToArchive, outcome: Outcome);

    /// A file could not be recorded.
    fn failed(&mut self, file: &ToArchive, error: &Error);

    /// Tells whether the pass is to end. What was read of a file until then is recorded.
    fn is_enough(&self) -> bool {
        false
    }
}

impl Archive {
    /// Records what is new in each file. One that cannot be recorded takes nothing from the others.
    pub fn import(&mut self, files: &[ToArchive], progress: &mut dyn Progress) -> Health {
        let mut health = Health::default();
        for file in files {
            if progress.is_enough() || self.store().is_paused((self.options.clock)()) {
                break;
            }
            health.files += 1;
            let outcome = match self.import_one(file, progress, &mut health) {
                Ok(outcome) => outcome,
                Err(error) if error.is_held() => Outcome::Held,
                Err(error) if error.is_forgotten() => Outcome::Forgotten,
                Err(error) => {
                    progress.failed(file, &error);
                    Outcome::Failed
                }
            };
            match outcome {
                Outcome::Unchanged => {}
                Outcome::Recorded => health.files_new += 1,
                Outcome::Held => health.files_held += 1,
                Outcome::Forgotten => health.files_forgotten += 1,
                Outcome::Failed => health.files_failed += 1,
            }
            progress.done(file, outcome);
        }
        health
    }

    fn import_one(
        &mut self,
        file: &ToArchive,
        progress: &mut dyn Progress,
        health: &mut Health,
    ) -> Result<Outcome, Error> {
        if self.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
            return Ok(Outcome::Unchanged);
        }
        // What is begun says what the file is called.
        let Some(recording) = self.enter(file.path())? else { return Ok(Outcome::Unchanged) };
        if let Some(mixed) = self.mixed(file) {
            let look = self.record_mixed(file, mixed)?;
            health.add_mixed(look);
            progress.bytes(file.path(), look.added);
            return Ok(if look.added > 0 { Outcome::Recorded } else { Outcome::Unchanged });
        }
        let mut source = self.take_up(file, Pace::Once)?;
        drop(recording);
        let read = self.read_to_end(&mut source, progress);
        count(&source, health);
        read?;
        let has_news = source.read > 0;
        self.let_go(source)?;
        Ok(if has_news { Outcome::Recorded } else { Outcome::Unchanged })
    }

    fn read_to_end(&self, source: &mut OpenSource, progress: &mut dyn Progress) -> Result<(), Error> {
        let mut told = 0;
        loop {
            let turn = source.turn(&self.now())?;
            progress.bytes(source.path(), source.read - told);
            told = source.read;
            match turn {
                // A file may grow faster than it is read.
                Turn::More if progress.is_enough() => return Ok(()),
                Turn::More => {}
                Turn::AtEnd | Turn::Gone | Turn::Paused => return Ok(()),
            }
        }
    }
}

/// Adds what a source has brought.
pub(super) fn count(source: &OpenSource, health: &mut Health) {
    let (events, refused) = source.events();
    health.bytes_read += source.read;
    health.events += events;
    health.events_refused += refused;
    if let Some(completeness) = source.completeness() {
        health.records_unknown += completeness.unknown.values().sum::<u64>();
        health.records_unreadable += completeness.unreadable;
    }
}
