//! Reads one JSON-RPC message of a connection: its kind, its id, its thread and its turn.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::Lane;
use steno_model::json::{JsonString, ObjectWriter, RawJson};

use crate::codex::wire::{self, Params, RpcReply};
use crate::wire::{Raw, RawField, object, parse};

/// Methods that are never recorded: they carry secrets of the account or attestations of the machine.
const SECRET_METHODS: [&str; 3] =
    ["account/login/start", "account/chatgptAuthTokens/refresh", "attestation/generate"];

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Notification,
    Response,
    Error,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Response => "response",
            Self::Error => "error",
        }
    }
}

/// A message.
pub(super) struct Message<'a> {
    pub(super) lane: Lane,
    pub(super) kind: Kind,
    pub(super) method: Cow<'a, str>,
    /// The JSON text of its id.
    pub(super) id: Option<&'a str>,
    pub(super) params: Params<'a>,
    pub(super) reply: RpcReply<'a>,
    /// The JSON text of its parameters and of its result.
    pub(super) raw_params: Raw<'a>,
    pub(super) raw_result: Raw<'a>,
    pub(super) text: &'a str,
}

impl<'a> Message<'a> {
    /// Reads a message; `None` if it is not an object.
    pub(super) fn read(lane: Lane, text: &'a str) -> Option<Self> {
        let message: wire::Message<'_> = parse(text).ok()?;
        let (method, id) = (message.method.text(), message.id.map(RawValue::get));
        let kind = match (&method, id) {
            (Some(_), Some(_)) => Kind::Request,
            (Some(_), None) => Kind::Notification,
            (None, _) if message.error.is_some() => Kind::Error,
            (None, _) => Kind::Response,
        };
        Some(Self {
            lane,
            kind,
            method: method.unwrap_or_default(),
            id,
            params: message.params.and_then(object).unwrap_or_default(),
            reply: message.result.and_then(object).unwrap_or_default(),
            raw_params: message.params,
            raw_result: message.result,
            text,
        })
    }

    /// Returns the thread that the message names.
    pub(super) fn thread(&self) -> Option<Cow<'a, str>> {
        let named = [
            self.params.thread_id,
            self.params.conversation_id,
            self.params.thread.and_then(|thread| thread.id),
            self.reply.thread.and_then(|thread| thread.id),
        ];
        named.into_iter().find_map(RawField::text)
    }

    /// Returns true for notifications and requests of the server. The threads they name exist.
    pub(super) fn is_of_server(&self) -> bool {
        self.lane == Lane::FromAgent && matches!(self.kind, Kind::Request | Kind::Notification)
    }

    /// Returns the turn that the message names.
    pub(super) fn turn(&self) -> Option<Cow<'a, str>> {
        let turn = self.turn_fields();
        let named =
            [self.params.turn_id, turn.and_then(|turn| turn.id), self.reply.turn.and_then(|turn| turn.id)];
        named.into_iter().find_map(RawField::text)
    }

    /// Returns the turn in its parameters.
    pub(super) fn turn_fields(&self) -> Option<wire::Turn<'a>> {
        self.params.turn.and_then(object)
    }

    /// Returns true if messages of this method, and their answers, are never recorded.
    pub(super) fn is_secret(method: &str) -> bool {
        SECRET_METHODS.contains(&method)
    }

    /// Returns what is recorded instead of a message with a secret.
    pub(super) fn withheld(&self) -> RawJson {
        RawJson::object(|object| {
            if !self.method.is_empty() {
                object.string("method", &JsonString::from_text(&self.method));
            }
            let id = self.id.and_then(|id| RawJson::parse(id).ok());
            object.optional("id", id.as_ref(), ObjectWriter::json);
            object.json("withheld", &RawJson::from(true));
            object.number("bytes", self.text.len() as u64);
        })
    }
}

/// Returns the id of a record: its turn, or else its request, or else its method.
pub(super) fn record_id(message: &Message<'_>) -> String {
    let request = message.id.map(|id| id.trim_matches('"').to_owned());
    let turn = message.turn().filter(|_| message.lane == Lane::FromAgent).map(Cow::into_owned);
    turn.or(request).unwrap_or_else(|| message.method.clone().into_owned())
}

/// Returns the payload of a message, with its direction, kind and ticket.
pub(super) fn rpc(lane: Lane, id: &str, body: &RawJson, kind: Kind, ticket: u64) -> RawJson {
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(id));
        object.json(if lane == Lane::ToAgent { "op" } else { "msg" }, body);
        let rpc = RawJson::object(|rpc| {
            rpc.word("dir", if lane == Lane::ToAgent { "c2s" } else { "s2c" });
            rpc.word("kind", kind.name());
            rpc.number("ticket", ticket);
        });
        object.json("rpc", &rpc);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_finds_the_kind_of_a_message() {
        for (text, kind) in [
            (r#"{"method":"turn/start","id":1,"params":{}}"#, Kind::Request),
            (r#"{"method":"initialized"}"#, Kind::Notification),
            (r#"{"id":1,"result":{}}"#, Kind::Response),
            (r#"{"error":{"code":-32600},"id":"x"}"#, Kind::Error),
        ] {
            assert_eq!(Message::read(Lane::ToAgent, text).unwrap().kind, kind, "{text}");
        }
        assert!(Message::read(Lane::ToAgent, "[]").is_none());
    }
}
