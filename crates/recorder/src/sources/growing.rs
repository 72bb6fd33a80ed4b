//! Records one file while another process writes it, until that process says that it is complete.

use super::source::ReadOutcome;
use super::{SourceError, SourceFile, SourceRecorder};

/// What to do when everything that a file has so far is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowingFile {
    /// Look again: it may have grown.
    Open,
    /// Nobody writes it any more. It is read to its end once more.
    Complete,
}

/// Watches a file that another process writes.
pub trait FileGrowth {
    /// Is called whenever everything is recorded, and may wait for more.
    fn wait(&mut self) -> GrowingFile;

    /// Is called after each piece, and may wait so that the writer is not disturbed.
    fn make_way(&mut self);
}

impl SourceRecorder {
    /// Records a file as it grows. Returns whether all of it is recorded; false if recording is paused.
    ///
    /// # Errors
    /// [`SourceError`]; what was recorded before stays recorded.
    pub fn record_growing(
        &mut self,
        file: &SourceFile,
        growth: &mut dyn FileGrowth,
    ) -> Result<bool, SourceError> {
        let Some(recording) = self.enter(file.path())? else { return Ok(false) };
        let mut source = self.take_up(file)?;
        drop(recording);
        let mut is_complete = false;
        let is_recorded = loop {
            match source.turn(&self.now())? {
                ReadOutcome::More => growth.make_way(),
                ReadOutcome::AtEnd | ReadOutcome::Gone if is_complete => break true,
                ReadOutcome::Paused if is_complete => break false,
                ReadOutcome::AtEnd | ReadOutcome::Gone | ReadOutcome::Paused => {
                    is_complete = growth.wait() == GrowingFile::Complete;
                }
            }
        };
        if is_recorded {
            source.finish()?;
        }
        self.let_go(source)?;
        Ok(is_recorded)
    }
}
