//! What the prompts of a source are called, looked up before its entries are logged: the first entry of a session is
//! seldom its prompt.

use std::collections::HashMap;

use steno_adapters::{SeenEntry, Sink};
use steno_model::json::JsonString;
use steno_model::{BlockContent, ContentBlock, Draft, EventType, Payload, RunId, Seq, Timestamp};

/// How many prompts are kept.
const NAMES_MAX: usize = 1024;

/// Finds the first words of each session's first prompt.
#[derive(Debug, Default)]
pub struct FirstPrompts {
    sessions: HashMap<RunId, String>,
    /// In the order in which they were found: of several runs of a session the first counts.
    names: Vec<(RunId, JsonString)>,
}

impl FirstPrompts {
    /// Tells whether a session's first prompt has been found.
    #[must_use]
    pub fn is_found(&self) -> bool {
        self.names.iter().any(|(run, _)| self.sessions.contains_key(run))
    }

    /// Returns the names by session, the first that was found first.
    pub(super) fn into_names(self) -> impl Iterator<Item = (String, JsonString)> {
        self.names.into_iter().filter_map(move |(run, name)| Some((self.sessions.get(&run)?.clone(), name)))
    }
}

impl Sink for FirstPrompts {
    fn draft(&mut self, run: RunId, draft: Draft) {
        let unknown = || Timestamp::from_record("".into());
        let event = draft.into_event(run, Seq::FIRST, unknown);
        let Payload::Message(message) = event.payload() else { return };
        if self.names.len() >= NAMES_MAX {
            return;
        }
        if let Some(name) = message.blocks.iter().find_map(words_in) {
            self.names.push((run, name));
        }
    }

    fn wants(&self, event_type: EventType) -> bool {
        event_type == EventType::MessageUser
    }

    fn wants_entries(&self) -> bool {
        true
    }

    fn entry(&mut self, entry: SeenEntry<'_>) {
        if let Some(session) = entry.session_id {
            self.sessions.entry(entry.run).or_insert_with(|| session.to_owned());
        }
    }
}

/// Returns the first words of what a user said; a system prompt has a label, and is nobody's.
fn words_in(block: &ContentBlock) -> Option<JsonString> {
    let BlockContent::Text(Some(text)) = &block.content else { return None };
    if block.extra.get("label").is_some() {
        return None;
    }
    first_words(&text.to_text())
}

/// Returns the first words of a text, if it has any.
pub(super) fn first_words(text: &str) -> Option<JsonString> {
    const WORDS_MAX: usize = 6;
    const CHARS_MAX: usize = 60;
    let words: Vec<_> = text.split_whitespace().take(WORDS_MAX).collect();
    let name: String = words.join(" ").chars().take(CHARS_MAX).collect();
    (!name.is_empty()).then(|| name.as_str().into())
}
