//! The log record around an entry: an event name and a context (000).

use super::TranscriptEntry;
use crate::Error;
use crate::json::{Extra, Fields, JsonString, ObjectWriter, RawJson};

/// One structured log record: `{"event":…,"context":{…}}` and other fields of the logger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The event's name.
    pub event: JsonString,
    /// Its keys.
    pub context: RawJson,
    /// The logger's other fields.
    pub extra: Extra,
}

impl LogRecord {
    /// The event name of an entry.
    pub const ENTRY: &'static str = "transcript.entry";

    /// Wraps an entry.
    #[must_use]
    pub fn of_entry(entry: &TranscriptEntry) -> Self {
        Self { event: Self::ENTRY.into(), context: entry.to_json(), extra: Extra::default() }
    }

    /// Reads one line of a structured log.
    ///
    /// # Errors
    /// When it is not a JSON object, or has no `event` or `context`.
    pub fn parse(line: &str) -> Result<Self, Error> {
        let mut fields = Fields::parse(line)?;
        Ok(Self {
            event: fields.take_string("event")?.ok_or(Error::MissingField { field: "event" })?,
            context: fields.take_json("context")?.ok_or(Error::MissingField { field: "context" })?,
            extra: fields.into_extra(),
        })
    }

    /// Returns the entry in the record; `None` when it logs something else.
    ///
    /// # Errors
    /// When the record has the event name of an entry and its context is not an entry.
    pub fn entry(&self) -> Result<Option<TranscriptEntry>, Error> {
        if self.event.is(Self::ENTRY) { TranscriptEntry::parse(&self.context).map(Some) } else { Ok(None) }
    }

    /// Returns the record as a line of JSON, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut out = String::new();
        let mut object = ObjectWriter::begin(&mut out);
        object.string("event", &self.event);
        object.json("context", &self.context);
        object.finish(&self.extra);
        out
    }
}

/// Returns the entries in log records, in order and unchanged; other records are skipped (R29).
///
/// # Errors
/// When a record says that it carries an entry and its context is none.
pub fn reconstruct_transcript<'a>(
    records: impl IntoIterator<Item = &'a LogRecord>,
) -> Result<Vec<TranscriptEntry>, Error> {
    records.into_iter().filter_map(|record| record.entry().transpose()).collect()
}
