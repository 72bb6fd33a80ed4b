//! One pass over files: records what is new, and leaves nothing open.

use std::path::Path;

use super::source::{OpenSource, Pace, ReadOutcome};
use super::{RecordingCounts, SourceError, SourceFile, SourceRecorder, is_unchanged};

/// The outcome of importing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportOutcome {
    /// It had no new bytes.
    Unchanged,
    /// New bytes were recorded.
    Recorded,
    /// Another process records it.
    Held,
    /// It was forgotten, and is not recorded.
    Forgotten,
    /// It could not be recorded; the error was reported.
    Failed,
}

/// Receives the progress of a pass.
pub trait ImportProgress {
    /// Some bytes of a file were recorded.
    fn bytes(&mut self, path: &Path, count: u64);

    /// A file is done.
    fn done(&mut self, file: &SourceFile, outcome: ImportOutcome);

    /// A file could not be recorded.
    fn failed(&mut self, file: &SourceFile, error: &SourceError);

    /// Tells whether to end the pass. What was read so far is recorded.
    fn is_enough(&self) -> bool {
        false
    }
}

impl SourceRecorder {
    /// Records what is new in each file. A failure of one file does not affect the others.
    pub fn import(&mut self, files: &[SourceFile], progress: &mut dyn ImportProgress) -> RecordingCounts {
        let mut health = RecordingCounts::default();
        for file in files {
            if progress.is_enough() || self.store().is_paused((self.options.clock)()) {
                break;
            }
            health.files += 1;
            let outcome = match self.import_one(file, progress, &mut health) {
                Ok(outcome) => outcome,
                Err(error) if error.is_held() => ImportOutcome::Held,
                Err(error) if error.is_forgotten() => ImportOutcome::Forgotten,
                Err(error) => {
                    progress.failed(file, &error);
                    ImportOutcome::Failed
                }
            };
            match outcome {
                ImportOutcome::Unchanged => {}
                ImportOutcome::Recorded => health.files_new += 1,
                ImportOutcome::Held => health.files_held += 1,
                ImportOutcome::Forgotten => health.files_forgotten += 1,
                ImportOutcome::Failed => health.files_failed += 1,
            }
            progress.done(file, outcome);
        }
        health
    }

    fn import_one(
        &mut self,
        file: &SourceFile,
        progress: &mut dyn ImportProgress,
        health: &mut RecordingCounts,
    ) -> Result<ImportOutcome, SourceError> {
        if self.catalog.at(file.path()).is_some_and(|known| is_unchanged(known, file)) {
            return Ok(ImportOutcome::Unchanged);
        }
        // The guard of the recording names the file.
        let Some(recording) = self.enter(file.path())? else { return Ok(ImportOutcome::Unchanged) };
        if let Some(mixed) = self.mixed(file) {
            let look = self.record_mixed(file, mixed)?;
            health.add_mixed(look);
            progress.bytes(file.path(), look.added);
            return Ok(if look.added > 0 { ImportOutcome::Recorded } else { ImportOutcome::Unchanged });
        }
        let mut source = self.take_up(file, Pace::Once)?;
        drop(recording);
        let read = self.read_to_end(&mut source, progress);
        count(&source, health);
        read?;
        let has_news = source.read > 0;
        self.let_go(source)?;
        Ok(if has_news { ImportOutcome::Recorded } else { ImportOutcome::Unchanged })
    }

    fn read_to_end(
        &self,
        source: &mut OpenSource,
        progress: &mut dyn ImportProgress,
    ) -> Result<(), SourceError> {
        let mut bytes_reported = 0;
        loop {
            let turn = source.turn(&self.now())?;
            progress.bytes(source.path(), source.read - bytes_reported);
            bytes_reported = source.read;
            match turn {
                // A file may grow faster than it is read.
                ReadOutcome::More if progress.is_enough() => return Ok(()),
                ReadOutcome::More => {}
                ReadOutcome::AtEnd | ReadOutcome::Gone | ReadOutcome::Paused => return Ok(()),
            }
        }
    }
}

/// Adds the counts of a source.
pub(super) fn count(source: &OpenSource, health: &mut RecordingCounts) {
    let (events, refused) = source.events();
    health.bytes_read += source.read;
    health.events += events;
    health.events_refused += refused;
    if let Some(completeness) = source.completeness() {
        health.records_unknown += completeness.unknown.values().sum::<u64>();
        health.records_unreadable += completeness.unreadable;
    }
}
