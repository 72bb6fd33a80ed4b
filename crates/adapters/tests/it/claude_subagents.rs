//! Subagents of Claude: the run of their records, and how they ended.

use steno_adapters::{Source, claude};

use crate::adapter_output::{Made, made_of_lines, outline_of_runs};

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

/// Returns the error and the result of each subagent's end.
fn ends(made: &Made) -> Vec<String> {
    let ends = made.payloads("step.call_workflow.completed").into_iter();
    ends.map(|end| format!("{} {}", end["error"], end["result"])).collect()
}

const WELL: &str = "null null";
const BADLY: &str = r#""failed" {"status":"failed"}"#;
const FAILED: &str = r#","is_error":true"#;

#[test]
fn subagent_without_a_report_ends_with_the_outcome_of_its_call() {
    let (calls1, works1) = (calls("t1", "{}"), works("t1", ""));
    assert_eq!(ends(&stream(&[&calls1, &works1, &results(&[("t1", "")])])), [WELL]);
    assert_eq!(ends(&stream(&[&calls1, &works1, &results(&[("t1", FAILED)])])), [BADLY]);
    // A record with several results has no report for any of them.
    let both = results(&[("t1", ""), ("t2", FAILED)]);
    let frames = [&calls1, &calls("t2", "{}"), &works1, &works("t2", ""), &both];
    assert_eq!(ends(&stream(&frames.map(String::as_str))), [WELL, BADLY]);
    let root = r#"{"type":"user","uuid":"r1","isSidechain":true,"message":{"content":"Count."}}"#;
    let lines = [PROMPT, &calls("t1", r#"{"prompt":"Count."}"#), root, &results(&[("t1", "")])];
    assert_eq!(ends(&file(None, &lines)), [WELL]);
}

#[test]
fn background_subagent_is_open_after_the_result_of_its_call() {
    let launched = results(&[("t1", ""), ("t2", "")]);
    let made = stream(&[&calls("t1", r#"{"run_in_background":true}"#), &works("t1", ""), &launched]);
    assert_eq!(ends(&made), [""; 0]);
    let launched = launched.replacen("Done.", "Async agent launched successfully.", 1);
    let made = stream(&[&calls("t1", "{}"), &works("t1", ""), &launched]);
    assert_eq!(ends(&made), [""; 0]);
}

#[test]
fn report_without_a_status_leaves_the_outcome_of_the_call() {
    let reported = |more: &str| {
        let result = results(&[("t1", more)]);
        let result = result.replacen('{', r#"{"tool_use_result":{"agentId":"a1"},"#, 1);
        ends(&stream(&[&calls("t1", "{}"), &works("t1", ""), &result]))
    };
    assert_eq!(reported(""), [WELL]);
    assert_eq!(reported(FAILED), [BADLY]);
}

#[test]
fn subagent_called_again_continues_its_run() {
    let agent = r#","agent_id":"ag1""#;
    let frames = [
        calls("t1", "{}"),
        works("t1", agent),
        results(&[("t1", "")]),
        calls("t2", "{}"),
        works("t2", agent),
        works("t1", agent).replace("At it.", "Late."),
        results(&[("t2", "")]),
    ];
    let made = stream(&frames.each_ref().map(String::as_str));
    let shown = outline_of_runs(&made);
    let childs: Vec<&str> = shown.iter().filter(|line| line.starts_with('1')).map(String::as_str).collect();
    assert_eq!(
        childs,
        [
            "1 : run",
            "1 turn-0001: turn turn-0001 begins",
            "1 turn-0001: assistant text At it.",
            "1 turn-0001: turn turn-0001 null",
            "1 turn-0002: turn turn-0002 begins",
            "1 turn-0002: assistant text At it.",
            "1 turn-0002: assistant text Late.",
        ]
    );
    assert!(!shown.iter().any(|line| line.starts_with('2')));
    let links = made.payloads("step.call_workflow.started");
    assert_eq!(links.iter().map(|link| &link["tool_call_id"]).collect::<Vec<_>>(), ["t1", "t2"]);
    assert_eq!(ends(&made), [WELL, WELL]);
}

#[test]
fn repeated_first_line_of_a_subagent_gives_one_run() {
    let root = r#"{"type":"user","uuid":"r1","isSidechain":true,"message":{"content":"Count."}}"#;
    let spaced = root.replace(r#""uuid":"#, r#""uuid": "#);
    for again in [root, &spaced] {
        let lines = [PROMPT, &calls("t1", r#"{"prompt":"Count."}"#), root, again];
        let made = file(None, &lines);
        assert_eq!(made.payloads("run.started").len(), 2);
        assert_eq!(made.payloads("step.call_workflow.started").len(), 1);
    }
}

#[test]
fn subagent_file_is_recognized_by_name_or_agent_id() {
    let session = r#""sessionId":"0f000000-0000-4000-8000-000000000001""#;
    let line =
        |more: &str| format!(r#"{{"type":"user","uuid":"u"{more},{session},"message":{{"content":"Go."}}}}"#);
    let whole = line(r#","isSidechain":true,"agentId":"X""#);
    let run = |name: Option<&str>, lines: &[&str]| {
        let made = file(name, lines);
        let run = &made.events[0];
        assert!(made.events.iter().all(|event| event["run_id"] == run["run_id"]));
        (run["run_id"].clone(), run["parent_run_id"].clone())
    };
    let want = run(Some("agent-X.jsonl"), &[&whole]);
    assert_eq!(want.1, "0f000000-0000-4000-8000-000000000001");
    let bare = format!(r#"{{"type":"api-request",{session},"agentId":"X"}}"#);
    let nameless = format!(r#"{{"type":"api-request",{session}}}"#);
    for name in [Some("agent-X.jsonl"), Some("copy.jsonl"), None] {
        assert_eq!(run(name, &[&bare, &whole]), want, "{name:?}");
    }
    assert_eq!(run(Some("agent-X.jsonl"), &[&nameless, &whole]), want);
    // The file of the session itself is not taken for a subagent's.
    let main = line(r#","isSidechain":false,"agentId":"X""#);
    assert!(run(None, &[&main]).1.is_null());
    assert!(run(Some("0f000000-0000-4000-8000-000000000001.jsonl"), &[&bare, &main]).1.is_null());
}
