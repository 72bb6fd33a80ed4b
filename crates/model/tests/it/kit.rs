//! Shared by these tests: one run, one time, and the way from a sent line to the written line.

use serde_json::Value;
use serde_json::value::RawValue;
use steno_model::json::{Extra, Fields, JsonString, RawJson};
use steno_model::{Draft, Error, EventType, RunId, Seq, Timestamp};

/// The run that all events here belong to.
pub const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";
/// A run that calls it, or is called by it.
pub const OTHER_RUN: &str = "0b1f9a52-6c3e-4f0d-9a77-2f1f6f0c9d11";
/// The time at which everything happens.
pub const TIME: &str = "2026-06-08T08:14:42.123Z";

pub fn run() -> RunId {
    RunId::parse(RUN).unwrap()
}

pub fn other_run() -> RunId {
    RunId::parse(OTHER_RUN).unwrap()
}

pub fn time() -> Timestamp {
    Timestamp::parse(TIME).unwrap()
}

pub fn json(text: &str) -> RawJson {
    RawJson::parse(text).unwrap()
}

/// Makes a string from its token, so that its escapes are the test's own.
pub fn token(token: &str) -> JsonString {
    JsonString::from_raw(serde_json::from_str::<&RawValue>(token).unwrap()).unwrap()
}

/// Makes extra fields from an object, so that its keys are spelled as the test spells them.
pub fn extra(object: &str) -> Extra {
    Fields::parse(object).unwrap().into_extra()
}

/// Returns the line that the journal writes for a sent line, as event 1.
pub fn written(line: &[u8]) -> Result<String, Error> {
    let mut out = Vec::new();
    Draft::parse(line, run())?.encode(run(), time).write_line(Seq::FIRST, &mut out);
    let line = String::from_utf8(out).unwrap();
    let line = line.strip_suffix('\n').expect("a written line ends with a newline");
    assert!(!line.contains(['\n', '\r']), "one line is one line: {line}");
    Ok(line.to_owned())
}

/// Returns a line to send: an event with only its type, its payload, and the child if it calls one.
pub fn sent(event_type: EventType, payload: &str) -> String {
    let calls = matches!(event_type, EventType::CallWorkflowStarted | EventType::CallWorkflowCompleted);
    let child = if calls { format!(r#","child_run_id":"{OTHER_RUN}""#) } else { String::new() };
    format!(r#"{{"type":"{event_type}"{child},"payload":{payload}}}"#)
}

/// Returns the line that is written for [`sent`].
pub fn line(event_type: &str, payload: &str) -> String {
    format!(
        r#"{{"seq":1,"run_id":"{RUN}","type":"{event_type}","path":"","iteration":0,"timestamp":"{TIME}","payload":{payload}}}"#
    )
}

/// Reads JSON as other programs do, to compare meaning and not spelling.
pub fn meaning(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}
