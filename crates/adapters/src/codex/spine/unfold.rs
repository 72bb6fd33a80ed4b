//! Turns records of a spine back into the lines that they were made from, for the code that reads session files.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{SpineRecord, SpineSource, SpineType, Timestamp, Word};

use super::fields::PayloadFields;

/// Takes the records of a spine, beginning with the first.
#[derive(Debug, Default)]
pub struct SpineUnfolder {
    source: Option<SpineSource>,
}

impl SpineUnfolder {
    /// Creates one for a new spine.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns what the spine was made from, after the record that has it was read.
    #[must_use]
    pub fn source(&self) -> Option<SpineSource> {
        self.source
    }

    /// Returns the line that a record was made from: a line of a session file, or a message of a connection with its
    /// direction.
    ///
    /// Returns `None` for derived records, for lines copied from another thread, and for lines that were not JSON.
    pub fn line(&mut self, record: &SpineRecord) -> Option<String> {
        let Word::Known(record_type) = record.record_type else { return None };
        let fields = PayloadFields::parse(record.payload.as_str());
        if record_type == SpineType::SessionMeta {
            let kind = fields.object("spine_source").text("kind");
            self.source = kind.and_then(|name| SpineSource::named(&name)).or(self.source);
        }
        if let Some(direction) = fields.object("rpc").text("dir") {
            let message = fields.json("op").or_else(|| fields.json("msg"))?;
            return Some(envelope(&direction, &record.timestamp, &message));
        }
        match (self.source.unwrap_or(SpineSource::Rollout), record_type) {
            (SpineSource::Rollout, SpineType::SessionMeta) => {
                let payload = super::rollout::without(record.payload.as_str(), "spine_source");
                Some(line(&record.timestamp, "session_meta", &payload))
            }
            (SpineSource::Rollout, SpineType::TurnContext) => {
                Some(line(&record.timestamp, "turn_context", &fields.json("context")?))
            }
            (SpineSource::Rollout, SpineType::Event) if fields.json_text("copied_from").is_none() => {
                event(&record.timestamp, &fields.json("msg")?)
            }
            (SpineSource::Rollout | SpineSource::RolloutTrace | SpineSource::AppServer, _) => None,
        }
    }
}

fn event(time: &Timestamp, msg: &RawJson) -> Option<String> {
    let fields = PayloadFields::parse(msg.as_str());
    let kind = fields.text("type")?;
    // A wrapped line has only a type and a payload. Messages of the agent have no field `payload`.
    let inside = fields.json("payload").filter(|_| fields.names().len() == 2);
    match (&*kind, inside) {
        ("unreadable", _) => None,
        ("raw_response_item", _) => Some(line(time, "response_item", &fields.json("item")?)),
        (kind, Some(payload)) => Some(line(time, kind, &payload)),
        (_, None) => Some(line(time, "event_msg", msg)),
    }
}

fn line(time: &Timestamp, kind: &str, payload: &RawJson) -> String {
    let object = RawJson::object(|object: &mut ObjectWriter<'_>| {
        object.string("timestamp", time.as_json());
        object.string("type", &JsonString::from_text(kind));
        object.json("payload", payload);
    });
    object.as_str().to_owned()
}

fn envelope(direction: &str, time: &Timestamp, message: &RawJson) -> String {
    let seconds = time.instant().and_then(|at| {
        let ms = at.as_millisecond();
        RawJson::parse(&format!("{}.{:03}", ms / 1000, ms % 1000)).ok()
    });
    let object = RawJson::object(|object: &mut ObjectWriter<'_>| {
        object.string("dir", &JsonString::from_text(direction));
        object.optional("t", seconds.as_ref(), ObjectWriter::json);
        object.json("msg", message);
    });
    object.as_str().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codex::spine::RolloutFold;

    fn records(lines: &[&str]) -> Vec<SpineRecord> {
        let mut fold = RolloutFold::new();
        let mut made = Vec::new();
        for (number, text) in lines.iter().enumerate() {
            made.extend(fold.line(number as u64 * 1000, text.as_bytes()));
        }
        let record = |(at, made): (usize, super::super::SpineMade)| {
            let line = format!(
                r#"{{"schema_version":"codex_trace_spine_v1","thread_id":"t1","seq":{},"timestamp":{},"type":"{}","payload":{}}}"#,
                at + 1,
                made.timestamp.as_json().as_raw(),
                made.record_type,
                made.payload.as_str()
            );
            SpineRecord::parse(line.as_bytes()).unwrap()
        };
        made.into_iter().enumerate().map(record).collect()
    }

    #[test]
    fn unfold_restores_the_lines_of_a_session_file() {
        let lines = [
            r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1","cwd":"/w","git":{"commit_hash":"c0"}}}"#,
            r#"{"timestamp":"2026-05-01T10:00:01.000Z","type":"turn_context","payload":{"turn_id":"u1","model":"m"}}"#,
            r#"{"timestamp":"2026-05-01T10:00:02.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"u1"}}"#,
            r#"{"timestamp":"2026-05-01T10:00:03.000Z","type":"response_item","payload":{"type":"message","text":"a"}}"#,
            r#"{"timestamp":"2026-05-01T10:00:04.000Z","type":"hologram","payload":{"a":1e400,"a":2}}"#,
        ];
        let mut unfolding = SpineUnfolder::new();
        let back: Vec<_> = records(&lines).iter().filter_map(|record| unfolding.line(record)).collect();
        assert_eq!(back, lines);
        assert_eq!(unfolding.source(), Some(SpineSource::Rollout));
    }

    #[test]
    fn unfold_restores_direction_and_time_of_a_message() {
        let line = r#"{"schema_version":"codex_trace_spine_v1","thread_id":"t1","seq":1,"timestamp":"2026-05-01T10:00:00.050Z","type":"submission","payload":{"id":"1","op":{"method":"initialize","id":1},"rpc":{"dir":"c2s","kind":"request","ticket":1}}}"#;
        let record = SpineRecord::parse(line.as_bytes()).unwrap();
        let back = SpineUnfolder::new().line(&record);
        let want = r#"{"dir":"c2s","t":1777629600.050,"msg":{"method":"initialize","id":1}}"#;
        assert_eq!(back.as_deref(), Some(want));
    }
}
