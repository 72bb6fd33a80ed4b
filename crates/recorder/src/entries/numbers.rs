//! The numbers of entries, and the names of prompts.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use steno_model::EntrySource;
use steno_model::json::JsonString;

/// The last numbers per prompt and source (R5), and the prompts' names by session.
#[derive(Debug, Default)]
pub(super) struct EntryNumbers {
    last: HashMap<(String, String), u64>,
    names: HashMap<String, JsonString>,
}

/// The fields of a log record that matter for numbers.
#[derive(Deserialize)]
struct LoggedEntry<'a> {
    #[serde(borrow)]
    context: EntryContext<'a>,
}

#[derive(Deserialize)]
struct EntryContext<'a> {
    #[serde(borrow)]
    prompt_name: &'a RawValue,
    #[serde(borrow)]
    source: &'a RawValue,
    sequence_number: u64,
    #[serde(borrow, default)]
    session_id: Option<&'a RawValue>,
}

impl EntryNumbers {
    /// Returns the number after the last.
    pub(super) fn next(&self, prompt_name: &JsonString, source: &EntrySource) -> u64 {
        self.last.get(&key(prompt_name, &source.to_json())).copied().unwrap_or(0) + 1
    }

    /// Notes that a number was used.
    pub(super) fn give(&mut self, prompt_name: &JsonString, source: &EntrySource, number: u64) {
        self.last.insert(key(prompt_name, &source.to_json()), number);
    }

    /// Reads a line of the log. Lines that are not about an entry are ignored.
    pub(super) fn read(&mut self, line: &[u8]) {
        let Ok(LoggedEntry { context }) = serde_json::from_slice(line) else { return };
        let (Some(name), Some(source)) =
            (JsonString::from_raw(context.prompt_name), JsonString::from_raw(context.source))
        else {
            return;
        };
        let last = self.last.entry(key(&name, &source)).or_default();
        *last = context.sequence_number.max(*last);
        if let Some(session) = context.session_id.and_then(JsonString::from_raw) {
            self.names.entry(session.to_text().into_owned()).or_insert(name);
        }
    }

    /// Returns the name of a session's prompt, if it has one.
    pub(super) fn name(&self, session: &str) -> Option<&JsonString> {
        self.names.get(session)
    }

    /// Sets the name of a session's prompt, unless it has one.
    pub(super) fn set_name(&mut self, session: &str, name: JsonString) {
        self.names.entry(session.to_owned()).or_insert(name);
    }
}

fn key(prompt_name: &JsonString, source: &JsonString) -> (String, String) {
    (prompt_name.to_text().into_owned(), source.to_text().into_owned())
}

/// Returns the first words of a text, if it has any.
pub(super) fn first_words(text: &str) -> Option<JsonString> {
    const WORDS_MAX: usize = 6;
    const CHARS_MAX: usize = 60;
    let words: Vec<_> = text.split_whitespace().take(WORDS_MAX).collect();
    let name: String = words.join(" ").chars().take(CHARS_MAX).collect();
    (!name.is_empty()).then(|| name.as_str().into())
}
