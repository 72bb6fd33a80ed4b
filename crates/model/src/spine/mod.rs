//! Records of the trace spine (004): the envelope with a raw payload, drafts, and checks of payloads.

mod envelope;
mod payload;
mod source;

use std::str::from_utf8;

use crate::json::{Extra, Fields, JsonString, ObjectWriter, RawJson, check_depth};
use crate::word::{Word, vocabulary};
use crate::{Error, Seq, ThreadId, Timestamp};

pub use envelope::SpineEnvelope;
pub use payload::{ArtifactKind, ArtifactRef, BridgeKind, CompactionKind, PayloadFlaw};
pub use source::SpineSource;

/// The schema version in every record of a spine.
pub const SPINE_SCHEMA_VERSION: &str = "codex_trace_spine_v1";

vocabulary! {
    /// The type of a spine record (R106 to R114).
    SpineType, "spine record type" {
        /// The session and its git identity.
        SessionMeta = "session_meta",
        /// The settings of a turn.
        TurnContext = "turn_context",
        /// What was submitted to the agent.
        Submission = "submission",
        /// What the agent emitted.
        Event = "event",
        /// A file stored beside the spine.
        ArtifactRef = "artifact_ref",
        /// The history before and after a compaction.
        CompactionBoundary = "compaction_boundary",
        /// A parent thread's answer for a child.
        Bridge = "bridge",
    }
}

/// One line of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpineRecord {
    /// The thread it belongs to.
    pub thread_id: ThreadId,
    /// Its number in the spine, over all segments.
    pub seq: Seq,
    /// When it was recorded, in UTC with milliseconds.
    pub timestamp: Timestamp,
    /// Its type.
    pub record_type: Word<SpineType>,
    /// The payload, unchanged.
    pub payload: RawJson,
    /// Fields outside 004.
    pub extra: Extra,
}

impl SpineRecord {
    /// Reads one line.
    ///
    /// # Errors
    /// When an envelope field is missing or of the wrong kind, or the schema version is another (R120, R121).
    pub fn parse(line: &[u8]) -> Result<Self, Error> {
        let text = from_utf8(line).map_err(|source| Error::NotUtf8 { offset: source.valid_up_to() })?;
        let mut fields = Fields::parse(text)?;
        let mut string = |field| fields.take_string(field)?.ok_or(Error::MissingField { field });
        if !string("schema_version")?.is(SPINE_SCHEMA_VERSION) {
            return Err(Error::WrongField { field: "schema_version", wanted: SPINE_SCHEMA_VERSION });
        }
        let thread_id = ThreadId::parse(&string("thread_id")?.to_text())?;
        let (timestamp, record_type) = (string("timestamp")?, string("type")?);
        let seq = fields.take("seq")?.ok_or(Error::MissingField { field: "seq" })?;
        let seq = seq.get().parse().ok().and_then(Seq::new);
        Ok(Self {
            thread_id,
            seq: seq.ok_or(Error::WrongField { field: "seq", wanted: "a whole number from 1" })?,
            timestamp: Timestamp::from_record(timestamp),
            record_type: Word::read(record_type),
            payload: fields.take_json("payload")?.ok_or(Error::MissingField { field: "payload" })?,
            extra: fields.into_extra(),
        })
    }

    /// Returns the record as a line of JSON, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        let draft = SpineDraft {
            record_type: SpineType::Event,
            timestamp: self.timestamp.clone(),
            payload: self.payload.clone(),
            extra: Extra::default(),
        };
        let mut out = String::new();
        draft
            .write_envelope(&self.thread_id, self.seq, &self.record_type.to_json(), &mut out)
            .finish(&self.extra);
        out
    }
}

/// A spine record before it has a seq.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpineDraft {
    record_type: SpineType,
    timestamp: Timestamp,
    payload: RawJson,
    extra: Extra,
}

/// The envelope fields that a draft sets itself and never has as extra ones.
const ENVELOPE_FIELDS: [&str; 6] = ["schema_version", "thread_id", "seq", "timestamp", "type", "payload"];

impl SpineDraft {
    /// Makes a draft.
    ///
    /// # Errors
    /// [`Error::TooDeep`] when the payload nests too deep for a line, [`Error::WrongField`] when the time is invalid.
    pub fn new(record_type: SpineType, timestamp: Timestamp, payload: RawJson) -> Result<Self, Error> {
        check_depth(payload.as_str(), 0)?;
        let timestamp = timestamp.into_written()?;
        Ok(Self { record_type, timestamp, payload, extra: Extra::default() })
    }

    /// Adds an extra envelope field, like `evidence`.
    ///
    /// # Errors
    /// [`Error::DuplicateField`] for a name that the envelope already has, [`Error::TooDeep`] for a value that nests
    /// too deep for a line.
    pub fn with_field(mut self, name: &'static str, value: RawJson) -> Result<Self, Error> {
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
    pub fn record_type(&self) -> SpineType {
        self.record_type
    }

    /// Returns the draft's time.
    #[must_use]
    pub fn timestamp(&self) -> &Timestamp {
        &self.timestamp
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(&self) -> &RawJson {
        &self.payload
    }

    /// Appends the line with `seq` and its newline.
    pub fn write_line(&self, thread: &ThreadId, seq: Seq, out: &mut Vec<u8>) {
        let mut line = String::with_capacity(200 + self.payload.as_str().len());
        let word = Word::Known(self.record_type).to_json();
        self.write_envelope(thread, seq, &word, &mut line).finish(&self.extra);
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }

    /// Returns the maximum length of the line, with its newline.
    #[must_use]
    pub fn line_bytes_max(&self, thread: &ThreadId) -> usize {
        let (timestamp, extra) = (self.timestamp.clone(), self.extra.clone());
        let bare = Self { record_type: self.record_type, timestamp, payload: RawJson::null(), extra };
        let mut line = Vec::new();
        bare.write_line(thread, Seq::new(u64::MAX).unwrap_or(Seq::FIRST), &mut line);
        line.len() - bare.payload.as_str().len() + self.payload.as_str().len()
    }

    fn write_envelope<'a>(
        &self,
        thread: &ThreadId,
        seq: Seq,
        record_type: &JsonString,
        out: &'a mut String,
    ) -> ObjectWriter<'a> {
        let mut object = ObjectWriter::begin(out);
        object.word("schema_version", SPINE_SCHEMA_VERSION);
        object.word("thread_id", thread);
        object.number("seq", seq.get());
        object.string("timestamp", self.timestamp.as_json());
        object.string("type", record_type);
        object.json("payload", &self.payload);
        object
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DEPTH_MAX;

    const LINE: &str = r#"{"schema_version":"codex_trace_spine_v1","thread_id":"thread_123","seq":42,"timestamp":"2026-01-31T08:15:24.123Z","type":"event","payload":{"id":"turn_abc","n":1e400}}"#;

    #[test]
    fn record_round_trips() {
        let record = SpineRecord::parse(LINE.as_bytes()).unwrap();
        assert_eq!(record.record_type, Word::Known(SpineType::Event));
        assert_eq!(record.to_line(), LINE);
        let newer = LINE.replace("\"event\"", "\"hologram\"").replace("}}", "},\"x\":[1,1]}");
        assert_eq!(SpineRecord::parse(newer.as_bytes()).unwrap().to_line(), newer);
    }

    #[test]
    fn draft_writes_the_line_that_a_record_reads() {
        let time = Timestamp::parse("2026-01-31T08:15:24.123Z").unwrap();
        let payload = RawJson::parse(r#"{"id":"turn_abc","n":1e400}"#).unwrap();
        let draft = SpineDraft::new(SpineType::Event, time, payload).unwrap();
        let mut line = Vec::new();
        draft.write_line(&ThreadId::parse("thread_123").unwrap(), Seq::new(42).unwrap(), &mut line);
        assert_eq!(String::from_utf8(line.clone()).unwrap(), format!("{LINE}\n"));
        let thread = ThreadId::parse("thread_123").unwrap();
        assert_eq!(draft.line_bytes_max(&thread), line.len() + "18446744073709551615".len() - "42".len());
    }

    #[test]
    fn extra_fields_of_a_draft_follow_the_envelope() {
        let evidence = || RawJson::parse(r#"{"source":"s1"}"#).unwrap();
        let time = Timestamp::parse("2026-01-31T08:15:24.123Z").unwrap();
        let draft = SpineDraft::new(SpineType::Event, time, RawJson::null()).unwrap();
        let draft = draft.with_field("evidence", evidence()).unwrap();
        let (thread, mut line) = (ThreadId::parse("thread_123").unwrap(), Vec::new());
        draft.write_line(&thread, Seq::new(u64::MAX).unwrap(), &mut line);
        assert!(line.ends_with(b",\"payload\":null,\"evidence\":{\"source\":\"s1\"}}\n"));
        assert_eq!(draft.line_bytes_max(&thread), line.len());
        assert_eq!(draft.field("evidence"), Some(&evidence()));
        let record = SpineRecord::parse(line.trim_ascii_end()).unwrap();
        assert_eq!(record.extra.get("evidence"), Some(&evidence()));
        for name in ENVELOPE_FIELDS.into_iter().chain(["evidence"]) {
            let again = draft.clone().with_field(name, RawJson::null());
            assert_eq!(again, Err(Error::DuplicateField { field: name.into() }), "{name}");
        }
        let levels = DEPTH_MAX + 1;
        let deep = RawJson::trusted("[".repeat(levels) + &"]".repeat(levels));
        assert_eq!(draft.with_field("deep", deep), Err(Error::TooDeep { depth: DEPTH_MAX + 1 }));
    }

    #[test]
    fn every_envelope_field_is_required() {
        for field in ["schema_version", "thread_id", "seq", "timestamp", "type", "payload"] {
            let without = LINE.replace(&format!("\"{field}\""), "\"x\"");
            assert_eq!(SpineRecord::parse(without.as_bytes()), Err(Error::MissingField { field }));
        }
        assert!(SpineRecord::parse(LINE.replace("_v1", "_v2").as_bytes()).is_err());
        assert!(SpineRecord::parse(LINE.replace("42", "0").as_bytes()).is_err());
    }
}
