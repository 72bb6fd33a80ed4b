//! Rules of `OpenCode`'s output: outcomes of calls, responses, and what does not end a turn.

use serde_json::{Value, json};
use steno_adapters::{Source, opencode};

use crate::adapter_output::{Made, made_of_lines};

fn line(kind: &str, content: &Value) -> String {
    let mut record = json!({"type": kind, "timestamp": 1_780_906_482_000_u64, "sessionID": "ses_1"});
    let fields = content.as_object().unwrap().clone();
    record.as_object_mut().unwrap().extend(fields);
    record.to_string()
}

fn made(lines: &[String]) -> Made {
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    made_of_lines(opencode::stream(Source::named("s1")), &lines)
}

/// Makes the record of a call with this state.
fn call(tool: &str, state: &Value) -> String {
    line(
        "tool_use",
        &json!({"part": {"id": "p1", "messageID": "m1", "tool": tool, "callID": "c1", "state": state}}),
    )
}

#[track_caller]
fn check_outcome(tool: &str, state: &Value, want: &str) {
    let made = made(&[call(tool, state)]);
    let results = made.payloads("tool.result");
    assert_eq!((made.payloads("tool.call").len(), results.len()), (1, 1));
    assert_eq!(results[0]["outcome"], want, "{state}");
    assert_eq!(made.completeness.unknown.len(), usize::from(want == "unknown"));
}

#[test]
fn outcome_is_decided_by_status_exit_code_and_known_errors() {
    let failed = |error: &str| json!({"status": "error", "input": {}, "error": error});
    let exited = |code: Value| json!({"status": "completed", "input": {}, "metadata": {"exit": code}});
    check_outcome("bash", &exited(json!(0)), "ok");
    check_outcome("bash", &exited(json!(3)), "failed");
    check_outcome("bash", &exited(Value::Null), "ok");
    check_outcome("read", &failed("File not found: /p/x"), "failed");
    check_outcome("invalid", &json!({"status": "completed", "input": {"error": "No tool."}}), "failed");
    let rejected = "The user rejected permission to use this specific tool call";
    check_outcome("bash", &failed(&format!("{rejected}.")), "denied");
    check_outcome("bash", &failed(&format!("{rejected} with the following feedback: No.")), "denied");
    check_outcome("bash", &failed(&format!("sh: {rejected}.")), "failed");
    check_outcome("bash", &failed("Tool execution aborted"), "interrupted");
    check_outcome("bash", &json!({"status": "later", "input": {}}), "unknown");
}

#[test]
fn call_that_has_not_ended_stays_open_until_it_has() {
    let running = call("bash", &json!({"status": "running", "input": {}}));
    let ended = call("bash", &json!({"status": "completed", "input": {}, "output": "x"}));
    for (lines, want) in [(vec![running.clone()], (1, 0)), (vec![running, ended.clone(), ended], (1, 1))] {
        let made = made(&lines);
        assert_eq!((made.payloads("tool.call").len(), made.payloads("tool.result").len()), want);
        // The call that has not ended, and the copy of its end.
        assert_eq!(made.completeness.unknown["tool_use"], want.1 as u64 + 1);
    }
}

#[test]
fn each_step_is_a_response_with_its_usage() {
    let finish = |id: &str, message: &str| {
        let tokens = json!({"input": 3, "output": 2, "reasoning": 1, "cache": {"read": 5, "write": 0}});
        let part = json!({"id": id, "messageID": message, "reason": "stop", "tokens": tokens, "cost": 0.5});
        line("step_finish", &json!({ "part": part }))
    };
    let made = made(&[finish("p1", "m1"), finish("p2", "m1"), finish("p3", "m2"), finish("p3", "m2")]);
    let used = made.payloads("message.assistant");
    let responses: Vec<_> = used.iter().map(|message| &message["response"]).collect();
    assert_eq!(responses, ["m1", "m1#2", "m2"]);
    assert!(used.iter().all(|message| message["usage"]["cache"]["read"] == 5 && message["final"] == true));
    assert_eq!(made.completeness.unknown["step_finish"], 1);
}

#[test]
fn neither_a_final_response_nor_an_error_ends_the_turn() {
    let finish = line("step_finish", &json!({"part": {"id": "p1", "messageID": "m1", "reason": "stop"}}));
    let error = line("error", &json!({"error": {"name": "APIError", "data": {"message": "bad request"}}}));
    let made = made(&[finish, error]);
    assert_eq!(made.steps("step.started", "turn").len(), 1);
    assert_eq!(made.steps("step.completed", "turn").len(), 0);
    let errors = made.steps("step.completed", "error");
    assert_eq!((&errors[0]["name"], &errors[0]["error"]), (&json!("APIError"), &json!("bad request")));
}
