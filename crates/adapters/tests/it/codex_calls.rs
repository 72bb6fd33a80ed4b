//! Calls of Codex's in an order or with ids that they should not have: what they say is on record all the same.

use steno_adapters::{Source, codex};

use crate::made::{Made, made_of_lines, outline};

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

/// Compares what follows the beginning of the first turn, and what is unknown.
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
fn a_call_that_comes_after_its_result_amends_what_was_made_up() {
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
fn a_call_with_the_id_of_another_is_unknown_and_a_repeated_one_is_nothing() {
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
fn a_report_after_the_result_amends_it_with_all_that_it_knows() {
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

#[test]
fn an_output_after_a_report_without_one_amends_it() {
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
fn a_turn_that_fails_without_having_begun_has_failed() {
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
fn an_item_with_the_id_of_another_is_unknown() {
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
