//! The envelope of a spine record and the fields of its payload, borrowed from the line, in a single pass.
//!
//! A check of gigabytes of spine needs no copies: values stay raw, one level into the payload.

use std::borrow::Cow;
use std::fmt;
use std::str::from_utf8;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::payload::{self, ArtifactRef, PayloadFlaw};
use super::{SPINE_SCHEMA_VERSION, SpineType};
use crate::json::{Fields, JsonString, check_depth, text_is, text_of};
use crate::word::{Vocabulary as _, Word};
use crate::{Error, Seq, ThreadId, Timestamp};

/// The envelope of a spine record, borrowed from its line, for readers that only count or check.
pub struct SpineEnvelope<'a> {
    /// The thread; a valid [`ThreadId`].
    pub thread_id: Cow<'a, str>,
    /// Its number.
    pub seq: Seq,
    /// When it was recorded, as text.
    pub timestamp: Cow<'a, str>,
    /// Its type.
    pub record_type: Word<SpineType>,
    payload: EnvelopePayload<'a>,
}

/// The payload of a record.
enum EnvelopePayload<'a> {
    Object(Fields<'a>),
    /// A value of another kind.
    Other,
}

impl<'a> EnvelopePayload<'a> {
    fn fields(&self) -> Option<&Fields<'a>> {
        match self {
            Self::Object(fields) => Some(fields),
            Self::Other => None,
        }
    }
}

impl<'a> SpineEnvelope<'a> {
    /// Reads the envelope of a line and checks that the whole line is JSON within the depth limit.
    ///
    /// # Errors
    /// When the line is not such a JSON object; when an envelope field is missing, duplicate or of the wrong kind; when
    /// the schema version is another (R120, R121).
    pub fn parse(line: &'a [u8]) -> Result<Self, Error> {
        let text = from_utf8(line).map_err(|source| Error::NotUtf8 { offset: source.valid_up_to() })?;
        if text.trim_ascii().is_empty() {
            return Err(Error::Empty);
        }
        // A payload that is not an object, and invalid JSON, take the slow path, which knows what is wrong.
        let parts =
            serde_json::from_str::<EnvelopeParts<'a>>(text).or_else(|_| EnvelopeParts::parse_slowly(text))?;
        check_depth(text, 1)?;
        parts.into_envelope()
    }

    /// Tells whether the time is RFC 3339 in UTC; readers accept any text.
    #[must_use]
    pub fn has_time(&self) -> bool {
        Timestamp::is_utc(&self.timestamp)
    }

    /// Checks the payload against what its type asks for (R106 to R114); one of an unknown type may be anything.
    ///
    /// Returns the file that the record refers to, if it does.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn check_payload(&self) -> Result<Option<ArtifactRef<'a>>, PayloadFlaw> {
        match self.record_type {
            Word::Known(known) => payload::check(known, &self.thread_id, self.payload.fields()),
            Word::Unknown(_) => Ok(None),
        }
    }
}

/// The raw fields of an envelope.
#[derive(Default)]
struct EnvelopeParts<'a> {
    schema_version: Option<&'a RawValue>,
    thread_id: Option<&'a RawValue>,
    seq: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
    record_type: Option<&'a RawValue>,
    payload: Option<EnvelopePayload<'a>>,
    duplicate: Option<&'static str>,
}

impl<'a> EnvelopeParts<'a> {
    /// Reads a line whose payload may be any value.
    fn parse_slowly(text: &'a str) -> Result<Self, Error> {
        let mut source = serde_json::Deserializer::from_str(text);
        let parts = source.deserialize_map(EnvelopeVisitor { payload: PayloadMode::Raw });
        parts.and_then(|parts| source.end().map(|()| parts)).map_err(|error| {
            // serde fails at the first bracket of an array, before it knows whether the rest is JSON.
            let shape_only = error.is_data() && serde_json::from_str::<&RawValue>(text).is_ok();
            if shape_only { Error::NotAnObject } else { Error::not_json(&error) }
        })
    }

    fn into_envelope(self) -> Result<SpineEnvelope<'a>, Error> {
        if let Some(field) = self.duplicate {
            return Err(Error::DuplicateField { field: field.into() });
        }
        let missing = |field| Error::MissingField { field };
        let string = |raw: Option<&'a RawValue>, field| {
            text_of(raw.ok_or(missing(field))?).ok_or(Error::WrongField { field, wanted: "a string" })
        };
        string(self.schema_version, "schema_version")?;
        if !self.schema_version.is_some_and(|raw| text_is(raw, SPINE_SCHEMA_VERSION)) {
            return Err(Error::WrongField { field: "schema_version", wanted: SPINE_SCHEMA_VERSION });
        }
        let thread_id = string(self.thread_id, "thread_id")?;
        ThreadId::check(&thread_id)?;
        let seq = self.seq.ok_or(missing("seq"))?.get().parse().ok().and_then(Seq::new);
        let timestamp = string(self.timestamp, "timestamp")?;
        let word = string(self.record_type, "type")?;
        let unknown = || self.record_type.and_then(JsonString::from_raw).unwrap_or_else(|| "".into());
        Ok(SpineEnvelope {
            thread_id,
            seq: seq.ok_or(Error::WrongField { field: "seq", wanted: "a whole number from 1" })?,
            timestamp,
            record_type: SpineType::find(&word).map_or_else(|| Word::Unknown(unknown()), Word::Known),
            payload: self.payload.ok_or(missing("payload"))?,
        })
    }

    fn slot(&mut self, field: &'static str) -> Option<&mut Option<&'a RawValue>> {
        Some(match field {
            "schema_version" => &mut self.schema_version,
            "thread_id" => &mut self.thread_id,
            "seq" => &mut self.seq,
            "timestamp" => &mut self.timestamp,
            "type" => &mut self.record_type,
            _ => return None,
        })
    }
}

/// Returns which envelope field a name token decodes to.
fn field_named(token: &RawValue) -> Option<&'static str> {
    let name = text_of(token)?;
    super::ENVELOPE_FIELDS.into_iter().find(|field| *field == name)
}

impl<'de: 'a, 'a> Deserialize<'de> for EnvelopeParts<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(EnvelopeVisitor { payload: PayloadMode::Fields })
    }
}

/// How a payload is read: field by field, which fails if it is not an object, or as one value.
#[derive(Clone, Copy)]
enum PayloadMode {
    Fields,
    Raw,
}

struct EnvelopeVisitor {
    payload: PayloadMode,
}

impl EnvelopeVisitor {
    fn payload<'de, A: MapAccess<'de>>(&self, map: &mut A) -> Result<EnvelopePayload<'de>, A::Error> {
        Ok(match self.payload {
            PayloadMode::Fields => EnvelopePayload::Object(map.next_value::<PayloadFields<'de>>()?.0),
            PayloadMode::Raw => {
                let raw = map.next_value::<&RawValue>()?;
                let fields = serde_json::from_str::<PayloadFields<'de>>(raw.get());
                fields.map_or(EnvelopePayload::Other, |fields| EnvelopePayload::Object(fields.0))
            }
        })
    }
}

/// The fields of a payload that are checked.
struct PayloadFields<'a>(Fields<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for PayloadFields<'a> {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_map(PayloadVisitor)
    }
}

struct PayloadVisitor;

impl<'de> Visitor<'de> for PayloadVisitor {
    type Value = PayloadFields<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PayloadFields<'de>, A::Error> {
        let mut fields = Fields::default();
        while let Some(key) = map.next_key::<&RawValue>()? {
            // A line may have millions of names. If there are more fields than checked names, one is a duplicate, which
            // is enough to know.
            let is_kept = fields.len() <= payload::NAMES.len() && payload::is_checked(key);
            if is_kept {
                fields.push(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(PayloadFields(fields))
    }
}

impl<'de> Visitor<'de> for EnvelopeVisitor {
    type Value = EnvelopeParts<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<EnvelopeParts<'de>, A::Error> {
        let mut parts = EnvelopeParts::default();
        while let Some(key) = map.next_key::<&RawValue>()? {
            let Some(field) = field_named(key) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let was_there = match parts.slot(field) {
                Some(slot) => slot.replace(map.next_value()?).is_some(),
                None => parts.payload.replace(self.payload(&mut map)?).is_some(),
            };
            if was_there {
                parts.duplicate = Some(field);
            }
        }
        Ok(parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpineRecord;
    use crate::limits::DEPTH_MAX;

    const LINE: &str = r#"{"schema_version":"codex_trace_spine_v1","thread_id":"thread_123","seq":42,"timestamp":"2026-01-31T08:15:24.123Z","type":"event","payload":{"id":"turn_abc","msg":{"n":1e400}},"evidence":{"source":"\ud800"}}"#;

    /// The error of a line, on the fast path and on the slow one.
    #[track_caller]
    fn check(line: &str, want: Option<&Error>) {
        let quick = SpineEnvelope::parse(line.as_bytes()).err();
        assert_eq!(quick.as_ref(), want, "{line}");
        assert_eq!(SpineRecord::parse(line.as_bytes()).err().as_ref(), want, "{line}");
    }

    #[test]
    fn envelope_fields_may_have_any_order_and_spelling() {
        check(LINE, None);
        check(&LINE.replace("\"seq\"", "\"\\u0073eq\""), None);
        let envelope = SpineEnvelope::parse(LINE.as_bytes()).unwrap();
        assert_eq!((&*envelope.thread_id, envelope.seq.get()), ("thread_123", 42));
        assert_eq!(envelope.record_type, Word::Known(SpineType::Event));
        assert!(envelope.has_time());
        assert_eq!(envelope.check_payload(), Ok(None));
        let fields = "\"seq\":42,\"timestamp\":\"2026-01-31T08:15:24.123Z\",";
        let moved = LINE.replace(fields, "").replacen('{', &format!("{{{fields}"), 1);
        check(&moved, None);
    }

    #[test]
    fn payload_of_an_unknown_type_is_not_checked() {
        let text = r#"{"id":"turn_abc","msg":{"n":1e400}}"#;
        for payload in ["1e400", "null", "\"\\ud800\"", "[1,[2]]", "true", "{}"] {
            let line = LINE.replace(text, payload).replace("\"event\"", "\"hologram\"");
            check(&line, None);
            let envelope = SpineEnvelope::parse(line.as_bytes()).unwrap();
            assert!(matches!(envelope.record_type, Word::Unknown(_)));
            assert_eq!(envelope.check_payload(), Ok(None));
        }
    }

    #[test]
    fn every_envelope_field_is_required_once_and_of_its_kind() {
        for field in super::super::ENVELOPE_FIELDS {
            check(&LINE.replace(&format!("\"{field}\":"), "\"x\":"), Some(&Error::MissingField { field }));
            let twice = LINE.replacen('{', &format!("{{\"{field}\":\"1\","), 1);
            let error = SpineEnvelope::parse(twice.as_bytes()).err();
            assert_eq!(error, Some(Error::DuplicateField { field: field.into() }), "{twice}");
            if field != "payload" {
                let wrong = LINE.replace(&format!("\"{field}\":"), &format!("\"{field}\":[1],\"x\":"));
                assert!(matches!(SpineEnvelope::parse(wrong.as_bytes()), Err(Error::WrongField { .. })));
            }
        }
        for (from, to) in [("_v1", "_v2"), ("42", "0"), ("42", "4.2"), ("thread_123", "../x")] {
            assert!(SpineEnvelope::parse(LINE.replace(from, to).as_bytes()).is_err(), "{to}");
        }
    }

    #[test]
    fn payload_may_have_many_unknown_fields_but_no_duplicates() {
        let many: String =
            (0..1000).map(|number| format!("\"a{number}\":[{{}}],")).collect::<Vec<_>>().concat();
        let line = LINE.replace("\"payload\":{", &format!("\"payload\":{{{many}"));
        let checked = |line: &str| {
            SpineEnvelope::parse(line.as_bytes()).unwrap().check_payload().map(|file| file.is_some())
        };
        assert_eq!(checked(&line), Ok(false));
        let ids = "\"id\":\"x\",".repeat(1000);
        let twice = LINE.replace("\"payload\":{", &format!("\"payload\":{{{ids}"));
        assert!(matches!(checked(&twice), Err(PayloadFlaw::Field { .. })));
        // One field more than there are names, with the searched one last.
        let others = "\"op\":1,".repeat(1000);
        let late = LINE.replace("\"payload\":{", &format!("\"payload\":{{{others}"));
        assert!(checked(&late).is_err());
    }

    #[test]
    fn invalid_records_have_distinct_errors() {
        let error = |line: &[u8]| SpineEnvelope::parse(line).err().unwrap();
        assert_eq!(error(b"  "), Error::Empty);
        assert_eq!(error(b"[]"), Error::NotAnObject);
        assert!(matches!(error(&LINE.as_bytes()[..60]), Error::NotJson { .. }));
        assert!(matches!(error(format!("{LINE} 1").as_bytes()), Error::NotJson { .. }));
        assert_eq!(error(b"{\"a\":\"\xff\"}"), Error::NotUtf8 { offset: 6 });
        for levels in [DEPTH_MAX, DEPTH_MAX + 1, 100_000] {
            let deep = format!("{}{}", "[".repeat(levels - 1), "]".repeat(levels - 1));
            let line = LINE.replace(r#"{"n":1e400}"#, &deep);
            let error = SpineEnvelope::parse(line.as_bytes()).err();
            assert_eq!(error, (levels > DEPTH_MAX).then_some(Error::TooDeep { depth: levels }));
        }
    }

    #[test]
    fn time_must_be_rfc_3339_in_utc() {
        for (time, want) in
            [("2026-01-31T08:15:24+00:00", true), ("2026-01-31T08:15:24+01:00", false), ("now", false)]
        {
            let line = LINE.replace("2026-01-31T08:15:24.123Z", time);
            assert_eq!(SpineEnvelope::parse(line.as_bytes()).unwrap().has_time(), want, "{time}");
        }
    }
}
