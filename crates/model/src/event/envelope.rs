//! The envelope of a line, borrowed from it: one serde pass, values raw at the leaves.

use std::str::from_utf8;

use serde_json::value::RawValue;

use super::ExchangeEvent;
use super::unknown_blocks::unknown_block_types;
use super::words::EventType;
use crate::json::{Fields, JsonString, RawJson};
use crate::word::Word;
use crate::{Error, RunId, Seq, Timestamp};

/// The envelope of a line, borrowed from it, for readers that only count or check.
pub struct Envelope<'a> {
    /// The line's number.
    pub seq: Seq,
    /// The run it belongs to.
    pub run_id: RunId,
    /// Its type.
    pub event_type: Word<EventType>,
    parent_run_id: Option<RunId>,
    child_run_id: Option<RunId>,
    path: &'a RawValue,
    iteration: u64,
    timestamp: &'a RawValue,
    payload: Option<&'a RawValue>,
    rest: Fields<'a>,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope of a line and checks that the whole line is JSON.
    ///
    /// # Errors
    /// When the line is not a JSON object, or an envelope field is missing, duplicate or of the wrong kind.
    pub fn parse(line: &'a [u8]) -> Result<Self, Error> {
        let text = from_utf8(line).map_err(|source| Error::NotUtf8 { offset: source.valid_up_to() })?;
        let mut fields = Fields::parse(text)?;
        let seq = required(fields.take("seq")?, "seq")?;
        let run_id = required(fields.take("run_id")?, "run_id")?;
        Ok(Self {
            seq: read_number(seq)
                .and_then(Seq::new)
                .ok_or(Error::WrongField { field: "seq", wanted: "a whole number from 1" })?,
            run_id: read_run_id(run_id, "run_id")?.ok_or(Error::MissingField { field: "run_id" })?,
            parent_run_id: optional_run_id(&mut fields, "parent_run_id")?,
            child_run_id: optional_run_id(&mut fields, "child_run_id")?,
            event_type: Word::read(required(fields.take_string("type")?, "type")?),
            path: string(required(fields.take("path")?, "path")?, "path")?,
            iteration: read_number(required(fields.take("iteration")?, "iteration")?)
                .ok_or(Error::WrongField { field: "iteration", wanted: "a whole number from 0" })?,
            timestamp: string(required(fields.take("timestamp")?, "timestamp")?, "timestamp")?,
            payload: fields.take("payload")?,
            rest: fields,
        })
    }

    /// Returns the time as the JSON string in the line.
    #[must_use]
    pub fn timestamp(&self) -> &'a RawValue {
        self.timestamp
    }

    /// Returns the raw value of an extra field; the first of several.
    #[must_use]
    pub fn extra(&self, name: &str) -> Option<&'a RawValue> {
        self.rest.iter().find(|(key, _)| key.is(name)).map(|(_, value)| value)
    }

    /// Returns the type of each block that is not one of the six, in order.
    #[must_use]
    pub fn unknown_block_types(&self) -> Vec<JsonString> {
        self.payload.map_or_else(Vec::new, |payload| unknown_block_types(payload.get()))
    }
}

impl From<Envelope<'_>> for ExchangeEvent {
    fn from(envelope: Envelope<'_>) -> Self {
        let keep =
            |raw| JsonString::from_raw(raw).expect("`Envelope::parse` has checked that it is a string");
        Self {
            seq: envelope.seq,
            run_id: envelope.run_id,
            parent_run_id: envelope.parent_run_id,
            child_run_id: envelope.child_run_id,
            event_type: envelope.event_type,
            path: keep(envelope.path),
            iteration: envelope.iteration,
            timestamp: Timestamp::from_record(keep(envelope.timestamp)),
            payload: envelope.payload.map_or_else(RawJson::null, RawJson::from_raw),
            extra: envelope.rest.into_extra(),
        }
    }
}

fn required<T>(value: Option<T>, field: &'static str) -> Result<T, Error> {
    value.ok_or(Error::MissingField { field })
}

fn string<'a>(raw: &'a RawValue, field: &'static str) -> Result<&'a RawValue, Error> {
    if raw.get().starts_with('"') { Ok(raw) } else { Err(Error::WrongField { field, wanted: "a string" }) }
}

/// Reads a whole number that consists of digits only; `1.0` and `1e3` are refused.
pub(super) fn read_number(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok()
}

/// Reads a run's id; null and the empty string, which some writers use for "none", count as absent.
pub(super) fn read_run_id(raw: &RawValue, field: &'static str) -> Result<Option<RunId>, Error> {
    if matches!(raw.get(), "null" | "\"\"") {
        return Ok(None);
    }
    let string = JsonString::from_raw(raw).ok_or(Error::WrongField { field, wanted: "a UUID" })?;
    RunId::parse(&string.to_text()).map(Some)
}

pub(super) fn optional_run_id(fields: &mut Fields<'_>, field: &'static str) -> Result<Option<RunId>, Error> {
    fields.take(field)?.map_or(Ok(None), |raw| read_run_id(raw, field))
}
