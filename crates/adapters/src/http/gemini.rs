//! Gemini's `generateContent` and `streamGenerateContent`.

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};

use super::client::ClientFields;
use super::content::{CallEnd, Content, Input, Output, Part, Role, Text};
use super::reply::{COLLECTED_BYTES_MAX, EventKind, ReplyFact, error_in};
use super::requests::{RequestView, has_elements};
use crate::shapes::elements;
use crate::wire::{RawField as _, list, parse, wire};

wire! {
    struct Request {
        model: "model",
        contents: "contents",
        system: "systemInstruction" => Message,
        system_snake: "system_instruction" => Message,
        tools: "tools",
        session_id: "session_id",
        inner: "request",
    }
}

wire! {
    struct Message { role: "role", parts: "parts", }
}

wire! {
    struct GeminiPart {
        text: "text",
        thought: "thought",
        call: "functionCall" => FunctionCall,
        answer: "functionResponse" => FunctionResponse,
        data: "inlineData",
        file: "fileData",
        code: "executableCode",
        code_result: "codeExecutionResult" => CodeResult,
        signature: "thoughtSignature",
    }
}

wire! {
    struct FunctionCall { id: "id", name: "name", args: "args", }
}

wire! {
    struct FunctionResponse { id: "id", name: "name", response: "response", }
}

wire! {
    struct ResponseFields { output: "output", error: "error", }
}

wire! {
    struct CodeResult { outcome: "outcome", output: "output", }
}

wire! {
    struct Answer {
        candidates: "candidates",
        usage: "usageMetadata",
        model: "modelVersion",
        id: "responseId",
        feedback: "promptFeedback" => Feedback,
        error: "error",
        inner: "response",
    }
}

wire! {
    struct Feedback { reason: "blockReason", }
}

wire! {
    struct Candidate { content: "content" => Message, finish: "finishReason", }
}

pub(super) fn request(body: &str) -> Option<RequestView<'_>> {
    let read = parse::<Request<'_>>(body).ok()?;
    // Gemini CLI puts the request in another object when it is logged in with an account.
    let inner = read.inner.and_then(|raw| parse::<Request<'_>>(raw.get()).ok());
    let (of, model) = inner.map_or((read, read.model), |inner| (inner, read.model));
    let messages = of.contents.and_then(list::<Message<'_>>)?;
    let mut parts = Vec::new();
    for (place, message) in messages.into_iter().enumerate() {
        let Some(message) = message else { continue };
        let role = if message.role.is("model") { Role::Model } else { Role::User };
        let found = message.parts.map(|raw| parts_of(raw, role)).unwrap_or_default();
        parts.extend(found.into_iter().map(|part| Part { message: place, ..part }));
    }
    let system = of.system.or(of.system_snake).and_then(|message| message.parts);
    let system = system.and_then(list::<GeminiPart<'_>>).map(|parts| {
        let texts = parts.into_iter().flatten().filter_map(|part| part.text.text());
        texts.collect::<Vec<_>>().join("\n")
    });
    Some(RequestView {
        model,
        system,
        parts,
        has_tools: has_elements(of.tools),
        previous: None,
        client: ClientFields { session_id: of.session_id, ..ClientFields::default() },
    })
}

fn parts_of(raw: &RawValue, role: Role) -> Vec<Part<'_>> {
    let Some(raws) = elements(Some(raw)) else {
        return vec![Part::new(role, Content::Unknown("parts".to_owned()))];
    };
    raws.into_iter().flat_map(|raw| part_of(raw, role)).collect()
}

fn part_of(raw: &RawValue, role: Role) -> Vec<Part<'_>> {
    let part = crate::wire::object::<GeminiPart<'_>>(raw).unwrap_or_default();
    let is_thought = part.thought.is_true();
    let content = if let Some(call) = part.call {
        vec![Content::Call {
            id: Text::of(call.id),
            name: call.name.text().unwrap_or_default(),
            input: Input::Value(call.args),
            is_renamed: true,
        }]
    } else if let Some(answer) = part.answer {
        vec![result(&answer)]
    } else if let Some(text) = Text::of(part.text) {
        vec![if is_thought { Content::Thinking(text) } else { Content::Text { text, label: None } }]
    } else if part.code.is_some() {
        let input = Input::Value(part.code);
        vec![Content::Call { id: None, name: "code_execution".into(), input, is_renamed: true }]
    } else if let Some(found) = part.code_result {
        let end = if found.outcome.is("OUTCOME_OK") { CallEnd::Ok } else { CallEnd::Failed };
        let (name, output) = (Some("code_execution".into()), Output::of(found.output));
        vec![Content::Result { id: None, name, output, end }]
    } else if part.data.is_some() || part.file.is_some() {
        let kind = if part.data.is_some() { "inlineData" } else { "fileData" };
        vec![Content::Mark { kind: kind.into(), bytes: raw.get().len() }]
    } else if part.signature.is_some() {
        Vec::new()
    } else {
        vec![Content::Unknown("part".to_owned())]
    };
    content.into_iter().map(|content| Part::new(role, content)).collect()
}

fn result<'a>(answer: &FunctionResponse<'a>) -> Content<'a> {
    let fields = answer.response.and_then(crate::wire::object::<ResponseFields<'_>>).unwrap_or_default();
    let (output, end) = match (fields.error.filter(|error| error.get() != "null"), fields.output) {
        (Some(error), _) => (Some(error), CallEnd::Failed),
        (None, Some(output)) => (Some(output), CallEnd::Ok),
        (None, None) => (answer.response, CallEnd::Unknown),
    };
    Content::Result { id: Text::of(answer.id), name: answer.name.text(), output: Output::of(output), end }
}

/// An answer while it is read.
#[derive(Default)]
pub(super) struct Reply {
    /// The text that is not complete yet, and whether it is a thought.
    text: String,
    is_thought: bool,
    collected_bytes: usize,
    /// The last usage: each piece has the usage so far.
    usage: Option<RawJson>,
}

impl Reply {
    pub(super) fn whole<'a>(&mut self, body: &'a str, facts: &mut Vec<ReplyFact<'a>>) {
        // Without `alt=sse` a stream is a list of answers.
        if body.trim_start().starts_with('[') {
            let pieces: Vec<&RawValue> = serde_json::from_str(body).unwrap_or_default();
            for piece in pieces {
                self.event(piece.get(), facts);
            }
        } else {
            self.event(body, facts);
        }
        self.finish(facts);
    }

    pub(super) fn event<'a>(&mut self, data: &'a str, facts: &mut Vec<ReplyFact<'a>>) -> EventKind {
        let outer = parse::<Answer<'_>>(data).unwrap_or_default();
        let inner = outer.inner.and_then(|raw| parse::<Answer<'_>>(raw.get()).ok());
        let read = inner.unwrap_or(outer);
        if read.error.json().is_some() {
            let (name, message) = error_in(data).unwrap_or_default();
            facts.push(ReplyFact::Error { name, message });
            return EventKind::Fact;
        }
        facts.push(ReplyFact::Named { id: read.id, model: read.model });
        let before = facts.len();
        self.usage = read.usage.json().or_else(|| self.usage.take());
        for candidate in
            read.candidates.and_then(list::<Candidate<'_>>).unwrap_or_default().into_iter().flatten()
        {
            let parts =
                candidate.content.and_then(|content| content.parts).map(|raw| parts_of(raw, Role::Model));
            for part in parts.unwrap_or_default() {
                self.part(part, facts);
            }
            if let Some(stop) = candidate.finish.json() {
                self.flush(facts);
                facts.extend(self.usage.take().map(ReplyFact::Usage));
                facts.push(ReplyFact::Stop(stop));
            }
        }
        if let Some(reason) = read.feedback.and_then(|feedback| feedback.reason.text()) {
            facts.push(ReplyFact::Error { name: "blocked".to_owned(), message: reason.into_owned() });
        }
        if facts.len() > before { EventKind::Fact } else { EventKind::Delta }
    }

    /// Takes a part; pieces of one text are put together.
    fn part<'a>(&mut self, part: Part<'a>, facts: &mut Vec<ReplyFact<'a>>) {
        let (text, is_thought) = match &part.content {
            Content::Text { text, .. } => (text.text().into_owned(), false),
            Content::Thinking(text) => (text.text().into_owned(), true),
            Content::Call { .. }
            | Content::Result { .. }
            | Content::Mark { .. }
            | Content::Fact { .. }
            | Content::Unknown(_) => {
                self.flush(facts);
                return facts.push(ReplyFact::Part(part));
            }
        };
        if is_thought != self.is_thought {
            self.flush(facts);
            self.is_thought = is_thought;
        }
        self.collected_bytes += text.len();
        if self.collected_bytes <= COLLECTED_BYTES_MAX {
            self.text.push_str(&text);
        }
    }

    fn flush(&mut self, facts: &mut Vec<ReplyFact<'_>>) {
        let text = std::mem::take(&mut self.text);
        if text.is_empty() {
            return;
        }
        let text = Text::Whole(JsonString::from_text(&text));
        let content =
            if self.is_thought { Content::Thinking(text) } else { Content::Text { text, label: None } };
        facts.push(ReplyFact::Part(Part::new(Role::Model, content)));
    }

    pub(super) fn finish(&mut self, facts: &mut Vec<ReplyFact<'_>>) {
        self.flush(facts);
        facts.extend(self.usage.take().map(ReplyFact::Usage));
    }
}

/// Returns the model's name from the path of a request: the body does not have it.
pub(super) fn model_in_path(path: &str) -> Option<&str> {
    let (_, rest) = path.rsplit_once("/models/")?;
    rest.split(':').next()
}
