//! Calls of Codex in an unexpected order or with unexpected ids: each is still recorded.

use steno_adapters::{Source, codex};

use crate::adapter_output::{Made, made_of_lines, outline};
use crate::reading::{output, read};

const META: &str = r#"{"type":"session_meta","payload":{"id":"01a1de00-0000-7000-8000-000000000001"}}"#;
const BEGIN: &str = r#"{"type":"event_msg","payload":{"type":"task_started","turn_id":"t1"}}"#;
const END: &str = r#"{"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1"}}"#;

fn call(input: u32) -> String {
    format!(
        r#"{{"type":"response_item","payload":{{"type":"function_call","name":"f","arguments":"{{\"a\":{input}}}","call_id":"c1"}}}}"#
    )
}

fn told(output: &str) -> String {
    format!(
        r#"{{"type":"response_item","payload":{{"type":"function_call_output","call_id":"c1","output":"{output}"}}}}"#
    )
}

/// Compares the events after the first ones, and the unknown types.
#[track_caller]
fn check(made: &Made, skipped: usize, want: &[&str], unknown: &[&str]) {
    assert_eq!(outline(made)[skipped..], *want);
    let names: Vec<&str> = made.completeness.unknown.keys().map(String::as_str).collect();
    assert_eq!(names, unknown);
}

#[track_caller]
fn check_rollout(lines: &[&str], want: &[&str], unknown: &[&str]) {
    let all: Vec<&str> = [META, BEGIN].iter().chain(lines).copied().collect();
    let made = made_of_lines(codex::rollout(Source::named("s1")), &all);
    let skipped = outline(&made).iter().position(|line| line.ends_with("turn-0001 begins")).unwrap();
    check(&made, skipped + 1, want, unknown);
}

const CALLED: [&str; 2] = ["turn-0001: assistant tool_use f", r#"turn-0001: call c1 f {"a":1}"#];

#[test]
fn call_after_its_result_amends_the_placeholder() {
    check_rollout(
        &[&told("late"), &call(1), &call(1)],
        &[
            "turn-0001: call c1  null",
            r#"turn-0001: result c1 unknown "late""#,
            r#"turn-0001: amend c1 {"input":{"a":1},"name":"f"}"#,
        ],
        &[],
    );
}

#[test]
fn different_call_with_a_used_id_is_unknown_and_a_repeated_one_is_skipped() {
    let result = r#"turn-0001: result c1 unknown "x""#;
    check_rollout(&[&call(1), &call(1), &told("x"), &told("x")], &[CALLED[0], CALLED[1], result], &[]);
    check_rollout(
        &[&call(1), &told("x"), END, BEGIN, &call(2), &told("y")],
        &[
            CALLED[0],
            CALLED[1],
            result,
            "turn-0001: turn turn-0001 null",
            "turn-0002: turn turn-0002 begins",
            "turn-0002: unknown response_item.function_call null",
            "turn-0002: unknown response_item.function_call_output null",
        ],
        &["response_item.function_call", "response_item.function_call_output"],
    );
}

#[test]
fn report_after_the_result_amends_it() {
    let report = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","id":"c1","server":"s","tool":"f","status":"failed","error":{"message":"gone"},"durationMs":7}}}"#;
    check_rollout(
        &[&call(1), &told("x"), report],
        &[
            CALLED[0],
            CALLED[1],
            r#"turn-0001: result c1 unknown "x""#,
            r#"turn-0001: amend c1 {"duration_ms":7,"error":"gone","outcome":"failed"}"#,
        ],
        &[],
    );
}

/// An event that reports the end of a command.
fn ended(call: &str, code: u32, output: &str) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"exec_command_end","call_id":"{call}","exit_code":{code},"aggregated_output":"{output}"}}}}"#
    )
}

/// An item that reports the end of a call, without output.
fn item_of(call: &str) -> String {
    format!(
        r#"{{"type":"event_msg","payload":{{"type":"item_completed","item":{{"type":"McpToolCall","id":"{call}","server":"s","tool":"f","status":"completed"}}}}}}"#
    )
}

#[test]
fn report_is_the_result_and_the_output_for_the_model_is_skipped() {
    let result = r#"turn-0001: result c1 failed "boom""#;
    let report = ended("c1", 3, "boom");
    check_rollout(&[&call(1), &report], &[CALLED[0], CALLED[1], result], &[]);
    check_rollout(
        &[&call(1), &report, &told("Exit code: 3\\nOutput:\\nboom")],
        &[CALLED[0], CALLED[1], result],
        &[],
    );
}

#[test]
fn different_second_report_amends_the_first() {
    let result = r#"turn-0001: result c1 failed "boom""#;
    let (first, second) = (ended("c1", 3, "boom"), ended("c1", 0, "fine"));
    check_rollout(&[&call(1), &first, &first], &[CALLED[0], CALLED[1], result], &[]);
    check_rollout(
        &[&call(1), &first, &second, &second],
        &[
            CALLED[0],
            CALLED[1],
            result,
            r#"turn-0001: amend c1 {"exit_code":0,"outcome":"ok","output":"fine"}"#,
        ],
        &[],
    );
}

#[test]
fn report_without_output_is_written_at_its_own_offset() {
    let second = call(1).replace("c1", "b2");
    let called = [CALLED[0], CALLED[1], CALLED[0], r#"turn-0001: call b2 f {"a":1}"#];
    let results = ["turn-0001: result c1 ok null", "turn-0001: result b2 ok null"];
    let want: Vec<&str> = called.into_iter().chain(results).collect();
    // The order is that of the file, not of the ids.
    check_rollout(&[&call(1), &second, &item_of("c1"), &item_of("b2")], &want, &[]);
    let lines = [META, BEGIN, &call(1), &item_of("c1"), &call(1).replace("c1", "b2"), ""];
    let reading = read(codex::rollout(Source::named("s1")), &[output(lines.join("\n").as_bytes())]);
    let result = reading.of_type("tool.result").next().unwrap();
    let offset: usize = lines[..3].iter().map(|line| line.len() + 1).sum();
    assert_eq!(result["evidence"]["offset"], offset);
    assert_eq!(result["evidence"]["length"], lines[3].len());
}

#[test]
fn waiting_events_are_written_in_file_order_at_the_end() {
    let shown = r#"{"timestamp":"2026-11-15T07:00:01.000Z","type":"event_msg","payload":{"type":"agent_message","message":"Only here."}}"#;
    let lines = [META, BEGIN, &call(1), shown, &item_of("c1"), ""];
    let reading = read(codex::rollout(Source::named("s1")), &[output(lines.join("\n").as_bytes())]);
    let places: Vec<(&str, u64)> = reading.events[4..]
        .iter()
        .map(|event| (event["type"].as_str().unwrap(), event["evidence"]["offset"].as_u64().unwrap()))
        .collect();
    let offset = |number: usize| lines[..number].iter().map(|line| line.len() as u64 + 1).sum::<u64>();
    assert_eq!(places, [("message.assistant", offset(3)), ("tool.result", offset(4))]);
    assert_eq!(reading.events[4]["timestamp"], "2026-11-15T07:00:01.000Z");
    let begun = read(codex::rollout(Source::named("s1")), &[output([META, BEGIN, ""].join("\n").as_bytes())]);
    assert_eq!(begun.events[1]["payload"]["kind"], "turn");
    assert_eq!(begun.events[1]["evidence"]["offset"], offset(1));
}

#[test]
fn events_that_waited_too_long_come_last_with_rising_positions() {
    let shown = |text: &str| {
        format!(r#"{{"type":"event_msg","payload":{{"type":"agent_message","message":"{text}"}}}}"#)
    };
    let fact = r#"{"type":"event_msg","payload":{"type":"warning","message":"x"}}"#;
    let lines = [META, BEGIN, &call(1), &shown("One."), fact, &shown("Two."), &item_of("c1"), ""];
    let reading = read(codex::rollout(Source::named("s1")), &[output(lines.join("\n").as_bytes())]);
    let types: Vec<&str> = reading.events[5..].iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["message.assistant", "message.assistant", "tool.result"]);
    let position = |event: &serde_json::Value| {
        (event["evidence"]["offset"].as_u64().unwrap(), event["evidence"]["part"].as_u64().unwrap())
    };
    assert!(reading.events.iter().map(position).is_sorted_by(|one, next| one < next));
}

#[test]
fn output_after_a_report_without_output_amends_it() {
    let report = r#"{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"McpToolCall","id":"c1","server":"s","tool":"f","status":"completed"}}}"#;
    check_rollout(
        &[&call(1), report, END, &told("late")],
        &[
            CALLED[0],
            CALLED[1],
            "turn-0001: result c1 ok null",
            "turn-0001: turn turn-0001 null",
            r#"turn-0001: amend c1 {"output":"late"}"#,
        ],
        &[],
    );
}

#[test]
fn failure_outside_a_turn_is_an_error() {
    let failed = r#"{"type":"event_msg","payload":{"type":"task_complete","error":{"message":"gone"}}}"#;
    let made = made_of_lines(codex::rollout(Source::named("s1")), &[META, failed]);
    check(&made, 1, &[": error task_complete gone"], &[]);
    let aborted = r#"{"type":"event_msg","payload":{"type":"turn_aborted","reason":"interrupted"}}"#;
    let made = made_of_lines(codex::rollout(Source::named("s1")), &[META, aborted]);
    check(&made, 1, &[": error turn_aborted interrupted"], &[]);
    let exec = [
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"turn.failed","error":{"message":"gone"}}"#,
    ];
    check(&made_of_lines(codex::exec(Source::named("s1")), &exec), 1, &[": error turn gone"], &[]);
}

#[test]
fn different_item_with_a_used_id_is_unknown() {
    let item = |moment: &str, command: &str, output: &str| {
        format!(
            r#"{{"method":"item/{moment}","params":{{"threadId":"t1","item":{{"type":"commandExecution","id":"c1","command":"{command}","aggregatedOutput":{output},"status":"completed"}}}}}}"#
        )
    };
    let started = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;
    let lines = [
        started,
        &item("started", "a", "null"),
        &item("completed", "a", r#""x""#),
        &item("completed", "a", r#""x""#),
        &item("started", "b", "null"),
        &item("completed", "b", r#""y""#),
    ];
    let made = made_of_lines(codex::app_server(Source::named("s1")), &lines);
    check(
        &made,
        1,
        &[
            ": assistant tool_use commandExecution",
            r#": call c1 commandExecution {"command":"a"}"#,
            r#": result c1 ok "x""#,
            ": unknown item.commandExecution null",
            ": unknown item.commandExecution null",
        ],
        &["item.commandExecution"],
    );
}

#[test]
fn repeated_message_is_skipped_and_a_different_one_with_its_id_is_unknown() {
    let item = |text: &str| {
        format!(
            r#"{{"method":"item/completed","params":{{"threadId":"t1","item":{{"type":"agentMessage","id":"m1","text":"{text}"}}}}}}"#
        )
    };
    let started = r#"{"method":"thread/started","params":{"thread":{"id":"t1"}}}"#;
    let lines = [started, &item("One"), &item("One"), &item("Two"), &item("Two"), &item("One")];
    let made = made_of_lines(codex::app_server(Source::named("s1")), &lines);
    let unknown = ": unknown item.agentMessage null";
    check(&made, 1, &[": assistant text One", unknown, unknown], &["item.agentMessage"]);
    let item = |text: &str| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"item_0","type":"agent_message","text":"{text}"}}}}"#
        )
    };
    let started = r#"{"type":"thread.started","thread_id":"01a1de00-0000-7000-8000-000000000001"}"#;
    // A second process numbers its items from 0 again.
    let lines = [started, &item("One"), &item("One"), started, &item("Two")];
    let made = made_of_lines(codex::exec(Source::named("s1")), &lines);
    check(&made, 1, &[": assistant text One", ": system resume null", ": assistant text Two"], &[]);
}

#[test]
fn calls_of_a_script_name_the_call_that_runs_it() {
    let script = |call: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"custom_tool_call","call_id":"{call}","name":"exec","input":"await tools.exec_command({{}})"}}}}"#
        )
    };
    let command = |id: &str| {
        format!(
            r#"{{"type":"event_msg","payload":{{"type":"item_completed","turn_id":"t1","item":{{"type":"CommandExecution","id":"{id}","command":["ls"],"status":"completed","exit_code":0,"aggregated_output":"a"}}}}}}"#
        )
    };
    let output = |call: &str| {
        format!(
            r#"{{"type":"response_item","payload":{{"type":"custom_tool_call_output","call_id":"{call}","output":"Script running"}}}}"#
        )
    };
    let waiting = r#"{"type":"response_item","payload":{"type":"function_call","name":"wait","arguments":"{}","call_id":"w1"}}"#;
    let lines = [
        META.to_owned(),
        BEGIN.to_owned(),
        command("exec-before"),
        script("s1"),
        command("exec-1"),
        command("user-2"),
        output("s1"),
        command("exec-3"),
        waiting.to_owned(),
        command("exec-4"),
    ];
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let made = made_of_lines(codex::rollout(Source::named("s1")), &lines);
    let calls = made.payloads("tool.call");
    let calls: Vec<(&str, Option<&str>)> = calls
        .iter()
        .map(|call| (call["call_id"].as_str().unwrap(), call["parent_call_id"].as_str()))
        .collect();
    let want = [
        ("exec-before", None),
        ("s1", None),
        ("exec-1", Some("s1")),
        ("user-2", None),
        ("exec-3", None),
        ("w1", None),
        ("exec-4", Some("s1")),
    ];
    assert_eq!(calls, want);
    assert_eq!(made.completeness.unknown.len(), 0, "{:?}", made.completeness.unknown);
}
