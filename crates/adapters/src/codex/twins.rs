//! What a rollout says twice: as the model sees it and as the user does, in either order.
//!
//! Two records are one only if they say the same in the same turn. Anything else would lose words that somebody said.

use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::json::JsonString;

/// Which of the two records of a prompt was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Model,
    User,
}

/// What kind of words an agent's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Words {
    Text,
    Thought,
}

/// Words of the agent's that the user was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    pub(super) words: Words,
    /// The response that they belong to, where the record says so.
    pub(super) id: Option<JsonString>,
    pub(super) text: JsonString,
}

/// How many texts of a turn are searched for one that the user saw a part of: a hostile file may have any number.
const SEARCHED_MAX: usize = 256;

/// The words of a turn that one side's record has and the other's may still repeat.
#[derive(Default)]
pub(super) struct Twins {
    /// How many more records of a prompt the model's side has than the user's.
    prompts: HashMap<String, i64>,
    /// How many times a response said something and the user was not shown it.
    said: BTreeMap<(Words, String), u32>,
    /// The responses of the turn that have an id.
    responses: HashSet<String>,
    /// What the user was shown and no response has said yet, in order, with the number of the record.
    shown: Vec<(usize, Shown)>,
}

impl Twins {
    /// Takes one side's record of a prompt; tells whether it is the second of the two.
    pub(super) fn is_second(&mut self, side: Side, prompt: &str) -> bool {
        let surplus = self.prompts.entry(prompt.to_owned()).or_default();
        let before = *surplus;
        *surplus += match side {
            Side::Model => 1,
            Side::User => -1,
        };
        surplus.abs() < before.abs()
    }

    /// Takes what a response says.
    pub(super) fn say(&mut self, words: Words, id: Option<&JsonString>, text: &str) {
        if let Some(id) = id {
            self.responses.insert(id.to_text().into_owned());
        }
        *self.said.entry((words, text.to_owned())).or_default() += 1;
    }

    /// Takes what the user was shown, in the record of this number.
    pub(super) fn show(&mut self, record: usize, shown: Shown) {
        self.shown.push((record, shown));
    }

    /// Ends the prompts: the same words are another one from now on.
    pub(super) fn end_prompts(&mut self) {
        self.prompts.clear();
    }

    /// Ends what the agent said; returns what the user was shown of it and no response has.
    pub(super) fn end_words(&mut self) -> Vec<(usize, Shown)> {
        let (mut said, responses) = (std::mem::take(&mut self.said), std::mem::take(&mut self.responses));
        let shown = std::mem::take(&mut self.shown);
        let mut is_unsaid = |shown: &Shown| {
            let text = shown.text.to_text();
            let is_named = shown.id.as_ref().is_some_and(|id| responses.contains(&*id.to_text()));
            if let Some(count) = said.get_mut(&(shown.words, text.to_string())).filter(|count| **count > 0) {
                *count -= 1;
                return false;
            }
            // Codex shows an answer without what is meant for itself, like the memories that it quotes.
            let is_part =
                |(words, whole): &(Words, String)| *words == shown.words && whole.contains(text.trim());
            !is_named && !said.keys().take(SEARCHED_MAX).any(is_part) && !text.trim().is_empty()
        };
        shown.into_iter().filter(|(_, shown)| is_unsaid(shown)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_record_of_a_prompt_is_of_the_other_side() {
        let mut twins = Twins::default();
        let sides = [Side::Model, Side::User, Side::User, Side::User, Side::Model, Side::Model, Side::Model];
        let seconds = sides.map(|side| twins.is_second(side, "Go"));
        assert_eq!(seconds, [false, true, false, false, true, true, false]);
        twins.end_prompts();
        assert!(!twins.is_second(Side::User, "Go"));
    }

    #[test]
    fn only_what_no_response_has_is_left_when_a_turn_ends() {
        let shown = |words, text: &str| Shown { words, id: None, text: text.into() };
        let mut twins = Twins::default();
        twins.say(Words::Text, None, "One. <memory>");
        for text in ["One.", "Two.", " ", "One. <memory>"] {
            twins.show(0, shown(Words::Text, text));
        }
        twins.show(0, shown(Words::Thought, "One."));
        assert_eq!(twins.end_words(), [(0, shown(Words::Text, "Two.")), (0, shown(Words::Thought, "One."))]);
        assert_eq!(twins.end_words(), []);
    }
}
