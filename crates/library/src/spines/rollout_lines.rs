//! The rollouts that a spine was made from, read again up to its last record.

use std::ops::ControlFlow;

use steno_adapters::codex::spine::{RolloutIndex, SectionState};
use steno_model::{ThreadId, with_causes};
use steno_spine::{OnPiece, Report, read_directory_rollout, read_tar_rollout};
use steno_views::{Lines, visible};

use super::events::SpineEvents;
use super::{SpineTarget, TarFile, open_directory};
use crate::rollouts::{Rollout, bundle_name};
use crate::{Error, FileError};

/// The rollouts beside a spine.
pub(super) enum RolloutFiles<'a> {
    /// In the store.
    Stored { rollouts: Vec<Rollout>, thread: &'a ThreadId },
    /// In the bundle of the spine.
    Bundled { target: &'a SpineTarget, names: Vec<&'a str>, thread: Option<&'a str> },
}

impl<'a> RolloutFiles<'a> {
    /// Finds the rollouts beside a spine that was checked.
    pub(super) fn of(target: &'a SpineTarget, report: &'a Report) -> Result<Self, Error> {
        Ok(match target {
            SpineTarget::Thread(library, thread) => {
                Self::Stored { rollouts: library.rollouts(thread)?, thread }
            }
            SpineTarget::Directory(_) | SpineTarget::Tar(_) => {
                Self::Bundled { target, names: report.rollouts().collect(), thread: report.thread.as_deref() }
            }
        })
    }

    /// Gives the lines that records were made from to their events. Returns false if a rollout is missing, or is not the one
    /// that the records were made from.
    pub(super) fn feed(&self, index: &RolloutIndex, events: &mut SpineEvents) -> bool {
        for section in index.sections() {
            let mut reader = section.read();
            let read = self.read(section.rollout(), &mut |piece| match reader
                .feed(piece, &mut |seq, line| events.line(seq, line))
            {
                SectionState::Unfinished => ControlFlow::Continue(()),
                SectionState::Finished | SectionState::Different => ControlFlow::Break(()),
            });
            if let Err(error) = read {
                tracing::warn!(
                    "{}; the records are read instead",
                    visible(&with_causes(&error), Lines::Escape)
                );
                return false;
            }
            if reader.state() != SectionState::Finished {
                return false;
            }
        }
        !index.sections().is_empty()
    }

    /// Reads the rollout that evidence names; one that is missing has no bytes.
    fn read(&self, rollout: &str, each: OnPiece<'_>) -> Result<(), Error> {
        match self {
            Self::Stored { rollouts, thread } => {
                let names = rollouts.iter().map(Rollout::name);
                match position(names, rollout, Some(thread.as_str())) {
                    Some(at) => rollouts[at].pieces(each),
                    None => Ok(()),
                }
            }
            Self::Bundled { target, names, thread } => {
                match position(names.iter().copied(), rollout, *thread) {
                    Some(at) => read_bundled(target, names[at], each),
                    None => Ok(()),
                }
            }
        }
    }
}

fn read_bundled(target: &SpineTarget, name: &str, each: OnPiece<'_>) -> Result<(), Error> {
    match target {
        SpineTarget::Thread(..) => Ok(()),
        SpineTarget::Directory(path) => {
            let read = read_directory_rollout(&open_directory(path)?, name, each);
            Ok(read.map_err(|error| FileError::of("read", path, error))?)
        }
        SpineTarget::Tar(path) => {
            let read = read_tar_rollout(TarFile::open(path)?, name, each);
            Ok(read.map_err(|error| FileError::of("read", path, error))?)
        }
    }
}

/// Returns the place of a rollout among names. Evidence has the name of the file, or the thread if the file was not named
/// by Codex.
fn position<'a>(
    mut names: impl Iterator<Item = &'a str> + Clone,
    rollout: &str,
    thread: Option<&str>,
) -> Option<usize> {
    let wanted = bundle_name(rollout);
    let by_name = names.clone().position(|name| name == wanted);
    let is_unnamed = thread == Some(rollout);
    by_name.or_else(|| names.position(|name| is_unnamed && !name.starts_with("rollout-")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rollout_is_found_by_its_name_or_as_the_one_with_a_foreign_name() {
        let names = ["rollout-x-t0.jsonl", "rollout-x-t1_u_2.jsonl", "session.jsonl"];
        for (rollout, thread, want) in [
            ("rollout-x-t0.jsonl", "t1", Some(0)),
            ("rollout-x-t1_u 2.jsonl", "t1", Some(1)),
            ("rollout-x-t9.jsonl", "t1", None),
            ("t1", "t1", Some(2)),
            ("t2", "t1", None),
        ] {
            assert_eq!(position(names.into_iter(), rollout, Some(thread)), want, "{rollout}");
        }
    }
}
