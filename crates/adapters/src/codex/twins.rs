//! Pairs the two records of prompts and answers in a rollout: one as the model sees it, one as the user does, in either
//! order.
//!
//! Two records are a pair only if they have the same text in the same turn. The user may be shown less of an answer:
//! the text without blocks that Codex marks as its own, or at least half of it, from its start or to its end. Any
//! looser rule would lose texts.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use steno_model::json::JsonString;

/// Which of the two records of a prompt was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Model,
    User,
}

/// The kind of an agent's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Words {
    Text,
    Thought,
}

/// A text of the agent that the user was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DisplayedText {
    pub(super) words: Words,
    /// The id of its response, if the record has it.
    pub(super) id: Option<JsonString>,
    pub(super) text: JsonString,
}

/// The maximum number of marked blocks in a text. A usual answer has one or two, a hostile one may have any number.
const MARKED_MAX: usize = 16;

/// The maximum number of texts of a turn that are searched for a partly displayed one. A hostile file may have any
/// number.
const SEARCHED_MAX: usize = 256;

/// The records of a prompt that only one side has, in order, as the number of pictures in each.
#[derive(Default)]
struct UnmatchedRecords {
    side: Option<Side>,
    pictures: VecDeque<usize>,
}

/// The texts of a turn that one side has and the other may still repeat.
#[derive(Default)]
pub(super) struct Twins {
    prompts: HashMap<String, UnmatchedRecords>,
    /// Texts of responses that the user was not shown, with their number.
    response_texts: BTreeMap<(Words, String), u32>,
    /// Displayed texts that no response has yet, in order, with the number of the record.
    shown: Vec<(usize, DisplayedText)>,
}

impl Twins {
    /// Takes a record of a prompt, with its number of pictures. If it is the second of a pair, returns the number of
    /// pictures in the first.
    pub(super) fn pictures_of_first(&mut self, side: Side, prompt: &str, pictures: usize) -> Option<usize> {
        let unpaired = self.prompts.entry(prompt.to_owned()).or_default();
        if unpaired.side != Some(side)
            && let Some(first) = unpaired.pictures.pop_front()
        {
            return Some(first);
        }
        unpaired.side = Some(side);
        unpaired.pictures.push_back(pictures);
        None
    }

    /// Takes a text of a response.
    pub(super) fn say(&mut self, words: Words, text: &str) {
        *self.response_texts.entry((words, text.to_owned())).or_default() += 1;
    }

    /// Takes a displayed text, with the number of its record.
    pub(super) fn show(&mut self, record: usize, shown: DisplayedText) {
        self.shown.push((record, shown));
    }

    /// Ends the prompts of a turn: from now on an equal text is another prompt.
    pub(super) fn end_prompts(&mut self) {
        self.prompts.clear();
    }

    /// Ends the texts of a turn; returns displayed texts that no response has.
    pub(super) fn end_words(&mut self) -> Vec<(usize, DisplayedText)> {
        let mut response_texts = std::mem::take(&mut self.response_texts);
        let shown = std::mem::take(&mut self.shown);
        if shown.is_empty() {
            return shown;
        }
        let same: HashSet<(Words, String)> = response_texts
            .keys()
            .flat_map(|(words, whole)| {
                let unmarked = without_marked(whole).map(|rest| (*words, plain(&rest)));
                [(*words, plain(whole))].into_iter().chain(unmarked)
            })
            .collect();
        let wholes: Vec<(Words, String)> = response_texts.keys().take(SEARCHED_MAX).cloned().collect();
        let mut is_unsaid = |shown: &DisplayedText| {
            let text = shown.text.to_text();
            if let Some(count) =
                response_texts.get_mut(&(shown.words, text.to_string())).filter(|count| **count > 0)
            {
                *count -= 1;
                return false;
            }
            let is_part = |(words, whole): &(Words, String)| {
                *words == shown.words && is_most_of(text.trim(), whole.trim())
            };
            let is_said = same.contains(&(shown.words, plain(&text))) || wholes.iter().any(is_part);
            !text.trim().is_empty() && !is_said
        };
        shown.into_iter().filter(|(_, shown)| is_unsaid(shown)).collect()
    }
}

/// Returns true if a text is the start or the end of another, and at least half of it.
fn is_most_of(text: &str, whole: &str) -> bool {
    text.len() * 2 >= whole.len() && (whole.starts_with(text) || whole.ends_with(text))
}

/// Returns a text without blank lines and without spaces around its lines.
fn plain(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Returns an answer without the tagged blocks that Codex keeps for itself, such as quoted memories; `None` if it has
/// no such block.
fn without_marked(text: &str) -> Option<String> {
    let mut left = String::new();
    let (mut rest, mut is_marked) = (text, false);
    for _ in 0..MARKED_MAX {
        let Some((before, block)) = rest.split_once('<') else { break };
        let is_of_name = |one: char| one.is_ascii_alphanumeric() || matches!(one, '-' | '_');
        let name_len = block.find(|one| !is_of_name(one)).unwrap_or(block.len());
        let (name, inside) = block.split_at(name_len);
        let closed = inside.split_once(&format!("</{name}>")).filter(|_| !name.is_empty());
        left.push_str(before);
        if let Some((_, after)) = closed {
            (rest, is_marked) = (after, true);
        } else {
            left.push('<');
            rest = block;
        }
    }
    left.push_str(rest);
    is_marked.then_some(left)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_pairs_with_a_record_of_the_other_side() {
        let mut twins = Twins::default();
        let sides = [Side::Model, Side::User, Side::User, Side::User, Side::Model, Side::Model, Side::Model];
        let firsts = sides.map(|side| twins.pictures_of_first(side, "Go", usize::from(side == Side::User)));
        assert_eq!(firsts, [None, Some(0), None, None, Some(1), Some(1), None]);
        twins.end_prompts();
        assert_eq!(twins.pictures_of_first(Side::User, "Go", 0), None);
    }

    #[track_caller]
    fn check_part(whole: &str, text: &str, is_part: bool) {
        let mut twins = Twins::default();
        twins.say(Words::Text, whole);
        twins.show(0, DisplayedText { words: Words::Text, id: None, text: text.into() });
        assert_eq!(twins.end_words().is_empty(), is_part, "{text} of {whole}");
    }

    #[test]
    fn displayed_text_matches_only_without_text_that_codex_removes() {
        check_part("All is OK now", "OK", false);
        check_part("All is OK now", "All", false);
        check_part("All is OK now", "now", false);
        check_part("All is OK now", "All is OK", true);
        check_part("All is OK now", "is OK now\n", true);
        check_part("a\r\n\r\nb", "a\nb", true);
        check_part("OK <mem>[1] one [2] two</mem>", "OK", true);
        check_part("<mem a=\"1\">[1] one [2] two</mem>A <plan-x>2</plan-x>B", "A B", true);
        check_part("1 < 2, <b>and</b> 3", "1 < 2,  3", true);
        check_part("OK <mem>[1] one [2] two", "OK", false);
        check_part("OK <>[1] one [2] two</>", "OK", false);
        check_part(&format!("{}OK <m>x</m>", "<".repeat(MARKED_MAX)), "OK", false);
    }

    #[test]
    fn end_words_returns_text_that_no_response_has() {
        let shown = |words, text: &str| DisplayedText { words, id: None, text: text.into() };
        let mut twins = Twins::default();
        twins.say(Words::Text, "One. <m>memory</m>");
        for text in ["One.", "Two.", " ", "One. <m>memory</m>"] {
            twins.show(0, shown(Words::Text, text));
        }
        twins.show(0, shown(Words::Thought, "One."));
        assert_eq!(twins.end_words(), [(0, shown(Words::Text, "Two.")), (0, shown(Words::Thought, "One."))]);
        assert_eq!(twins.end_words(), []);
    }
}
