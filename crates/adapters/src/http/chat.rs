//! The Chat Completions of `OpenAI`, and servers that speak it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use steno_model::json::JsonString;

use super::client::{ClientFields, CodexMetadata, UserMetadata};
use super::content::{CallEnd, Content, Input, Output, Part, Role, Text};
use super::reply::{COLLECTED_BYTES_MAX, EventKind, ReplyFact, error_in, says};
use super::requests::{RequestView, has_elements};
use crate::shapes::words;
use crate::wire::{Raw, RawField as _, list, object, parse, wire};

wire! {
    struct Request {
        model: "model",
        messages: "messages",
        tools: "tools",
        functions: "functions",
        metadata: "metadata" => UserMetadata,
        client: "client_metadata" => CodexMetadata,
        cache_key: "prompt_cache_key",
    }
}

wire! {
    /// A message of a request or an answer, or a piece of one.
    struct Message {
        role: "role",
        content: "content",
        refusal: "refusal",
        reasoning_content: "reasoning_content",
        reasoning: "reasoning",
        tool_calls: "tool_calls",
        function_call: "function_call" => Function,
        tool_call_id: "tool_call_id",
        name: "name",
    }
}

wire! {
    struct ContentPart { kind: "type", text: "text", refusal: "refusal", }
}

wire! {
    struct ToolCall {
        index: "index",
        id: "id",
        kind: "type",
        function: "function" => Function,
        custom: "custom" => Custom,
    }
}

wire! {
    struct Function { name: "name", arguments: "arguments", }
}

wire! {
    struct Custom { name: "name", input: "input", }
}

wire! {
    /// An answer, or a piece of one.
    struct Answer { id: "id", model: "model", choices: "choices", usage: "usage", error: "error", }
}

wire! {
    struct Choice {
        index: "index",
        message: "message" => Message,
        delta: "delta" => Message,
        finish_reason: "finish_reason",
    }
}

pub(super) fn request(body: &str) -> Option<RequestView<'_>> {
    let read = parse::<Request<'_>>(body).ok()?;
    let messages = read.messages.and_then(list::<Message<'_>>)?;
    let (mut parts, mut system) = (Vec::new(), None);
    for (place, of) in messages.into_iter().enumerate() {
        let Some(of) = of else { continue };
        let role = of.role.text().unwrap_or_default();
        let found = match &*role {
            // The first message is the instructions.
            "system" | "developer" if place == 0 => {
                system = Some(
                    content(of.content, Role::System)
                        .iter()
                        .filter_map(words_of)
                        .collect::<Vec<_>>()
                        .join("\n"),
                );
                continue;
            }
            "user" => content(of.content, Role::User),
            "assistant" => model_parts(&of),
            "tool" | "function" => vec![Part::new(
                Role::User,
                Content::Result {
                    id: Text::of(of.tool_call_id),
                    name: of.name.text(),
                    output: Output::of(of.content),
                    end: CallEnd::Unknown,
                },
            )],
            _ => content(of.content, Role::System),
        };
        parts.extend(found.into_iter().map(|part| Part { message: place, ..part }));
    }
    Some(RequestView {
        model: read.model,
        system,
        parts,
        has_tools: has_elements(read.tools) || has_elements(read.functions),
        previous: None,
        client: ClientFields {
            metadata: read.metadata,
            client: read.client,
            cache_key: read.cache_key,
            ..ClientFields::default()
        },
    })
}

fn words_of(part: &Part<'_>) -> Option<String> {
    if let Content::Text { text, .. } = &part.content { Some(text.text().into_owned()) } else { None }
}

/// Reads content, which is a text or a list of parts.
fn content(raw: Raw<'_>, role: Role) -> Vec<Part<'_>> {
    if let Some(text) = Text::of(raw) {
        return vec![Part::new(role, Content::Text { text, label: None })];
    }
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Vec::new() };
    let raws: Vec<&RawValue> = serde_json::from_str(raw.get()).unwrap_or_default();
    let read = raws.into_iter().map(|raw| Part::new(role, content_part(raw)));
    read.collect()
}

fn content_part(raw: &RawValue) -> Content<'_> {
    let part = object::<ContentPart<'_>>(raw).unwrap_or_default();
    let kind = part.kind.text().unwrap_or_default();
    match (&*kind, Text::of(part.text), Text::of(part.refusal)) {
        ("text", Some(text), _) => Content::Text { text, label: None },
        ("refusal", _, Some(text)) => Content::Text { text, label: Some("refusal") },
        ("image_url" | "input_audio" | "file" | "video_url", _, _) => {
            Content::Mark { kind: Cow::Owned(kind.into_owned()), bytes: raw.get().len() }
        }
        _ => Content::Unknown(format!("part.{kind}")),
    }
}

/// Reads a whole message of the model.
fn model_parts<'a>(message: &Message<'a>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let thought = message.reasoning_content.filter(|_| says(message.reasoning_content)).or(message.reasoning);
    if let Some(text) = Text::of(thought).filter(|_| says(thought)) {
        parts.push(Part::new(Role::Model, Content::Thinking(text)));
    }
    parts.extend(content(message.content.filter(|_| says(message.content)), Role::Model));
    if let Some(text) = Text::of(message.refusal).filter(|_| says(message.refusal)) {
        parts.push(Part::new(Role::Model, Content::Text { text, label: Some("refusal") }));
    }
    for call in message.tool_calls.and_then(list::<ToolCall<'_>>).unwrap_or_default().into_iter().flatten() {
        parts.push(Part::new(Role::Model, call_content(&call)));
    }
    if let Some(function) = message.function_call {
        parts.push(Part::new(Role::Model, function_content(None, function)));
    }
    parts
}

fn call_content<'a>(call: &ToolCall<'a>) -> Content<'a> {
    match (call.function, call.custom) {
        (Some(function), _) => function_content(Text::of(call.id), function),
        (None, Some(custom)) => Content::Call {
            id: Text::of(call.id),
            name: custom.name.text().unwrap_or_default(),
            input: Text::of(custom.input).map_or(Input::Value(custom.input), Input::Plain),
            is_renamed: false,
        },
        (None, None) => Content::Unknown(format!("tool_call.{}", call.kind.text().unwrap_or_default())),
    }
}

fn function_content<'a>(id: Option<Text<'a>>, function: Function<'a>) -> Content<'a> {
    let input = Text::of(function.arguments).map_or(Input::Value(function.arguments), Input::Arguments);
    Content::Call { id, name: function.name.text().unwrap_or_default(), input, is_renamed: false }
}

/// An answer while it is read.
#[derive(Default)]
pub(super) struct Reply {
    /// Choices that have not ended, by index.
    choices: BTreeMap<i64, OpenChoice>,
    collected_bytes: usize,
}

/// A choice while its pieces come.
#[derive(Default)]
struct OpenChoice {
    thought: String,
    text: String,
    refusal: String,
    calls: Vec<OpenCall>,
}

/// A call while its pieces come.
#[derive(Default)]
struct OpenCall {
    /// Its number, if the server gives one.
    index: Option<i64>,
    id: String,
    name: String,
    arguments: String,
    is_custom: bool,
}

impl Reply {
    pub(super) fn whole<'a>(body: &'a str, facts: &mut Vec<ReplyFact<'a>>) {
        let Ok(read) = parse::<Answer<'_>>(body) else { return };
        facts.push(ReplyFact::Named { id: read.id, model: read.model });
        for choice in read.choices.and_then(list::<Choice<'_>>).unwrap_or_default().into_iter().flatten() {
            let message = choice.message.unwrap_or_default();
            facts.extend(model_parts(&message).into_iter().map(ReplyFact::Part));
            facts.extend(choice.finish_reason.json().map(ReplyFact::Stop));
        }
        facts.extend(read.usage.json().map(ReplyFact::Usage));
    }

    pub(super) fn event<'a>(&mut self, data: &'a str, facts: &mut Vec<ReplyFact<'a>>) -> EventKind {
        if data.trim() == "[DONE]" {
            self.finish(facts);
            return EventKind::Delta;
        }
        let read = parse::<Answer<'_>>(data).unwrap_or_default();
        if read.error.json().is_some() {
            let (name, message) = error_in(data).unwrap_or_default();
            facts.push(ReplyFact::Error { name, message });
            return EventKind::Fact;
        }
        facts.push(ReplyFact::Named { id: read.id, model: read.model });
        let before = facts.len();
        for choice in read.choices.and_then(list::<Choice<'_>>).unwrap_or_default().into_iter().flatten() {
            // Some servers send the whole message in one piece.
            let delta = choice.delta.or(choice.message).unwrap_or_default();
            let index = choice.index.number().unwrap_or(0);
            self.delta(index, &delta);
            if let Some(stop) = choice.finish_reason.json() {
                let ended = self.choices.remove(&index).unwrap_or_default();
                facts.extend(ended.parts().into_iter().map(ReplyFact::Part));
                facts.push(ReplyFact::Stop(stop));
            }
        }
        facts.extend(read.usage.json().map(ReplyFact::Usage));
        if facts.len() > before { EventKind::Fact } else { EventKind::Delta }
    }

    fn delta(&mut self, index: i64, delta: &Message<'_>) {
        let text_of = |raw: Raw<'_>| raw.text().map(Cow::into_owned).unwrap_or_default();
        let pieces = [text_of(delta.content), text_of(delta.refusal)];
        let thought =
            [delta.reasoning_content, delta.reasoning].into_iter().find(|raw| says(*raw)).map(text_of);
        let thought = thought.unwrap_or_default();
        let size = pieces.iter().map(String::len).sum::<usize>() + thought.len();
        self.collected_bytes += size + delta.tool_calls.map_or(0, |raw| raw.get().len());
        if self.collected_bytes > COLLECTED_BYTES_MAX {
            return;
        }
        let open = self.choices.entry(index).or_default();
        open.thought.push_str(&thought);
        let [text, refusal] = pieces;
        open.text.push_str(&text);
        open.refusal.push_str(&refusal);
        for call in delta.tool_calls.and_then(list::<ToolCall<'_>>).unwrap_or_default().into_iter().flatten()
        {
            open.call(&call);
        }
        if let Some(function) = delta.function_call {
            open.call(&ToolCall { function: Some(function), ..ToolCall::default() });
        }
    }

    pub(super) fn finish(&mut self, facts: &mut Vec<ReplyFact<'_>>) {
        for choice in std::mem::take(&mut self.choices).into_values() {
            facts.extend(choice.parts().into_iter().map(ReplyFact::Part));
        }
    }
}

impl OpenChoice {
    /// Takes a piece of a call. Some servers repeat the id, send it empty, or give no index.
    fn call(&mut self, piece: &ToolCall<'_>) {
        let id = piece.id.text().unwrap_or_default();
        let index = piece.index.number();
        let is_its = |open: &OpenCall| match index {
            Some(_) => open.index == index,
            None => id.is_empty() || open.id == id,
        };
        let place = self.calls.iter().rposition(is_its).unwrap_or_else(|| {
            self.calls.push(OpenCall { index, ..OpenCall::default() });
            self.calls.len() - 1
        });
        let open = &mut self.calls[place];
        if open.id.is_empty() {
            open.id = id.into_owned();
        }
        let (name, arguments) = match (piece.function, piece.custom) {
            (Some(function), _) => (function.name, function.arguments),
            (None, Some(custom)) => {
                open.is_custom = true;
                (custom.name, custom.input)
            }
            (None, None) => (None, None),
        };
        if open.name.is_empty() {
            open.name = name.text().unwrap_or_default().into_owned();
        }
        if let Some(text) = arguments.text() {
            open.arguments.push_str(&text);
        } else if let Some(value) = words(arguments) {
            // Some servers send an object.
            open.arguments.push_str(&value.to_text());
        }
    }

    fn parts(self) -> Vec<Part<'static>> {
        let whole = |text: &str| Text::Whole(JsonString::from_text(text));
        let mut parts = Vec::new();
        if !self.thought.is_empty() {
            parts.push(Content::Thinking(whole(&self.thought)));
        }
        if !self.text.is_empty() {
            parts.push(Content::Text { text: whole(&self.text), label: None });
        }
        if !self.refusal.is_empty() {
            parts.push(Content::Text { text: whole(&self.refusal), label: Some("refusal") });
        }
        for call in self.calls {
            let text = whole(&call.arguments);
            parts.push(Content::Call {
                id: (!call.id.is_empty()).then(|| whole(&call.id)),
                name: Cow::Owned(call.name),
                input: if call.is_custom { Input::Plain(text) } else { Input::Arguments(text) },
                is_renamed: false,
            });
        }
        parts.into_iter().map(|content| Part::new(Role::Model, content)).collect()
    }
}
