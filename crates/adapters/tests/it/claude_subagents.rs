//! Subagents of Claude's: which run their records are, and how they ended.

use steno_adapters::{Source, claude};

use crate::made::{Made, made_of_lines};

const PROMPT: &str = r#"{"type":"user","uuid":"p1","sessionId":"0f000000-0000-4000-8000-000000000001","message":{"content":"Go."}}"#;
const INIT: &str =
    r#"{"type":"system","subtype":"init","session_id":"0f000000-0000-4000-8000-000000000001","model":"m"}"#;

fn calls(id: &str, input: &str) -> String {
    format!(
        r#"{{"type":"assistant","message":{{"id":"m{id}","content":[{{"type":"tool_use","id":"{id}","name":"Task","input":{input}}}]}}}}"#
    )
}

fn works(call: &str, more: &str) -> String {
    format!(
        r#"{{"type":"assistant","parent_tool_use_id":"{call}"{more},"message":{{"id":"w{call}","content":"At it."}}}}"#
    )
}

fn results(results: &[(&str, &str)]) -> String {
    let block = |(id, more): &(&str, &str)| {
        format!(r#"{{"type":"tool_result","tool_use_id":"{id}","content":"Done."{more}}}"#)
    };
    let blocks: Vec<String> = results.iter().map(block).collect();
    format!(r#"{{"type":"user","message":{{"content":[{}]}}}}"#, blocks.join(","))
}

fn stream(frames: &[&str]) -> Made {
    let frames: Vec<&str> = [INIT].iter().chain(frames).copied().collect();
    made_of_lines(claude::stream(Source::named("s1")), &frames)
}

fn file(name: Option<&str>, lines: &[&str]) -> Made {
    let source = Source { file_name: name.map(str::to_owned), ..Source::named("s1") };
    made_of_lines(claude::disk(source), lines)
}

/// Returns how subagents ended: the error, and what is said of the end.
fn ends(made: &Made) -> Vec<String> {
    let ends = made.payloads("step.call_workflow.completed").into_iter();
    ends.map(|end| format!("{} {}", end["error"], end["result"])).collect()
}

const WELL: &str = "null null";
const BADLY: &str = r#""failed" {"status":"failed"}"#;
const FAILED: &str = r#","is_error":true"#;

#[test]
fn a_subagent_without_a_report_ended_as_its_result_says() {
    let (calls1, works1) = (calls("t1", "{}"), works("t1", ""));
    assert_eq!(ends(&stream(&[&calls1, &works1, &results(&[("t1", "")])])), [WELL]);
    assert_eq!(ends(&stream(&[&calls1, &works1, &results(&[("t1", FAILED)])])), [BADLY]);
    // Several results in one record: none of them has a report.
    let both = results(&[("t1", ""), ("t2", FAILED)]);
    let frames = [&calls1, &calls("t2", "{}"), &works1, &works("t2", ""), &both];
    assert_eq!(ends(&stream(&frames.map(String::as_str))), [WELL, BADLY]);
    let root = r#"{"type":"user","uuid":"r1","isSidechain":true,"message":{"content":"Count."}}"#;
    let lines = [PROMPT, &calls("t1", r#"{"prompt":"Count."}"#), root, &results(&[("t1", "")])];
    assert_eq!(ends(&file(None, &lines)), [WELL]);
}

#[test]
fn a_subagent_in_the_background_has_not_ended_with_the_result_of_its_call() {
    let launched = results(&[("t1", ""), ("t2", "")]);
    let made = stream(&[&calls("t1", r#"{"run_in_background":true}"#), &works("t1", ""), &launched]);
    assert_eq!(ends(&made), [""; 0]);
}

#[test]
fn a_report_without_a_status_says_nothing_that_the_result_does_not() {
    let reported = |more: &str| {
        let result = results(&[("t1", more)]);
        let result = result.replacen('{', r#"{"tool_use_result":{"agentId":"a1"},"#, 1);
        ends(&stream(&[&calls("t1", "{}"), &works("t1", ""), &result]))
    };
    assert_eq!(reported(""), [WELL]);
    assert_eq!(reported(FAILED), [BADLY]);
}
