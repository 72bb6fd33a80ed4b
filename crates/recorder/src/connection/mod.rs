//! Records a connection between a client and `codex app-server`: first its messages, in a file of the store, and then
//! the spines of its threads.
//!
//! The file has both directions, one message per line, and is imported like an agent's file: the events of the
//! connection are derived from it. Spines are made only from the synced part of the file. What a crash leaves
//! unfinished is made from the file later. Messages that could not be written are counted, and the count is written to
//! the file as soon as possible.

mod artifacts;
mod blank;
mod boundaries;
mod check;
mod live_entries;
mod rules;
mod spool;
mod synced;

use std::collections::HashSet;
use std::sync::Arc;
use std::thread::JoinHandle;

use steno_adapters::codex::spine::{
    Around, Captured, Compacted, ConnectionFold, LinePlace, Missing, SpineMade, WhyMissing, Withholding,
};
use steno_capture::proxy::{LossReason, ProxiedLine};
use steno_journal::{Journal, Level};
use steno_model::json::RawJson;
use steno_model::{Lane, Position, SpineSource, SpineType, ThreadId, Timestamp};
use uuid::Uuid;

use crate::entries::EntryCollector;
use crate::spines::{Error, Forgotten, SourceName, SpineRecorder, SpineWriteReport};
use artifacts::Snapshots;
pub(crate) use blank::blank;
use boundaries::Boundaries;
pub use check::ConnectionCheck;
use live_entries::LiveEntries;
pub use rules::ConnectionRules;
pub use spool::{RecordedConnection, ServerEnd, connections};
use spool::{Spool, SpoolContent, SpoolLine, SpoolReader};
use synced::{SpoolProgress, SyncedSpool};

/// How many gaps are listed individually.
const GAPS_MAX: usize = 100;

/// Records one connection: writes its messages at once, and makes spines from them in a worker thread.
pub struct ConnectionRecorder {
    spool: Spool,
    rules: ConnectionRules,
    withholding: Withholding,
    tickets: u64,
    reached: Arc<SpoolProgress>,
    building: JoinHandle<Result<ConnectionReport, Error>>,
    /// Messages that could not be written and are not yet noted in the file, with the time of the first.
    pending: Option<(Missing, Timestamp)>,
    unrecorded: UnrecordedMessages,
    /// Where entries go, if they are collected.
    entries: Option<LiveEntries>,
}

/// Messages of a connection that are not in its file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnrecordedMessages {
    /// The number of messages.
    pub messages: u64,
    /// The first gaps.
    pub gaps: Vec<Missing>,
    /// How many more gaps there are.
    pub gaps_more: u64,
    /// Whether the last gap could not be noted in the file.
    pub is_untold: bool,
}

impl UnrecordedMessages {
    fn add(&mut self, missing: Missing) {
        self.messages += missing.messages();
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(missing);
        } else {
            self.gaps_more += 1;
        }
    }
}

/// The result of recording a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectionReport {
    /// Its threads.
    pub threads: Vec<ThreadId>,
    /// What was written to their spines.
    pub written: SpineWriteReport,
    /// The number of messages.
    pub messages: u64,
    /// The number of messages that are missing from the file.
    pub missing: u64,
    /// Why spines are incomplete, if they are. The file of the connection is complete.
    pub problems: Vec<String>,
    /// Whether trying again may complete them.
    pub is_left: bool,
}

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
struct SpineBuilder {
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

impl ConnectionRecorder {
    /// Begins to record a connection.
    ///
    /// # Errors
    /// An I/O error of the file.
    pub fn begin(journal: &Journal, rules: ConnectionRules) -> Result<Self, Error> {
        let spool = Spool::create(journal.store(), Uuid::new_v4())?;
        let (journal, spooled) = (journal.clone(), spool.spooled());
        let recording = spooled.read(journal.store())?;
        let safe = SyncedSpool::begin(Arc::clone(journal.store().disk()), spool.path().clone(), spool.file());
        let reached = Arc::new(SpoolProgress::default());
        let thread = std::thread::Builder::new().name("steno-spines".to_owned());
        let building = thread.spawn({
            let reached = Arc::clone(&reached);
            move || {
                let builder = SpineBuilder::new(&journal, spooled.id).listening();
                builder.live(recording, safe, &reached)
            }
        });
        let building = building.map_err(|source| Error::Source { path: "a thread".into(), source })?;
        let withholding = Withholding::default();
        let unrecorded = UnrecordedMessages::default();
        let pending = None;
        let entries = None;
        Ok(Self { spool, rules, withholding, tickets: 0, reached, building, pending, unrecorded, entries })
    }

    /// Also collects entries from what is written.
    #[must_use]
    pub fn with_entries(mut self, collector: &EntryCollector) -> Self {
        self.entries = Some(LiveEntries::new(collector, self.spool.spooled()));
        self
    }

    /// Returns the connection.
    #[must_use]
    pub fn spooled(&self) -> RecordedConnection {
        self.spool.spooled()
    }

    /// Returns how many bytes of the file would survive a power cut.
    #[must_use]
    pub fn safe_bytes(&self) -> u64 {
        self.reached.safe()
    }

    /// Records a message. If it cannot be written it is counted as missing, and the next message is tried again.
    pub fn record(&mut self, proxied: ProxiedLine) {
        let first = self.tickets + 1;
        match proxied {
            ProxiedLine::Line { lane, time, line } => {
                self.tickets += 1;
                let _recording = match self.rules.judge(lane, &line) {
                    Ok(recording) => recording,
                    Err(why) => {
                        let left_out = Missing::of(lane, first, 1, line.len() as u64 + 1, why);
                        return self.leave_out(left_out, time);
                    }
                };
                let passed = self.withholding.pass(lane, &line);
                let lost = Missing::of(lane, first, 1, line.len() as u64 + 1, WhyMissing::NotWritten);
                let bytes = passed.kept.map_or(line, |kept| kept.as_str().as_bytes().to_vec());
                let content = SpoolContent::Message { lane, bytes: bytes.into() };
                self.write(SpoolLine { time, ticket: first, content }, &lost, passed.is_weighty);
            }
            ProxiedLine::Lost { lane, time, lines, bytes, why } => {
                self.tickets += lines;
                let why = match why {
                    LossReason::Behind => WhyMissing::Behind,
                    LossReason::TooLong => WhyMissing::TooLong,
                };
                let missing = Missing::of(lane, first, lines, bytes, why);
                self.write(SpoolLine::missing(time, missing.clone()), &missing, true);
            }
        }
    }

    /// Counts a message that must not be recorded. The count is written before the next recorded message.
    fn leave_out(&mut self, left_out: Missing, time: Timestamp) {
        match &mut self.pending {
            Some((missing, _)) if missing.why == left_out.why => return missing.go_on(&left_out),
            Some(_) => self.flush(),
            None => {}
        }
        match &mut self.pending {
            // It could not be written. The reason of the first message is kept.
            Some((missing, _)) => missing.go_on(&left_out),
            None => self.pending = Some((left_out, time)),
        }
    }

    /// Writes lines and makes entries from them.
    fn append(&mut self, lines: &[SpoolLine<'_>]) -> std::io::Result<u64> {
        let len = self.spool.append(lines)?;
        if let Some(entries) = &mut self.entries {
            for line in lines {
                entries.take(line);
            }
        }
        Ok(len)
    }

    /// Writes the pending note about missing messages, if possible.
    fn flush(&mut self) {
        let Some((missing, since)) = self.pending.take() else { return };
        match self.append(&[SpoolLine::missing(since.clone(), missing.clone())]) {
            Ok(len) => {
                self.reached.tell(len, true);
                self.unrecorded.add(missing);
            }
            Err(_) => self.pending = Some((missing, since)),
        }
    }

    /// Writes a line, after the pending note about missing messages. If that fails, its messages count as missing too.
    fn write(&mut self, line: SpoolLine<'static>, lost: &Missing, is_weighty: bool) {
        let time = line.time.clone();
        let told = matches!(line.content, SpoolContent::Missing(_)).then(|| lost.clone());
        let before = self.pending.clone().map(|(missing, since)| SpoolLine::missing(since, missing));
        let lines: Vec<SpoolLine<'_>> = before.into_iter().chain([line]).collect();
        match self.append(&lines) {
            Ok(len) => {
                let pending = self.pending.take().map(|(missing, _)| missing);
                pending.into_iter().chain(told).for_each(|missing| self.unrecorded.add(missing));
                self.reached.tell(len, is_weighty);
            }
            Err(error) => {
                if let Some((missing, _)) = &mut self.pending {
                    missing.go_on(lost);
                } else {
                    let error = Some(error.to_string());
                    self.pending =
                        Some((Missing { why: WhyMissing::NotWritten, error, ..lost.clone() }, time));
                }
            }
        }
    }

    /// Writes how the server's process ended as the last line, after the pending note about missing messages. A
    /// connection without messages has no such line, nor one whose recorder died.
    pub fn end(&mut self, end: ServerEnd) {
        if self.tickets == 0 {
            return;
        }
        let missing = self.pending.clone().map(|(missing, since)| SpoolLine::missing(since, missing));
        let now = Timestamp::from_instant(jiff::Timestamp::now());
        let lines: Vec<SpoolLine<'_>> =
            missing.into_iter().chain([SpoolLine::ended(now, self.tickets + 1, end)]).collect();
        if let Ok(len) = self.append(&lines) {
            self.pending.take().into_iter().for_each(|(missing, _)| self.unrecorded.add(missing));
            self.reached.tell(len, true);
        }
    }

    /// Ends the recording. Returns the messages that are not in the file, and the result.
    ///
    /// # Errors
    /// An I/O error of the file, or an error of the journal.
    pub fn finish(mut self) -> (UnrecordedMessages, Result<ConnectionReport, Error>) {
        if let Some((missing, since)) = self.pending.take() {
            match self.append(&[SpoolLine::missing(since, missing.clone())]) {
                Ok(len) => self.reached.tell(len, true),
                Err(_) => self.unrecorded.is_untold = true,
            }
            self.unrecorded.add(missing);
        }
        if let Some(entries) = self.entries.take() {
            entries.finish();
        }
        self.reached.close();
        let failed = || std::io::Error::other("recording its spines has failed");
        let failed = |_| Err(Error::Source { path: "the connection".into(), source: failed() });
        (self.unrecorded, self.building.join().unwrap_or_else(failed))
    }
}

/// Completes the spines of a connection that was recorded before.
///
/// # Errors
/// An error of the file or the journal.
pub fn rebuild_spines(journal: &Journal, spooled: &RecordedConnection) -> Result<ConnectionReport, Error> {
    let mut builder = SpineBuilder::new(journal, spooled.id);
    let mut recording = spooled.read(journal.store())?;
    let end = recording.len()?;
    // The recorder may have died before the file was synced.
    SyncedSpool::doubt(Arc::clone(journal.store().disk()), spooled.path())?.reach(end)?;
    recording.each(end, &mut |line, place| builder.line(line, place))?;
    builder.finish()
}

impl SpineBuilder {
    fn new(journal: &Journal, id: Uuid) -> Self {
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
    fn listening(self) -> Self {
        Self { is_live: true, spines: self.spines.with_forgotten(Forgotten::Again), ..self }
    }

    /// Makes spines from the synced part of a file while it is written.
    fn live(
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

    /// Ends before the end of the file. The rest of the spines is made from the file later.
    fn leave(mut self, error: &Error) -> Result<ConnectionReport, Error> {
        self.recorded.is_left = true;
        self.recorded.problems.push(steno_model::with_causes(error));
        (self.recorded.threads, self.recorded.written) = self.spines.close()?;
        Ok(self.recorded)
    }

    fn line(&mut self, line: &SpoolLine<'_>, place: LinePlace) {
        let SpoolLine { time, ticket, content } = line;
        if *ticket > self.ticket_last + 1 {
            let missing = Missing::between(self.ticket_last + 1, ticket - 1);
            self.missing(&missing, time, place);
        }
        match content {
            SpoolContent::Message { lane, bytes } => {
                self.ticket_last = self.ticket_last.max(*ticket);
                let captured = Captured { lane: *lane, ticket: *ticket, time, place, line: bytes };
                self.message(captured);
            }
            SpoolContent::Missing(missing) => self.missing(missing, time, place),
            // It belongs to no thread and gives no spine record.
            SpoolContent::Ended(_) => self.ticket_last = self.ticket_last.max(*ticket),
        }
    }

    fn missing(&mut self, missing: &Missing, time: &Timestamp, place: LinePlace) {
        self.ticket_last = self.ticket_last.max(missing.ticket_last);
        self.recorded.missing += missing.messages();
        let made = self.fold.missing(missing, time, place);
        self.write(made);
    }

    fn message(&mut self, captured: Captured<'_>) {
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
        let (thread, found) = match around {
            Around::Begins { thread, cwd } => (thread, artifacts::of_repository(cwd)),
            Around::Stands { thread, cwd } => (thread, artifacts::of_working_tree(cwd)),
            Around::Ran { thread, path } => (thread, self.snapshots.look(thread, path).into_iter().collect()),
        };
        for artifact in found {
            let kept = artifact.kept.as_ref().map(|(what, bytes)| self.spines.keep(thread, *what, bytes));
            match kept.transpose() {
                Ok(kept) => {
                    let kept = kept.as_ref().map(|kept| (kept.artifact_path.as_str(), kept.sha256.as_str()));
                    let made = next.made(SpineType::ArtifactRef, artifact.payload(kept));
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

    fn boundary(&mut self, compacted: &Compacted, next: &mut RecordSlot) {
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

    fn finish(mut self) -> Result<ConnectionReport, Error> {
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

/// Returns the name of a direction in the file.
fn direction(lane: Lane) -> &'static str {
    match lane {
        Lane::ToAgent => "c2s",
        Lane::FromAgent => "s2c",
    }
}
