//! The state of a collector: sessions with their counts, and entries that wait for the name of their prompt.

use std::collections::{HashMap, HashSet};

use steno_adapters::AdapterEntry;
use steno_model::json::{Fields, JsonString, ObjectWriter, RawJson};
use steno_model::{EntryParts, EntrySource, EntryType, TranscriptEntry, TranscriptSummary};

use super::file::EntryFile;
use super::numbers::{EntryNumbers, first_words};
use super::{EntryOptions, TARGET};

/// The most entries of a session, and the most bytes, that wait for its first prompt.
const WAITING_LEN_MAX: usize = 256;
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// An entry that has no number yet.
pub(super) struct PendingEntry {
    pub(super) parts: EntryParts,
    /// Why its line cannot be read, if so.
    pub(super) unreadable: Option<&'static str>,
    /// The path of its source, for the source's first entry.
    pub(super) path: Option<String>,
}

/// A session with logged entries.
struct LoggedSession {
    prompt_name: JsonString,
    /// The provider's id for it.
    id: Option<JsonString>,
    summary: TranscriptSummary,
}

impl LoggedSession {
    /// Writes the fields that identify the session.
    fn name(&self, object: &mut ObjectWriter<'_>) {
        object.string("prompt_name", &self.prompt_name);
        object.optional("session_id", self.id.as_ref(), ObjectWriter::string);
    }
}

/// The entries of a session whose prompt has no name yet.
#[derive(Default)]
struct PendingEntries {
    entries: Vec<PendingEntry>,
    bytes: usize,
    /// The first words of a subagent's prompt.
    words: Option<JsonString>,
}

/// The state of one collector.
pub(super) struct Collection {
    pub(super) options: EntryOptions,
    file: Option<EntryFile>,
    numbers: EntryNumbers,
    sessions: Vec<LoggedSession>,
    /// The indexes of sessions, by name.
    places: HashMap<String, usize>,
    waiting: HashMap<String, PendingEntries>,
    /// The sessions that wait, in order.
    order: Vec<String>,
    /// The files that were logged as discovered.
    discovered: HashSet<String>,
}

impl Collection {
    pub(super) fn new(options: EntryOptions, file: Option<EntryFile>) -> Self {
        let mut collection = Self {
            options,
            file,
            numbers: EntryNumbers::default(),
            sessions: Vec::new(),
            places: HashMap::new(),
            waiting: HashMap::new(),
            order: Vec::new(),
            discovered: HashSet::new(),
        };
        if let Some(file) = &mut collection.file {
            file.catch_up(&mut collection.numbers);
        }
        collection
    }

    /// Takes the prompt's name from an entry that was logged before.
    pub(super) fn look(&mut self, session: &str, entry: &AdapterEntry<'_>) {
        if let Some(name) = prompt_in(entry) {
            self.numbers.set_name(session, name);
        }
    }

    /// Logs an entry, now or once its prompt has a name.
    pub(super) fn take(&mut self, session: &str, entry: &AdapterEntry<'_>, seen: PendingEntry) {
        if self.name_of(session).is_none()
            && let Some(name) = prompt_in(entry)
        {
            self.numbers.set_name(session, name);
        }
        if let Some(name) = self.name_of(session) {
            self.release(session);
            return self.log(session, &name, seen);
        }
        if !self.waiting.contains_key(session) {
            self.order.push(session.to_owned());
        }
        let waiting = self.waiting.entry(session.to_owned()).or_default();
        waiting.bytes += entry.raw.len() + entry.detail.len();
        if waiting.words.is_none() {
            waiting.words = entry.text.and_then(first_words);
        }
        waiting.entries.push(seen);
        if waiting.entries.len() >= WAITING_LEN_MAX || waiting.bytes >= WAITING_BYTES_MAX {
            self.release(session);
        }
    }

    fn name_of(&self, session: &str) -> Option<JsonString> {
        let given = self.options.prompt_name.as_deref().map(JsonString::from);
        given.or_else(|| self.numbers.name(session).cloned())
    }

    /// Logs the entries that wait for a session's prompt name. Without a prompt, its first words or the session's id
    /// are the name.
    fn release(&mut self, session: &str) {
        let Some(waiting) = self.waiting.remove(session) else { return };
        self.order.retain(|waits| waits != session);
        let name = self.name_of(session).or(waiting.words).unwrap_or_else(|| session.into());
        self.numbers.set_name(session, name.clone());
        for seen in waiting.entries {
            self.log(session, &name, seen);
        }
    }

    fn log(&mut self, session: &str, name: &JsonString, seen: PendingEntry) {
        let PendingEntry { mut parts, unreadable, path } = seen;
        parts.prompt_name = name.clone();
        let place = self.start(session, &parts);
        if let Some(path) = path.filter(|path| self.discovered.insert(path.clone())) {
            self.discovered(place, &path, &parts.source);
        }
        if !self.write(place, parts) {
            return;
        }
        if let Some(why) = unreadable {
            let context = self.context(place, |object| object.string("error", &why.into()));
            self.error(&context);
        }
    }

    /// Numbers and logs an entry; returns whether it is in the log.
    fn write(&mut self, place: usize, mut parts: EntryParts) -> bool {
        if let Some(file) = &mut self.file
            && !file.lock(&mut self.numbers)
        {
            return false;
        }
        parts.sequence_number = self.numbers.next(&parts.prompt_name, &parts.source);
        let counted = without_text(&parts);
        let context = TranscriptEntry::from_parts(parts).to_json();
        tracing::debug!(target: TARGET, event = "transcript.entry", context = %context);
        if let Some(file) = &mut self.file
            && !file.unlock()
        {
            return false;
        }
        self.numbers.give(&counted.prompt_name, &counted.source, counted.sequence_number);
        if let Some(session) = self.sessions.get_mut(place) {
            session.summary.push(&TranscriptEntry::from_parts(counted));
        }
        true
    }

    /// Returns the index of a session; its first entry logs the start.
    fn start(&mut self, session: &str, parts: &EntryParts) -> usize {
        if let Some(place) = self.places.get(session) {
            return *place;
        }
        let place = self.sessions.len();
        self.places.insert(session.to_owned(), place);
        self.sessions.push(LoggedSession {
            prompt_name: parts.prompt_name.clone(),
            id: parts.session_id.clone(),
            summary: TranscriptSummary::default(),
        });
        let context = self.context(place, |object| object.string("adapter", &parts.adapter));
        self.logged(|| tracing::debug!(target: TARGET, event = "transcript.start", context = %context));
        place
    }

    /// Logs that a file of a session was discovered.
    fn discovered(&mut self, place: usize, path: &str, source: &EntrySource) {
        let context = self.context(place, |object| object.string("path", &path.into()));
        self.logged(|| match source {
            EntrySource::Main | EntrySource::Other(_) => {
                tracing::debug!(target: TARGET, event = "transcript.path_discovered", context = %context);
            }
            EntrySource::Subagent(_) => {
                tracing::debug!(target: TARGET, event = "transcript.subagent_discovered", context = %context);
            }
        });
    }

    /// Logs an error.
    pub(super) fn error(&mut self, context: &RawJson) {
        self.logged(|| tracing::warn!(target: TARGET, event = "transcript.error", context = %context));
    }

    /// Logs a record without a number.
    fn logged(&mut self, log: impl FnOnce()) {
        if let Some(file) = &mut self.file {
            if file.lock(&mut self.numbers) {
                log();
                file.unlock();
            }
        } else {
            log();
        }
    }

    fn context(&self, place: usize, more: impl FnOnce(&mut ObjectWriter<'_>)) -> RawJson {
        RawJson::object(|object| {
            if let Some(session) = self.sessions.get(place) {
                session.name(object);
            }
            more(object);
        })
    }

    /// Logs the waiting entries and the counts of each session.
    pub(super) fn stop(&mut self) -> Vec<TranscriptSummary> {
        for session in std::mem::take(&mut self.order) {
            self.release(&session);
        }
        for place in 0..self.sessions.len() {
            let summary = self.sessions[place].summary.to_json();
            let context = self.context(place, |object| {
                for (key, value) in Fields::parse(summary.as_str()).iter().flat_map(Fields::iter) {
                    object.json(&key.text(), &RawJson::from_raw(value));
                }
            });
            self.logged(|| tracing::debug!(target: TARGET, event = "transcript.stop", context = %context));
        }
        self.places.clear();
        self.discovered.clear();
        std::mem::take(&mut self.sessions).into_iter().map(|session| session.summary).collect()
    }
}

/// Returns an entry without its detail and raw line, which may be very long.
fn without_text(parts: &EntryParts) -> EntryParts {
    EntryParts {
        prompt_name: parts.prompt_name.clone(),
        adapter: parts.adapter.clone(),
        entry_type: parts.entry_type,
        sequence_number: parts.sequence_number,
        source: parts.source.clone(),
        timestamp: parts.timestamp.clone(),
        session_id: None,
        detail: None,
        raw: None,
    }
}

/// Returns the first words of a prompt of the session's main agent.
fn prompt_in(entry: &AdapterEntry<'_>) -> Option<JsonString> {
    let is_prompt = entry.entry_type == EntryType::UserMessage && *entry.source == EntrySource::Main;
    entry.text.filter(|_| is_prompt).and_then(first_words)
}
