//! Records of Claude with several facts, or between records of another agent: every fact is kept in the right run.

use std::collections::BTreeSet;

use serde_json::Value;
use steno_adapters::{Source, claude};
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, made_of_lines, outline_of_runs};
use crate::reading::{claude_file, is_transcript, read};

const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#;
const CALL: &str = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Task","input":{}}]}}"#;
const STARTED: &str = r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":"t1","task_type":"local_agent"}"#;
const ENDED: &str = r#"{"type":"system","subtype":"task_notification","task_id":"a1","tool_use_id":"t1","status":"completed","summary":"Two lines.","output_file":"/tmp/a1.output","usage":{"total_tokens":7}}"#;

fn stream(frames: &[&str]) -> Made {
    let all: Vec<&str> = [INIT, CALL, STARTED].iter().chain(frames).copied().collect();
    made_of_lines(claude::stream(Source::named("s1")), &all)
}

/// Compares the events of frames that follow the start of a subagent.
#[track_caller]
fn check(frames: &[&str], want: &[&str]) {
    assert_eq!(outline_of_runs(&stream(frames))[6..], *want);
}

#[test]
fn every_record_of_real_files_gives_an_event_or_is_counted() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let mut records = 0;
    for part in ["versions/claude", "recordings/claude", "captures/claude"] {
        for name in places::files_below(&shared.join(part)).into_iter().filter(|name| is_transcript(name)) {
            let (adapter, pieces) = claude_file(&shared.join(part).join(&name));
            let reading = read(adapter, &pieces);
            let offset = |event: &Value| event["evidence"]["offset"].as_u64();
            let told: BTreeSet<Option<u64>> = reading.events.iter().map(offset).collect();
            let counts = &reading.completeness;
            records += counts.records;
            assert!(told.len() as u64 + counts.bookkeeping >= counts.records, "{part}/{name}: {counts:?}");
        }
    }
    assert!(records > 1_000, "{records}");
}

#[test]
fn subagent_end_has_its_summary() {
    check(
        &[ENDED],
        &[
            r#"0 turn-0001.subagent: child subagent ends {"output_file":"/tmp/a1.output","status":"completed","summary":"Two lines.","usage":{"total_tokens":7}}"#,
        ],
    );
}

#[test]
fn notice_about_an_ended_subagent_is_a_fact() {
    let failed = r#"{"type":"system","subtype":"task_updated","task_id":"a1","patch":{"status":"failed"}}"#;
    let made = stream(&[failed, ENDED, STARTED]);
    let ends = made.payloads("step.call_workflow.completed");
    assert_eq!(ends.len(), 1);
    let facts = made.steps("step.completed", "system");
    assert_eq!(facts.last().unwrap()["result"]["summary"], "Two lines.");
    assert_eq!(made.completeness.bookkeeping, 1, "the second beginning");
}

#[test]
fn notice_to_a_subagent_is_recorded_in_its_run() {
    let stopped =
        r#"{"type":"user","parent_tool_use_id":"t1","message":{"content":"[Request interrupted by user]"}}"#;
    let reminded = r#"{"type":"user","parent_tool_use_id":"t1","message":{"content":"<system-reminder>x</system-reminder>"}}"#;
    let failed = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#;
    check(
        &[stopped, reminded, failed],
        &[
            "1 : run",
            "1 turn-0001: turn turn-0001 begins",
            r#"1 turn-0001: system interrupt "[Request interrupted by user]""#,
            r#"1 turn-0001: system meta "<system-reminder>x</system-reminder>""#,
            "0 turn-0001: turn turn-0001 error_max_turns",
        ],
    );
}

#[test]
fn prompt_of_a_subagent_is_not_a_compaction_summary() {
    let boundary = r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"auto"}}"#;
    let asked =
        r#"{"type":"user","isSynthetic":true,"parent_tool_use_id":"t1","message":{"content":"Count."}}"#;
    let summary = r#"{"type":"user","isSynthetic":true,"message":{"content":"So far."}}"#;
    check(
        &[boundary, asked, summary],
        &[
            "0 turn-0001.compaction: compaction compaction begins",
            "1 : run",
            "1 turn-0001: turn turn-0001 begins",
            "1 turn-0001: user text Count.",
            r#"0 turn-0001.compaction: compaction compaction "So far.""#,
        ],
    );
}

#[test]
fn message_names_the_message_it_supersedes() {
    let again =
        r#"{"type":"assistant","supersedes":["u1"],"aborted":true,"message":{"id":"m2","content":"Hm."}}"#;
    let made = stream(&[again]);
    let said = made.payloads("message.assistant");
    let said = said.last().unwrap();
    assert_eq!((&said["supersedes"][0], &said["aborted"]), (&Value::from("u1"), &Value::from(true)));
}

#[test]
fn interrupted_turn_keeps_its_errors() {
    let interrupt = r#">{"type":"control_request","request_id":"h1","request":{"subtype":"interrupt"}}"#;
    let result =
        r#"{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["disk full"]}"#;
    let made = stream(&[interrupt, result]);
    let end = made.steps("step.completed", "turn")[0];
    assert_eq!((&end["error"], &end["errors"][0]), (&Value::from("interrupted"), &Value::from("disk full")));
}
