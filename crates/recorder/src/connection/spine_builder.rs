//! Makes spines from the messages of a connection, live or from its file.

use std::collections::HashSet;

use steno_adapters::codex::spine::{
    Around, CapturedMessage, CompactionNotice, ConnectionFold, LinePlace, Missing, SpineMade,
};
use steno_journal::{Journal, Level};
use steno_model::json::RawJson;
use steno_model::{Position, SpineSource, SpineType, ThreadId, Timestamp};
use uuid::Uuid;

use super::ConnectionReport;
use super::artifacts::{self, Snapshots};
use super::boundaries::Boundaries;
use super::spool::{SpoolContent, SpoolLine};
use crate::spines::{Error, ForgottenRule, SourceName, SpineRecorder};

/// The position of the next record that is made from a message.
struct RecordSlot {
    time: Timestamp,
    place: LinePlace,
    part: u32,
}

impl RecordSlot {
    fn made(&mut self, record_type: SpineType, payload: RawJson) -> SpineMade {
        let LinePlace { offset, length } = self.place;
        let position = Position { generation: 0, offset, part: self.part };
        self.part += 1;
        SpineMade { record_type, timestamp: self.time.clone(), payload, position, length }
    }
}

/// Makes spines from the messages of a connection, live or from its file.
pub(super) struct SpineBuilder {
    is_live: bool,
    snapshots: Snapshots,
    fold: ConnectionFold,
    spines: SpineRecorder,
    boundaries: Boundaries,
    /// Threads whose spines cannot be written.
    given_up: HashSet<ThreadId>,
    /// The number of the last message that was read or noted as missing.
    ticket_last: u64,
    recorded: ConnectionReport,
}

impl SpineBuilder {
    pub(super) fn new(journal: &Journal, id: Uuid) -> Self {
        let source = SourceName::new(SpineSource::AppServer, &id.to_string());
        let fallback = ThreadId::parse(&id.to_string());
        let fallback = fallback.unwrap_or_else(|_| unreachable!("a UUID is a good name of a thread"));
        Self {
            is_live: false,
            snapshots: Snapshots::default(),
            fold: ConnectionFold::new(fallback),
            spines: SpineRecorder::new(journal.clone(), source, Level::Written),
            boundaries: Boundaries::default(),
            given_up: HashSet::new(),
            ticket_last: 0,
            recorded: ConnectionReport::default(),
        }
    }

    /// Switches to live recording. A message on a forgotten thread begins its spine again.
    pub(super) fn listening(self) -> Self {
        Self { is_live: true, spines: self.spines.with_forgotten(ForgottenRule::Again), ..self }
    }

    /// Ends before the end of the file. The rest of the spines is made from the file later.
    pub(super) fn leave(mut self, error: &Error) -> Result<ConnectionReport, Error> {
        self.recorded.is_left = true;
        self.recorded.problems.push(steno_model::with_causes(error));
        (self.recorded.threads, self.recorded.written) = self.spines.close()?;
        Ok(self.recorded)
    }

    pub(super) fn line(&mut self, line: &SpoolLine<'_>, place: LinePlace) {
        let SpoolLine { time, ticket, content } = line;
        if *ticket > self.ticket_last + 1 {
            let missing = Missing::between(self.ticket_last + 1, ticket - 1);
            self.missing(&missing, time, place);
        }
        match content {
            SpoolContent::Message { lane, bytes } => {
                self.ticket_last = self.ticket_last.max(*ticket);
                let captured = CapturedMessage { lane: *lane, ticket: *ticket, time, place, line: bytes };
                self.message(captured);
            }
            SpoolContent::Missing(missing) => self.missing(missing, time, place),
            // They belong to no thread and give no spine record.
            SpoolContent::Began(_)
            | SpoolContent::Ended(_)
            | SpoolContent::Http(_)
            | SpoolContent::HttpEnded => {
                self.ticket_last = self.ticket_last.max(*ticket);
            }
        }
    }

    fn missing(&mut self, missing: &Missing, time: &Timestamp, place: LinePlace) {
        self.ticket_last = self.ticket_last.max(missing.ticket_last);
        self.recorded.missing += missing.messages();
        let made = self.fold.missing(missing, time, place);
        self.write(made);
    }

    fn message(&mut self, captured: CapturedMessage<'_>) {
        self.recorded.messages += 1;
        let (time, place) = (captured.time, captured.place);
        let made = self.fold.message(captured);
        let parts = made.iter().map(|(_, made)| made.position.part + 1).max().unwrap_or(0);
        self.write(made);
        let mut next = RecordSlot { time: time.clone(), place, part: parts };
        for compacted in self.fold.compacted() {
            self.boundary(&compacted, &mut next);
        }
        for around in self.fold.around() {
            self.look_around(&around, &mut next);
        }
    }

    /// Stores the artifacts of a session. They exist only while the session runs, not when its spines are rebuilt.
    fn look_around(&mut self, around: &Around, next: &mut RecordSlot) {
        if !self.is_live {
            return;
        }
        let (thread, artifacts) = match around {
            Around::Begins { thread, cwd } => (thread, artifacts::of_repository(cwd)),
            Around::Stands { thread, cwd } => (thread, artifacts::of_working_tree(cwd)),
            Around::Ran { thread, path } => (thread, self.snapshots.look(thread, path).into_iter().collect()),
        };
        for artifact in artifacts {
            let file = artifact.content.as_ref().map(|(what, bytes)| self.spines.keep(thread, *what, bytes));
            match file.transpose() {
                Ok(file) => {
                    let file = file.as_ref().map(|file| (file.artifact_path.as_str(), file.sha256.as_str()));
                    let made = next.made(SpineType::ArtifactRef, artifact.payload(file));
                    self.write(vec![(thread.clone(), made)]);
                }
                Err(error) => self.recorded.problems.push(steno_model::with_causes(&error)),
            }
        }
    }

    /// Writes records. A failure of one thread's spine does not affect the others.
    fn write(&mut self, made: Vec<(ThreadId, SpineMade)>) {
        for (thread, made) in made {
            if self.given_up.contains(&thread) {
                continue;
            }
            if let Err(error) = self.spines.write(&thread, made) {
                // A retry does not help if the spine has another source or was forgotten.
                let stays = matches!(error, Error::OtherSource { .. } | Error::Forgotten { .. });
                self.recorded.is_left |= !stays;
                self.recorded.problems.push(steno_model::with_causes(&error));
                self.given_up.insert(thread);
            }
        }
    }

    fn boundary(&mut self, compacted: &CompactionNotice, next: &mut RecordSlot) {
        match self.boundaries.find(compacted) {
            Some(payload) => {
                let made = next.made(SpineType::CompactionBoundary, payload);
                self.write(vec![(compacted.thread.clone(), made)]);
            }
            None => self.recorded.problems.push(format!(
                "the effect of a compaction of thread {} is not known: its session file does not contain it",
                compacted.thread
            )),
        }
    }

    pub(super) fn finish(mut self) -> Result<ConnectionReport, Error> {
        let (rest, unanswered) = self.fold.finish();
        self.write(rest);
        if unanswered > 0 {
            let answers =
                if unanswered == 1 { "1 answer".to_owned() } else { format!("{unanswered} answers") };
            self.recorded.problems.push(format!("{answers} for threads whose parents are not known"));
        }
        (self.recorded.threads, self.recorded.written) = self.spines.close()?;
        Ok(self.recorded)
    }
}
