//! Calls that the user or a rule refused have the outcome `denied`, on every surface that carries it.

use std::collections::BTreeSet;

use serde_json::Value;
use steno_adapters::{Source, claude, codex};
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, made_of_lines};
use crate::reading::{claude_file, output, read, source_of};

const META: &str = r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;

fn item(payload: &str) -> String {
    format!(r#"{{"type":"response_item","payload":{payload}}}"#)
}

fn event(payload: &str) -> String {
    format!(r#"{{"type":"event_msg","payload":{payload}}}"#)
}

fn calls(name: &str) -> String {
    item(&format!(r#"{{"type":"function_call","call_id":"c1","name":"{name}","arguments":"{{}}"}}"#))
}

/// Returns the outcome of the only result, with amendments.
fn outcome(made: &Made) -> String {
    let results = made.payloads("tool.result");
    assert_eq!(results.len(), 1);
    let amended = made.steps("step.completed", "amend").last().map(|step| &step["result"]["outcome"]);
    amended.unwrap_or(&results[0]["outcome"]).as_str().unwrap().to_owned()
}

#[track_caller]
fn check_output(name: &str, text: &str, want: &str) {
    let told = Value::from(text);
    let told = item(&format!(r#"{{"type":"function_call_output","call_id":"c1","output":{told}}}"#));
    let made = made_of_lines(codex::rollout(Source::named("s1")), &[META, &calls(name), &told]);
    assert_eq!(outcome(&made), want, "{name}: {text}");
    if want == "denied" {
        assert_eq!(made.payloads("tool.result")[0]["error"], text);
    }
}

#[test]
fn codex_output_of_a_refused_call_is_a_denial() {
    let rejected = r#"exec_command failed: CreateProcess { message: "Rejected(\"rejected by user\")" }"#;
    check_output("exec_command", rejected, "denied");
    check_output("shell", "exec command rejected by user", "denied");
    check_output("apply_patch", "patch rejected by user", "denied");
    check_output("mcp__tiny__echo", "user rejected MCP tool call", "denied");
    // A tool that prints such text has run.
    check_output("exec_command", &format!("Chunk ID: 1\nOutput:\n{rejected}"), "unknown");
    check_output("some_tool", rejected, "unknown");
    check_output(
        "exec_command",
        r#"exec_command failed: CreateProcess { message: "No such file" }"#,
        "unknown",
    );
}

#[test]
fn codex_calls_that_could_not_run_have_failed() {
    let bad_patch = "apply_patch verification failed: Failed to find src/gone.py";
    check_output("apply_patch", bad_patch, "failed");
    check_output("shell", bad_patch, "failed");
    check_output("some_tool", bad_patch, "unknown");
    check_output("no_such_tool", "unsupported call: no_such_tool", "failed");
    check_output("no_such_tool", "unsupported custom tool call: no_such_tool", "failed");
    check_output("some_tool", "unsupported call: no_such_tool", "unknown");
}

#[track_caller]
fn check_report(report: &str, want: &str) {
    let made = made_of_lines(codex::rollout(Source::named("s1")), &[META, &event(report)]);
    assert_eq!(outcome(&made), want, "{report}");
}

#[test]
fn codex_report_of_a_refused_call_is_a_denial() {
    let command = |status: &str, code: i32, nanos: u32| {
        format!(
            r#"{{"type":"exec_command_end","call_id":"c1","aggregated_output":"exec command rejected by user","exit_code":{code},"duration":{{"secs":0,"nanos":{nanos}}}{status}}}"#
        )
    };
    check_report(&command("", -1, 0), "denied");
    check_report(&command(r#","status":"declined""#, -1, 5), "denied");
    // A command that prints such text has run: it took time, or has another exit code.
    check_report(&command("", -1, 5), "failed");
    check_report(&command("", 1, 0), "failed");
    check_report(&command(r#","status":"failed""#, -1, 0), "failed");
    let patch = r#"{"type":"patch_apply_end","call_id":"c1","stdout":"","stderr":"patch rejected by user","success":false}"#;
    check_report(patch, "denied");
    check_report(&patch.replace("rejected by user", "does not apply"), "failed");
    let mcp = r#"{"type":"mcp_tool_call_end","call_id":"c1","invocation":{"server":"s","tool":"t"},"result":{"Err":"user rejected MCP tool call"}}"#;
    check_report(mcp, "denied");
    check_report(&mcp.replace("user rejected MCP tool call", "timed out"), "failed");
    let item = r#"{"type":"item_completed","item":{"type":"McpToolCall","id":"c1","server":"s","tool":"t","status":"failed","error":{"message":"user rejected MCP tool call"}}}"#;
    check_report(item, "denied");
}

/// Returns the ids of denied calls, with amendments.
fn denied(events: &[Value]) -> BTreeSet<String> {
    let id_of = |event: &Value| {
        let payload = &event["payload"];
        let is_denied = payload["outcome"] == "denied" || payload["result"]["outcome"] == "denied";
        let id = payload["call_id"].as_str().or(payload["tool_call_id"].as_str());
        id.filter(|_| is_denied).map(str::to_owned)
    };
    events.iter().filter_map(id_of).collect()
}

#[test]
fn rollout_and_connection_have_the_same_denials() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let capture = shared.join("captures/codex/0.166.0/app_server");
    let file =
        "home/sessions/2026/11/15/rollout-2026-11-15T07-23-21-01a1de16-d6d8-71c3-8327-0cacf4bdcc9a.jsonl";
    let path = capture.join(file);
    let rollout = read(codex::rollout(source_of(&path)), &[output(&places::read_bytes(&path))]);
    let wire = places::read_bytes(capture.join("duplex.jsonl"));
    let wire = read(codex::app_server(Source::named("s1")).of_conversation(), &[output(&wire)]);
    let on_disk = denied(&rollout.events);
    assert_eq!(on_disk.len(), 3);
    assert_eq!(denied(&wire.events), on_disk);
}

const INIT: &str = r#"{"type":"system","subtype":"init","session_id":"s","model":"m"}"#;
const CALL: &str = r#"{"type":"assistant","sessionId":"s","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Write","input":{}}]}}"#;
const FAILED: &str = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"No.","is_error":true}]}}"#;

#[test]
fn permission_denials_of_a_result_amend_their_calls() {
    let ends =
        |denials: &str| format!(r#"{{"type":"result","subtype":"success","permission_denials":{denials}}}"#);
    let stream = |denials: &str| {
        made_of_lines(claude::stream(Source::named("s1")), &[INIT, CALL, FAILED, &ends(denials)])
    };
    let made = stream(r#"[{"tool_name":"Write","tool_use_id":"t1","tool_input":{}}]"#);
    assert_eq!(outcome(&made), "denied");
    let amend = made.events.iter().find(|event| event["payload"]["kind"] == "amend").unwrap();
    assert_eq!(
        (amend["path"].as_str(), amend["payload"]["tool_call_id"].as_str()),
        (Some("turn-0001"), Some("t1"))
    );
    for denials in ["[]", r#"[{"tool_use_id":"t2"}]"#, r#"[{}, 7, {"tool_use_id":7}]"#, r#""t1""#] {
        assert_eq!(outcome(&stream(denials)), "failed", "{denials}");
    }
}

#[test]
fn failed_result_of_a_call_refused_by_the_host_is_a_denial() {
    let asks = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Write","input":{},"tool_use_id":"t1"}}"#;
    let answers = |behavior: &str| {
        format!(
            r#">{{"type":"control_response","response":{{"subtype":"success","request_id":"r1","response":{{"behavior":"{behavior}","message":"No."}}}}}}"#
        )
    };
    let said = |behavior: &str| {
        let lines =
            [r#">{"type":"user","message":{"content":"Go."}}"#, INIT, CALL, asks, &answers(behavior), FAILED];
        outcome(&made_of_lines(claude::stream(Source::named("s1")), &lines))
    };
    assert_eq!((said("deny").as_str(), said("allow").as_str()), ("denied", "failed"));
}

#[test]
fn claude_report_of_a_refused_call_is_a_denial() {
    let with = |field: &str| FAILED.replacen('{', &format!("{{{field},"), 1);
    let outcome =
        |field: &str| outcome(&made_of_lines(claude::disk(Source::named("s1")), &[CALL, &with(field)]));
    for report in [
        "User rejected tool use",
        "Error: The user doesn't want to proceed with this tool use. The tool use was rejected",
        "Error: Permission for this tool use was denied. The tool use was rejected",
        "Error: Permission to use Bash with command rm x has been denied.",
        "Error: Claude requested permissions to write to /x, but you haven't granted it yet.",
        "Error: This command requires approval",
    ] {
        assert_eq!(outcome(&format!(r#""toolUseResult":{}"#, Value::from(report))), "denied", "{report}");
    }
    for report in ["Error: Exit code 1\nError: This command requires approval", "Error: File does not exist."]
    {
        assert_eq!(outcome(&format!(r#""toolUseResult":{}"#, Value::from(report))), "failed", "{report}");
    }
    assert_eq!(outcome(r#""toolDenialKind":"permission-rule""#), "denied");
    assert_eq!(outcome(r#""toolDenialKind":"cancelled""#), "interrupted");
}

#[test]
fn claude_captures_have_the_expected_denials() {
    let shared = needs!(shared_dir(), "../shared is absent");
    for (file, want) in [
        ("captures/claude/2.1.325/denied/stream.ndjson", 6),
        (
            "captures/claude/2.1.325/denied/home/projects/-home-dev-scratch-claude/f5082833-1870-45df-9ed4-7f97f638c7cb.jsonl",
            6,
        ),
        ("versions/claude/stream-json_2.1.325_denied.ndjson", 2),
        ("recordings/claude/real_2.1.19_agent_progress.jsonl", 1),
    ] {
        let (adapter, pieces) = claude_file(&shared.join(file));
        assert_eq!(denied(&read(adapter, &pieces).events).len(), want, "{file}");
    }
}
