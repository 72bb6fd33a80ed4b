//! Transcript entries as structured logs (000): numbered, counted, logged through `tracing`, never in the way.

mod log;
mod naming;

use std::collections::HashMap;

use steno_adapters::{SeenEntry, Sink};
use steno_model::json::{JsonString, RawJson};
use steno_model::{
    Draft, EntryParts, EntrySource, EntryType, EventType, RunId, Timestamp, TranscriptEntry,
    TranscriptSummary,
};

pub use log::EntryLog;
pub use naming::FirstPrompts;

/// The target of all log records about entries.
pub const TARGET: &str = "steno::transcript";

/// How entries are made (R13, R14, R25).
#[derive(Clone, Debug)]
pub struct EntryOptions {
    /// Whether entries are logged at all.
    pub is_on: bool,
    /// Whether each carries the line it was made from.
    pub emit_raw: bool,
    /// The prompt's name; else the first words of the session's first prompt, or its id.
    pub prompt_name: Option<String>,
}

impl Default for EntryOptions {
    fn default() -> Self {
        Self { is_on: true, emit_raw: true, prompt_name: None }
    }
}

/// Logs the entries of a source.
///
/// It can stand in front of another sink, which gets the events.
pub struct EntrySink<S = Nowhere> {
    options: EntryOptions,
    numbers: EntryNumbers,
    summary: TranscriptSummary,
    events: S,
    /// Whether entries are only counted.
    is_quiet: bool,
}

/// What whoever goes on with a log goes on with: the last numbers that were given, per prompt and source (R5), and the
/// prompts' names, which all files of a session share.
#[derive(Clone, Debug, Default)]
pub struct EntryNumbers {
    last: HashMap<(JsonString, EntrySource), u64>,
    /// By session, where nobody has given a name.
    prompt_names: HashMap<String, JsonString>,
}

impl EntryNumbers {
    fn next(&mut self, prompt_name: &JsonString, source: &EntrySource) -> u64 {
        let number = self.last.entry((prompt_name.clone(), source.clone())).or_default();
        *number += 1;
        *number
    }

    /// Returns the prompts' names without any number, for a source whose entries are counted from its beginning.
    #[must_use]
    pub fn names(&self) -> Self {
        Self { last: HashMap::new(), prompt_names: self.prompt_names.clone() }
    }

    /// Takes the prompts' names that another source has found, for sessions that have none yet.
    pub fn learn(&mut self, other: Self) {
        for (session, name) in other.prompt_names {
            self.prompt_names.entry(session).or_insert(name);
        }
    }

    /// Takes the names of prompts that were looked up, for sessions that have none yet.
    pub fn know(&mut self, prompts: FirstPrompts) {
        for (session, name) in prompts.into_names() {
            self.prompt_names.entry(session).or_insert(name);
        }
    }

    /// Returns the name of the session's prompt; if nobody has looked it up, its first entry decides.
    fn prompt_name(&mut self, entry: &SeenEntry<'_>) -> JsonString {
        let session = entry.session_id.unwrap_or_default();
        if let Some(name) = self.prompt_names.get(session) {
            return name.clone();
        }
        let name = name_of(entry);
        self.prompt_names.insert(session.to_owned(), name.clone());
        name
    }
}

/// Takes events and keeps none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nowhere;

impl Sink for Nowhere {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}

    fn wants(&self, _event_type: EventType) -> bool {
        false
    }
}

impl EntrySink {
    /// Begins to log entries alone.
    #[must_use]
    pub fn begin(options: EntryOptions) -> Self {
        Self::beside(options, Nowhere)
    }

    /// Begins to log entries alone, in a log that has some already.
    #[must_use]
    pub fn resume(options: EntryOptions, numbers: EntryNumbers) -> Self {
        Self { numbers, ..Self::begin(options) }
    }
}

impl<S: Sink> EntrySink<S> {
    /// Begins to log entries, and hands the events on.
    pub fn beside(options: EntryOptions, events: S) -> Self {
        if options.is_on {
            let prompt_name = options.prompt_name.as_deref().map(JsonString::from);
            let context = RawJson::object(|object| {
                object.optional("prompt_name", prompt_name.as_ref(), steno_model::json::ObjectWriter::string);
            });
            tracing::debug!(target: TARGET, event = "transcript.start", context = %context);
        }
        Self {
            options,
            numbers: EntryNumbers::default(),
            summary: TranscriptSummary::default(),
            events,
            is_quiet: false,
        }
    }

    /// Counts entries without logging them, while a source is read again whose entries are in the log.
    pub fn set_quiet(&mut self, is_quiet: bool) {
        self.is_quiet = is_quiet;
    }

    /// Logs that a file of the session was found.
    pub fn discovered(&self, path: &str, what: Discovered) {
        if self.options.is_on {
            let context = RawJson::object(|object| object.string("path", &path.into()));
            match what {
                Discovered::Main => {
                    tracing::debug!(target: TARGET, event = "transcript.path_discovered", context = %context);
                }
                Discovered::Subagent => {
                    tracing::debug!(target: TARGET, event = "transcript.subagent_discovered", context = %context);
                }
            }
        }
    }

    /// Logs that something went wrong; nobody is held up by it (R8).
    pub fn error(&self, error: &str) {
        if self.options.is_on {
            let context = RawJson::object(|object| object.string("error", &error.into()));
            tracing::warn!(target: TARGET, event = "transcript.error", context = %context);
        }
    }

    /// Logs how many entries there were, and returns the counts.
    pub fn stop(self) -> TranscriptSummary {
        self.stop_to_resume().0
    }

    /// Stops like [`EntrySink::stop`], and returns also what the next one goes on with.
    pub fn stop_to_resume(self) -> (TranscriptSummary, EntryNumbers) {
        if self.options.is_on {
            let context = self.summary.to_json();
            tracing::debug!(target: TARGET, event = "transcript.stop", context = %context);
        }
        (self.summary, self.numbers)
    }
}

/// Which file of a session was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discovered {
    /// The session's own.
    Main,
    /// A subagent's.
    Subagent,
}

impl<S: Sink> Sink for EntrySink<S> {
    fn draft(&mut self, run: RunId, draft: Draft) {
        self.events.draft(run, draft);
    }

    fn wants(&self, event_type: EventType) -> bool {
        self.events.wants(event_type)
    }

    fn wants_entries(&self) -> bool {
        self.options.is_on
    }

    fn entry(&mut self, seen: SeenEntry<'_>) {
        let given = self.options.prompt_name.as_deref().map(JsonString::from);
        let prompt_name = given.unwrap_or_else(|| self.numbers.prompt_name(&seen));
        let sequence_number = self.numbers.next(&prompt_name, seen.source);
        if self.is_quiet {
            return;
        }
        let unknown = || Timestamp::from_record("1970-01-01T00:00:00.000Z".into());
        let entry = TranscriptEntry::from_parts(EntryParts {
            prompt_name,
            adapter: seen.adapter.into(),
            entry_type: seen.entry_type,
            sequence_number,
            source: seen.source.clone(),
            timestamp: seen.timestamp.cloned().unwrap_or_else(unknown),
            session_id: seen.session_id.map(JsonString::from),
            detail: Some(detail(&seen)),
            raw: self.options.emit_raw.then(|| seen.raw.into()),
        });
        self.summary.push(&entry);
        let context = entry.to_json();
        // It may be very long, and is copied once more on its way into the log.
        drop(entry);
        tracing::debug!(target: TARGET, event = "transcript.entry", context = %context);
    }
}

fn detail(seen: &SeenEntry<'_>) -> RawJson {
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

/// Names a session that nobody has named: by the first words of its prompt, or by its id.
fn name_of(entry: &SeenEntry<'_>) -> JsonString {
    let prompt = entry.text.filter(|_| entry.entry_type == EntryType::UserMessage);
    prompt.and_then(naming::first_words).unwrap_or_else(|| entry.session_id.unwrap_or("session").into())
}
