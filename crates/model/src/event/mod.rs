//! The exchange event: one line of a transcript (001, 002).

mod block;
mod draft;
mod envelope;
mod line_head;
mod payload;
mod unknown_blocks;
mod words;

pub use block::{BlockContent, ContentBlock};
pub use draft::{Draft, EncodedDraft};
pub use envelope::Envelope;
pub use line_head::LineHead;
pub use payload::{MessagePayload, Payload, StepPayload, ToolPayload};
pub use words::{BlockType, EventType, Fidelity, Role};

use crate::json::{Digits, Extra, JsonString, ObjectWriter, RawJson};
use crate::word::Word;
use crate::{Error, RunId, Seq, Timestamp};

/// One line of a run's transcript: the unit of the record, of replay and of fan-out.
///
/// The payload stays raw, so that reading and writing an event does not change its bytes; [`ExchangeEvent::payload`]
/// parses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeEvent {
    /// Its position in the file.
    pub seq: Seq,
    /// The run it belongs to.
    pub run_id: RunId,
    /// The run that called this one.
    pub parent_run_id: Option<RunId>,
    /// The run that this event calls, or whose end it reports.
    pub child_run_id: Option<RunId>,
    /// What happened.
    pub event_type: Word<EventType>,
    /// The step it happened in: names joined by dots, a dot inside a name written `\.`; empty at run level.
    pub path: JsonString,
    /// The iteration of the innermost loop or retry, from 0.
    pub iteration: u64,
    /// When it happened. The order is `seq`, not the time.
    pub timestamp: Timestamp,
    /// The payload, unchanged.
    pub payload: RawJson,
    /// Envelope fields outside 002: ours (`loop`, `attempt`, `evidence`, …) and those of others.
    pub extra: Extra,
}

/// What a tolerant reader did not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unknowns {
    /// Whether the event's type is not one of the ten.
    pub event_type: bool,
    /// How many blocks have a type that is not one of the six.
    pub block_types: usize,
    /// How many roles and fidelities are unknown.
    pub words: usize,
}

impl ExchangeEvent {
    /// Reads one line, tolerantly: unknown types and fields are kept (R52, R53).
    ///
    /// # Errors
    /// When the line is not a JSON object or lacks an envelope field; never for an unknown type.
    pub fn parse(line: &[u8]) -> Result<Self, Error> {
        Ok(Self::from(Envelope::parse(line)?))
    }

    /// Reads one line and refuses unknown words.
    ///
    /// # Errors
    /// As [`ExchangeEvent::parse`], or an error for which [`Error::is_unknown_type`] is true.
    pub fn parse_strict(line: &[u8]) -> Result<Self, Error> {
        let event = Self::parse(line)?;
        if let Word::Unknown(found) = event.event_type {
            return Err(Error::UnknownEventType { found });
        }
        let first = event.payload().unknown_words().next();
        first.map_or(Ok(event), Err)
    }

    /// Parses the payload.
    #[must_use]
    pub fn payload(&self) -> Payload {
        Payload::read(&self.payload)
    }

    /// Returns what a tolerant reader did not know about the event.
    #[must_use]
    pub fn unknowns(&self) -> Unknowns {
        let mut found = Unknowns { event_type: self.event_type.known().is_none(), ..Unknowns::default() };
        for word in self.payload().unknown_words() {
            if matches!(word, Error::UnknownBlockType { .. }) {
                found.block_types += 1;
            } else {
                found.words += 1;
            }
        }
        found
    }

    /// Returns the type of each block that is not one of the six, in order.
    #[must_use]
    pub fn unknown_block_types(&self) -> Vec<JsonString> {
        unknown_blocks::unknown_block_types(self.payload.as_str())
    }

    /// Returns the loop indices around the event, outermost first (`loop`).
    #[must_use]
    pub fn loop_indices(&self) -> Option<Vec<u64>> {
        self.extra.get("loop")?.read().ok()
    }

    /// Returns which attempt of its step the event belongs to (`attempt`).
    #[must_use]
    pub fn attempt(&self) -> Option<u64> {
        self.extra.get("attempt")?.read().ok()
    }

    /// Returns the event as a line of JSON in the canonical order of fields, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut out = String::with_capacity(256 + self.payload.as_str().len());
        out.push_str("{\"seq\":");
        out.push_str(Digits::of(self.seq.get()).as_str());
        self.write_head(&mut out);
        self.write_rest(|piece| out.push_str(piece));
        out
    }

    /// Writes the text between the seq and the payload.
    fn write_head(&self, out: &mut String) {
        let mut object = ObjectWriter::resume(out);
        object.run_id("run_id", &self.run_id);
        object.optional("parent_run_id", self.parent_run_id.as_ref(), ObjectWriter::run_id);
        object.optional("child_run_id", self.child_run_id.as_ref(), ObjectWriter::run_id);
        object.vocabulary("type", &self.event_type);
        object.string("path", &self.path);
        object.number("iteration", self.iteration);
        object.string("timestamp", self.timestamp.as_json());
    }

    /// Returns the payload and the text after it separately, so that a large payload is copied once.
    fn write_rest(&self, mut push: impl FnMut(&str)) {
        push(",\"payload\":");
        push(self.payload.as_str());
        for (key, value) in self.extra.iter() {
            push(",");
            key.write(&mut push);
            push(":");
            push(value.as_str());
        }
        push("}");
    }
}
