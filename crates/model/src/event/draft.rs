//! Drafts: events without a seq, checked to be valid for writing.

use std::str::from_utf8;

use super::envelope::{optional_run_id, read_number};
use super::{EventType, ExchangeEvent, Payload};
use crate::json::{Digits, Extra, FieldName, Fields, JsonString, RawJson, check_depth};
use crate::limits::LINE_BYTES_MAX;
use crate::word::{Vocabulary, Word};
use crate::{Error, RunId, Seq, Timestamp};

/// An event before the journal gives it a seq.
///
/// A draft is always valid for writing: one of the ten types, a payload of the right shape, words from the
/// vocabularies, and the id of the child where a child is called. Foreign values stay raw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    event_type: EventType,
    parent_run_id: Option<RunId>,
    child_run_id: Option<RunId>,
    /// Its step; `None` at run level, which has an empty path.
    path: Option<JsonString>,
    iteration: u64,
    timestamp: Option<Timestamp>,
    payload: RawJson,
    extra: Extra,
}

/// The envelope fields that a draft sets itself and never has as extra ones.
const ENVELOPE_FIELDS: [&str; 9] =
    ["seq", "run_id", "parent_run_id", "child_run_id", "type", "path", "iteration", "timestamp", "payload"];

impl Draft {
    /// Makes a draft at run level, iteration 0, without a time; the journal fills in the time.
    ///
    /// # Errors
    /// When the payload does not match the type, or has a word outside its vocabulary; [`Error::MissingField`] for a
    /// type that calls another run: use [`Draft::calling`] for it.
    pub fn new(event_type: EventType, payload: &Payload) -> Result<Self, Error> {
        Self::from_payload(event_type, payload, None)
    }

    /// Makes a draft that names the run it calls, or whose end it reports (R58); otherwise as [`Draft::new`].
    ///
    /// # Errors
    /// As [`Draft::new`].
    pub fn calling(event_type: EventType, child: RunId, payload: &Payload) -> Result<Self, Error> {
        Self::from_payload(event_type, payload, Some(child))
    }

    fn from_payload(event_type: EventType, payload: &Payload, child: Option<RunId>) -> Result<Self, Error> {
        let json = payload.to_json();
        // Values that are each shallow enough can be too deep inside blocks.
        check_depth(json.as_str(), 0)?;
        payload.check_to_write(event_type, &json)?;
        Self::from_checked_payload(event_type, json, child)
    }

    /// Makes a draft from a payload that is already JSON; its bytes are written unchanged.
    ///
    /// # Errors
    /// As [`Draft::new`].
    pub fn from_raw_payload(event_type: EventType, payload: RawJson) -> Result<Self, Error> {
        check_depth(payload.as_str(), 0)?;
        Payload::check_json(event_type, &payload)?;
        Self::from_checked_payload(event_type, payload, None)
    }

    fn from_checked_payload(
        event_type: EventType,
        payload: RawJson,
        child_run_id: Option<RunId>,
    ) -> Result<Self, Error> {
        if event_type.calls_a_run() && child_run_id.is_none() {
            return Err(Error::MissingField { field: "child_run_id" });
        }
        Ok(Self {
            event_type,
            parent_run_id: None,
            child_run_id,
            path: None,
            iteration: 0,
            timestamp: None,
            payload,
            extra: Extra::default(),
        })
    }

    /// Reads a line that was sent for `run`: an event without `seq`.
    ///
    /// `run_id`, `path`, `iteration` and `timestamp` may be left out. Payload and unknown envelope fields stay
    /// unchanged.
    ///
    /// # Errors
    /// The first problem; nothing has been written then.
    pub fn parse(line: &[u8], run: RunId) -> Result<Self, Error> {
        if line.len() >= LINE_BYTES_MAX {
            return Err(Error::TooLong { bytes: line.len() as u64 + 1 });
        }
        let text = from_utf8(line).map_err(|source| Error::NotUtf8 { offset: source.valid_up_to() })?;
        if text.trim().is_empty() {
            return Err(Error::Empty);
        }
        let mut fields = Fields::parse(text)?;
        if let Some(field) = fields.duplicate() {
            return Err(Error::DuplicateField { field: field.into_owned().into() });
        }
        if fields.has("seq") {
            return Err(Error::ForbiddenField {
                field: "seq",
                reason: "the journal numbers events as it writes them",
            });
        }
        check_depth(text, 1)?;
        match optional_run_id(&mut fields, "run_id")? {
            Some(found) if found != run => return Err(Error::OtherRun { wanted: run, found }),
            Some(_) | None => {}
        }
        Self::from_fields(fields)
    }

    fn from_fields(mut fields: Fields<'_>) -> Result<Self, Error> {
        let word = fields.take_string("type")?.ok_or(Error::MissingField { field: "type" })?;
        let Some(event_type) = EventType::find(&word.to_text()) else {
            return Err(Error::UnknownEventType { found: word });
        };
        let payload = fields.take_json("payload")?.unwrap_or_else(RawJson::null);
        let child = optional_run_id(&mut fields, "child_run_id")?;
        Payload::check_json(event_type, &payload)?;
        let draft = Self::from_checked_payload(event_type, payload, child)?;
        let iteration = fields.take("iteration")?.map_or(Some(0), read_number);
        Ok(Self {
            parent_run_id: optional_run_id(&mut fields, "parent_run_id")?,
            path: fields.take_string("path")?.filter(is_step),
            iteration: iteration
                .ok_or(Error::WrongField { field: "iteration", wanted: "a whole number from 0" })?,
            timestamp: match fields.take_nullable_string("timestamp")? {
                Some(text) => Some(Timestamp::parse(&text.to_text())?),
                None => None,
            },
            extra: fields.into_extra(),
            ..draft
        })
    }

    /// Makes a draft of a recorded event, to record it again with another number.
    ///
    /// # Errors
    /// [`Error::UnknownEventType`], or when the payload does not match the type.
    pub fn of_event(event: ExchangeEvent) -> Result<Self, Error> {
        let event_type = match event.event_type {
            Word::Known(event_type) => event_type,
            Word::Unknown(found) => return Err(Error::UnknownEventType { found }),
        };
        Payload::check_json(event_type, &event.payload)?;
        let draft = Self::from_checked_payload(event_type, event.payload, event.child_run_id)?;
        Ok(Self {
            parent_run_id: event.parent_run_id,
            path: Some(event.path).filter(is_step),
            iteration: event.iteration,
            timestamp: Some(event.timestamp),
            extra: event.extra,
            ..draft
        })
    }

    /// Sets the step of the draft.
    #[must_use]
    pub fn at(self, path: impl Into<JsonString>) -> Self {
        Self { path: Some(path.into()).filter(is_step), ..self }
    }

    /// Sets the iteration of the loop or retry around it.
    #[must_use]
    pub fn in_iteration(self, iteration: u64) -> Self {
        Self { iteration, ..self }
    }

    /// Sets the time, in UTC. A text that is not an RFC 3339 time, as records may contain, sets none: the journal then
    /// uses its own.
    #[must_use]
    pub fn at_time(self, timestamp: Timestamp) -> Self {
        Self { timestamp: timestamp.into_written().ok(), ..self }
    }

    /// Names the run that called this one.
    #[must_use]
    pub fn child_of(self, parent: RunId) -> Self {
        Self { parent_run_id: Some(parent), ..self }
    }

    /// Adds an extra envelope field.
    ///
    /// # Errors
    /// [`Error::DuplicateField`] for a name that the envelope already has, [`Error::TooDeep`] for a value that nests
    /// too deep for a line.
    pub fn with_field(mut self, name: impl Into<FieldName>, value: RawJson) -> Result<Self, Error> {
        self.extra.add(name.into(), value, &ENVELOPE_FIELDS)?;
        Ok(self)
    }

    /// Returns an extra envelope field.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&RawJson> {
        self.extra.get(name)
    }

    /// Returns the draft's type.
    #[must_use]
    pub fn event_type(&self) -> EventType {
        self.event_type
    }

    /// Returns the draft's time, if it has one.
    #[must_use]
    pub fn timestamp(&self) -> Option<&Timestamp> {
        self.timestamp.as_ref()
    }

    /// Encodes everything except the seq, so that the lock under which the seq is assigned is held as briefly as
    /// possible.
    #[must_use]
    pub fn encode(self, run: RunId, now: impl FnOnce() -> Timestamp) -> EncodedDraft {
        let event = self.into_event(run, Seq::FIRST, now);
        let mut head = String::with_capacity(256);
        event.write_head(&mut head);
        EncodedDraft { event, head }
    }

    /// Returns the event with `seq`, for callers that do not write it.
    #[must_use]
    pub fn into_event(self, run: RunId, seq: Seq, now: impl FnOnce() -> Timestamp) -> ExchangeEvent {
        ExchangeEvent {
            seq,
            run_id: run,
            parent_run_id: self.parent_run_id,
            child_run_id: self.child_run_id,
            event_type: Word::Known(self.event_type),
            path: self.path.unwrap_or_else(|| "".into()),
            iteration: self.iteration,
            timestamp: self.timestamp.unwrap_or_else(now),
            payload: self.payload,
            extra: self.extra,
        }
    }
}

/// Tells whether a path is that of a step, and not of the run.
fn is_step(path: &JsonString) -> bool {
    !path.is_empty()
}

/// A draft whose line is complete except for its seq.
#[derive(Debug)]
pub struct EncodedDraft {
    event: ExchangeEvent,
    /// The text between the seq and the payload.
    head: String,
}

impl EncodedDraft {
    /// Appends the line with `seq` and its newline.
    pub fn write_line(&self, seq: Seq, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"seq\":");
        out.extend_from_slice(Digits::of(seq.get()).as_str().as_bytes());
        out.extend_from_slice(self.head.as_bytes());
        self.event.write_rest(|piece| out.extend_from_slice(piece.as_bytes()));
        out.push(b'\n');
    }

    /// Returns the maximum length of the line.
    #[must_use]
    pub fn line_bytes_max(&self) -> usize {
        const AROUND_SEQ: usize = 7 + 20 + 1;
        let mut rest = 0;
        self.event.write_rest(|piece| rest += piece.len());
        self.head.len() + rest + AROUND_SEQ
    }

    /// Returns the event of the line with `seq`.
    #[must_use]
    pub fn into_event(self, seq: Seq) -> ExchangeEvent {
        ExchangeEvent { seq, ..self.event }
    }
}
