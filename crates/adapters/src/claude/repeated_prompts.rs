//! Detects prompts that are recorded more than once: queued and then handed over, or sent and then printed. Each gives
//! one event; the same text in a later turn is another prompt.

use std::collections::VecDeque;

/// How many prompts of each kind are remembered.
const KEPT_LEN_MAX: usize = 64;
/// The most prompts in a queue; further ones are written at once.
const QUEUED_LEN_MAX: usize = 256;

fn keep<T>(kept: &mut VecDeque<T>, one: T) {
    if kept.len() == KEPT_LEN_MAX {
        kept.pop_front();
    }
    kept.push_back(one);
}

fn take<T>(kept: &mut VecDeque<T>, fits: impl Fn(&T) -> bool) -> Option<T> {
    let place = kept.iter().position(fits);
    place.and_then(|place| kept.remove(place))
}

/// The prompts of a session file that wait for the model to be done.
#[derive(Default)]
pub(super) struct PromptQueue {
    waiting: VecDeque<QueuedPrompt>,
    /// Prompts that left the queue and whose record has not come yet.
    due: VecDeque<String>,
    /// Prompts that were written when they were handed to the working model.
    handed: VecDeque<HandedPrompt>,
}

struct QueuedPrompt {
    text: String,
    is_handed: bool,
}

struct HandedPrompt {
    text: String,
    id: Option<String>,
}

/// A user's record that may be a prompt that was written before.
#[derive(Clone, Copy)]
pub(super) struct PromptRecord<'a> {
    pub(super) text: &'a str,
    pub(super) id: Option<&'a str>,
    /// Whether the record says that it comes from the queue.
    pub(super) is_queued: bool,
}

impl PromptQueue {
    /// Adds a prompt to the queue; returns the oldest if the queue is full and it was not handed over.
    pub(super) fn enqueue(&mut self, text: String) -> Option<String> {
        self.waiting.push_back(QueuedPrompt { text, is_handed: false });
        let is_full = self.waiting.len() > QUEUED_LEN_MAX;
        let oldest = if is_full { self.waiting.pop_front() } else { None };
        oldest.filter(|queued| !queued.is_handed).map(|queued| queued.text)
    }

    /// Takes out the prompt whose turn has come.
    pub(super) fn dequeue(&mut self) {
        match take(&mut self.waiting, |queued| !queued.is_handed) {
            Some(queued) => keep(&mut self.due, queued.text),
            None => drop(self.waiting.pop_front()),
        }
    }

    /// Removes a prompt; returns it if it has to be written now.
    pub(super) fn remove(&mut self, text: Option<&str>) -> Option<String> {
        if let Some(text) = text {
            take(&mut self.waiting, |queued| queued.text == text);
            return None;
        }
        let handed = take(&mut self.waiting, |queued| queued.is_handed);
        let queued = if handed.is_some() { None } else { self.waiting.pop_front() };
        queued.map(|queued| queued.text)
    }

    /// Removes all prompts; returns those that were not handed over.
    pub(super) fn remove_all(&mut self) -> Vec<String> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().filter(|queued| !queued.is_handed).map(|queued| queued.text).collect()
    }

    /// Notes a prompt that was handed to the working model, with its id.
    pub(super) fn hand_over(&mut self, text: String, id: Option<String>) {
        if let Some(queued) = self.waiting.iter_mut().find(|queued| !queued.is_handed && queued.text == text)
        {
            queued.is_handed = true;
        }
        keep(&mut self.handed, HandedPrompt { text, id });
    }

    /// Tells whether a prompt was written when it was handed over.
    pub(super) fn is_told(&mut self, coming: PromptRecord<'_>) -> bool {
        let is_due = take(&mut self.due, |text| text == coming.text).is_some();
        let is_its = |handed: &HandedPrompt| coming.id.is_some() && handed.id.as_deref() == coming.id;
        let is_like = |handed: &HandedPrompt| coming.is_queued && !is_due && handed.text == coming.text;
        take(&mut self.handed, |handed| is_its(handed) || is_like(handed)).is_some()
    }
}

/// The prompts that were sent to a stream's agent and may be printed.
#[derive(Default)]
pub(super) struct SentPrompts {
    prompts: VecDeque<SentPrompt>,
    /// The ids and texts of prompts that were written.
    written: VecDeque<(String, String)>,
}

struct SentPrompt {
    text: String,
    id: Option<String>,
    /// How many turns end before its turn.
    turns_before: usize,
}

impl SentPrompts {
    /// Adds a prompt that is sent; false if it was sent before.
    pub(super) fn send(&mut self, id: Option<&str>, text: &str, turns_open: usize) -> bool {
        if !self.remember(id, text) {
            return false;
        }
        let waiting = self.prompts.iter().filter(|prompt| prompt.turns_before > 0).count();
        let turns_before = if turns_open == 0 { 0 } else { turns_open + waiting };
        keep(
            &mut self.prompts,
            SentPrompt { text: text.to_owned(), id: id.map(str::to_owned), turns_before },
        );
        true
    }

    /// Takes a printed prompt; tells whether it is known.
    pub(super) fn is_printed(&mut self, id: Option<&str>, text: &str) -> bool {
        let is_it = |sent: &SentPrompt| match (sent.id.as_deref(), id) {
            (Some(sent), Some(printed)) => sent == printed,
            (None, _) | (_, None) => sent.text == text,
        };
        let is_sent = take(&mut self.prompts, is_it).is_some();
        !self.remember(id, text) || is_sent
    }

    /// Remembers a written prompt; false if the same id and text were written before.
    fn remember(&mut self, id: Option<&str>, text: &str) -> bool {
        let Some(id) = id else { return true };
        let is_new = !self.written.iter().any(|(written, words)| written == id && words == text);
        if is_new {
            keep(&mut self.written, (id.to_owned(), text.to_owned()));
        }
        is_new
    }

    /// Notes that a turn has ended: from now on the same text is another prompt.
    pub(super) fn end_turn(&mut self) {
        self.prompts.retain(|prompt| prompt.turns_before > 0);
        self.prompts.iter_mut().for_each(|prompt| prompt.turns_before -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_prompt_is_forgotten_beyond_the_limit() {
        let mut sent = SentPrompts::default();
        for number in 0..=KEPT_LEN_MAX {
            assert!(sent.send(None, &number.to_string(), 1));
        }
        assert!(!sent.is_printed(None, "0"));
        assert!(sent.is_printed(None, "1"));
    }

    #[test]
    fn queued_prompt_is_remembered_until_its_own_turn_ends() {
        let mut sent = SentPrompts::default();
        for text in ["a", "b", "c"] {
            sent.send(None, text, usize::from(text != "a"));
        }
        sent.end_turn();
        assert!(!sent.is_printed(None, "a"));
        sent.end_turn();
        assert!(!sent.is_printed(None, "b") && sent.is_printed(None, "c"));
    }
}
