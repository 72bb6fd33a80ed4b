//! The body of a request, read as a conversation.

use serde_json::value::RawValue;

use super::client::ClientFields;
use super::content::Part;
use super::wire::BodyProbe;
use super::{ANTHROPIC, GEMINI, OPENAI, anthropic, chat, gemini, responses};
use crate::emit::AdapterInfo;
use crate::shapes::is_absent;
use crate::wire::{Raw, RawField as _, parse};

/// An API of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    Anthropic,
    Responses,
    Chat,
    Gemini,
}

/// What a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyKind {
    Request,
    /// A whole answer.
    Answer,
    /// A piece of a stream.
    Event,
}

/// A request.
pub(super) struct RequestView<'a> {
    pub(super) model: Raw<'a>,
    /// The instructions of the client.
    pub(super) system: Option<String>,
    pub(super) parts: Vec<Part<'a>>,
    pub(super) has_tools: bool,
    /// The answer that this request continues, where the server keeps the conversation.
    pub(super) previous: Option<String>,
    pub(super) client: ClientFields<'a>,
}

impl Api {
    /// Returns the API of a path.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        let path = path.trim_end_matches('/');
        [
            ("/messages", Self::Anthropic),
            ("/responses", Self::Responses),
            ("/responses/compact", Self::Responses),
            ("/chat/completions", Self::Chat),
            (":generateContent", Self::Gemini),
            (":streamGenerateContent", Self::Gemini),
        ]
        .into_iter()
        .find(|(end, _)| path.ends_with(end))
        .map(|(_, api)| api)
    }

    /// Recognises a body by its fields.
    pub(super) fn of_body(probe: &BodyProbe<'_>) -> Option<(Self, BodyKind)> {
        let (kind, object) = (probe.kind.text().unwrap_or_default(), probe.object.text().unwrap_or_default());
        let is_list = |raw: Raw<'_>| raw.is_some_and(|raw| raw.get().starts_with('['));
        match &*object {
            "chat.completion" => return Some((Self::Chat, BodyKind::Answer)),
            "chat.completion.chunk" => return Some((Self::Chat, BodyKind::Event)),
            "response" => return Some((Self::Responses, BodyKind::Answer)),
            _ => {}
        }
        match &*kind {
            "message" if probe.role.is("assistant") && is_list(probe.content) && probe.model.is_some() => {
                return Some((Self::Anthropic, BodyKind::Answer));
            }
            "message_start"
            | "content_block_start"
            | "content_block_delta"
            | "content_block_stop"
            | "message_delta"
            | "message_stop" => return Some((Self::Anthropic, BodyKind::Event)),
            _ if kind.starts_with("response.") => return Some((Self::Responses, BodyKind::Event)),
            _ => {}
        }
        if is_list(probe.candidates) || (probe.usage_metadata.is_some() && probe.contents.is_none()) {
            return Some((Self::Gemini, BodyKind::Event));
        }
        let is_nested = |raw: Raw<'_>, field: fn(&BodyProbe<'_>) -> bool| {
            raw.and_then(|raw| parse::<BodyProbe<'_>>(raw.get()).ok()).is_some_and(|inner| field(&inner))
        };
        if is_nested(probe.response, |inner| inner.candidates.is_some()) {
            return Some((Self::Gemini, BodyKind::Event));
        }
        if is_list(probe.contents) || is_nested(probe.request, |inner| inner.contents.is_some()) {
            return Some((Self::Gemini, BodyKind::Request));
        }
        if probe.model.is_some() && is_list(probe.messages) {
            let api = if is_anthropic(probe) { Self::Anthropic } else { Self::Chat };
            return Some((api, BodyKind::Request));
        }
        let is_input = is_list(probe.input) || probe.input.text().is_some();
        (probe.model.is_some() && is_input).then_some((Self::Responses, BodyKind::Request))
    }

    /// Returns the description of its runs.
    pub(super) fn about(self) -> &'static AdapterInfo {
        match self {
            Self::Anthropic => &ANTHROPIC,
            Self::Responses | Self::Chat => &OPENAI,
            Self::Gemini => &GEMINI,
        }
    }

    /// Reads the body of a request; `None` if it is not one.
    pub(super) fn request(self, body: &str) -> Option<RequestView<'_>> {
        match self {
            Self::Anthropic => anthropic::request(body),
            Self::Responses => responses::request(body),
            Self::Chat => chat::request(body),
            Self::Gemini => gemini::request(body),
        }
    }
}

/// Tells whether messages are in Anthropic's form: its requests have a `system` beside them or blocks of its own types.
fn is_anthropic(probe: &BodyProbe<'_>) -> bool {
    let messages = probe.messages.map_or("", RawValue::get);
    let has_block = |kind: &str| messages.contains(kind);
    probe.system.is_some()
        || probe.anthropic_version.is_some()
        || ["\"tool_use_id\"", "\"tool_use\"", "\"cache_control\"", "\"thinking\""].into_iter().any(has_block)
        || (probe.max_tokens.is_some()
            && !has_block("\"system\"")
            && !has_block("\"tool_calls\"")
            && has_block("[{"))
}

/// Tells whether a list has elements.
pub(super) fn has_elements(raw: Raw<'_>) -> bool {
    !is_absent(raw)
        && raw.is_some_and(|raw| !raw.get().trim_matches(['[', ']', ' ', '\n', '\t', '\r']).is_empty())
}
