//! Recordings of both sides of a connection: each message in an envelope with its direction and, mostly, its time.

use steno_model::json::Fields;
use steno_model::{Lane, Timestamp};

use crate::wire::{NoObject, RawField as _, parse, wire};

wire! {
    struct Envelope { direction: "dir", time: "t", message: "msg", }
}

/// The direction of our recorder's notes.
const RECORDER: &str = "recorder";

/// Tells an envelope from an object inside one.
pub(crate) fn is_envelope(fields: &Fields<'_>) -> bool {
    fields.has("dir") && fields.has("msg")
}

/// A message of one side.
pub(crate) struct Message<'a> {
    pub(crate) lane: Lane,
    /// Whether it is a note of our recorder, not a message of either side.
    pub(crate) is_recorders: bool,
    pub(crate) time: Option<Timestamp>,
    /// The message as it went over the wire.
    pub(crate) text: &'a str,
}

impl<'a> Message<'a> {
    /// Takes a message out of its envelope.
    pub(crate) fn read(text: &'a str) -> Result<Self, NoObject> {
        let envelope: Envelope<'a> = parse(text)?;
        let direction = envelope.direction.text();
        let lane = match direction.as_deref() {
            // Our recorder notes messages that it could not write, and how the server ended.
            Some("s2c" | "out" | "server->client" | RECORDER) => Lane::FromAgent,
            Some("c2s" | "in" | "client->server") => Lane::ToAgent,
            Some(_) | None => return Err(NoObject),
        };
        let message = envelope.message.ok_or(NoObject)?;
        let seconds = envelope.time.and_then(|time| time.get().parse::<f64>().ok());
        let time = seconds.and_then(Timestamp::from_unix_seconds);
        let is_recorders = direction.as_deref() == Some(RECORDER);
        Ok(Self { lane, is_recorders, time, text: message.get() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_returns_text_direction_and_time() {
        let read =
            Message::read(r#"{"dir": "c2s", "t": 1794727400.3159316, "msg": {"id": 1}}"#).ok().unwrap();
        assert_eq!((read.lane, read.text), (Lane::ToAgent, r#"{"id": 1}"#));
        assert_eq!(read.time.map(|time| time.to_string()).as_deref(), Some("2026-11-15T07:23:20.316Z"));
        let read = Message::read(r#"{"dir":"out","msg":{}}"#).ok().unwrap();
        assert_eq!((read.lane, read.time), (Lane::FromAgent, None));
    }

    #[test]
    fn read_needs_a_direction_and_a_message() {
        for text in [r#"{"dir":"up","msg":{}}"#, r#"{"msg":{}}"#, r#"{"dir":"in"}"#, "[]"] {
            assert!(Message::read(text).is_err(), "{text}");
        }
    }
}
