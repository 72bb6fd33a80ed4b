//! The state of a chat file while it is read: what was seen under each message's id, and what the conversation has now.

use steno_model::EntryType;
use steno_model::json::{Extra, RawJson};

use super::calls::KnownCalls;
use super::lists::LiveMessages;
use crate::adapter::RecordOutcome;
use crate::emit::{Emit, push, string};
use crate::repeats::{QuickMap, QuickSet, hash_of, hash_of_words};
use crate::run::Run;
use crate::wire::{Raw, RawField as _};

/// A chat file whose session is known.
pub(super) struct Session {
    pub(super) run: Run,
    /// The description of the run, until it begins.
    opening: Extra,
    /// What was seen of each message, by the hash of its id.
    messages: QuickMap<u64, KnownMessage>,
    /// The texts of all messages, as hashes of speaker and text.
    texts: QuickSet<u64>,
    pub(super) calls: KnownCalls,
    pub(super) live: LiveMessages,
    /// The last value of each fact about the session, as hashes.
    facts: QuickMap<String, u64>,
}

/// The response in a message of the model.
#[derive(Clone, Copy)]
pub(super) struct ResponseOf<'a> {
    /// The message's id.
    pub(super) id: &'a str,
    /// How many responses come before it in the message: 0.12 puts several into one.
    pub(super) round: u32,
    pub(super) model: Raw<'a>,
}

/// What was seen under a message's id, as hashes.
#[derive(Default)]
pub(super) struct KnownMessage {
    texts: Vec<KnownText>,
    thoughts: QuickSet<u64>,
    tokens: Option<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct KnownText {
    len: usize,
    hash: u64,
}

/// What is new in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewText<'a> {
    /// All of it.
    All,
    /// Its end: the text has grown.
    Rest(&'a str),
    /// Nothing.
    Nothing,
}

impl ResponseOf<'_> {
    /// Returns the fields of the message's events.
    pub(super) fn fields(self) -> Extra {
        let mut extra = Extra::default();
        let later = (self.round > 0).then(|| format!("{}#{}", self.id, self.round + 1));
        extra.push("response", string(later.as_deref().unwrap_or(self.id)));
        push(&mut extra, "model", self.model.json());
        extra
    }
}

impl KnownMessage {
    /// Takes the text of the message, and tells what is new in it.
    pub(super) fn text<'a>(&mut self, text: &'a str) -> NewText<'a> {
        let known = KnownText { len: text.len(), hash: hash_of(text) };
        if text.is_empty() || self.texts.contains(&known) {
            return NewText::Nothing;
        }
        let begins_with =
            |before: &&KnownText| text.get(..before.len).is_some_and(|begin| hash_of(begin) == before.hash);
        let before = self.texts.iter().filter(begins_with).map(|before| before.len).max();
        self.texts.push(known);
        before.map_or(NewText::All, |len| NewText::Rest(&text[len..]))
    }

    /// Takes a thought; tells whether it is new. Lists of messages repeat thoughts with other white space and marks.
    pub(super) fn thought(&mut self, thought: &str) -> bool {
        let hash = if thought.is_ascii() {
            // The same words, without decoding letters.
            let words = thought.as_bytes().split(|byte| matches!(byte, b'\t'..=b'\r' | b' ' | b'*'));
            hash_of_words(words.filter(|word| !word.is_empty()))
        } else {
            let words = thought.split(|letter: char| letter.is_whitespace() || letter == '*');
            hash_of_words(words.filter(|word| !word.is_empty()).map(str::as_bytes))
        };
        self.thoughts.insert(hash)
    }

    /// Takes the usage of the message; tells whether it is new.
    pub(super) fn tokens(&mut self, tokens: &str) -> bool {
        let hash = hash_of(tokens);
        self.tokens.replace(hash) != Some(hash)
    }
}

impl Session {
    pub(super) fn new(run: Run, opening: Extra) -> Self {
        Self {
            run,
            opening,
            messages: QuickMap::default(),
            texts: QuickSet::default(),
            calls: KnownCalls::default(),
            live: LiveMessages::default(),
            facts: QuickMap::default(),
        }
    }

    /// Begins the run with its first event, and only then.
    pub(super) fn begin(&mut self, emit: &mut Emit<'_>) {
        if !self.run.is_started {
            emit.begin(&mut self.run, None, std::mem::take(&mut self.opening));
        }
    }

    /// Returns what was seen under a message's id.
    pub(super) fn known(&mut self, message: &str) -> &mut KnownMessage {
        self.messages.entry(hash_of(message)).or_default()
    }

    /// Tells whether a message was seen.
    pub(super) fn is_known(&self, message: &str) -> bool {
        self.messages.contains_key(&hash_of(message))
    }

    /// Remembers a text of a speaker: `user` or `gemini`.
    pub(super) fn remember(&mut self, speaker: &str, text: &str) {
        if !text.is_empty() {
            self.texts.insert(hash_of(&(speaker, text)));
        }
    }

    /// Tells whether a message with this speaker and text was seen under any id.
    pub(super) fn has_said(&self, speaker: &str, text: &str) -> bool {
        self.texts.contains(&hash_of(&(speaker, text)))
    }

    /// Writes a fact.
    pub(super) fn fact(&mut self, name: &str, subtype: &str, result: Option<RawJson>, emit: &mut Emit<'_>) {
        emit.system(&self.run, name, result);
        emit.entry(&self.run, EntryType::SystemEvent, Some(subtype));
    }

    /// Writes a fact about the session whenever it changes.
    pub(super) fn changed_fact(&mut self, name: &str, subtype: &str, value: RawJson, emit: &mut Emit<'_>) {
        let hash = hash_of(value.as_str());
        if self.facts.insert(name.to_owned(), hash) != Some(hash) {
            self.fact(name, subtype, Some(value), emit);
        }
    }

    /// Writes that a record is of an unknown kind, or has something that is.
    pub(super) fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_in_a_text_is_told() {
        let mut known = KnownMessage::default();
        for (text, want) in [
            ("", NewText::Nothing),
            ("Hello", NewText::All),
            ("Hello", NewText::Nothing),
            ("Hello, you", NewText::Rest(", you")),
            ("Other", NewText::All),
            ("Hello", NewText::Nothing),
            ("Hello, you two", NewText::Rest(" two")),
        ] {
            assert_eq!(known.text(text), want, "{text}");
        }
    }

    #[test]
    fn a_thought_is_known_with_other_spaces_and_marks() {
        let mut known = KnownMessage::default();
        assert!(known.thought("**Looking around**\nI should look."));
        assert!(!known.thought("**Looking around** I should look."));
        assert!(!known.thought("Looking around I should look."));
        assert!(known.thought("I should look."));
        assert!(known.thought("**Überblick**\nI should look."));
        assert!(!known.thought("Überblick\u{2003}I should look."));
    }
}
