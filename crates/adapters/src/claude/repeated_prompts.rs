//! Prompts that come more than once: queued and then handed over, or sent and then printed. Each is told once, and the
//! same words in a later turn are another prompt.

use std::collections::VecDeque;

/// How many prompts are remembered of each kind; not every source tells what became of them.
const KEPT_LEN_MAX: usize = 64;
/// How many prompts wait in a queue at most; those beyond are told at once.
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
    /// Prompts whose turn has come and whose record has not.
    due: VecDeque<String>,
    /// Prompts that were told when they were handed to the model at work.
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

/// A user's record that may be a prompt which was told before.
#[derive(Clone, Copy)]
pub(super) struct PromptRecord<'a> {
    pub(super) text: &'a str,
    pub(super) id: Option<&'a str>,
    /// Whether the record says that it comes from the queue.
    pub(super) is_queued: bool,
}

impl PromptQueue {
    /// Puts a prompt into the queue; returns the oldest if there are too many and nothing else tells it.
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

    /// Takes out a prompt that will not come; returns it if nothing else tells it.
    pub(super) fn remove(&mut self, text: Option<&str>) -> Option<String> {
        if let Some(text) = text {
            take(&mut self.waiting, |queued| queued.text == text);
            return None;
        }
        let handed = take(&mut self.waiting, |queued| queued.is_handed);
        let queued = if handed.is_some() { None } else { self.waiting.pop_front() };
        queued.map(|queued| queued.text)
    }

    /// Takes out everything; returns what nothing else tells.
    pub(super) fn remove_all(&mut self) -> Vec<String> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.into_iter().filter(|queued| !queued.is_handed).map(|queued| queued.text).collect()
    }

    /// Takes note of a prompt that was handed to the model at work, with the id that it had before.
    pub(super) fn hand_over(&mut self, text: String, id: Option<String>) {
        if let Some(queued) = self.waiting.iter_mut().find(|queued| !queued.is_handed && queued.text == text)
        {
            queued.is_handed = true;
        }
        keep(&mut self.handed, HandedPrompt { text, id });
    }

    /// Tells whether a prompt was told when it was handed over.
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
    /// The ids of prompts that were told, with their texts.
    told: VecDeque<(String, String)>,
}

struct SentPrompt {
    text: String,
    id: Option<String>,
    /// How many turns end before its own does.
    turns_before: usize,
}

impl SentPrompts {
    /// Takes a prompt that is sent while so many turns are open; false when it was sent before.
    pub(super) fn send(&mut self, id: Option<&str>, text: &str, turns_open: usize) -> bool {
        if !self.tell(id, text) {
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

    /// Takes a prompt that is printed; tells whether it is known.
    pub(super) fn is_printed(&mut self, id: Option<&str>, text: &str) -> bool {
        let is_it = |sent: &SentPrompt| match (sent.id.as_deref(), id) {
            (Some(sent), Some(printed)) => sent == printed,
            (None, _) | (_, None) => sent.text == text,
        };
        let is_sent = take(&mut self.prompts, is_it).is_some();
        !self.tell(id, text) || is_sent
    }

    /// Keeps that a prompt with this id was told; false when it was before, in the same words.
    fn tell(&mut self, id: Option<&str>, text: &str) -> bool {
        let Some(id) = id else { return true };
        let is_new = !self.told.iter().any(|(told, words)| told == id && words == text);
        if is_new {
            keep(&mut self.told, (id.to_owned(), text.to_owned()));
        }
        is_new
    }

    /// Takes note that a turn has ended: the same words are another prompt from now on.
    pub(super) fn end_turn(&mut self) {
        self.prompts.retain(|prompt| prompt.turns_before > 0);
        self.prompts.iter_mut().for_each(|prompt| prompt.turns_before -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_prompts_are_remembered_than_the_limit() {
        let mut sent = SentPrompts::default();
        for number in 0..=KEPT_LEN_MAX {
            assert!(sent.send(None, &number.to_string(), 1));
        }
        assert!(!sent.is_printed(None, "0"));
        assert!(sent.is_printed(None, "1"));
    }

    #[test]
    fn a_prompt_that_waits_for_others_is_remembered_until_its_own_turn_ends() {
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
