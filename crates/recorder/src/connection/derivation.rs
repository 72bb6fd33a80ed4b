//! What is derived from a connection's file while it is written: the spines of Codex's threads, and nothing for other
//! protocols, whose events are derived when the file is imported.

use steno_adapters::codex::spine::LinePlace;
use steno_journal::Journal;

use super::ConnectionReport;
use super::spine_builder::SpineBuilder;
use super::spool::{SpoolContent, SpoolLine, SpoolReader};
use super::synced::{SpoolProgress, SyncedSpool};
use crate::spines::Error;

/// Takes the synced lines of a connection's file.
pub(super) enum Derivation {
    /// Makes spines.
    Spines(Box<SpineBuilder>),
    /// Counts the messages.
    Nothing(ConnectionReport),
}

impl Derivation {
    /// Begins for a file of an earlier process, by its first line.
    pub(super) fn of_file(journal: &Journal, recording: &SpoolReader, id: uuid::Uuid) -> Result<Self, Error> {
        let begins = |line: &SpoolLine<'_>| matches!(line.content, SpoolContent::Began(_));
        Ok(if recording.first(begins)?.unwrap_or(false) {
            Self::Nothing(ConnectionReport::default())
        } else {
            Self::Spines(Box::new(SpineBuilder::new(journal, id)))
        })
    }

    /// Takes the synced part of a file while it is written.
    pub(super) fn live(
        mut self,
        mut recording: SpoolReader,
        mut safe: SyncedSpool,
        reached: &SpoolProgress,
    ) -> Result<ConnectionReport, Error> {
        loop {
            let (len, is_all) = reached.wait(safe.len());
            match safe.reach(len) {
                Ok(()) => {
                    reached.tell_safe(len);
                    recording.each(len, &mut |line, place| self.line(line, place))?;
                }
                Err(error) if is_all => return self.leave(&error),
                Err(_) => reached.pause(),
            }
            if is_all && safe.len() == len {
                return self.finish();
            }
        }
    }

    pub(super) fn line(&mut self, line: &SpoolLine<'_>, place: LinePlace) {
        match self {
            Self::Spines(builder) => builder.line(line, place),
            Self::Nothing(report) => match &line.content {
                SpoolContent::Message { .. } => report.messages += 1,
                SpoolContent::Missing(missing) => report.missing += missing.messages(),
                SpoolContent::Began(_)
                | SpoolContent::Ended(_)
                | SpoolContent::Http(_)
                | SpoolContent::HttpEnded => {}
            },
        }
    }

    /// Ends before the end of the file.
    fn leave(self, error: &Error) -> Result<ConnectionReport, Error> {
        match self {
            Self::Spines(builder) => builder.leave(error),
            Self::Nothing(report) => {
                let problems = vec![steno_model::with_causes(error)];
                Ok(ConnectionReport { is_left: true, problems, ..report })
            }
        }
    }

    pub(super) fn finish(self) -> Result<ConnectionReport, Error> {
        match self {
            Self::Spines(builder) => builder.finish(),
            Self::Nothing(report) => Ok(report),
        }
    }
}
