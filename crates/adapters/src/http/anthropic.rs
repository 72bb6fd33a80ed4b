//! Anthropic's Messages.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use steno_model::Usage;
use steno_model::json::{JsonString, RawJson};

use super::client::{ClientFields, UserMetadata};
use super::content::{CallEnd, Content, Input, Output, Part, Role, Text};
use super::reply::{COLLECTED_BYTES_MAX, EventKind, ReplyFact, error_in};
use super::requests::{RequestView, has_elements};
use crate::wire::{Raw, RawField, list, object, parse, wire};

wire! {
    struct Request {
        model: "model",
        system: "system",
        messages: "messages",
        tools: "tools",
        metadata: "metadata" => UserMetadata,
    }
}

wire! {
    struct Message { role: "role", content: "content", }
}

wire! {
    struct Block {
        kind: "type",
        text: "text",
        thinking: "thinking",
        id: "id",
        name: "name",
        input: "input",
        tool_use_id: "tool_use_id",
        content: "content",
        is_error: "is_error",
        source: "source",
    }
}

wire! {
    struct Answer { id: "id", model: "model", content: "content", stop_reason: "stop_reason", usage: "usage", }
}

wire! {
    struct Event {
        kind: "type",
        message: "message" => Answer,
        index: "index",
        block: "content_block",
        delta: "delta" => Delta,
        usage: "usage",
    }
}

wire! {
    struct Delta {
        kind: "type",
        text: "text",
        thinking: "thinking",
        partial_json: "partial_json",
        stop_reason: "stop_reason",
    }
}

/// The beginning of a block that Claude Code changes with each request.
const BILLING: &str = "x-anthropic-billing-header";

pub(super) fn request(body: &str) -> Option<RequestView<'_>> {
    let read = parse::<Request<'_>>(body).ok()?;
    let mut parts = Vec::new();
    for (message, of) in read.messages.and_then(list::<Message<'_>>)?.into_iter().enumerate() {
        let Some(of) = of else { continue };
        let role = match of.role.text().as_deref() {
            Some("assistant") => Role::Model,
            Some("user") => Role::User,
            Some(_) | None => Role::System,
        };
        parts.extend(content(of.content, role).into_iter().map(|part| Part { message, ..part }));
    }
    Some(RequestView {
        model: read.model,
        system: read.system.and_then(system),
        parts,
        has_tools: has_elements(read.tools),
        previous: None,
        client: ClientFields { metadata: read.metadata, ..ClientFields::default() },
    })
}

fn system(raw: &RawValue) -> Option<String> {
    if let Some(text) = Some(raw).text() {
        return Some(text.into_owned());
    }
    let blocks = list::<Block<'_>>(raw)?;
    let texts: Vec<Cow<'_, str>> =
        blocks.into_iter().flatten().filter_map(|block| block.text.text()).collect();
    let texts = texts.iter().filter(|text| !text.starts_with(BILLING));
    Some(texts.map(|text| &**text).collect::<Vec<_>>().join("\n"))
}

fn content(raw: Raw<'_>, role: Role) -> Vec<Part<'_>> {
    if let Some(text) = Text::of(raw) {
        return vec![Part::new(role, Content::Text { text, label: None })];
    }
    let Some(raw) = raw.filter(|raw| raw.get() != "null") else { return Vec::new() };
    let Some(blocks) = list::<Block<'_>>(raw) else {
        return vec![Part::new(role, Content::Unknown("content".to_owned()))];
    };
    let unknown = || Content::Unknown("block".to_owned());
    blocks.into_iter().map(|block| Part::new(role, block.map_or_else(unknown, block_content))).collect()
}

fn block_content(block: Block<'_>) -> Content<'_> {
    let kind = block.kind.text().unwrap_or_default();
    let odd = || Content::Unknown(format!("block.{kind}"));
    match &*kind {
        "text" => Text::of(block.text).map_or_else(odd, |text| Content::Text { text, label: None }),
        "thinking" => Content::Thinking(Text::of(block.thinking).unwrap_or(Text::Whole("".into()))),
        "redacted_thinking" => Content::Thinking(Text::Whole("".into())),
        "tool_use" | "server_tool_use" | "mcp_tool_use" => match Text::of(block.id) {
            Some(id) => Content::Call {
                id: Some(id),
                name: block.name.text().unwrap_or_default(),
                input: Input::Value(block.input),
                is_renamed: false,
            },
            None => odd(),
        },
        _ if kind.ends_with("tool_result") => match Text::of(block.tool_use_id) {
            Some(id) => Content::Result {
                id: Some(id),
                name: None,
                output: Output::of(block.content),
                end: if block.is_error.is_true() { CallEnd::Failed } else { CallEnd::Ok },
            },
            None => odd(),
        },
        "image" | "document" | "container_upload" | "search_result" => {
            let bytes = block.source.or(block.content).map_or(0, |raw| raw.get().len());
            Content::Mark { kind: Cow::Owned(kind.into_owned()), bytes }
        }
        _ => odd(),
    }
}

/// An answer while it is read.
#[derive(Default)]
pub(super) struct Reply {
    /// The blocks that have not ended, by index.
    open: BTreeMap<i64, OpenBlock>,
    collected_bytes: usize,
    /// The usage that the stream began with.
    usage: Option<RawJson>,
}

/// A block while its deltas come.
struct OpenBlock {
    /// The block as it began.
    start: String,
    text: String,
}

impl Reply {
    pub(super) fn whole<'a>(body: &'a str, facts: &mut Vec<ReplyFact<'a>>) {
        let Ok(read) = parse::<Answer<'_>>(body) else { return };
        facts.push(ReplyFact::Named { id: read.id, model: read.model });
        facts.extend(content(read.content, Role::Model).into_iter().map(ReplyFact::Part));
        facts.extend(read.usage.json().map(ReplyFact::Usage));
        facts.extend(read.stop_reason.json().map(ReplyFact::Stop));
    }

    pub(super) fn event<'a>(&mut self, data: &'a str, facts: &mut Vec<ReplyFact<'a>>) -> EventKind {
        let read = parse::<Event<'_>>(data).unwrap_or_default();
        let kind = read.kind.text().unwrap_or_default();
        match &*kind {
            "message_start" => {
                let message = read.message.unwrap_or_default();
                self.usage = message.usage.json();
                facts.push(ReplyFact::Named { id: message.id, model: message.model });
                return EventKind::Delta;
            }
            "content_block_start" => {
                let start = read.block.map_or("{}", RawValue::get).to_owned();
                self.open.insert(read.index.number().unwrap_or(0), OpenBlock { start, text: String::new() });
                return EventKind::Delta;
            }
            "content_block_delta" => {
                self.delta(read.index, read.delta.unwrap_or_default());
                return EventKind::Delta;
            }
            "content_block_stop" => {
                let block = self.open.remove(&read.index.number().unwrap_or(0));
                facts.extend(block.and_then(OpenBlock::part).map(ReplyFact::Part));
            }
            "message_delta" => {
                if let Some(usage) = read.usage.json() {
                    facts.push(ReplyFact::Usage(self.final_usage(usage)));
                }
                facts.extend(read.delta.and_then(|delta| delta.stop_reason.json()).map(ReplyFact::Stop));
            }
            "error" => {
                let (name, message) = error_in(data).unwrap_or_default();
                facts.push(ReplyFact::Error { name, message });
            }
            "ping" | "message_stop" => return EventKind::Delta,
            _ => facts.push(ReplyFact::Unknown(format!("event.{kind}"))),
        }
        EventKind::Fact
    }

    fn delta(&mut self, index: Raw<'_>, delta: Delta<'_>) {
        let Some(block) = self.open.get_mut(&index.number().unwrap_or(0)) else { return };
        // Signatures and citations are in the evidence.
        let piece = [delta.text, delta.thinking, delta.partial_json].into_iter().find_map(RawField::text);
        let piece = piece.unwrap_or_default();
        self.collected_bytes += piece.len();
        if self.collected_bytes <= COLLECTED_BYTES_MAX {
            block.text.push_str(&piece);
        }
    }

    /// Returns the usage at the end, with the fields that only the beginning has.
    fn final_usage(&mut self, usage: RawJson) -> RawJson {
        let begun = self.usage.take().as_ref().and_then(Usage::read_once_each);
        let (Some(begun), Some(ended)) = (begun, Usage::read_once_each(&usage)) else { return usage };
        begun.max(ended).to_json()
    }

    pub(super) fn finish(&mut self, facts: &mut Vec<ReplyFact<'_>>) {
        for block in std::mem::take(&mut self.open).into_values() {
            // An incomplete call was never made.
            let part = block.part().filter(|part| !matches!(part.content, Content::Call { .. }));
            facts.extend(part.map(ReplyFact::Part));
        }
        facts.extend(self.usage.take().map(ReplyFact::Usage));
    }
}

impl OpenBlock {
    /// Puts the block together.
    fn part(self) -> Option<Part<'static>> {
        let raw: &RawValue = serde_json::from_str(&self.start).ok()?;
        let start = object::<Block<'_>>(raw)?;
        let joined = |begun: Raw<'_>| {
            let begun = begun.text().unwrap_or_default();
            Text::Whole(JsonString::from_text(&format!("{begun}{}", self.text)))
        };
        let content = match block_content(start) {
            Content::Text { label, .. } => Content::Text { text: joined(start.text), label },
            Content::Thinking(_) => Content::Thinking(joined(start.thinking)),
            Content::Call { id, name, input, is_renamed } => {
                let input = if self.text.is_empty() { input } else { Input::Arguments(joined(None)) };
                owned_call(id, &name, &input, is_renamed)
            }
            Content::Result { id, output, end, .. } => Content::Result {
                id: id.map(|id| Text::Whole(id.string())),
                name: None,
                output: output.into_whole(),
                end,
            },
            Content::Mark { kind, bytes } => Content::Mark { kind: Cow::Owned(kind.into_owned()), bytes },
            Content::Fact { .. } => return None,
            Content::Unknown(name) => Content::Unknown(name),
        };
        Some(Part::new(Role::Model, content))
    }
}

fn owned_call(id: Option<Text<'_>>, name: &str, input: &Input<'_>, is_renamed: bool) -> Content<'static> {
    let input = match input {
        Input::Value(raw) => {
            Input::Arguments(Text::Whole(JsonString::from_text(raw.map_or("null", RawValue::get))))
        }
        Input::Arguments(text) => Input::Arguments(Text::Whole(text.string())),
        Input::Plain(text) => Input::Plain(Text::Whole(text.string())),
    };
    let id = id.map(|id| Text::Whole(id.string()));
    Content::Call { id, name: Cow::Owned(name.to_owned()), input, is_renamed }
}
