//! Records what passed `steno proxy`: the records of HTTP exchanges, in a file of the store that is imported later.

use std::sync::Arc;

use steno_adapters::codex::spine::{Missing, WhyMissing};
use steno_adapters::{Source, http};
use steno_capture::http_proxy::HttpMessage;
use steno_journal::Journal;
use steno_model::Timestamp;
use uuid::Uuid;

use super::http_rules::HttpRules;
use super::live_entries::LiveEntries;
use super::spool::{RecordedConnection, Spool, SpoolContent, SpoolLine};
use super::synced::SyncedSpool;
use super::writer::{SpoolWriter, UnrecordedMessages};
use crate::entries::EntryCollector;
use crate::spines::Error;

/// Records the exchanges of one proxy.
pub struct HttpRecorder {
    writer: SpoolWriter,
    rules: HttpRules,
    synced: SyncedSpool,
    tickets: u64,
    /// The length of the file.
    len: u64,
}

impl HttpRecorder {
    /// Begins to record, with the address of the upstream as the first line.
    ///
    /// # Errors
    /// An I/O error of the file.
    pub fn begin(journal: &Journal, rules: HttpRules, upstream: &str) -> Result<Self, Error> {
        let spool = Spool::create(journal.store(), Uuid::new_v4())?;
        let disk = Arc::clone(journal.store().disk());
        let synced = SyncedSpool::begin(disk, spool.path().clone(), spool.file());
        let mut recorder = Self { writer: SpoolWriter::new(spool), rules, synced, tickets: 1, len: 0 };
        let now = Timestamp::from_instant(jiff::Timestamp::now());
        let len = recorder.writer.write_note(SpoolLine::http(now, upstream));
        recorder.grown(len);
        Ok(recorder)
    }

    /// Also collects entries from what is written.
    #[must_use]
    pub fn with_entries(mut self, collector: &EntryCollector) -> Self {
        let source = Source::named(&self.spooled().id.to_string());
        self.writer.collect_entries(LiveEntries::new(collector, http::recording(source)));
        self
    }

    /// Returns the connection.
    #[must_use]
    pub fn spooled(&self) -> RecordedConnection {
        self.writer.spooled()
    }

    /// Records a message. If it cannot be written it is counted as missing, and the next message is tried again.
    pub fn record(&mut self, message: &HttpMessage) {
        self.tickets += 1;
        let (lane, ticket, time) = (message.lane, self.tickets, message.time.clone());
        let bytes = message.record.as_str().as_bytes();
        let lost = |why| Missing::of(lane, ticket, 1, bytes.len() as u64 + 1, why);
        let len = match self.rules.judge(message) {
            Err(why) => self.writer.leave_out(lost(why), time),
            Ok(_recording) => {
                let content = SpoolContent::Message { lane, bytes: bytes.to_vec().into() };
                self.writer.write(SpoolLine { time, ticket, content }, &lost(WhyMissing::NotWritten))
            }
        };
        self.grown(len);
        // One sync for an exchange: its records are of use only together.
        if message.is_last {
            self.synced.reach(self.len).ok();
        }
    }

    fn grown(&mut self, len: Option<u64>) {
        self.len = len.unwrap_or(self.len);
    }

    /// Ends the recording. Returns the messages that are not in the file.
    ///
    /// # Errors
    /// An I/O error of the file.
    pub fn finish(mut self) -> (UnrecordedMessages, Result<(), Error>) {
        let now = Timestamp::from_instant(jiff::Timestamp::now());
        let len = self.writer.write_note(SpoolLine::http_ended(now, self.tickets + 1));
        self.grown(len);
        let (unrecorded, len) = self.writer.finish();
        (unrecorded, self.synced.reach(len.unwrap_or(self.len)))
    }
}
