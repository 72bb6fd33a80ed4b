//! Prompts that were sent on a connection and have no turn yet, in order, with lookup by request or text.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::prompt::UserMessage;
use super::waits::Wait;
use crate::repeats::hash_of;

/// A prompt that asks for a turn.
pub(super) struct Prompt {
    /// The id of the request.
    pub(super) request: Option<String>,
    pub(super) message: UserMessage,
    /// The request itself, as long as the prompt can be written at its position.
    pub(super) wait: Option<Wait>,
}

impl Prompt {
    /// Returns its lookup keys: the text, and the request if it has an id.
    fn keys(&self) -> impl Iterator<Item = u64> {
        let request = self.request.as_deref().map(key_of_request);
        request.into_iter().chain([key_of_words(&self.message.text)])
    }
}

fn key_of_request(request: &str) -> u64 {
    hash_of(&("request", request))
}

fn key_of_words(words: &str) -> u64 {
    hash_of(&("words", words))
}

/// The prompts of a thread. Lookup does not search all prompts, because a client may send any number.
#[derive(Default)]
pub(super) struct Outbox {
    prompts: BTreeMap<u64, Prompt>,
    places: HashMap<u64, BTreeSet<u64>>,
    sent: u64,
}

impl Outbox {
    /// Adds a prompt.
    pub(super) fn send(&mut self, prompt: Prompt) {
        self.sent += 1;
        for key in prompt.keys() {
            self.places.entry(key).or_default().insert(self.sent);
        }
        self.prompts.insert(self.sent, prompt);
    }

    /// Removes and returns the first prompt.
    pub(super) fn take_first(&mut self) -> Option<Prompt> {
        let place = *self.prompts.first_key_value()?.0;
        self.take(place)
    }

    /// Removes and returns the first prompt of a request.
    pub(super) fn take_of_request(&mut self, request: &str) -> Option<Prompt> {
        let place = *self.places.get(&key_of_request(request))?.first()?;
        self.take(place)
    }

    /// Removes and returns the first prompt with this text.
    pub(super) fn take_of_words(&mut self, words: &str) -> Option<Prompt> {
        let place = *self.places.get(&key_of_words(words))?.first()?;
        self.take(place)
    }

    fn take(&mut self, place: u64) -> Option<Prompt> {
        let prompt = self.prompts.remove(&place)?;
        for key in prompt.keys() {
            if let Some(places) = self.places.get_mut(&key) {
                places.remove(&place);
                if places.is_empty() {
                    self.places.remove(&key);
                }
            }
        }
        Some(prompt)
    }

    /// Notes that something was written after the last prompt, the only one that could be written at its position.
    pub(super) fn overtake(&mut self) {
        if let Some(mut last) = self.prompts.last_entry() {
            last.get_mut().wait = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_taken_by_request_by_text_or_in_order() {
        let mut outbox = Outbox::default();
        for (request, words) in
            [(Some("1"), "a"), (Some("2"), "b"), (Some("2"), "b"), (None, "1"), (None, "c")]
        {
            let message = UserMessage { text: words.to_owned(), ..UserMessage::default() };
            outbox.send(Prompt { request: request.map(str::to_owned), message, wait: None });
        }
        let words = |prompt: Option<Prompt>| prompt.map(|prompt| prompt.message.text);
        assert_eq!(words(outbox.take_of_request("2")).as_deref(), Some("b"));
        assert_eq!(words(outbox.take_of_words("b")).as_deref(), Some("b"));
        assert_eq!(words(outbox.take_of_request("2")), None);
        assert_eq!(words(outbox.take_of_words("1")).as_deref(), Some("1"));
        assert_eq!(words(outbox.take_first()).as_deref(), Some("a"));
        assert_eq!(words(outbox.take_of_request("1")), None);
        assert_eq!(words(outbox.take_first()).as_deref(), Some("c"));
        assert!(outbox.take_first().is_none() && outbox.places.is_empty());
    }
}
