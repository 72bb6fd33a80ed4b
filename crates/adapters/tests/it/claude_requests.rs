//! Requests and answers of the control protocol, also mismatched ones: each is recorded or counted.
//!
//! `>` marks lines that the host sends.

use steno_adapters::{Source, claude};

use crate::adapter_output::{Made, made_of_lines, outline, outline_of_runs};
use crate::unexpected_values::{Surface, VALUES, check as check_odd, check_silent};

const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#;
const SAID: &str = r#"{"type":"assistant","uuid":"u1","message":{"id":"m1","content":"Hm."}}"#;

fn stream(lines: &[&str]) -> Made {
    let all: Vec<&str> = [INIT, SAID].iter().chain(lines).copied().collect();
    made_of_lines(claude::stream(Source::named("s1")), &all)
}

/// Reads frames inside a turn; compares the events, the unknown types, and the number of skipped frames.
#[track_caller]
fn check(lines: &[&str], want: &[&str], unknown: &[&str], bookkeeping: u64) {
    let made = stream(lines);
    assert_eq!(outline(&made)[4..], *want);
    let names: Vec<&str> = made.completeness.unknown.keys().map(String::as_str).collect();
    assert_eq!((names.as_slice(), made.completeness.bookkeeping), (unknown, bookkeeping));
}

const ASKS: &str = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t1"}}"#;
const ALLOWS: &str = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow","updatedInput":{"command":"ls"}}}}"#;

const ASKED: [&str; 2] =
    [r#"turn-0001: call t1 Bash {"command":"ls"}"#, "turn-0001.approval: approval r1 begins"];
const ALLOWED: &str =
    r#"turn-0001.approval: approval r1 {"by":"host","decision":"allowed","raw":"allow","scope":"once"}"#;

fn sent(frame: &str) -> String {
    format!(">{frame}")
}

#[test]
fn repeated_answers_are_skipped() {
    check(&[ASKS, &sent(ALLOWS), ALLOWS], &[ASKED[0], ASKED[1], ALLOWED], &[], 1);
    check(&[ASKS, &sent(ALLOWS), &sent(ALLOWS)], &[ASKED[0], ASKED[1], ALLOWED], &[], 1);
    // If only the agent's output was recorded, its copy of the answer counts.
    check(&[ASKS, ALLOWS, ALLOWS], &[ASKED[0], ASKED[1], ALLOWED], &[], 1);
}

#[test]
fn repeated_request_is_skipped() {
    check(&[ASKS, ASKS, &sent(ALLOWS)], &[ASKED[0], ASKED[1], ALLOWED], &[], 1);
}

#[test]
fn requests_with_the_same_id_are_answered_in_order() {
    let other = ASKS.replace("t1", "t2");
    check(
        &[ASKS, &other, &sent(ALLOWS), &sent(&ALLOWS.replace("allow", "deny"))],
        &[
            ASKED[0],
            ASKED[1],
            r#"turn-0001: call t2 Bash {"command":"ls"}"#,
            ASKED[1],
            ALLOWED,
            r#"turn-0001.approval: approval r1 {"by":"host","decision":"denied","raw":"deny","scope":"once"}"#,
        ],
        &[],
        0,
    );
}

#[test]
fn host_and_agent_may_use_the_same_request_id() {
    let asks =
        r#">{"type":"control_request","request_id":"r1","request":{"subtype":"set_model","model":"x"}}"#;
    let fails = r#"{"type":"control_response","response":{"subtype":"error","request_id":"r1","error":"no such model"}}"#;
    // The agent repeats the host's answer before it gives its own.
    check(
        &[asks, ASKS, &sent(ALLOWS), ALLOWS, fails],
        &[
            r#"turn-0001: system set_model {"model":"x","subtype":"set_model"}"#,
            ASKED[0],
            ASKED[1],
            ALLOWED,
            "turn-0001: error set_model no such model",
        ],
        &[],
        1,
    );
}

#[test]
fn answer_without_a_request_is_unknown_if_both_sides_are_recorded() {
    let by_agent = r#"{"type":"control_response","response":{"subtype":"success","request_id":"h9","response":{"x":1}}}"#;
    let asks = r#">{"type":"control_request","request_id":"h1","request":{"subtype":"interrupt"}}"#;
    let interrupt = r#"turn-0001: system interrupt {"subtype":"interrupt"}"#;
    check(&[by_agent], &[], &[], 1);
    check(
        &[&by_agent.replace("success", "error").replace("response\":{\"x\":1}", "error\":\"no\"")],
        &["turn-0001: error control_response no"],
        &[],
        0,
    );
    let unknown = "turn-0001: unknown control_response null";
    check(&[asks, by_agent], &[interrupt, unknown], &["control_response"], 0);
    check(
        &[ASKS, &sent(&ALLOWS.replace("r1", "r9"))],
        &[ASKED[0], ASKED[1], unknown],
        &["control_response"],
        0,
    );
    // An approval by the host is recorded even without its request.
    let made = stream(&[&sent(ALLOWS)]);
    assert_eq!(made.steps("step.completed", "system")[1]["name"], "control_response");
    assert!(made.completeness.unknown.is_empty());
}

#[test]
fn answer_to_a_request_of_a_new_type_is_a_fact() {
    let asks = r#"{"type":"control_request","request_id":"x1","request":{"subtype":"teleport"}}"#;
    let answers = r#"{"type":"control_response","response":{"subtype":"success","request_id":"x1","response":{"where":"here"}}}"#;
    let want = [
        r#"turn-0001: system teleport {"subtype":"teleport"}"#,
        r#"turn-0001: system teleport_response {"where":"here"}"#,
    ];
    check(&[asks, &sent(answers)], &want, &[], 0);
    check(&[&sent(asks), answers], &want, &[], 0);
    let nothing = r#"{"type":"control_response","response":{"subtype":"success","request_id":"x1"}}"#;
    check(&[&sent(asks), nothing], &want[..1], &[], 1);
}

#[test]
fn only_open_requests_can_be_cancelled() {
    let cancels = r#"{"type":"control_cancel_request","request_id":"r1"}"#;
    let cancelled = r#"turn-0001.approval: approval r1 {"by":"agent","decision":"cancelled"}"#;
    check(&[ASKS, cancels, &sent(ALLOWS)], &[ASKED[0], ASKED[1], cancelled], &[], 1);
    check(&[ASKS, &sent(ALLOWS), cancels], &[ASKED[0], ASKED[1], ALLOWED], &[], 1);
    let unknown = "turn-0001: unknown control_cancel_request null";
    check(&[cancels], &[unknown], &["control_cancel_request"], 0);
    check(&[ASKS, &sent(cancels)], &[ASKED[0], ASKED[1], unknown], &["control_cancel_request"], 0);
}

#[test]
fn call_allowed_with_another_input_is_amended() {
    let other = ALLOWS.replace(r#"{"command":"ls"}"#, r#"{"command":"ls -l"}"#);
    check(
        &[ASKS, &sent(&other)],
        &[ASKED[0], ASKED[1], ALLOWED, r#"turn-0001: amend t1 {"input":{"command":"ls -l"}}"#],
        &[],
        0,
    );
    let spaced = ALLOWS.replace(r#"{"command":"ls"}"#, r#"{ "command" : "ls" }"#);
    check(&[ASKS, &sent(&spaced)], &[ASKED[0], ASKED[1], ALLOWED], &[], 0);
}

#[test]
fn request_without_a_call_id_keeps_its_content() {
    check(
        &[&ASKS.replace(r#","tool_use_id":"t1""#, "")],
        &[
            ASKED[1],
            r#"turn-0001: system can_use_tool {"input":{"command":"ls"},"subtype":"can_use_tool","tool_name":"Bash"}"#,
        ],
        &[],
        0,
    );
}

#[test]
fn changed_input_without_a_call_id_is_a_fact() {
    let asks = ASKS.replace(r#","tool_use_id":"t1""#, "");
    let other = ALLOWS.replace(r#"{"command":"ls"}"#, r#"{"command":"ls -l"}"#);
    let made = stream(&[&asks, &sent(&other)]);
    assert!(made.steps("step.completed", "amend").is_empty());
    let facts = made.steps("step.completed", "system");
    let fact = facts.last().unwrap();
    assert_eq!(
        (&fact["name"], &fact["result"]["updatedInput"]["command"]),
        (&"can_use_tool_response".into(), &"ls -l".into())
    );
}

#[test]
fn interrupt_before_the_first_turn_ends_no_turn() {
    let interrupt = r#">{"type":"control_request","request_id":"h1","request":{"subtype":"interrupt"}}"#;
    let failed = r#"{"type":"result","subtype":"error_max_turns","is_error":true}"#;
    let lines = [INIT, interrupt, SAID, failed];
    let made = made_of_lines(claude::stream(Source::named("s1")), &lines);
    assert_eq!(
        outline(&made)[1..],
        [
            r#": system init {"model":"m"}"#,
            r#": system interrupt {"subtype":"interrupt"}"#,
            "turn-0001: turn turn-0001 begins",
            "turn-0001: assistant text Hm.",
            "turn-0001: turn turn-0001 error_max_turns",
        ]
    );
}

#[test]
fn first_request_of_a_subagent_begins_its_run() {
    let calls = r#"{"type":"assistant","uuid":"u2","message":{"id":"m2","content":[{"type":"tool_use","id":"t2","name":"Task","input":{}}]}}"#;
    let starts = r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":"t2","task_type":"local_agent"}"#;
    let asks = ASKS.replace("\"tool_use_id\"", "\"agent_id\":\"a1\",\"tool_use_id\"");
    let works = r#"{"type":"assistant","uuid":"u3","parent_tool_use_id":"t2","message":{"id":"m3","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#;
    let made = stream(&[calls, starts, &asks, &sent(ALLOWS), works]);
    assert_eq!(
        outline_of_runs(&made)[6..],
        [
            "0 turn-0001.subagent: child subagent begins",
            "1 : run",
            "1 turn-0001: turn turn-0001 begins",
            r#"1 turn-0001: call t1 Bash {"command":"ls"}"#,
            "1 turn-0001.approval: approval r1 begins",
            r#"1 turn-0001.approval: approval r1 {"by":"host","decision":"allowed","raw":"allow","scope":"once"}"#,
            "1 turn-0001: assistant tool_use Bash",
        ]
    );
}

/// A stream with a running subagent and open requests of both sides.
const CONTROL: Surface = Surface {
    name: "control",
    adapter: || claude::stream(Source::named("s1")),
    before: &[
        r#">{"type":"control_request","request_id":"h1","request":{"subtype":"initialize"}}"#,
        r#">{"type":"control_request","request_id":"h2","request":{"subtype":"set_model"}}"#,
        r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#,
        r#"{"type":"assistant","uuid":"u2","message":{"id":"m1","content":[{"type":"tool_use","id":"t2","name":"Task","input":{"prompt":"Count."}}]}}"#,
        r#"{"type":"system","subtype":"task_started","task_id":"a1","tool_use_id":"t2","task_type":"local_agent"}"#,
        r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t1"}}"#,
        r#"{"type":"control_request","request_id":"r2","request":{"subtype":"hook_callback","callback_id":"k"}}"#,
    ],
    after: &[],
    records: &[
        r#">{"type":@}"#,
        r#">{"type":"user","message":@}"#,
        r#">{"type":"user","message":{"content":@}}"#,
        r#">{"type":"user","message":{"content":[{"type":"text","text":"x"},@]}}"#,
        r#">{"type":"user","uuid":@,"message":{"content":"x"}}"#,
        r#">{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":@}]}}"#,
        r#">{"type":"control_request","request_id":@,"request":{"subtype":"interrupt"}}"#,
        r#">{"type":"control_request","request_id":"h3","request":@}"#,
        r#">{"type":"control_request","request_id":"h3","request":{"subtype":@}}"#,
        r#">{"type":"control_request","request_id":"h3","request":{"subtype":"set_model","model":@}}"#,
        r#"{"type":"control_request","request_id":@,"request":{"subtype":"can_use_tool","tool_name":"Bash","tool_use_id":"t3"}}"#,
        r#"{"type":"control_request","request_id":"r3","request":@}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":@}}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"can_use_tool","tool_name":@,"tool_use_id":"t3"}}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"can_use_tool","tool_name":"f","input":@,"tool_use_id":"t3"}}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"can_use_tool","tool_name":"f","input":@}}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"can_use_tool","tool_name":"f","tool_use_id":@}}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"can_use_tool","tool_name":"f","tool_use_id":"t3","agent_id":@}}"#,
        r#"{"type":"control_request","request_id":"r3","request":{"subtype":"mcp_message","message":@}}"#,
        r#">{"type":"control_response","response":@}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":@,"response":{"behavior":"allow"}}}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":@}}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":@}}}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow","updatedInput":@}}}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"deny","message":@}}}"#,
        r#">{"type":"control_response","response":{"subtype":"error","request_id":"r1","error":@}}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":"r2","response":@}}"#,
        r#">{"type":"control_response","response":{"subtype":"error","request_id":"r2","error":@}}"#,
        r#">{"type":"control_response","response":{"subtype":"success","request_id":"r9","response":@}}"#,
        r#"{"type":"control_response","response":@}"#,
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"h2","error":@}}"#,
        r#"{"type":"control_response","response":{"subtype":"success","request_id":@,"response":{}}}"#,
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"h9","response":@}}"#,
        r#"{"type":"control_cancel_request","request_id":@}"#,
    ],
};

/// Returns true for a text that is expected there and not kept: the id of a fact, and the message of a denial, which
/// the result repeats.
fn is_usual(record: &str, value: &str) -> bool {
    let fields = [r#""deny","message":@"#, r#""request_id":@,"request":{"subtype":"interrupt"}"#];
    value == VALUES[1] && fields.iter().any(|field| record.contains(field))
}

#[test]
fn unexpected_content_is_kept_or_its_record_is_unknown() {
    assert!(check_odd(&[&CONTROL], is_usual) > 250);
    assert!(check_silent(&[&CONTROL]) > 200);
}
