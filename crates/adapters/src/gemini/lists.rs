//! Updates of a chat: facts about the session, lists that replace its messages, and rewinds.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Fields, RawJson};

use super::CHANNEL;
use super::content::{ContentPart, parts_of, text_of};
use super::messages::message_id;
use super::prompt::{context_name, is_acknowledgement, is_snapshot};
use super::session::Session;
use super::wire::ChatRecord;
use crate::adapter::RecordOutcome;
use crate::emit::{AdapterInfo, Emit, NestedRecord, string};
use crate::repeats::{QuickSet, hash_of};
use crate::wire::{Raw, RawField as _, object};

static ABOUT: AdapterInfo = CHANNEL;

/// Fields of an update that say nothing about the work.
pub(super) const BOOKKEEPING: [&str; 5] = ["kind", "lastUpdated", "projectHash", "sessionId", "startTime"];

/// Fields of an update that are facts of their own.
pub(super) const FACTS: [&str; 3] = ["activeExtensionName", "directories", "memoryScratchpad"];

/// The messages that the conversation has now, as hashes of their ids, in order.
#[derive(Default)]
pub(super) struct LiveMessages {
    order: Vec<u64>,
    there: QuickSet<u64>,
    /// Whether a summary has come, but not yet the list of messages that belongs to it.
    is_compacted: bool,
}

impl LiveMessages {
    /// Adds a message, unless it is there.
    pub(super) fn add(&mut self, message: &str) {
        let hash = hash_of(message);
        if self.there.insert(hash) {
            self.order.push(hash);
        }
    }

    /// Begins anew: another process writes the file.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that a summary of earlier messages has come.
    pub(super) fn compacted(&mut self) {
        self.is_compacted = true;
    }

    /// Replaces the messages; returns how many are gone.
    fn replace<'a>(&mut self, messages: impl Iterator<Item = &'a str>) -> usize {
        let before = std::mem::take(&mut self.order);
        self.there.clear();
        messages.for_each(|message| self.add(message));
        before.iter().filter(|hash| !self.there.contains(hash)).count()
    }

    /// Removes a message and all after it, or all if it is not there; returns how many.
    fn rewind(&mut self, message: &str) -> usize {
        let hash = hash_of(message);
        let place = self.order.iter().position(|known| *known == hash).unwrap_or(0);
        let removed = self.order.split_off(place);
        for hash in &removed {
            self.there.remove(hash);
        }
        removed.len()
    }
}

impl Session {
    /// Takes an update of the session.
    pub(super) fn update<'a>(&mut self, set: &'a RawValue, emit: &mut Emit<'a>) -> RecordOutcome {
        let Ok(fields) = Fields::parse(set.get()) else { return self.unknown("$set", emit) };
        let mut unknown = None;
        for (key, value) in fields.iter() {
            let name = key.text();
            match &*name {
                "messages" if value.get().starts_with('[') => {
                    if let RecordOutcome::Unknown(kind) = self.replace_messages(value, emit) {
                        unknown = Some(kind);
                    }
                }
                name => {
                    if !self.session_fact(name, value, emit) {
                        unknown = Some(format!("$set.{name}"));
                    }
                }
            }
        }
        match unknown {
            Some(name) => self.unknown(&name, emit),
            None if emit.has_written() => RecordOutcome::Understood,
            None => RecordOutcome::Bookkeeping,
        }
    }

    /// Takes the fields of a header, or of a document outside its messages; false if one is unknown.
    pub(super) fn session_facts(&mut self, text: &str, emit: &mut Emit<'_>) -> bool {
        let Ok(fields) = Fields::parse(text) else { return false };
        let mut is_known = fields.iter().next().is_some();
        for (key, value) in fields.iter() {
            is_known &= self.session_fact(&key.text(), value, emit);
        }
        is_known
    }

    /// Takes a field that describes the session; false if it is unknown.
    fn session_fact(&mut self, name: &str, value: &RawValue, emit: &mut Emit<'_>) -> bool {
        if let Some(value) = Some(value).json() {
            match name {
                // The summary of a subagent is its report to its parent, not a title.
                "summary" if self.run.parent.is_some() => self.changed_fact(name, name, value, emit),
                "summary" => self.changed_fact("title", "title", value, emit),
                _ if FACTS.contains(&name) => self.changed_fact(name, name, value, emit),
                _ => {}
            }
        }
        name == "summary" || FACTS.contains(&name) || BOOKKEEPING.contains(&name)
    }

    /// Takes a list that replaces the messages. It repeats them, often without calls and usage.
    fn replace_messages<'a>(&mut self, list: &'a RawValue, emit: &mut Emit<'a>) -> RecordOutcome {
        let raws: Vec<&RawValue> = crate::shapes::elements(Some(list)).unwrap_or_default();
        let messages: Vec<(&RawValue, ChatRecord<'_>, Cow<'_, str>)> = raws
            .into_iter()
            .filter_map(|raw| {
                let message: ChatRecord<'_> = object(raw)?;
                let id = message_id(&message, raw.get());
                Some((raw, message, id))
            })
            .collect();
        let gone = self.live.replace(messages.iter().map(|(.., id)| &**id));
        let summary = messages.iter().position(|(_, message, id)| self.is_summary(message, id, gone));
        if let Some(index) = summary {
            let text = text_of(&parts_of(messages[index].1.content));
            self.known(&messages[index].2).text(&text);
            self.compaction(&text, emit);
        } else if gone > 0 && !self.live.is_compacted {
            self.removed("checkpoint", gone, None, emit);
        }
        self.live.is_compacted &= gone == 0;
        let mut read = RecordOutcome::Understood;
        for (index, (raw, message, id)) in messages.iter().enumerate() {
            if summary == Some(index) {
                continue;
            }
            if gone > 0 {
                let parts = parts_of(message.content);
                let is_filler = self.is_filler(message, id);
                if is_filler || self.is_copy(message, id, &parts) {
                    self.pass_over(message, id, &parts);
                }
                if is_filler {
                    continue;
                }
            }
            let nested =
                NestedRecord { text: raw.get(), about: &ABOUT, time: message.timestamp, copied_from: None };
            let one = emit.inside(nested, |emit| self.message(message, emit));
            if matches!(one, RecordOutcome::Unknown(_)) {
                read = one;
            }
        }
        read
    }

    /// Tells whether a message is the summary that replaces others: it is new, and known messages are gone.
    fn is_summary(&self, message: &ChatRecord<'_>, id: &str, gone: usize) -> bool {
        if !message.message_type.is("user") || self.is_known(id) {
            return false;
        }
        let parts = parts_of(message.content);
        let text = text_of(&parts);
        let has_responses = parts.iter().any(|part| matches!(part, ContentPart::Response(_)));
        let is_context = !is_snapshot(&text) && context_name("", &text).is_some();
        !text.is_empty() && !has_responses && !is_context && (gone > 0 || is_snapshot(&text))
    }

    /// Tells whether a message is the answer to a summary, which Gemini CLI writes in the model's name.
    fn is_filler(&self, message: &ChatRecord<'_>, id: &str) -> bool {
        message.message_type.is("gemini")
            && message.tokens.json().is_none()
            && !self.is_known(id)
            && is_acknowledgement(&text_of(&parts_of(message.content)))
    }

    /// Tells whether a message under a new id repeats one that the list replaces: after a compaction, the messages that
    /// are kept have other ids.
    fn is_copy(&self, message: &ChatRecord<'_>, id: &str, parts: &[ContentPart<'_>]) -> bool {
        let text = text_of(parts);
        let speaker = message.message_type.text().unwrap_or_default();
        if self.is_known(id) || !text.is_empty() {
            return !self.is_known(id) && self.has_said(&speaker, &text);
        }
        let mut calls = parts.iter().filter_map(|part| match part {
            ContentPart::Call(call) => Some(call.id.text()),
            ContentPart::Text(_)
            | ContentPart::Thought(_)
            | ContentPart::Response(_)
            | ContentPart::File(_)
            | ContentPart::Unknown => None,
        });
        let is_known = |id: Option<Cow<'_, str>>| id.is_some_and(|id| self.calls.has(&id));
        calls.next().is_some_and(is_known) && calls.all(is_known)
    }

    /// Remembers the words and the usage of a message without writing them.
    fn pass_over(&mut self, message: &ChatRecord<'_>, id: &str, parts: &[ContentPart<'_>]) {
        let known = self.known(id);
        known.text(&text_of(parts));
        for part in parts {
            if let ContentPart::Thought(raw) = part {
                known.thought(&Some(*raw).text().unwrap_or_default());
            }
        }
        if let Some(tokens) = message.tokens {
            known.tokens(tokens.get());
        }
    }

    /// Takes a rewind: a message and all after it are removed from the conversation. Their events stay.
    pub(super) fn rewind(&mut self, to: Raw<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(to) = to.text() else { return self.unknown("$rewindTo", emit) };
        let gone = self.live.rewind(&to);
        self.removed("rewind", gone, Some(&to), emit);
        RecordOutcome::Understood
    }

    fn removed(&mut self, name: &str, gone: usize, to: Option<&str>, emit: &mut Emit<'_>) {
        let result = RawJson::object(|object| {
            if let Some(to) = to {
                object.json("to", &string(to));
            }
            object.number("removed", gone as u64);
        });
        self.fact(name, name, Some(result), emit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rewind_removes_a_message_and_all_after_it() {
        let mut live = LiveMessages::default();
        for message in ["a", "b", "c", "b"] {
            live.add(message);
        }
        assert_eq!(live.rewind("b"), 2);
        assert_eq!(live.replace(["b", "a"].into_iter()), 0);
        assert_eq!(live.replace(["c"].into_iter()), 2);
        assert_eq!((live.rewind("x"), live.order.len()), (1, 0));
    }
}
