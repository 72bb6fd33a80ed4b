//! Records a connection between a client and its server: first its messages, in a file of the store, and then, for
//! `codex app-server`, the spines of its threads. `http` records what passed `steno proxy`, in such a file too and
//! without spines.
//!
//! The file has both directions, one message per line, and is imported like an agent's file: the events of the
//! connection are derived from it. Spines are made only from the synced part of the file. What a crash leaves
//! unfinished is made from the file later. Messages that could not be written are counted, and the count is written to
//! the file as soon as possible.

mod artifacts;
mod blank;
mod boundaries;
mod check;
mod derivation;
mod http;
mod http_rules;
mod live_entries;
mod rules;
mod spine_builder;
mod spool;
mod synced;
mod writer;

use std::sync::Arc;
use std::thread::JoinHandle;

use steno_adapters::codex::spine::{Missing, SecretFilter, WhyMissing};
use steno_adapters::{Source, codex, mcp};
use steno_capture::proxy::{LossReason, ProxiedLine};
use steno_journal::Journal;
use steno_model::{Lane, ThreadId, Timestamp};
use uuid::Uuid;

use crate::entries::EntryCollector;
use crate::spines::{Error, SpineWriteReport};
pub(crate) use blank::{blank, blank_exchanges};
pub use check::ConnectionCheck;
use derivation::Derivation;
pub use http::HttpRecorder;
pub use http_rules::HttpRules;
use live_entries::LiveEntries;
pub use rules::ConnectionRules;
use spine_builder::SpineBuilder;
pub use spool::{McpBeginning, RecordedConnection, ServerEnd, connections};
use spool::{Spool, SpoolContent, SpoolLine};
use synced::{SpoolProgress, SyncedSpool};
use writer::SpoolWriter;
pub use writer::UnrecordedMessages;

/// Records one connection: writes its messages at once, and syncs them and makes spines in a worker thread.
pub struct ConnectionRecorder {
    writer: SpoolWriter,
    rules: ConnectionRules,
    /// What is kept out of the file; only Codex's connections have such secrets.
    withholding: Option<SecretFilter>,
    tickets: u64,
    has_messages: bool,
    reached: Arc<SpoolProgress>,
    building: JoinHandle<Result<ConnectionReport, Error>>,
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

impl ConnectionRecorder {
    /// Begins to record a connection to `codex app-server`.
    ///
    /// # Errors
    /// An I/O error of the file.
    pub fn begin(journal: &Journal, rules: ConnectionRules) -> Result<Self, Error> {
        Self::begin_protocol(journal, rules, None)
    }

    /// Begins to record a connection to an MCP server.
    ///
    /// # Errors
    /// An I/O error of the file.
    pub fn begin_mcp(
        journal: &Journal,
        rules: ConnectionRules,
        beginning: McpBeginning,
    ) -> Result<Self, Error> {
        Self::begin_protocol(journal, rules, Some(beginning))
    }

    fn begin_protocol(
        journal: &Journal,
        rules: ConnectionRules,
        beginning: Option<McpBeginning>,
    ) -> Result<Self, Error> {
        let spool = Spool::create(journal.store(), Uuid::new_v4())?;
        let (journal, spooled) = (journal.clone(), spool.spooled());
        let recording = spooled.read(journal.store())?;
        let safe = SyncedSpool::begin(Arc::clone(journal.store().disk()), spool.path().clone(), spool.file());
        let reached = Arc::new(SpoolProgress::default());
        let thread = std::thread::Builder::new().name("steno-spines".to_owned());
        let is_codex = beginning.is_none();
        let building = thread.spawn({
            let reached = Arc::clone(&reached);
            move || {
                let derivation = if is_codex {
                    Derivation::Spines(Box::new(SpineBuilder::new(&journal, spooled.id).listening()))
                } else {
                    Derivation::Nothing(ConnectionReport::default())
                };
                derivation.live(recording, safe, &reached)
            }
        });
        let building = building.map_err(|source| Error::Source { path: "a thread".into(), source })?;
        Ok(Self {
            rules,
            withholding: is_codex.then(SecretFilter::default),
            // The first line has the first number.
            tickets: u64::from(beginning.is_some()),
            writer: SpoolWriter::new(spool).with_beginning(beginning),
            has_messages: false,
            reached,
            building,
        })
    }

    /// Also collects entries from what is written.
    #[must_use]
    pub fn with_entries(mut self, collector: &EntryCollector) -> Self {
        let source = Source::named(&self.spooled().id.to_string());
        let is_codex = self.withholding.is_some();
        let adapter = if is_codex { codex::app_server(source) } else { mcp::connection(source) };
        self.writer.collect_entries(LiveEntries::new(collector, adapter));
        self
    }

    /// Returns the connection.
    #[must_use]
    pub fn spooled(&self) -> RecordedConnection {
        self.writer.spooled()
    }

    /// Returns how many bytes of the file would survive a power cut.
    #[must_use]
    pub fn safe_bytes(&self) -> u64 {
        self.reached.safe()
    }

    /// Records a message. If it cannot be written it is counted as missing, and the next message is tried again.
    pub fn record(&mut self, proxied: ProxiedLine) {
        let first = self.tickets + 1;
        self.has_messages = true;
        match proxied {
            ProxiedLine::Line { lane, time, line } => {
                self.tickets += 1;
                let _recording = match self.rules.judge(lane, &line) {
                    Ok(recording) => recording,
                    Err(why) => {
                        let left_out = Missing::of(lane, first, 1, line.len() as u64 + 1, why);
                        let len = self.writer.leave_out(left_out, time);
                        return self.tell(len, true);
                    }
                };
                let passed = self.withholding.as_mut().map(|withholding| withholding.pass(lane, &line));
                let (remainder, is_weighty) =
                    passed.map_or((None, true), |passed| (passed.remainder, passed.is_weighty));
                let lost = Missing::of(lane, first, 1, line.len() as u64 + 1, WhyMissing::NotWritten);
                let bytes = remainder.map_or(line, |remainder| remainder.as_str().as_bytes().to_vec());
                let content = SpoolContent::Message { lane, bytes: bytes.into() };
                let len = self.writer.write(SpoolLine { time, ticket: first, content }, &lost);
                self.tell(len, is_weighty);
            }
            ProxiedLine::Lost { lane, time, lines, bytes, why } => {
                self.tickets += lines;
                let why = match why {
                    LossReason::Behind => WhyMissing::Behind,
                    LossReason::TooLong => WhyMissing::TooLong,
                };
                let missing = Missing::of(lane, first, lines, bytes, why);
                let len = self.writer.write(SpoolLine::missing(time, missing.clone()), &missing);
                self.tell(len, true);
            }
        }
    }

    /// Passes on how long the file is now, if it has grown.
    fn tell(&self, len: Option<u64>, is_weighty: bool) {
        if let Some(len) = len {
            self.reached.tell(len, is_weighty);
        }
    }

    /// Writes how the server's process ended as the last line, after the pending note about missing messages. A
    /// connection without messages has no such line, nor one whose recorder died.
    pub fn end(&mut self, end: ServerEnd) {
        if !self.has_messages {
            return;
        }
        let now = Timestamp::from_instant(jiff::Timestamp::now());
        let len = self.writer.write_note(SpoolLine::ended(now, self.tickets + 1, end));
        self.tell(len, true);
    }

    /// Ends the recording. Returns the messages that are not in the file, and the result.
    ///
    /// # Errors
    /// An I/O error of the file, or an error of the journal.
    pub fn finish(self) -> (UnrecordedMessages, Result<ConnectionReport, Error>) {
        let (unrecorded, len) = self.writer.finish();
        if let Some(len) = len {
            self.reached.tell(len, true);
        }
        self.reached.close();
        let failed = || std::io::Error::other("recording its spines has failed");
        let failed = |_| Err(Error::Source { path: "the connection".into(), source: failed() });
        (unrecorded, self.building.join().unwrap_or_else(failed))
    }
}

/// Completes what is derived from a connection that was recorded before: the spines of Codex's threads.
///
/// # Errors
/// An error of the file or the journal.
pub fn rebuild_spines(journal: &Journal, spooled: &RecordedConnection) -> Result<ConnectionReport, Error> {
    let mut recording = spooled.read(journal.store())?;
    let mut derivation = Derivation::of_file(journal, &recording, spooled.id)?;
    let end = recording.len()?;
    // The recorder may have died before the file was synced.
    SyncedSpool::doubt(Arc::clone(journal.store().disk()), spooled.path())?.reach(end)?;
    recording.each(end, &mut |line, place| derivation.line(line, place))?;
    derivation.finish()
}

/// Returns the name of a direction in the file.
fn direction(lane: Lane) -> &'static str {
    match lane {
        Lane::ToAgent => "c2s",
        Lane::FromAgent => "s2c",
    }
}
