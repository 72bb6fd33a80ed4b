//! The Responses of `OpenAI`.

use std::collections::{BTreeMap, BTreeSet};

use steno_model::json::JsonString;

use super::client::{ClientFields, CodexMetadata, UserMetadata};
use super::content::{Content, Part, Role, Text};
use super::reply::{COLLECTED_BYTES_MAX, EventKind, ReplyFact, error_in};
use super::requests::{RequestView, has_elements};
use super::responses_items::{item_parts, texts_in};
use crate::shapes::{elements, words};
use crate::wire::{Raw, RawField as _, parse, wire};

wire! {
    struct Request {
        model: "model",
        instructions: "instructions",
        input: "input",
        tools: "tools",
        previous: "previous_response_id",
        metadata: "metadata" => UserMetadata,
        client: "client_metadata" => CodexMetadata,
        cache_key: "prompt_cache_key",
    }
}

wire! {
    struct Answer {
        id: "id",
        model: "model",
        status: "status",
        output: "output",
        usage: "usage",
        error: "error",
        incomplete: "incomplete_details" => Incomplete,
    }
}

wire! {
    struct Incomplete { reason: "reason", }
}

wire! {
    struct Event {
        kind: "type",
        response: "response" => Answer,
        item: "item",
        item_id: "item_id",
        output_index: "output_index",
        delta: "delta",
        text: "text",
        message: "message",
        code: "code",
    }
}

wire! {
    struct RoleOf { kind: "type", role: "role", content: "content", }
}

/// The events that are facts of their own.
const ITEM_DONE: &str = "response.output_item.done";

pub(super) fn request(body: &str) -> Option<RequestView<'_>> {
    let read = parse::<Request<'_>>(body).ok()?;
    let mut system =
        read.instructions.text().filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned);
    let mut parts = Vec::new();
    if let Some(text) = Text::of(read.input) {
        parts.push(Part::new(Role::User, Content::Text { text, label: None }));
    } else {
        for (place, raw) in elements(read.input)?.into_iter().enumerate() {
            let item = crate::wire::object::<RoleOf<'_>>(raw).unwrap_or_default();
            // The first message is the instructions, unless they are given apart.
            if place == 0 && system.is_none() && (item.role.is("developer") || item.role.is("system")) {
                system = Some(texts_in(item.content).join("\n"));
                continue;
            }
            parts.extend(item_parts(raw).into_iter().map(|part| Part { message: place, ..part }));
        }
    }
    Some(RequestView {
        model: read.model,
        system,
        parts,
        has_tools: has_elements(read.tools),
        previous: read.previous.text().map(std::borrow::Cow::into_owned),
        client: ClientFields {
            metadata: read.metadata,
            client: read.client,
            cache_key: read.cache_key,
            ..ClientFields::default()
        },
    })
}

/// An answer while it is read.
#[derive(Default)]
pub(super) struct Reply {
    /// The indices of items whose facts are written.
    written: BTreeSet<i64>,
    /// The texts of items that have not ended, by index.
    open: BTreeMap<i64, OpenText>,
    collected_bytes: usize,
}

/// A text while its pieces come.
struct OpenText {
    text: String,
    is_thought: bool,
}

impl Reply {
    pub(super) fn whole<'a>(&mut self, body: &'a str, facts: &mut Vec<ReplyFact<'a>>) {
        if let Ok(read) = parse::<Answer<'_>>(body) {
            self.ended(&read, body, facts);
        }
    }

    pub(super) fn event<'a>(&mut self, data: &'a str, facts: &mut Vec<ReplyFact<'a>>) -> EventKind {
        let read = parse::<Event<'_>>(data).unwrap_or_default();
        let kind = read.kind.text().unwrap_or_default();
        let answer = read.response.unwrap_or_default();
        match &*kind {
            ITEM_DONE => {
                let index = read
                    .output_index
                    .number()
                    .unwrap_or_else(|| i64::try_from(self.written.len()).unwrap_or(i64::MAX));
                self.written.insert(index);
                self.open.remove(&index);
                facts.extend(read.item.map(item_parts).unwrap_or_default().into_iter().map(ReplyFact::Part));
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.done" => {
                let raw = parse::<RawResponse<'_>>(data).ok().and_then(|event| event.response);
                self.ended(&answer, raw.map_or("{}", serde_json::value::RawValue::get), facts);
            }
            "response.created" | "response.in_progress" | "response.queued" => {
                facts.push(ReplyFact::Named { id: answer.id, model: answer.model });
                return EventKind::Delta;
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                self.delta(&read, false);
                return EventKind::Delta;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.delta(&read, true);
                return EventKind::Delta;
            }
            "error" => {
                let (name, message) = error_in(data).unwrap_or_else(|| {
                    let word =
                        |raw: Raw<'_>| words(raw).map(|text| text.to_text().into_owned()).unwrap_or_default();
                    (word(read.code), word(read.message))
                });
                facts.push(ReplyFact::Error { name, message });
            }
            _ if kind.starts_with("response.") => return EventKind::Delta,
            _ => facts.push(ReplyFact::Unknown(format!("event.{kind}"))),
        }
        EventKind::Fact
    }

    /// Adds the facts of the whole answer that no event had.
    fn ended<'a>(&mut self, read: &Answer<'a>, body: &str, facts: &mut Vec<ReplyFact<'a>>) {
        facts.push(ReplyFact::Named { id: read.id, model: read.model });
        for (place, item) in elements(read.output).unwrap_or_default().into_iter().enumerate() {
            if self.written.insert(i64::try_from(place).unwrap_or(i64::MAX)) {
                facts.extend(item_parts(item).into_iter().map(ReplyFact::Part));
            }
        }
        self.open.clear();
        facts.extend(read.usage.json().map(ReplyFact::Usage));
        let reason = read.incomplete.and_then(|incomplete| incomplete.reason.json());
        facts.extend(reason.or_else(|| read.status.json()).map(ReplyFact::Stop));
        if read.error.json().is_some() {
            let (name, message) = error_in(body).unwrap_or_default();
            facts.push(ReplyFact::Error { name, message });
        }
    }

    fn delta(&mut self, event: &Event<'_>, is_thought: bool) {
        let piece = event.delta.text().unwrap_or_default();
        self.collected_bytes += piece.len();
        if self.collected_bytes > COLLECTED_BYTES_MAX {
            return;
        }
        let index = event.output_index.number().unwrap_or(0);
        let open = self.open.entry(index).or_insert(OpenText { text: String::new(), is_thought });
        open.text.push_str(&piece);
    }

    pub(super) fn finish(&mut self, facts: &mut Vec<ReplyFact<'_>>) {
        for open in std::mem::take(&mut self.open).into_values() {
            let text = Text::Whole(JsonString::from_text(&open.text));
            let content =
                if open.is_thought { Content::Thinking(text) } else { Content::Text { text, label: None } };
            facts.push(ReplyFact::Part(Part::new(Role::Model, content)));
        }
    }
}

wire! {
    struct RawResponse { response: "response", }
}
