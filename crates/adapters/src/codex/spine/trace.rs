//! Makes spines of a rollout trace of Codex, one for each thread. `docs/adapters/codex-spine.md` has the mapping.
//!
//! The content of a file that a record refers to is put into the record, unchanged. A request repeats the whole history of
//! its thread, so only the items that the previous request did not have are written.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::value::RawValue;
use steno_model::json::{Fields, JsonString, ObjectWriter, RawJson};
use steno_model::{Position, SpineSource, SpineType, ThreadId, Timestamp};

use super::fields::PayloadFields;
use super::payload::{self, Boundary, raw};
use super::turns::Turn;
use super::wire::{Checkpoint, FileReference, TraceLine, TraceManifest, TraceRecord};
use super::{History, SpineMade};
use crate::codex::wire::Payload;
use crate::wire::{Raw, RawField as _, object, parse};

/// Reads the file at a path of the trace; `None` if that fails.
pub type Payloads<'a> = &'a mut dyn FnMut(&str) -> Option<String>;

/// Folds the records of a trace, beginning with the first.
#[derive(Debug)]
pub struct TraceFold {
    root: ThreadId,
    threads_of_turns: HashMap<String, ThreadId>,
    /// The items of the last request of each thread.
    requests: HashMap<ThreadId, Vec<RawJson>>,
    /// The time of the last record; before the first record, the start of the trace.
    time: Timestamp,
    made: Vec<(ThreadId, SpineMade)>,
    at: (u64, u64),
}

/// A record, with the content of the files that it refers to.
struct Record<'a> {
    kind: Cow<'a, str>,
    fields: TraceRecord<'a>,
    /// The name of each field that refers to a file, and the content of that file.
    referred: Vec<(String, Option<String>)>,
    text: &'a str,
}

impl TraceFold {
    /// Takes the manifest of a trace; `None` if it names no thread.
    #[must_use]
    pub fn new(manifest: &str) -> Option<Self> {
        let manifest: TraceManifest<'_> = parse(manifest).ok()?;
        let root = ThreadId::parse(&manifest.root_thread_id.text()?).ok()?;
        let time = Timestamp::from_unix_ms(manifest.started_at_ms.number().unwrap_or(0))?;
        let (threads_of_turns, requests) = (HashMap::new(), HashMap::new());
        Some(Self { root, threads_of_turns, requests, time, made: Vec::new(), at: (0, 0) })
    }

    /// Returns the thread that the trace began with.
    #[must_use]
    pub fn root(&self) -> &ThreadId {
        &self.root
    }

    /// Takes a line without its newline. Returns the records made from it, each with its thread.
    pub fn line(&mut self, offset: u64, line: &[u8], payloads: Payloads<'_>) -> Vec<(ThreadId, SpineMade)> {
        self.at = (offset, line.len() as u64);
        let read = std::str::from_utf8(line).ok().and_then(|text| parse(text).ok());
        if let Some(envelope) = read {
            self.read(&envelope, payloads);
        } else {
            let payload = event(&Turn::default(), &payload::unreadable(line), true);
            self.make(&self.root.clone(), SpineType::Event, payload);
        }
        std::mem::take(&mut self.made)
    }

    fn read(&mut self, envelope: &TraceLine<'_>, payloads: Payloads<'_>) {
        if let Some(time) = envelope.time_ms.number().and_then(Timestamp::from_unix_ms) {
            self.time = time;
        }
        let record = Record::read(envelope.payload.map_or("null", RawValue::get), payloads);
        if record.kind == "codex_turn_started"
            && let (Some(turn), Some(thread)) = (record.fields.turn_id.text(), record.fields.thread_id.text())
            && let Ok(thread) = ThreadId::parse(&thread)
        {
            self.threads_of_turns.insert(turn.into_owned(), thread);
        }
        let protocol =
            record.referred_as("event_payload").filter(|_| record.kind == "protocol_event_observed");
        let inside: Payload<'_> = protocol.and_then(|event| parse(event).ok()).unwrap_or_default();
        let turn = envelope.turn_id.text().or_else(|| inside.turn_id.text());
        let turn = Turn { id: turn.unwrap_or_default().into_owned(), is_inferred: false };
        let named = [envelope.thread_id, record.fields.thread_id, inside.thread_id];
        let named = named.into_iter().find_map(|id| ThreadId::parse(&id.text()?).ok());
        let thread = named.or_else(|| self.threads_of_turns.get(&turn.id).cloned());
        let is_inferred = thread.is_none();
        let thread = thread.unwrap_or_else(|| self.root.clone());
        if record.kind == "thread_started" {
            let payload = session_meta(&thread, &record, &self.time);
            return self.make(&thread, SpineType::SessionMeta, payload);
        }
        let msg = match protocol {
            Some(event) => raw(event),
            None => self.with_referred(&thread, &record),
        };
        self.make(&thread, SpineType::Event, event(&turn, &msg, is_inferred));
        if record.kind == "compaction_installed" {
            self.boundary(&thread, &turn, &record);
        }
    }

    /// Returns the JSON of a record, with the content of files in place of the references.
    fn with_referred(&mut self, thread: &ThreadId, record: &Record<'_>) -> RawJson {
        let Ok(fields) = Fields::parse(record.text) else { return raw(record.text) };
        let mut out = Vec::new();
        for (key, value) in fields.iter() {
            let name = key.text();
            let referred = record.referred.iter().find(|(field, _)| *field == name);
            let value = match referred {
                Some((_, content)) => {
                    let kind = object::<FileReference<'_>>(value).and_then(|reference| reference.kind);
                    let is_request = kind.is_some_and(|kind| kind.name.is("inference_request"));
                    let content = content.as_deref().map(|content| {
                        if is_request { self.shortened(thread, content) } else { raw(content) }
                    });
                    RawJson::object(|object| {
                        object.json("ref", &RawJson::from_raw(value));
                        object.optional("payload", content.as_ref(), ObjectWriter::json);
                    })
                }
                None => RawJson::from_raw(value),
            };
            out.push((JsonString::from_text(&name), value));
        }
        payload::object_of(out)
    }

    /// Leaves out the items that the previous request had. `input_from` is their number.
    fn shortened(&mut self, thread: &ThreadId, request: &str) -> RawJson {
        let fields: Payload<'_> = parse(request).unwrap_or_default();
        let items: Vec<RawJson> = items(fields.input).into_iter().map(RawJson::from_raw).collect();
        let before = self.requests.entry(thread.clone()).or_default();
        let same = items.iter().zip(before.iter()).take_while(|(one, other)| one == other).count();
        let new = RawJson::array(items[same..].iter().cloned());
        *before = items;
        let Ok(parsed) = Fields::parse(request) else { return raw(request) };
        let mut out = Vec::new();
        for (key, value) in parsed.iter() {
            if key.is("input") {
                out.push((JsonString::from_text("input_from"), RawJson::from(same as u64)));
                out.push((JsonString::from_text("input"), new.clone()));
            } else {
                out.push((JsonString::from_text(&key.text()), RawJson::from_raw(value)));
            }
        }
        payload::object_of(out)
    }

    fn boundary(&mut self, thread: &ThreadId, turn: &Turn, record: &Record<'_>) {
        let checkpoint = record.referred.iter().find_map(|(_, content)| content.as_deref());
        let checkpoint = checkpoint.and_then(|checkpoint| parse::<Checkpoint<'_>>(checkpoint).ok());
        let Some(Checkpoint { input_history, replacement_history, .. }) = checkpoint else { return };
        let is_list = |field: Raw<'_>| field.is_some_and(|list| list.get().starts_with('['));
        if !is_list(input_history) || !is_list(replacement_history) {
            // A boundary needs both histories.
            return;
        }
        let history = |field: Raw<'_>| {
            let mut history = History::default();
            history.replace(&items(field));
            history
        };
        let (before, after) = (history(input_history), history(replacement_history));
        let boundary = Boundary { turn, is_remote: true, summary: None, before: &before, after: &after };
        let payload = boundary.payload();
        self.make(thread, SpineType::CompactionBoundary, payload);
    }

    fn make(&mut self, thread: &ThreadId, record_type: SpineType, payload: RawJson) {
        let (offset, length) = self.at;
        let part = u32::try_from(self.made.len()).unwrap_or(u32::MAX);
        let position = Position { generation: 0, offset, part };
        let made = SpineMade { record_type, timestamp: self.time.clone(), payload, position, length };
        self.made.push((thread.clone(), made));
    }
}

impl<'a> Record<'a> {
    fn read(text: &'a str, payloads: Payloads<'_>) -> Self {
        let fields: TraceRecord<'a> = parse(text).unwrap_or_default();
        let all = Fields::parse(text).ok();
        let referred = all.iter().flat_map(Fields::iter).filter_map(|(name, value)| {
            let reference: FileReference<'_> = object(value)?;
            reference.id.text()?;
            let content = reference.path.text().and_then(|path| payloads(&path));
            let content = content.filter(|text| serde_json::from_str::<&RawValue>(text).is_ok());
            Some((name.text().into_owned(), content))
        });
        let referred = referred.collect();
        Self { kind: fields.kind.text().unwrap_or_default(), fields, referred, text }
    }

    fn referred_as(&self, name: &str) -> Option<&str> {
        self.referred.iter().find(|(field, _)| field == name).and_then(|(_, content)| content.as_deref())
    }
}

/// Returns the items of a JSON array; none if it is not an array.
fn items(field: Raw<'_>) -> Vec<&RawValue> {
    field.and_then(|list| serde_json::from_str(list.get()).ok()).unwrap_or_default()
}

/// Describes a thread, with the field names of a session file where there are such fields.
fn session_meta(thread: &ThreadId, record: &Record<'_>, time: &Timestamp) -> RawJson {
    let metadata = record.referred.iter().find_map(|(_, content)| content.as_deref()).unwrap_or("{}");
    let fields = PayloadFields::parse(metadata);
    let meta = RawJson::object(|object| {
        object.string("id", &JsonString::from_text(thread.as_str()));
        object.string("timestamp", time.as_json());
        for (name, named) in [
            ("cwd", "cwd"),
            ("source", "session_source"),
            ("model_provider", "provider_name"),
            ("agent_path", "agent_path"),
            ("agent_nickname", "nickname"),
            ("agent_role", "agent_role"),
        ] {
            object.optional(name, fields.json(named).as_ref(), ObjectWriter::json);
        }
        object.json("session_metadata", &raw(metadata));
    });
    payload::session_meta(meta.as_str(), SpineSource::RolloutTrace.into())
}

fn event(turn: &Turn, msg: &RawJson, is_thread_inferred: bool) -> RawJson {
    let event = payload::event(turn, msg, None);
    if !is_thread_inferred {
        return event;
    }
    RawJson::object(|object| {
        object.string("id", &JsonString::from_text(&turn.id));
        object.json("msg", msg);
        object.json("thread_inferred", &RawJson::from(true));
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = r#"{"schema_version":2,"root_thread_id":"t1","started_at_unix_ms":1777629600000}"#;

    fn line(turn: &str, payload: &str) -> String {
        let (thread, turn) = match turn {
            "" => ("null".to_owned(), "null".to_owned()),
            turn => ("\"t1\"".to_owned(), format!("\"{turn}\"")),
        };
        format!(
            r#"{{"schema_version":2,"seq":1,"wall_time_unix_ms":1777629600500,"thread_id":{thread},"codex_turn_id":{turn},"payload":{payload}}}"#
        )
    }

    fn reference(path: &str, kind: &str) -> String {
        format!(r#"{{"raw_payload_id":"raw_payload:1","kind":{{"type":"{kind}"}},"path":"{path}"}}"#)
    }

    /// Folds lines over some files. Returns thread, type and payload of each record.
    fn fold(lines: &[String], files: &[(&str, &str)]) -> Vec<(String, SpineType, String)> {
        let mut fold = TraceFold::new(MANIFEST).unwrap();
        let mut payloads =
            |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        let made = lines.iter().flat_map(|line| fold.line(0, line.as_bytes(), &mut payloads));
        let shown = |(thread, made): (ThreadId, SpineMade)| {
            (thread.to_string(), made.record_type, made.payload.as_str().to_owned())
        };
        made.map(shown).collect()
    }

    #[test]
    fn trace_lines_go_to_their_thread_with_payloads_inlined() {
        let lines = [
            line(
                "",
                &format!(
                    r#"{{"type":"thread_started","thread_id":"t2","metadata_payload":{}}}"#,
                    reference("1", "session_metadata")
                ),
            ),
            line("", r#"{"type":"codex_turn_started","codex_turn_id":"u2","thread_id":"t2"}"#),
            line(
                "",
                &format!(
                    r#"{{"type":"protocol_event_observed","event_type":"warning","event_payload":{}}}"#,
                    reference("2", "protocol_event")
                ),
            ),
            line(
                "",
                &format!(
                    r#"{{"type":"protocol_event_observed","event_type":"turn_started","event_payload":{}}}"#,
                    reference("3", "protocol_event")
                ),
            ),
            line(
                "u1",
                &format!(
                    r#"{{"type":"tool_call_ended","status":"completed","result_payload":{},"lost_payload":{}}}"#,
                    reference("4", "tool_result"),
                    reference("gone", "tool_result")
                ),
            ),
            "no JSON".to_owned(),
        ];
        let files = [
            ("1", r#"{"cwd":"/w","provider_name":"P"}"#),
            ("2", r#"{"type":"warning","n":1e400}"#),
            ("3", r#"{"type":"turn_started","turn_id":"u2"}"#),
            ("4", r#"{"a":1,"a":2}"#),
        ];
        let records = fold(&lines, &files);
        let threads: Vec<&str> = records.iter().map(|(thread, ..)| thread.as_str()).collect();
        assert_eq!(threads, ["t2", "t2", "t1", "t2", "t1", "t1"]);
        assert_eq!(records[0].1, SpineType::SessionMeta);
        assert!(records[0].2.starts_with(r#"{"id":"t2","timestamp":"2026-05-01T10:00:00.500Z","cwd":"/w","model_provider":"P","session_metadata":{"cwd":"/w","provider_name":"P"},"spine_source":{"kind":"rollout_trace","#), "{}", records[0].2);
        assert_eq!(records[2].2, r#"{"id":"","msg":{"type":"warning","n":1e400},"thread_inferred":true}"#);
        assert_eq!(records[3].2, r#"{"id":"u2","msg":{"type":"turn_started","turn_id":"u2"}}"#);
        assert!(records[4].2.contains(r#""path":"4"},"payload":{"a":1,"a":2}}"#), "{}", records[4].2);
        assert!(records[4].2.ends_with(r#""path":"gone"}}}}"#), "{}", records[4].2);
        assert_eq!(
            records[5].2,
            r#"{"id":"","msg":{"type":"unreadable","text":"no JSON"},"thread_inferred":true}"#
        );
    }

    #[test]
    fn request_has_only_its_new_input() {
        let started = |path| {
            line(
                "u1",
                &format!(
                    r#"{{"type":"inference_started","request_payload":{}}}"#,
                    reference(path, "inference_request")
                ),
            )
        };
        let files = [
            ("1", r#"{"model":"m","input":[1,2]}"#),
            ("2", r#"{"model":"m","input":[1,2,3]}"#),
            ("3", r#"{"model":"m","input":[9]}"#),
        ];
        let records = fold(&[started("1"), started("2"), started("3")], &files);
        let inputs: Vec<&str> =
            records.iter().map(|(_, _, payload)| payload.split("\"model\":\"m\",").nth(1).unwrap()).collect();
        assert_eq!(
            inputs,
            [
                r#""input_from":0,"input":[1,2]}}}}"#,
                r#""input_from":2,"input":[3]}}}}"#,
                r#""input_from":0,"input":[9]}}}}"#
            ]
        );
    }

    #[test]
    fn remote_compaction_has_both_histories() {
        let installed = line(
            "u1",
            &format!(
                r#"{{"type":"compaction_installed","checkpoint_payload":{}}}"#,
                reference("1", "compaction_checkpoint")
            ),
        );
        let whole = [("1", r#"{"input_history":[1],"replacement_history":[2]}"#)];
        let records = fold(std::slice::from_ref(&installed), &whole);
        assert_eq!(
            records[1].2,
            r#"{"turn_id":"u1","kind":"remote","pre_compaction_history":[1],"post_compaction_history":[2]}"#
        );
        assert_eq!(
            fold(&[installed], &[("1", r#"{"input_history":[1]}"#)]).len(),
            1,
            "half of it is no boundary"
        );
    }
}
