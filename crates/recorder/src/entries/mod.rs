//! Transcript entries as structured logs (000): numbered, counted, logged through `tracing`, never in the way.

mod collector;
mod file;
mod log;
mod numbers;
mod stored;

use std::sync::{Arc, Mutex, PoisonError};

use steno_adapters::{AdapterEntry, Sink};
use steno_model::json::RawJson;
use steno_model::{Draft, EntryParts, EventType, RunId, Timestamp, TranscriptSummary};

use collector::{Collection, PendingEntry};
pub use file::EntryFile;
pub use log::EntryLog;
pub use stored::{StoredSource, read_stored};

/// The target of all log records about entries.
pub const TARGET: &str = "steno::transcript";

/// How entries are made (R13, R25).
#[derive(Clone, Debug)]
pub struct EntryOptions {
    /// Whether each carries the line it was made from.
    pub emit_raw: bool,
    /// The prompt's name; else the first words of the session's first prompt, or its id.
    pub prompt_name: Option<String>,
}

impl Default for EntryOptions {
    fn default() -> Self {
        Self { emit_raw: true, prompt_name: None }
    }
}

/// Which time entries have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryTime {
    /// The record's own, or that of the record before it.
    Record,
    /// When they are collected.
    Capture,
    /// When the message was captured, as the recording of a connection says.
    Message,
}

/// Collects the entries of any number of sources in one log.
///
/// Numbers go on over all that one collector collects, and each session has one start and one stop in it, however many
/// files and connections it is in.
#[derive(Clone)]
pub struct EntryCollector {
    shared: Arc<Mutex<Collection>>,
}

impl EntryCollector {
    /// Begins to collect. Numbers begin with 1.
    #[must_use]
    pub fn new(options: EntryOptions) -> Self {
        Self { shared: Arc::new(Mutex::new(Collection::new(options, None))) }
    }

    /// Begins to collect for a log that goes to a file. Numbers go on from those in the file, also from those that other
    /// processes write there meanwhile.
    #[must_use]
    pub fn appending(options: EntryOptions, file: EntryFile) -> Self {
        Self { shared: Arc::new(Mutex::new(Collection::new(options, Some(file)))) }
    }

    /// Begins with a source; `path` is where it lies, if it is a file.
    #[must_use]
    pub fn source(&self, path: Option<String>, time: EntryTime) -> EntrySink {
        EntrySink { collector: self.clone(), time, path, is_quiet: false }
    }

    /// Logs that something went wrong; nobody is held up by it (R8).
    pub fn error(&self, error: &str) {
        self.with(|collection| {
            collection.error(&RawJson::object(|object| object.string("error", &error.into())));
        });
    }

    /// Ends the collection: logs for each session how many entries there were, and returns these counts in the order in
    /// which the sessions began.
    pub fn stop(&self) -> Vec<TranscriptSummary> {
        self.with(Collection::stop)
    }

    fn with<T>(&self, work: impl FnOnce(&mut Collection) -> T) -> T {
        work(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes the entries of one source.
pub struct EntrySink {
    collector: EntryCollector,
    time: EntryTime,
    /// Where the source lies, until it is told.
    path: Option<String>,
    /// Whether entries are only looked at for the names of prompts.
    is_quiet: bool,
}

impl EntrySink {
    /// Has entries logged no more, or again: those of a source that is read once more were logged before.
    pub fn set_quiet(&mut self, is_quiet: bool) {
        self.is_quiet = is_quiet;
    }

    fn time_of(&self, entry: &AdapterEntry<'_>) -> Timestamp {
        let now = || Timestamp::from_instant(jiff::Timestamp::now());
        let unknown = || Timestamp::from_record("1970-01-01T00:00:00.000Z".into());
        match self.time {
            EntryTime::Capture => now(),
            EntryTime::Message => entry.captured.cloned().unwrap_or_else(now),
            EntryTime::Record => entry.timestamp.cloned().unwrap_or_else(unknown),
        }
    }
}

impl Sink for EntrySink {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}

    fn wants(&self, _event_type: EventType) -> bool {
        false
    }

    fn wants_entries(&self) -> bool {
        true
    }

    fn entry(&mut self, entry: AdapterEntry<'_>) {
        // What belongs to no session is by itself.
        let session = entry.session_id.map_or_else(|| entry.run.to_string(), str::to_owned);
        if self.is_quiet {
            return self.collector.with(|collection| collection.look(&session, &entry));
        }
        let emit_raw = self.collector.with(|collection| collection.options.emit_raw);
        let parts = EntryParts {
            // Both are known when it is logged.
            prompt_name: "".into(),
            sequence_number: 0,
            adapter: entry.adapter.into(),
            entry_type: entry.entry_type,
            source: entry.source.clone(),
            timestamp: self.time_of(&entry),
            session_id: entry.session_id.map(Into::into),
            detail: Some(detail(&entry)),
            raw: emit_raw.then(|| entry.raw.into()),
        };
        let seen = PendingEntry { parts, unreadable: entry.unreadable, path: self.path.take() };
        self.collector.with(|collection| collection.take(&session, &entry, seen));
    }
}

fn detail(seen: &AdapterEntry<'_>) -> RawJson {
    // The record is JSON, but may nest deeper than a line may; then it is in the raw text only.
    let record = RawJson::parse(seen.detail).unwrap_or_else(|_| RawJson::null());
    RawJson::object(|object| {
        object.json(seen.detail_name, &record);
        if let Some(text) = seen.accumulated {
            object.string("text", &text.into());
        }
        if let Some(subtype) = seen.subtype {
            object.string("subtype", &subtype.into());
        }
    })
}
