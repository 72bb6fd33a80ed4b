//! How turns of Claude end: by a record, by an interrupt, or by the next prompt.

use serde_json::Value;
use steno_adapters::{Source, claude};
use steno_testkit::{needs, shared_dir};

use crate::adapter_output::{Made, made_of_lines};
use crate::reading::{claude_file, read};

const FIRST: &str = r#"{"type":"user","uuid":"p1","sessionId":"0f000000-0000-4000-8000-000000000001","timestamp":"2026-01-02T03:00:00Z","message":{"content":"Go."}}"#;
const SECOND: &str =
    r#"{"type":"user","uuid":"p2","timestamp":"2026-01-02T06:00:00Z","message":{"content":"Go on."}}"#;
const SAYS: &str = r#"{"type":"assistant","uuid":"a1","timestamp":"2026-01-02T03:00:01Z","message":{"id":"m1","model":"claude","stop_reason":"end_turn","content":[{"type":"text","text":"Done."}]}}"#;
const OVER: &str = r#"{"type":"system","subtype":"turn_duration","uuid":"d1","timestamp":"2026-01-02T03:00:02Z","durationMs":2000}"#;
const OVER_AGAIN: &str = r#"{"type":"system","subtype":"turn_duration","uuid":"d2","timestamp":"2026-01-02T03:00:09Z","durationMs":9000}"#;
const HOOK: &str =
    r#"{"type":"system","subtype":"stop_hook_summary","uuid":"h1","timestamp":"2026-01-02T03:00:03Z"}"#;
const TITLE: &str = r#"{"type":"ai-title","aiTitle":"A title"}"#;
const INTERRUPT: &str = r#"{"type":"user","uuid":"i1","timestamp":"2026-01-02T03:00:04Z","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
const FAILS: &str = r#"{"type":"assistant","uuid":"e1","timestamp":"2026-01-02T03:00:01Z","isApiErrorMessage":true,"error":"authentication_failed","message":{"id":"x","model":"<synthetic>","stop_reason":"stop_sequence","content":[{"type":"text","text":"Login expired"}]}}"#;

fn disk(lines: &[&str]) -> Made {
    made_of_lines(claude::disk(Source::named("s1")), lines)
}

/// Returns the ends of turns: turn, cause, error, and time of the event.
fn ends(events: &[Value]) -> Vec<String> {
    let is_end = |event: &&Value| event["type"] == "step.completed" && event["payload"]["kind"] == "turn";
    let shown = |event: &Value| {
        let payload = &event["payload"];
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let time = text(&event["timestamp"]);
        format!(
            "{} {} {} {}",
            text(&payload["name"]),
            text(&payload["ended_by"]),
            text(&payload["error"]),
            &time[11..19]
        )
    };
    events.iter().filter(is_end).map(shown).collect()
}

#[test]
fn turn_end_names_its_cause() {
    assert_eq!(ends(&disk(&[FIRST, SAYS]).events), [""; 0]);
    assert_eq!(ends(&disk(&[FIRST, SAYS, SECOND]).events), ["turn-0001 prompt - 06:00:00"]);
    assert_eq!(ends(&disk(&[FIRST, SAYS, OVER, SECOND]).events), ["turn-0001 record - 03:00:02"]);
    assert_eq!(ends(&disk(&[FIRST, INTERRUPT, SECOND]).events), ["turn-0001 interrupt interrupted 03:00:04"]);
    assert_eq!(ends(&disk(&[FIRST, INTERRUPT, OVER]).events), ["turn-0001 interrupt interrupted 03:00:04"]);
    // The second end record finds no open turn, like one at the start of a resumed file.
    assert_eq!(ends(&disk(&[FIRST, OVER, OVER_AGAIN]).events), ["turn-0001 record - 03:00:02"]);
    let result = r#"{"type":"result","subtype":"success","result":"Done."}"#;
    let init = r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#;
    let stream = made_of_lines(claude::stream(Source::named("s1")), &[init, SAYS, result]);
    assert_eq!(stream.steps("step.completed", "turn")[0]["ended_by"], "record");
}

#[test]
fn records_after_the_recorded_end_stay_in_the_turn() {
    let late = r#"{"type":"user","uuid":"r1","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Late."}]}}"#;
    let made = disk(&[FIRST, SAYS, OVER, HOOK, TITLE, late, SECOND]);
    assert_eq!(made.steps("step.started", "turn").len(), 2);
    assert_eq!(ends(&made.events), ["turn-0001 record - 03:00:02"]);
    let place = |name: &str| made.events.iter().find(|event| event["payload"]["name"] == name).unwrap();
    assert_eq!(
        (&place("stop_hook_summary")["path"], &place("title")["path"]),
        (&"turn-0001".into(), &"turn-0001".into())
    );
    let result = made.events.iter().find(|event| event["type"] == "tool.result").unwrap();
    assert_eq!(result["path"], "turn-0001");
    // The record itself is kept too: it has the duration of the turn.
    assert_eq!(place("turn_duration")["payload"]["result"]["durationMs"], 2000);
}

#[test]
fn turn_that_continues_after_its_recorded_end_ends_again() {
    let made = disk(&[FIRST, FAILS, OVER, SAYS, OVER_AGAIN, SECOND]);
    assert_eq!(made.steps("step.started", "turn").len(), 2);
    assert_eq!(ends(&made.events), ["turn-0001 record - 03:00:02", "turn-0001 record - 03:00:09"]);
    // Without another end record the next prompt ends the turn.
    let made = disk(&[FIRST, FAILS, OVER, SAYS, SECOND]);
    assert_eq!(ends(&made.events), ["turn-0001 record - 03:00:02", "turn-0001 prompt - 06:00:00"]);
    // A synthetic message of Claude Code does not continue the turn.
    assert_eq!(ends(&disk(&[FIRST, SAYS, OVER, FAILS, SECOND]).events), ["turn-0001 record - 03:00:02"]);
}

#[test]
fn recorded_ends_of_real_sessions_end_their_turns() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let recordings = shared.join("recordings/claude");
    let ends_of = |name: &str| {
        let (adapter, pieces) = claude_file(&recordings.join(name));
        let by = |end: &String| end.split(' ').take(2).collect::<Vec<_>>().join(" ");
        ends(&read(adapter, &pieces).events).iter().map(by).collect::<Vec<_>>()
    };
    assert_eq!(ends_of("real_2.1.12_mcp_16_summaries.jsonl"), ["turn-0001 record", "turn-0002 prompt"]);
    assert_eq!(ends_of("real_2.1.143_bridge_session.jsonl"), ["turn-0001 record"]);
    assert_eq!(
        ends_of("real_2.1.210_api_error_empty_thinking.jsonl"),
        ["turn-0001 record", "turn-0001 record"]
    );
}
