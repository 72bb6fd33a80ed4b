//! Transcript entries as structured logs (000): numbered, counted and logged through `tracing`. Logging never blocks
//! recording.

mod collector;
mod file;
mod log;
mod numbers;
mod stored;

use std::collections::BTreeSet;
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
    /// Whether each has the line it was made from.
    pub emit_raw: bool,
    /// The prompt's name; else the first words of the session's first prompt, or its id.
    pub prompt_name: Option<String>,
}

impl Default for EntryOptions {
    fn default() -> Self {
        Self { emit_raw: true, prompt_name: None }
    }
}

/// The time of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryTime {
    /// The record's own, or that of the record before it.
    Record,
    /// The time of collection.
    Capture,
    /// The time when a connection's message was captured.
    Message,
}

/// Collects the entries of any number of sources in one log.
///
/// Numbers continue over all sources of a collector. Each session has one start and one stop, however many files and
/// connections it is in.
#[derive(Clone)]
pub struct EntryCollector {
    shared: Arc<Mutex<Collection>>,
}

impl EntryCollector {
    /// Begins to collect. Numbers start at 1.
    #[must_use]
    pub fn new(options: EntryOptions) -> Self {
        Self { shared: Arc::new(Mutex::new(Collection::new(options, None))) }
    }

    /// Begins to collect for a log file. Numbers continue from those in the file, including those that other processes
    /// write meanwhile.
    #[must_use]
    pub fn appending(options: EntryOptions, file: EntryFile) -> Self {
        Self { shared: Arc::new(Mutex::new(Collection::new(options, Some(file)))) }
    }

    /// Begins a source; `path` is its path if it is a file.
    #[must_use]
    pub fn source(&self, path: Option<String>, time: EntryTime) -> EntrySink {
        EntrySink { collector: self.clone(), time, path, runs: None, is_quiet: false }
    }

    /// Logs an error, without failing the caller (R8).
    pub fn error(&self, error: &str) {
        self.with(|collection| {
            collection.error(&RawJson::object(|object| object.string("error", &error.into())));
        });
    }

    /// Ends the collection: logs the counts of each session, and returns them in the order in which the sessions began.
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
    /// The path of the source, until its first entry.
    path: Option<String>,
    /// The runs whose entries are taken; `None` means all.
    runs: Option<BTreeSet<RunId>>,
    /// Whether entries are only read for the names of prompts.
    is_quiet: bool,
}

impl EntrySink {
    /// Takes only the entries of some runs, or of all: a connection has entries of several sessions.
    #[must_use]
    pub fn of_runs(self, runs: Option<BTreeSet<RunId>>) -> Self {
        Self { runs, ..self }
    }

    /// Switches logging off or on: the entries of a source that is read again were logged before.
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
        if self.runs.as_ref().is_some_and(|runs| !runs.contains(&entry.run)) {
            return;
        }
        // Without a session, the run counts as the session.
        let session = entry.session_id.map_or_else(|| entry.run.to_string(), str::to_owned);
        if self.is_quiet {
            return self.collector.with(|collection| collection.look(&session, &entry));
        }
        let emit_raw = self.collector.with(|collection| collection.options.emit_raw);
        let parts = EntryParts {
            // Both are set when it is logged.
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
    // The record may nest too deep for a line; then it is only in the raw text.
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
