//! One pass over agents' files, with a progress bar and a report.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use steno_model::with_causes;
use steno_recorder::sources::{
    FollowerProcess, RecordingCounts, SourceListing, SourceLocations, SourceRecorder, follower,
};
use steno_views::count;

use super::follow::another;
use super::stop_signal::StopSignal;
use super::{ImportBar, Report, failure, rederive, warn, warn_of_problems};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{Output, notice};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOutcome {
    /// Everything was archived, by this process or another.
    Done,
    /// Some files could not be archived; each was reported.
    Failed,
    /// This signal stopped it.
    Stopped(u8),
}

impl PassOutcome {
    /// Returns the exit code of a command that ends with the pass.
    pub fn exit(self) -> Exit {
        match self {
            Self::Done => Exit::Done,
            Self::Failed => Exit::Failed,
            Self::Stopped(signal) => Exit::Signal(signal),
        }
    }
}

/// A request to archive files once.
pub struct ImportPass<'a> {
    pub archive: &'a mut SourceRecorder,
    pub places: &'a SourceLocations,
    pub stop: &'a StopSignal,
    pub as_json: bool,
    /// Whether runs of an older adapter are derived again afterwards.
    pub rederives: bool,
}

impl ImportPass<'_> {
    /// Archives the files once, and reports those that other processes are recording.
    pub fn once(self, output: &mut Output) -> Outcome {
        let disk = Arc::clone(self.archive.disk());
        let (outcome, health) = self.run(output)?;
        if outcome == PassOutcome::Done && health.files_held > 0 {
            leave(&health, follower(&*disk))?;
        }
        Ok(outcome.exit())
    }

    /// Archives the files, and prints what the store has then.
    pub fn run(self, output: &mut Output) -> Result<(PassOutcome, RecordingCounts), Failure> {
        Failure::unless_paused(self.archive.store())?;
        let listing = self.places.list();
        let named = !self.places.given.is_empty();
        if named && listing.files.is_empty() && listing.excluded + listing.of_unknown_projects == 0 {
            return Err(nothing_found(self.places, &listing));
        }
        warn_of_problems(&listing);
        let is_stopped = self.stop.flag();
        let mut bar = ImportBar::new(&listing.files, move || is_stopped.load(Ordering::Relaxed));
        let health = self.archive.import(&listing.files, &mut bar);
        let failed = bar.failed;
        drop(bar);
        let mut rederived = self.archive.take_derived_first();
        if self.rederives {
            rederived.add(rederive::finish(self.archive, self.stop)?);
        }
        self.archive.settle().map_err(failure)?;
        let outlines = self.archive.save_outlines().map_err(failure)?;
        Report::of(self.archive.store(), self.archive.vault(), outlines, &listing, health)?
            .with(rederived)
            .print(output, self.as_json);
        output.flush();
        // An unreadable path that was given is a failure; in an agent's home it is only a warning.
        let failed =
            failed + rederived.sources_failed + if named { listing.problems.len() as u64 } else { 0 };
        let outcome = match (self.stop.is_set(), failed) {
            (true, _) => PassOutcome::Stopped(self.stop.signal()),
            (false, 0) => PassOutcome::Done,
            (false, _) => PassOutcome::Failed,
        };
        Ok((outcome, health))
    }
}

/// Reports files that another process is recording. If that process follows them, nothing is missing. If it does not,
/// it may end before it has all of them.
fn leave(health: &RecordingCounts, follower: Option<FollowerProcess>) -> Result<(), Failure> {
    let files = count(health.files_held, "file");
    let them = if health.files_held == 1 { "it" } else { "them" };
    let is_nothing_done = health.files_new == 0;
    if follower.is_some() {
        let other = another(follower);
        let rest = if is_nothing_done { "; there was nothing else to archive" } else { "" };
        notice(&format!("{files} skipped: {other} is recording {them}{rest}"));
    } else if is_nothing_done {
        let message = format!("nothing was archived: another process is recording {files}");
        return Err(Failure::nothing(message).with_hint("try again when it has ended"));
    } else {
        warn(&format!("another process is recording {files}; try again when it has ended"));
    }
    Ok(())
}

/// Returns the failure if nothing was found in the given paths.
fn nothing_found(places: &SourceLocations, listing: &SourceListing) -> Failure {
    if let Some(problem) = listing.problems.first() {
        return Failure::could_not(with_causes(problem));
    }
    let names: Vec<String> = places.given.iter().map(|path| format!("`{}`", path.display())).collect();
    Failure::nothing(format!("no agent's file found in {}", names.join(", ")))
}
