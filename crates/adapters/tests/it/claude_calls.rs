//! Calls of Claude in an unexpected order, with unexpected ids or among unexpected records: each is recorded once.

use steno_adapters::{Source, claude};

use crate::adapter_output::{Made, made_of_lines, outline_of_runs};

const PROMPT: &str = r#"{"type":"user","uuid":"p1","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"content":"Go."}}"#;
const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#;

fn call(id: &str, input: u32) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m1","content":[{{"type":"tool_use","id":"{id}","name":"f","input":{{"a":{input}}}}}]}}}}"#
    )
}

fn result(id: &str, output: &str) -> String {
    format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"{output}"}}]}}}}"#
    )
}

/// Makes a record one of a subagent: by `isSidechain` in a file, by `parent_tool_use_id` in a stream.
fn aside(record: &str) -> String {
    record.replacen('{', r#"{"isSidechain":true,"uuid":"side","parent_tool_use_id":"t9","#, 1)
}

/// Reads records after a prompt in a file, and after an `init` in a stream.
fn read(records: &[&str]) -> [Made; 2] {
    let file: Vec<&str> = [PROMPT].iter().chain(records).copied().collect();
    let stream: Vec<&str> = [INIT].iter().chain(records).copied().collect();
    [
        made_of_lines(claude::disk(Source::named("s1")), &file),
        made_of_lines(claude::stream(Source::named("s1")), &stream),
    ]
}

/// Compares the events of records on both surfaces, the unknown types, and the number of skipped records.
#[track_caller]
fn check(records: &[&str], want: &[&str], unknown: &[&str], bookkeeping: u64) {
    for made in read(records) {
        let shown = outline_of_runs(&made);
        let begun = shown.iter().position(|line| line.ends_with("turn-0001 begins")).unwrap();
        let is_prompt = shown.get(begun + 1).is_some_and(|line| line.ends_with("user text Go."));
        assert_eq!(shown[begun + 1 + usize::from(is_prompt)..], *want);
        let names: Vec<&str> = made.completeness.unknown.keys().map(String::as_str).collect();
        assert_eq!((names.as_slice(), made.completeness.bookkeeping), (unknown, bookkeeping));
    }
}

const CALLED: [&str; 2] = ["0 turn-0001: assistant tool_use f", r#"0 turn-0001: call t1 f {"a":1}"#];
const ANSWERED: &str = r#"0 turn-0001: result t1 ok "x""#;

#[test]
fn repeated_call_adds_nothing() {
    check(
        &[&call("t1", 1), &call("t1", 1), &result("t1", "x"), &call("t1", 1)],
        &[CALLED[0], CALLED[1], ANSWERED],
        &[],
        2,
    );
}

#[test]
fn repeated_call_adds_its_final_usage() {
    let end = call("t1", 1).replace(r#""id":"m1""#, r#""id":"m1","usage":{"output_tokens":9}"#);
    check(
        &[&call("t1", 1), &end, &end],
        &[CALLED[0], CALLED[1], r#"0 turn-0001: assistant used {"output_tokens":9} response"#],
        &[],
        1,
    );
}

#[test]
fn different_call_with_a_used_id_is_unknown() {
    check(
        &[&call("t1", 1), &call("t1", 2), &result("t1", "x"), &call("t1", 1)],
        &[CALLED[0], CALLED[1], CALLED[0], "0 turn-0001: unknown block.tool_use null", ANSWERED],
        &["block.tool_use"],
        1,
    );
}

#[test]
fn call_after_its_result_amends_the_placeholder() {
    check(
        &[&result("t1", "x"), &call("t1", 1), &call("t1", 1)],
        &[
            "0 turn-0001: call t1  null",
            ANSWERED,
            CALLED[0],
            r#"0 turn-0001: amend t1 {"input":{"a":1},"name":"f"}"#,
        ],
        &[],
        1,
    );
}

#[test]
fn different_second_result_amends_the_first() {
    check(
        &[&call("t1", 1), &result("t1", "x"), &result("t1", "x"), &result("t1", "y")],
        &[CALLED[0], CALLED[1], ANSWERED, r#"0 turn-0001: amend t1 {"outcome":"ok","output":"y"}"#],
        &[],
        1,
    );
    let both = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"x"},{"type":"tool_result","tool_use_id":"t1","content":"y"}]}}"#;
    let amended = r#"0 turn-0001: amend t1 {"outcome":"ok","output":"y"}"#;
    check(&[&call("t1", 1), both], &[CALLED[0], CALLED[1], ANSWERED, amended], &[], 0);
    let failed = result("t1", "y").replace(r#""tool_use_id""#, r#""is_error":true,"tool_use_id""#);
    let amended = r#"0 turn-0001: amend t1 {"error":"y","outcome":"failed","output":"y"}"#;
    check(&[&call("t1", 1), &result("t1", "x"), &failed], &[CALLED[0], CALLED[1], ANSWERED, amended], &[], 0);
}

#[test]
fn response_that_ended_in_an_error_is_kept_with_the_error() {
    let failed = r#"{"type":"assistant","uuid":"u1","error":"max_output_tokens","message":{"id":"m1","model":"claude","stop_reason":"max_tokens","usage":{"output_tokens":5000},"content":[{"type":"text","text":"So far"}]}}"#;
    for made in read(&[failed]) {
        let messages = made.payloads("message.assistant");
        assert_eq!(messages.len(), 1);
        let said = &messages[0];
        assert_eq!((&said["response"], &said["model"]), (&"m1".into(), &"claude".into()));
        assert_eq!(
            (&said["stop_reason"], &said["usage"]["output_tokens"]),
            (&"max_tokens".into(), &5000.into())
        );
        assert_eq!(said["blocks"][0]["text"], "So far");
        let errors = made.steps("step.completed", "error");
        assert_eq!(errors.len(), 1);
        assert_eq!(
            (&errors[0]["name"], &errors[0]["error"]),
            (&"response".into(), &"max_output_tokens".into())
        );
    }
    // Text with the model `<synthetic>` or marked as an API error is written by Claude Code.
    let synthetic = failed.replace(r#""model":"claude""#, r#""model":"<synthetic>""#);
    let flagged = failed.replacen('{', r#"{"isApiErrorMessage":true,"is_api_error_message":true,"#, 1);
    for record in [synthetic, flagged] {
        for made in read(&[&record]) {
            assert!(made.payloads("message.assistant").is_empty());
            let errors = made.steps("step.completed", "error");
            assert_eq!(
                (&errors[0]["name"], &errors[0]["error"]),
                (&"max_output_tokens".into(), &"So far".into())
            );
        }
    }
}

#[test]
fn repeated_result_of_the_api_is_recorded_once() {
    let result = r#"{"type":"assistant","message":{"id":"m1","content":[{"type":"web_search_tool_result","tool_use_id":"t1","content":"x"}]}}"#;
    check(&[&call("t1", 1), result, result], &[CALLED[0], CALLED[1], ANSWERED], &[], 1);
}

#[test]
fn result_belongs_to_the_agent_that_made_the_call() {
    let begins = call("t9", 9);
    let side = [
        "0 turn-0001: assistant tool_use f",
        r#"0 turn-0001: call t9 f {"a":9}"#,
        "0 turn-0001: assistant tool_use f",
        r#"0 turn-0001: call t1 f {"a":1}"#,
    ];
    // The subagent's records have the result of its parent's call, and the other way round.
    for made in read(&[
        &begins,
        &call("t1", 1),
        &aside(&call("t2", 2)),
        &aside(&result("t1", "x")),
        &result("t2", "y"),
    ]) {
        let shown: Vec<String> = outline_of_runs(&made)
            .into_iter()
            .filter(|line| ["call t", "result t"].iter().any(|word| line.contains(word)))
            .collect();
        let path = if shown[2].contains("turn-0001") { "turn-0001" } else { "" };
        let want = [
            side[1].to_owned(),
            side[3].to_owned(),
            format!(r#"1 {path}: call t2 f {{"a":2}}"#),
            r#"0 turn-0001: result t1 ok "x""#.to_owned(),
            format!(r#"1 {path}: result t2 ok "y""#),
        ];
        assert_eq!(shown, want);
        assert!(made.completeness.unknown.is_empty());
    }
}

#[test]
fn result_after_an_interrupt_belongs_to_its_call() {
    let interrupt =
        r#"{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}"#;
    let [file, stream] = read(&[&call("t1", 1), interrupt, &result("t1", "x")]);
    assert_eq!(
        outline_of_runs(&file)[3..],
        [CALLED[0], CALLED[1], "0 turn-0001: turn turn-0001 interrupted", ANSWERED]
    );
    let shown = outline_of_runs(&stream);
    assert_eq!(shown.last().unwrap(), ANSWERED);
}

#[test]
fn call_that_differs_from_the_allowed_one_is_amended() {
    let asks = |input: u32| {
        format!(
            r#"{{"type":"control_request","request_id":"r1","request":{{"subtype":"can_use_tool","tool_name":"f","input":{{"a":{input}}},"tool_use_id":"t1"}}}}"#
        )
    };
    let made =
        |input| made_of_lines(claude::stream(Source::named("s1")), &[INIT, &asks(input), &call("t1", 1)]);
    let (same, other) = (outline_of_runs(&made(1)), outline_of_runs(&made(2)));
    assert_eq!(same.last().unwrap(), CALLED[0]);
    assert_eq!(other.last().unwrap(), r#"0 turn-0001: amend t1 {"input":{"a":1},"name":"f"}"#);
}
