//! The lines of a conversation for system steps, approvals, child runs, and ends.

use steno_model::json::{Fields, JsonString};

use super::text::{ConversationTone, NAME_CHARS_MAX, Writer};
use super::{Approval, ChildRun, Fact, Item};
use crate::State;
use crate::short_text::{gist, reason};
use crate::text_format::{GROUPED_STEPS_MIN, columns_of, cut, is_minor, summarize_steps};
use crate::visible::{Lines, visible};

/// How many characters of a reason are shown.
const REASON_CHARS_MAX: usize = 160;
impl Writer<'_> {
    /// Writes items; many system steps in a row become one line, unless each is wanted.
    pub(super) fn items(&mut self, items: &[Item]) {
        let mut rest = items;
        while let [first, after @ ..] = rest {
            let every = self.style.has_every_step;
            let names = rest.iter().map_while(|item| quiet_name(item).filter(|_| !every));
            let names: Vec<&JsonString> = names.collect();
            if names.len() < GROUPED_STEPS_MIN {
                self.item(first);
                rest = after;
                continue;
            }
            let line = summarize_steps(names.iter().map(|name| name_of(name)), self.room(2));
            self.system_line(&[(ConversationTone::Frame, format!("· {line}"))]);
            rest = &rest[names.len()..];
        }
    }

    pub(super) fn fact(&mut self, fact: &Fact) {
        let words = [&fact.kind, &fact.name].into_iter().flatten().map(name_of);
        let mut parts = vec![(ConversationTone::Frame, format!("· {}", words.collect::<Vec<_>>().join(" ")))];
        let printed = printed_by(fact);
        if fact.state == State::Failed {
            parts.push(end(fact.state, fact.error.as_ref()));
        } else if printed.is_empty() {
            let summary = fact.result.as_ref().map(gist).filter(|summary| !summary.is_empty());
            let chars_max = self.room(columns_of(&parts[0].1) + 2);
            parts.extend(summary.map(|summary| (ConversationTone::Frame, fit(&summary, chars_max))));
        }
        self.system_line(&parts);
        for text in printed {
            self.output(ConversationTone::Frame, &text);
        }
    }
}

/// Returns what a command printed, if the step is one that `steno run` recorded: the beginning and the end of each stream.
fn printed_by(fact: &Fact) -> Vec<String> {
    const STREAMS: [&str; 4] = ["stdout", "stdout_end", "stderr", "stderr_end"];
    let is_command = fact.kind.as_ref().is_some_and(|kind| kind.is("command"));
    let Some(result) = fact.result.as_ref().filter(|_| is_command) else { return Vec::new() };
    let Ok(mut fields) = Fields::parse(result.as_str()) else { return Vec::new() };
    let texts = STREAMS.into_iter().filter_map(|name| fields.take_string(name).ok().flatten());
    texts.map(|text| text.to_text().into_owned()).filter(|text| !text.is_empty()).collect()
}

/// Returns the name of a minor system step, which may be grouped with others. User commands and refusals are not minor.
fn quiet_name(item: &Item) -> Option<&JsonString> {
    let Item::Fact(fact) = item else { return None };
    let is_system = fact.kind.as_ref().is_some_and(|kind| kind.is("system"));
    fact.name.as_ref().filter(|name| is_system && fact.state == State::Completed && is_minor(name))
}

/// Returns the answer of an approval; a denial has its own tone.
pub(super) fn approval(asked: &Approval) -> (ConversationTone, String) {
    let Some(decision) = &asked.decision else {
        let words = if asked.state == State::Open { "asked, no answer" } else { "asked, answered" };
        return (ConversationTone::Frame, words.to_owned());
    };
    let by = asked.by.as_ref().map(|by| format!(" by {}", name_of(by))).unwrap_or_default();
    let scope = asked.scope.as_ref().map(|scope| format!(" ({})", name_of(scope))).unwrap_or_default();
    let tone = if decision.is("denied") { ConversationTone::Failed } else { ConversationTone::Frame };
    (tone, format!("{}{by}{scope}", name_of(decision)))
}

/// Returns a child run, with its end as reported by its parent.
pub(super) fn child_run(child: &ChildRun) -> String {
    let id = child.run_id.to_string();
    // Some agents use the id as the name of a thread.
    let name = child.name.as_ref().filter(|name| !name.is(&id));
    let name = name.map(|name| format!("  {}", name_of(name))).unwrap_or_default();
    format!("child run {id}{name}  {}", end(child.state, child.error.as_ref()).1)
}

/// Returns how something ended.
pub(super) fn end(state: State, error: Option<&JsonString>) -> (ConversationTone, String) {
    match (state, error) {
        (State::Open, _) => (ConversationTone::Open, "open".to_owned()),
        (State::Completed, _) => (ConversationTone::Frame, "completed".to_owned()),
        (State::Failed, Some(error)) => {
            (ConversationTone::Failed, format!("failed: {}", fit(&reason(error), REASON_CHARS_MAX)))
        }
        (State::Failed, None) => (ConversationTone::Failed, "failed".to_owned()),
    }
}

/// Returns the beginning of a name.
pub(super) fn name_of(name: &JsonString) -> String {
    fit(&name.to_text(), NAME_CHARS_MAX)
}

/// Returns the beginning of a text, harmless and on one line.
pub(super) fn fit(text: &str, chars_max: usize) -> String {
    visible(&cut(text, chars_max), Lines::Escape).into_owned()
}
