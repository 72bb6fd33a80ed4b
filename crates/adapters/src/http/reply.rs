//! Reads an answer, whole or as a stream, of any API.

use steno_model::json::RawJson;

use super::content::Part;
use super::requests::Api;
use super::wire::ErrorBody;
use super::{anthropic, chat, gemini, responses};
use crate::shapes::words;
use crate::wire::{Raw, RawField as _, parse};

/// The most bytes of a stream's pieces that are put together.
pub(super) const COLLECTED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Something that an answer says.
pub(super) enum ReplyFact<'a> {
    /// The answer's id and model.
    Named {
        id: Raw<'a>,
        model: Raw<'a>,
    },
    Part(Part<'a>),
    Usage(RawJson),
    /// Why the model stopped.
    Stop(RawJson),
    Error {
        name: String,
        message: String,
    },
    Unknown(String),
}

/// What a piece of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// It is a fact of its own.
    Fact,
    /// It is part of a later fact, or has no content.
    Delta,
}

/// Reads the answer of one exchange.
pub(super) enum ReplyReader {
    Anthropic(anthropic::Reply),
    Responses(responses::Reply),
    Chat(chat::Reply),
    Gemini(gemini::Reply),
}

impl ReplyReader {
    pub(super) fn new(api: Api) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic(anthropic::Reply::default()),
            Api::Responses => Self::Responses(responses::Reply::default()),
            Api::Chat => Self::Chat(chat::Reply::default()),
            Api::Gemini => Self::Gemini(gemini::Reply::default()),
        }
    }

    /// Takes the data of an event.
    pub(super) fn event<'a>(&mut self, data: &'a str, facts: &mut Vec<ReplyFact<'a>>) -> EventKind {
        match self {
            Self::Anthropic(reply) => reply.event(data, facts),
            Self::Responses(reply) => reply.event(data, facts),
            Self::Chat(reply) => reply.event(data, facts),
            Self::Gemini(reply) => reply.event(data, facts),
        }
    }

    /// Takes a whole body.
    pub(super) fn whole<'a>(&mut self, body: &'a str, facts: &mut Vec<ReplyFact<'a>>) {
        match self {
            Self::Anthropic(_) => anthropic::Reply::whole(body, facts),
            Self::Responses(reply) => reply.whole(body, facts),
            Self::Chat(_) => chat::Reply::whole(body, facts),
            Self::Gemini(reply) => reply.whole(body, facts),
        }
    }

    /// Returns what was collected of facts that are not complete, when the stream has ended.
    pub(super) fn finish(&mut self, facts: &mut Vec<ReplyFact<'_>>) {
        match self {
            Self::Anthropic(reply) => reply.finish(facts),
            Self::Responses(reply) => reply.finish(facts),
            Self::Chat(reply) => reply.finish(facts),
            Self::Gemini(reply) => reply.finish(facts),
        }
    }
}

/// Reads an error in the form of any API; `None` if there is none.
pub(super) fn error_in(body: &str) -> Option<(String, String)> {
    let read = parse::<ErrorBody<'_>>(body).ok()?;
    let Some(error) = read.error else {
        let message = words(read.message).or_else(|| words(read.detail))?;
        return Some(("api".to_owned(), message.to_text().into_owned()));
    };
    let name = [error.kind, error.status, error.code].into_iter().find_map(words);
    let message = words(error.message);
    let name = name.map_or_else(|| "api".to_owned(), |name| name.to_text().into_owned());
    Some((name, message.map(|message| message.to_text().into_owned()).unwrap_or_default()))
}

/// Tells whether a field has content: it exists and is not an empty text.
pub(super) fn says(raw: Raw<'_>) -> bool {
    raw.is_some_and(|raw| !matches!(raw.get(), "null" | "\"\""))
        && raw.text().is_none_or(|text| !text.is_empty())
}
