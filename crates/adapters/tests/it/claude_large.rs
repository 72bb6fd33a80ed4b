//! Files and streams of Claude with very many subagents: each record finds its subagent without a search over all.

use std::collections::HashMap;

use serde_json::Value;
use steno_adapters::{Source, claude};

use crate::adapter_output::{Made, made_of_lines};

/// The number of subagents; comparing all pairs would take 25 million steps.
const COUNT: usize = 5_000;

fn lines(one: impl Fn(usize) -> String) -> Vec<String> {
    (0..COUNT).map(one).collect()
}

fn read(adapter: steno_adapters::Adapter, lines: &[Vec<String>]) -> Made {
    let lines: Vec<&str> = lines.iter().flatten().map(String::as_str).collect();
    made_of_lines(adapter, &lines)
}

fn count(made: &Made, event_type: &str) -> usize {
    made.events.iter().filter(|event| event["type"] == event_type).count()
}

#[test]
fn subagent_file_may_have_5000_sessions() {
    let line = |number: usize, text: &str| {
        format!(
            r#"{{"type":"user","uuid":"{text}{number}","isSidechain":true,"agentId":"a1","sessionId":"s{number}","message":{{"content":"{text}"}}}}"#
        )
    };
    let made = read(
        claude::disk(Source::named("s1")),
        &[lines(|number| line(number, "one")), lines(|number| line(number, "two"))],
    );
    assert_eq!((count(&made, "run.started"), count(&made, "message.user")), (COUNT, 2 * COUNT));
}

#[test]
fn stream_may_have_5000_subagents() {
    let init = r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001"}"#;
    let calls = |number: usize| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t{number}","name":"Task","input":{{}}}}]}}}}"#
        )
    };
    let works = |number: usize| {
        format!(
            r#"{{"type":"assistant","parent_tool_use_id":"t{number}","agent_id":"a{number}","message":{{"content":[{{"type":"tool_use","id":"c{number}","name":"f","input":{{}}}}]}}}}"#
        )
    };
    let asks = |number: usize| {
        format!(
            r#"{{"type":"control_request","request_id":"r{number}","request":{{"subtype":"can_use_tool","tool_name":"f","input":{{}},"tool_use_id":"c{number}"}}}}"#
        )
    };
    let answers = |number: usize| {
        format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"c{number}","content":"x"}}]}}}}"#
        )
    };
    let ends = |number: usize| {
        format!(
            r#"{{"type":"system","subtype":"task_notification","task_id":"a{number}","status":"completed"}}"#
        )
    };
    let all = [vec![init.to_owned()], lines(calls), lines(works), lines(asks), lines(answers), lines(ends)];
    let made = read(claude::stream(Source::named("s1")), &all);
    assert_eq!(
        (count(&made, "run.started"), count(&made, "step.call_workflow.completed")),
        (COUNT + 1, COUNT)
    );
    // Requests and results among the main agent's frames belong to the subagent that made the call.
    let mut callers: HashMap<&Value, &Value> = HashMap::new();
    for event in &made.events {
        let (run, payload) = (&event["run_id"], &event["payload"]);
        if event["type"] == "tool.call" {
            callers.insert(&payload["call_id"], run);
        } else if event["type"] == "tool.result" {
            assert_eq!(callers.get(&payload["call_id"]), Some(&run));
        } else if payload["kind"] == "approval" {
            assert_eq!(callers.get(&payload["tool_call_id"]), Some(&run));
        }
    }
}

#[test]
fn calls_of_5000_subagents_may_wait() {
    let prompt = r#"{"type":"user","uuid":"p","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"content":"Go."}}"#;
    let calls = |number: usize| {
        format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t{number}","name":"Task","input":{{"prompt":"Count {number}."}}}}]}}}}"#
        )
    };
    // The subagents begin in reverse order.
    let begins = |number: usize| {
        let number = COUNT - 1 - number;
        format!(
            r#"{{"type":"user","uuid":"u{number}","isSidechain":true,"message":{{"content":"Count {number}."}}}}"#
        )
    };
    let made =
        read(claude::disk(Source::named("s1")), &[vec![prompt.to_owned()], lines(calls), lines(begins)]);
    let links = made.payloads("step.call_workflow.started");
    let want = (0..COUNT).rev().map(|number| format!("t{number}"));
    assert!(
        links.iter().map(|link| &link["tool_call_id"]).eq(want.map(Value::from).collect::<Vec<_>>().iter())
    );
}
