//! Messages of a chat: what is new under a message's id becomes events, what was seen is not repeated.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity, StepPayload};

use super::calls::{CallRecord, calls_of};
use super::content::{ContentPart, file_mark, parts_of, text_block, text_of};
use super::prompt::{context_name, is_snapshot};
use super::session::{NewText, ResponseOf, Session};
use super::usage::{Scope, push_usage};
use super::wire::{ChatRecord, ThoughtRecord};
use crate::adapter::RecordOutcome;
use crate::emit::{Emit, push, string};
use crate::shapes::decoded_words;
use crate::wire::{RawField as _, WireObject as _};

/// The new blocks of a message, and the entries made from them.
#[derive(Default)]
struct NewWords {
    blocks: Vec<ContentBlock>,
    entries: Vec<EntryType>,
    tokens: Option<RawJson>,
}

impl NewWords {
    fn push(&mut self, block: ContentBlock, entry: EntryType) {
        self.blocks.push(block);
        self.entries.push(entry);
    }
}

impl Session {
    /// Takes a message, for the first time or again.
    pub(super) fn message(&mut self, message: &ChatRecord<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let id = message_id(message, emit.text());
        let kind = message.message_type.text().unwrap_or_default();
        let parts = parts_of(message.content);
        let is_odd = message.is_odd() || parts.iter().any(|part| matches!(part, ContentPart::Unknown));
        let is_read = match &*kind {
            "user" => {
                self.user_message(&id, message, &parts, emit);
                true
            }
            "gemini" => self.model_message(&id, message, &parts, emit),
            "info" | "warning" | "error" => {
                self.notice(&id, &kind, &parts, emit);
                true
            }
            _ => {
                let name = if kind.is_empty() { "untyped" } else { &*kind };
                self.known(&id);
                return self.unknown(name, emit);
            }
        };
        if is_odd || !is_read { self.unknown(&kind, emit) } else { RecordOutcome::Understood }
    }

    /// Writes what the model said; false if something in it is of an unknown kind.
    fn model_message(
        &mut self,
        id: &str,
        message: &ChatRecord<'_>,
        parts: &[ContentPart<'_>],
        emit: &mut Emit<'_>,
    ) -> bool {
        let is_again = self.is_known(id);
        let (mut calls, has_odd_call) = calls_of(message.tool_calls.as_deref(), id);
        calls.extend(calls_in(parts, id, is_again));
        let mut words = NewWords::default();
        let has_odd_thought = self.new_thoughts(id, message.thoughts.as_deref(), parts, &mut words);
        self.new_text(id, parts, &mut words);
        let counts = message.tokens.filter(|tokens| tokens.get().starts_with('{'));
        words.tokens = counts.filter(|tokens| self.known(id).tokens(tokens.get())).json();
        let response = ResponseOf { id, round: 0, model: message.model };
        self.say(response, words, emit);
        self.take_calls(response, calls, emit);
        self.take_responses(parts, emit);
        !(has_odd_call || has_odd_thought)
    }

    /// Finds the thoughts that are new; true if one is of an unknown kind.
    fn new_thoughts(
        &mut self,
        id: &str,
        thoughts: Option<&[Option<ThoughtRecord<'_>>]>,
        parts: &[ContentPart<'_>],
        words: &mut NewWords,
    ) -> bool {
        let mut is_odd = false;
        let known = self.known(id);
        let mut take = |thought: ThoughtText<'_>| {
            if known.thought(&thought.text()) {
                let text = BlockContent::Thinking(Some(thought.into_json()));
                words.push(ContentBlock::new(Fidelity::AgentEmitted, text), EntryType::Thinking);
            }
        };
        for thought in thoughts.unwrap_or_default() {
            match thought.and_then(thought_text) {
                Some(thought) => take(thought),
                None => is_odd = true,
            }
        }
        for part in parts {
            if let ContentPart::Thought(raw) = part
                && raw.get().starts_with('"')
            {
                take(ThoughtText::Own(raw));
            }
        }
        is_odd
    }

    /// Finds the text that is new: all of it, or what it has grown by.
    fn new_text(&mut self, id: &str, parts: &[ContentPart<'_>], words: &mut NewWords) {
        let text = text_of(parts);
        self.remember("gemini", &text);
        match self.known(id).text(&text) {
            NewText::Nothing => {}
            NewText::Rest(rest) => {
                words.push(ContentBlock::text(Fidelity::AgentEmitted, rest), EntryType::AssistantMessage);
            }
            NewText::All => {
                for part in parts {
                    if let ContentPart::Text(raw) = part
                        && raw.get() != "\"\""
                    {
                        words.push(text_block(raw), EntryType::AssistantMessage);
                    }
                }
            }
        }
        if words.blocks.is_empty() {
            return;
        }
        // A file comes with the words that are new.
        for part in parts {
            if let ContentPart::File(blob) = part {
                words.push(file_mark(blob), EntryType::AssistantMessage);
            }
        }
    }

    /// Writes new words and usage of a response.
    fn say(&mut self, response: ResponseOf<'_>, words: NewWords, emit: &mut Emit<'_>) {
        if words.blocks.is_empty() && words.tokens.is_none() {
            return;
        }
        let mut extra = response.fields();
        if !words.blocks.is_empty() {
            extra.push("id", string(response.id));
        }
        let has_usage = words.tokens.is_some();
        if let Some(tokens) = words.tokens {
            push_usage(&mut extra, tokens, Scope::Response);
        }
        emit.assistant(&self.run, words.blocks, extra);
        for entry in words.entries {
            emit.entry(&self.run, entry, None);
        }
        if has_usage {
            emit.entry(&self.run, EntryType::TokenUsage, None);
        }
    }

    /// Writes a message on the user's side: a prompt, context that Gemini CLI added, or results.
    fn user_message(
        &mut self,
        id: &str,
        message: &ChatRecord<'_>,
        parts: &[ContentPart<'_>],
        emit: &mut Emit<'_>,
    ) {
        if self.take_responses(parts, emit) {
            // Parts beside a result belong to it.
            self.known(id);
            return;
        }
        let is_again = self.is_known(id);
        let text = text_of(parts);
        let has_files = parts.iter().any(|part| matches!(part, ContentPart::File(_)));
        let is_new = self.known(id).text(&text) != NewText::Nothing || (has_files && !is_again);
        if !is_new {
            return;
        }
        self.remember("user", &text);
        if is_snapshot(&text) {
            return self.compaction(&text, emit);
        }
        let mut blocks = Vec::new();
        for part in parts {
            match part {
                ContentPart::Text(raw) => match context_name(id, &Some(*raw).text().unwrap_or_default()) {
                    Some(name) => self.fact(name, name, Some(RawJson::from_raw(raw)), emit),
                    None => blocks.push(text_block(raw)),
                },
                ContentPart::File(blob) => blocks.push(file_mark(blob)),
                ContentPart::Thought(_)
                | ContentPart::Call(_)
                | ContentPart::Response(_)
                | ContentPart::Unknown => {}
            }
        }
        if blocks.is_empty() {
            return;
        }
        if !is_again {
            emit.begin_turn(&mut self.run, None, None);
        }
        self.prompt(id, message, blocks, emit);
    }

    /// Writes what a person said.
    fn prompt(&mut self, id: &str, message: &ChatRecord<'_>, blocks: Vec<ContentBlock>, emit: &mut Emit<'_>) {
        let mut extra = Extra::default();
        extra.push("id", string(id));
        push(&mut extra, "display_content", message.display_content.json());
        emit.user(&self.run, blocks, extra);
        emit.entry(&self.run, EntryType::UserMessage, None);
    }

    /// Takes the function responses of a message; false if it has none.
    fn take_responses(&mut self, parts: &[ContentPart<'_>], emit: &mut Emit<'_>) -> bool {
        let mut has_any = false;
        for part in parts {
            if let ContentPart::Response(response) = part {
                has_any = true;
                self.take_response(response, emit);
            }
        }
        has_any
    }

    /// Writes a notice of Gemini CLI to its user.
    fn notice(&mut self, id: &str, kind: &str, parts: &[ContentPart<'_>], emit: &mut Emit<'_>) {
        let text = text_of(parts);
        let is_again = self.is_known(id);
        if self.known(id).text(&text) == NewText::Nothing && is_again {
            return;
        }
        if kind == "error" {
            emit.error(&self.run, "error", &text);
            emit.entry(&self.run, EntryType::Error, None);
        } else {
            self.fact(kind, kind, Some(string(&text)), emit);
        }
    }

    /// Writes a compaction, begun and ended at once.
    pub(super) fn compaction(&mut self, summary: &str, emit: &mut Emit<'_>) {
        let path = self.run.turns.path_of("compaction");
        emit.step_started(&self.run, &path, StepPayload::new("compaction", "compaction"));
        let result = Some(string(summary));
        let payload = StepPayload { result, ..StepPayload::new("compaction", "compaction") };
        emit.step_completed(&self.run, &path, payload);
        emit.entry(&self.run, EntryType::SystemEvent, Some("compaction"));
        self.live.compacted();
    }
}

/// Returns a message's id; one without an id is known by its bytes.
pub(super) fn message_id<'a>(message: &ChatRecord<'a>, text: &str) -> Cow<'a, str> {
    let id = decoded_words(message.id).filter(|id| !id.is_empty());
    id.unwrap_or_else(|| format!("{:016x}", crate::repeats::hash_of(text)).into())
}

/// The text of a thought. It becomes JSON only if it is new.
enum ThoughtText<'a> {
    /// A string of the record.
    Own(&'a RawValue),
    /// A text made of several strings.
    Made(String),
}

impl ThoughtText<'_> {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Own(raw) => Some(*raw).text().unwrap_or_default(),
            Self::Made(text) => Cow::Borrowed(text),
        }
    }

    fn into_json(self) -> JsonString {
        match self {
            Self::Own(raw) => JsonString::from_raw(raw).unwrap_or_else(|| "".into()),
            Self::Made(text) => text.into(),
        }
    }
}

/// Returns the text of a thought as the model wrote it: the subject in bold, then the description.
fn thought_text(thought: ThoughtRecord<'_>) -> Option<ThoughtText<'_>> {
    if thought.is_odd() {
        return None;
    }
    let subject = thought.subject.text().filter(|subject| !subject.is_empty());
    match (subject, thought.description.text()) {
        (Some(subject), Some(description)) if !description.is_empty() => {
            Some(ThoughtText::Made(format!("**{subject}**\n{description}")))
        }
        (Some(subject), _) => Some(ThoughtText::Made(format!("**{subject}**"))),
        (None, description) => thought.description.filter(|_| description.is_some()).map(ThoughtText::Own),
    }
}

/// Returns the calls in a message's content. They are copies of those in its list, if it has one.
fn calls_in<'a>(parts: &[ContentPart<'a>], message: &str, is_again: bool) -> Vec<CallRecord<'a>> {
    let mut calls = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let ContentPart::Call(call) = part else { continue };
        let id = match decoded_words(call.id) {
            Some(id) => id.into_owned(),
            // Without an id it cannot be told from a call in an earlier version of the message.
            None if is_again => continue,
            None => format!("{message}:{number}"),
        };
        let name = call.name.string().unwrap_or_else(|| "".into());
        calls.push(CallRecord::of_content(id, name, call.args));
    }
    calls
}
