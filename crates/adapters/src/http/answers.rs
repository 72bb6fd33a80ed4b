//! Writes what the model says in a conversation: messages, calls, results and usage.

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{ContentBlock, EntryType};

use super::client::Client;
use super::content::{CallEnd, Content, Output, Part, Text, answer, call_report};
use super::reply::ReplyFact;
use super::thread::{ReplyName, Thread, sent_part};
use crate::emit::{CallReport, Emit, push, string};
use crate::wire::RawField as _;

/// Which answer is written, and where it comes from.
#[derive(Clone, Copy)]
struct Utterance<'a> {
    name: &'a ReplyName,
    origin: Origin,
}

/// The words and calls of one message.
#[derive(Default)]
struct Message {
    id: Option<RawJson>,
    phase: Option<RawJson>,
    blocks: Vec<ContentBlock>,
    entries: Vec<EntryType>,
    calls: Vec<(JsonString, CallReport)>,
}

/// Where an answer comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Answer,
    /// A stream that broke off.
    Cut,
    /// The history of a request.
    History,
}

impl Thread {
    /// Writes an answer that was given before the recording began.
    pub(super) fn earlier_answer(&mut self, parts: &[&Part<'_>], emit: &mut Emit<'_>) {
        self.unnamed_responses += 1;
        self.has_calls = false;
        let name = ReplyName { number: Some(self.unnamed_responses), ..ReplyName::default() };
        let facts = parts.iter().map(|part| ReplyFact::Part((*part).clone())).collect();
        self.say(facts, Utterance { name: &name, origin: Origin::History }, emit);
    }

    /// Writes what an answer says, as it comes.
    pub(super) fn reply(
        &mut self,
        facts: Vec<ReplyFact<'_>>,
        name: &mut ReplyName,
        is_cut: bool,
        emit: &mut Emit<'_>,
    ) -> Option<String> {
        self.begin(emit);
        for fact in &facts {
            if let ReplyFact::Named { id, model } = fact {
                name.id = id.json().or_else(|| name.id.take());
                name.model = model.json().or_else(|| name.model.take());
            }
        }
        let says = facts.iter().any(|fact| !matches!(fact, ReplyFact::Named { .. }));
        if says && name.id.is_none() && name.number.is_none() {
            self.unnamed_responses += 1;
            name.number = Some(self.unnamed_responses);
        }
        for fact in &facts {
            if let ReplyFact::Part(part) = fact {
                self.history.push(sent_part(part, self.client));
            }
        }
        let origin = if is_cut { Origin::Cut } else { Origin::Answer };
        self.say(facts, Utterance { name, origin }, emit)
    }

    /// Writes the facts of an answer; returns the name of one that is not known.
    fn say(&mut self, facts: Vec<ReplyFact<'_>>, of: Utterance<'_>, emit: &mut Emit<'_>) -> Option<String> {
        let (mut message, mut later, mut errors) = (Message::default(), Vec::new(), Vec::new());
        let (mut usage, mut stop, mut unknown) = (None, None, None);
        let mut is_first = true;
        for fact in facts {
            match fact {
                ReplyFact::Named { .. } => {}
                ReplyFact::Usage(found) => usage = Some(found),
                ReplyFact::Stop(found) => stop = Some(found),
                ReplyFact::Error { name, message } => errors.push((name, message)),
                ReplyFact::Unknown(name) => unknown = Some(name),
                ReplyFact::Part(part) if is_said(&part) => {
                    // Parts of different items are different messages.
                    let is_next = message.id != part.id.json() || self.is_apart(&message, &part);
                    if !is_first && is_next {
                        self.flush(std::mem::take(&mut message), of, (None, None), emit);
                    }
                    is_first = false;
                    self.add(&mut message, &part);
                }
                ReplyFact::Part(part) => later.push(part),
            }
        }
        self.flush(message, of, (usage, stop), emit);
        for part in &later {
            if let Content::Unknown(name) = &part.content {
                unknown = Some(name.clone());
            }
            self.other(part, emit);
        }
        for (name, message) in errors {
            self.fail(&format!("{name}: {message}"), emit);
        }
        if let Some(name) = unknown.as_ref().filter(|_| later.is_empty()) {
            self.unknown(name, emit);
        }
        unknown
    }

    /// Tells whether a part needs a message of its own: Gemini CLI's own file has text and calls in separate records.
    fn is_apart(&self, message: &Message, part: &Part<'_>) -> bool {
        let is_call = matches!(part.content, Content::Call { .. });
        self.client == Client::GeminiCli && is_call == message.calls.is_empty()
    }

    /// Adds a part to a message.
    fn add(&mut self, message: &mut Message, part: &Part<'_>) {
        message.id = part.id.json();
        message.phase = part.phase.json().or_else(|| message.phase.take());
        let entry = match &part.content {
            Content::Thinking(_) => EntryType::Thinking,
            Content::Call { .. } => EntryType::ToolUse,
            Content::Text { .. }
            | Content::Result { .. }
            | Content::Mark { .. }
            | Content::Fact { .. }
            | Content::Unknown(_) => EntryType::AssistantMessage,
        };
        let mut call_id = None;
        if let Content::Call { id, name, input, .. } = &part.content {
            let mut call = call_report(name, input);
            // The agent's own id is known only when the result comes.
            push(&mut call.extra, "id_available", id.is_none().then(|| RawJson::from(false)));
            let id = id.as_ref().map_or_else(|| self.next_call_id(), Text::string);
            let id = self.client.call_id(id, input);
            message.calls.push((id.clone(), call));
            call_id = Some(id);
        }
        message.blocks.extend(part.block(call_id.as_ref()));
        message.entries.push(entry);
    }

    fn next_call_id(&mut self) -> JsonString {
        self.unnamed_calls += 1;
        format!("call-{}", self.unnamed_calls).as_str().into()
    }

    /// Writes a message, with the usage and the stop reason that came with it.
    fn flush(
        &mut self,
        message: Message,
        Utterance { name, origin }: Utterance<'_>,
        (usage, stop): (Option<RawJson>, Option<RawJson>),
        emit: &mut Emit<'_>,
    ) {
        if message.blocks.is_empty() && usage.is_none() && stop.is_none() {
            return;
        }
        let mut extra = Extra::default();
        push(&mut extra, "id", message.id);
        let response = name.id.clone().or_else(|| name.number.map(RawJson::from));
        push(&mut extra, "response", response);
        push(&mut extra, "model", name.model.clone());
        push(&mut extra, "phase", message.phase);
        push(&mut extra, "stop_reason", stop);
        let has_usage = usage.is_some();
        if let Some(usage) = usage {
            extra.push("usage", usage);
            extra.push("usage_scope", string("response"));
            extra.push("final", RawJson::from(origin == Origin::Answer));
        }
        match origin {
            Origin::Answer => {}
            Origin::Cut => extra.push("incomplete", RawJson::from(true)),
            Origin::History => extra.push("from_history", RawJson::from(true)),
        }
        emit.assistant(&self.run, message.blocks, extra);
        message.entries.into_iter().for_each(|entry| emit.entry(&self.run, entry, None));
        if has_usage {
            emit.entry(&self.run, EntryType::TokenUsage, None);
        }
        for (id, call) in message.calls {
            (self.has_calls, self.is_answered) = (true, false);
            emit.call(&mut self.run, &id, call);
        }
    }

    /// Writes a part that is not a block of a message.
    pub(super) fn other(&mut self, part: &Part<'_>, emit: &mut Emit<'_>) {
        match &part.content {
            Content::Result { id, name, output, end } => {
                let id = id.as_ref().map(Text::string);
                self.result(id, name.as_deref(), (output, *end), emit);
            }
            Content::Fact { name, value } => self.fact(name, Some(RawJson::from_raw(value)), emit),
            Content::Unknown(name) => self.unknown(name, emit),
            Content::Text { .. } | Content::Thinking(_) | Content::Call { .. } | Content::Mark { .. } => {}
        }
    }

    /// Writes the result of a call. A result without a known id belongs to the oldest open call of its name.
    fn result(
        &mut self,
        id: Option<JsonString>,
        name: Option<&str>,
        (output, end): (&Output<'_>, CallEnd),
        emit: &mut Emit<'_>,
    ) {
        let calls = &self.run.calls;
        let other = id.as_ref().and_then(|id| self.client.other_call_id(id));
        let known = [id.clone(), other].into_iter().flatten().find(|id| calls.get(&id.to_text()).is_some());
        let by_name = || {
            let is_its =
                |id: &&String| calls.get(id).is_some_and(|call| name.is_some_and(|name| call.name.is(name)));
            calls.open_after(0).find(is_its).map(|id| JsonString::from(id.as_str()))
        };
        let agents = id.clone().filter(|_| known.is_none());
        let id = known.or_else(by_name).or(id).unwrap_or_else(|| self.next_call_id());
        if self.run.calls.get(&id.to_text()).is_some_and(|call| call.is_answered) {
            return;
        }
        let mut answer = answer(output, end);
        push(
            &mut answer.extra,
            "agent_call_id",
            agents.filter(|agents| *agents != id).map(|id| id.to_json()),
        );
        emit.result(&mut self.run, &id, name.unwrap_or_default(), answer);
        emit.entry(&self.run, EntryType::ToolResult, None);
    }
}

/// Tells whether a part is a block of a message.
pub(super) fn is_said(part: &Part<'_>) -> bool {
    match part.content {
        Content::Text { .. } | Content::Thinking(_) | Content::Call { .. } | Content::Mark { .. } => true,
        Content::Result { .. } | Content::Fact { .. } | Content::Unknown(_) => false,
    }
}
