//! Rules for Claude's records that the captured files do not cover.

use serde_json::Value;
use steno_adapters::{Source, claude};
use steno_model::{EntryType, Lane};
use steno_testkit::places;

use crate::reading::{Piece, Reading, output, read};

const SESSION: &str = "0f000000-0000-4000-8000-000000000001";

/// Reads records of a session file; each gets the session's id unless it has one.
fn disk(name: &str, records: &[&str]) -> Reading {
    let source = Source { file_name: Some(name.to_owned()), ..Source::named("s1") };
    let lines: String = records.iter().map(|record| with_session(record, "sessionId")).collect();
    read(claude::disk(source), &[output(lines.as_bytes())])
}

/// Reads frames of a stream; those that begin with `>` were sent.
fn stream(frames: &[&str]) -> Reading {
    let piece = |frame: &&str| match frame.strip_prefix('>') {
        Some(sent) => Piece { lane: Lane::ToAgent, ..output(format!("{sent}\n").as_bytes()) },
        None => output(with_session(frame, "session_id").as_bytes()),
    };
    let pieces: Vec<Piece> = frames.iter().map(piece).collect();
    read(claude::stream(Source::named("s1")), &pieces)
}

fn with_session(record: &str, field: &str) -> String {
    let mut value: Value = serde_json::from_str(record).unwrap();
    let record = value.as_object_mut().unwrap();
    record.entry(field).or_insert(SESSION.into());
    format!("{value}\n")
}

/// Shows events as `run type path detail`; runs are numbered in the order of their first event.
fn shapes(reading: &Reading) -> Vec<String> {
    let runs = reading.runs();
    let shape = |event: &Value| {
        let run = runs.iter().position(|run| event["run_id"] == run.as_str()).unwrap();
        let payload = &event["payload"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let what = match event["type"].as_str().unwrap() {
            "message.user" | "message.assistant" => text(&payload["blocks"][0]["text"]),
            "tool.call" => text(&payload["name"]),
            "tool.result" => text(&payload["outcome"]),
            _ => format!("{} {} {}", text(&payload["kind"]), text(&payload["name"]), text(&payload["error"])),
        };
        let path = event["path"].as_str().unwrap();
        format!("{run} {} {path} {}", event["type"].as_str().unwrap(), what.trim()).trim().to_owned()
    };
    reading.events.iter().map(shape).collect()
}

#[track_caller]
fn check(reading: &Reading, want: &[&str]) {
    assert_eq!(shapes(reading), want);
}

const PROMPT: &str = r#"{"type":"user","uuid":"p","message":{"content":"Go."}}"#;
const AGENT_CALL: &str = r#"{"type":"assistant","uuid":"c","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Task","input":{"prompt":"Count.","subagent_type":"Explore"}}]}}"#;

#[test]
fn subagent_file_of_two_sessions_gives_two_runs() {
    let other = r#"{"type":"user","uuid":"b","isSidechain":true,"agentId":"a1","sessionId":"0f000000-0000-4000-8000-000000000002","message":{"content":"Again."}}"#;
    let reading = disk(
        "agent-a1.jsonl",
        &[
            r#"{"type":"user","uuid":"a","isSidechain":true,"agentId":"a1","message":{"content":"Count."}}"#,
            other,
        ],
    );
    check(
        &reading,
        &[
            "0 run.started  session claude",
            "0 step.started turn-0001 turn turn-0001",
            "0 message.user turn-0001 Count.",
            "1 run.started  session claude",
            "1 step.started turn-0001 turn turn-0001",
            "1 message.user turn-0001 Again.",
        ],
    );
    let parents: Vec<&Value> = reading.of_type("run.started").map(|event| &event["parent_run_id"]).collect();
    assert_eq!(parents, [SESSION, "0f000000-0000-4000-8000-000000000002"]);
}

#[test]
fn file_name_gives_the_session_and_copied_records_name_their_origin() {
    let name = "0f000000-0000-4000-8000-00000000000a.jsonl";
    let forked = r#"{"type":"user","uuid":"q","sessionId":"0f000000-0000-4000-8000-00000000000a","forkedFrom":{"sessionId":"old","messageUuid":"o"},"message":{"content":"Two."}}"#;
    let own = r#"{"type":"user","uuid":"r","sessionId":"0f000000-0000-4000-8000-00000000000a","message":{"content":"Three."}}"#;
    let reading = disk(name, &[PROMPT, forked, own]);
    let copied =
        |name: &str| reading.of_type("message.user").map(|event| event[name].clone()).collect::<Vec<_>>();
    // The run id is the session id, or derived from it.
    let old = disk("x.jsonl", &[&forked.replace("0f000000-0000-4000-8000-00000000000a", "old")]).runs();
    assert_eq!(copied("copied_from"), [SESSION.into(), old[0].as_str().into(), Value::Null]);
    assert_eq!(copied("copied_id"), ["p".into(), "o".into(), Value::Null]);
    assert_eq!(reading.runs(), ["0f000000-0000-4000-8000-00000000000a"]);
    // The run itself is not a copy, and neither is the end of its own turn.
    let reading = disk(name, &[own, forked, &forked.replace("\"q\"", "\"q2\"")]);
    let is_copied = |event: &Value| !event["copied_from"].is_null();
    let ends: Vec<bool> = reading.of_type("step.completed").map(is_copied).collect();
    let begins: Vec<bool> = reading.of_type("step.started").map(is_copied).collect();
    assert_eq!((begins.as_slice(), ends.as_slice()), (&[false, true, true][..], &[false, true][..]));
    let first = disk(name, &[forked]);
    assert_eq!(first.of_type("run.started").map(is_copied).collect::<Vec<_>>(), [false]);
}

#[test]
fn background_subagent_ends_once_when_its_status_is_reported() {
    let launched = r#"{"type":"user","uuid":"l","toolUseResult":{"isAsync":true,"status":"async_launched","agentId":"a1"},"message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Launched."}]}}"#;
    let asked = r#"{"type":"user","uuid":"k","toolUseResult":{"retrieval_status":"success","task":{"task_id":"a1","status":"STATUS"}},"message":{"content":[{"type":"tool_result","tool_use_id":"t2","content":"Output."}]}}"#;
    let notice = r#"{"type":"attachment","uuid":"n","attachment":{"type":"queued_command","prompt":"<task-notification><task-id>a1</task-id><status>completed</status></task-notification>"}}"#;
    let (running, failed) =
        (asked.replace("STATUS", "running"), asked.replace("STATUS", "failed").replace("\"k\"", "\"k2\""));
    let reading = disk("x.jsonl", &[PROMPT, AGENT_CALL, launched, &running, &failed, notice]);
    let links: Vec<String> =
        shapes(&reading).into_iter().filter(|shape| shape.contains("workflow")).collect();
    assert_eq!(
        links,
        [
            "0 step.call_workflow.started turn-0001.subagent subagent Explore",
            "0 step.call_workflow.completed turn-0001.subagent subagent Explore failed",
        ]
    );
    assert!(shapes(&reading).contains(&"0 step.completed turn-0001 system task_notification".to_owned()));
}

#[test]
fn prompt_typed_during_a_turn_belongs_to_the_turn() {
    let queued =
        r#"{"type":"attachment","uuid":"n","attachment":{"type":"queued_command","prompt":"Also this."}}"#;
    let taken_back = r#"{"type":"queue-operation","operation":"remove","content":"Not this."}"#;
    let moved = r#"{"type":"queue-operation","operation":"enqueue","content":"Also this."}"#;
    let hook =
        r#"{"type":"attachment","uuid":"h","attachment":{"type":"hook_blocking_error","content":"No."}}"#;
    check(
        &disk("x.jsonl", &[PROMPT, moved, queued, taken_back, hook]),
        &[
            "0 run.started  session claude",
            "0 step.started turn-0001 turn turn-0001",
            "0 message.user turn-0001 Go.",
            "0 message.user turn-0001 Also this.",
            "0 step.completed turn-0001 system queue-operation",
            "0 step.completed turn-0001 system hook_blocking_error",
        ],
    );
}

#[test]
fn api_errors_are_steps_and_not_messages() {
    let error = r#"{"type":"assistant","uuid":"e","isApiErrorMessage":true,"error":"overloaded","message":{"id":"m","model":"<synthetic>","content":[{"type":"text","text":"API Error: 529"}]}}"#;
    let filler = r#"{"type":"assistant","uuid":"f","message":{"id":"m2","model":"<synthetic>","content":[{"type":"text","text":"No response requested."}]}}"#;
    let retry = r#"{"type":"system","subtype":"api_error","uuid":"r","error":{},"retryAttempt":1,"maxRetries":10,"retryInMs":500.5}"#;
    check(
        &disk("x.jsonl", &[PROMPT, retry, error, filler]),
        &[
            "0 run.started  session claude",
            "0 step.started turn-0001 turn turn-0001",
            "0 message.user turn-0001 Go.",
            "0 step.completed turn-0001 retry api api error",
            "0 step.completed turn-0001 error overloaded API Error: 529",
            "0 step.completed turn-0001 system synthetic",
        ],
    );
}

#[test]
fn second_result_of_a_call_amends_the_first() {
    let result = r#"{"type":"user","uuid":"UUID","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"Done."}]}}"#;
    let (first, same) = (result.replace("UUID", "1"), result.replace("UUID", "2"));
    let other = result.replace("Done.", "No.").replace("UUID", "3");
    let reading = disk("x.jsonl", &[PROMPT, AGENT_CALL, &first, &same, &other]);
    assert_eq!(shapes(&reading)[5..], ["0 tool.result turn-0001 ok", "0 step.completed turn-0001 amend t1"]);
    assert_eq!(reading.completeness.bookkeeping, 1);
}

#[test]
fn file_without_a_session_id_is_one_run() {
    let lines = "{\"type\":\"summary\",\"summary\":\"A title\"}\n".repeat(1500);
    let reading = read(claude::disk(Source::named("s1")), &[output(lines.as_bytes())]);
    assert_eq!(reading.of_type("step.completed").count(), 1500);
    assert_eq!(reading.runs().len(), 1);
    let few =
        read(claude::disk(Source::named("s1")), &[output(b"{\"type\":\"summary\",\"summary\":\"A\"}\n")]);
    assert_eq!(few.runs(), reading.runs());
    assert_eq!(read(claude::stream(Source::named("s1")), &[output(b"no JSON\n")]).runs().len(), 1);
}

const INIT: &str = r#"{"type":"system","subtype":"init","model":"x"}"#;
const RESULT: &str = r#"{"type":"result","subtype":"success","result":"Done."}"#;

#[test]
fn replayed_prompt_that_was_not_sent_is_recorded() {
    let replay = r#"{"type":"user","isReplay":true,"uuid":"u","message":{"content":"Go."}}"#;
    check(
        &stream(&[INIT, replay, RESULT]),
        &[
            "0 run.started  session claude",
            "0 step.completed  system init",
            "0 step.started turn-0001 turn turn-0001",
            "0 message.user turn-0001 Go.",
            "0 step.completed turn-0001 turn turn-0001",
        ],
    );
}

#[test]
fn prompt_sent_during_a_turn_begins_the_next_one() {
    let sent = |text: &str| format!(r#">{{"type":"user","message":{{"content":"{text}"}},"session_id":""}}"#);
    let said = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"Working."}]}}"#;
    let reading = stream(&[
        &sent("One."),
        INIT,
        said,
        &sent("Two."),
        RESULT,
        INIT,
        said,
        RESULT,
        &sent("/compact now"),
    ]);
    check(
        &reading,
        &[
            "0 run.started  session claude",
            "0 step.started turn-0001 turn turn-0001",
            "0 message.user turn-0001 One.",
            "0 step.completed turn-0001 system init",
            "0 message.assistant turn-0001 Working.",
            "0 message.user turn-0001 Two.",
            "0 step.completed turn-0001 turn turn-0001",
            "0 step.started turn-0002 turn turn-0002",
            "0 message.assistant turn-0002 Working.",
            "0 step.completed turn-0002 turn turn-0002",
            "0 step.completed turn-0002 system local_command",
        ],
    );
}

#[test]
fn second_session_in_a_stream_is_another_run() {
    let other = r#"{"type":"system","subtype":"init","model":"x","session_id":"0f000000-0000-4000-8000-000000000002"}"#;
    let said = r#"{"type":"assistant","session_id":"0f000000-0000-4000-8000-000000000002","message":{"id":"m","content":"Hi."}}"#;
    let reading = stream(&[INIT, RESULT, other, said]);
    let sessions: Vec<&Value> =
        reading.of_type("run.started").map(|event| &event["session_run_id"]).collect();
    assert_eq!(sessions, [SESSION, "0f000000-0000-4000-8000-000000000002"]);
    assert_eq!(shapes(&reading).last().unwrap(), "1 message.assistant turn-0001 Hi.");
}

#[test]
fn approval_of_a_subagent_belongs_to_its_run() {
    let call = AGENT_CALL;
    let nested = r#"{"type":"assistant","parent_tool_use_id":"t1","agent_id":"a1","message":{"id":"n","content":[{"type":"text","text":"Counting."}]}}"#;
    let ask = r#"{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t9","agent_id":"a1"}}"#;
    let answer = r#">{"type":"control_response","response":{"subtype":"success","request_id":"r1","response":{"behavior":"allow"}}}"#;
    let hook = r#"{"type":"control_request","request_id":"r2","request":{"subtype":"hook_callback","callback_id":"h"}}"#;
    let blocked = r#">{"type":"control_response","response":{"subtype":"success","request_id":"r2","response":{"decision":"block"}}}"#;
    let reading = stream(&[INIT, call, nested, ask, answer, hook, blocked]);
    assert_eq!(
        shapes(&reading)[5..],
        [
            "0 step.call_workflow.started turn-0001.subagent subagent Explore",
            "1 run.started  session claude",
            "1 step.started turn-0001 turn turn-0001",
            "1 message.assistant turn-0001 Counting.",
            "1 tool.call turn-0001 Bash",
            "1 step.started turn-0001.approval approval r1",
            "1 step.completed turn-0001.approval approval r1",
            "0 step.completed turn-0001 system hook_callback",
            "0 step.completed turn-0001 system hook_callback_response",
        ]
    );
}

#[test]
fn claude_page_lists_all_bookkeeping_types() {
    let page = places::read("docs/adapters/claude.md");
    let lists = [
        ("disk.rs", "const BOOKKEEPING"),
        ("stream.rs", "const BOOKKEEPING"),
        ("stream_facts.rs", "const BOOKKEEPING"),
        ("control.rs", "const ADMINISTRATION"),
    ];
    for (source, list) in lists {
        let text = places::read(format!("crates/adapters/src/claude/{source}"));
        let (_, list) = text.split_once(list).unwrap();
        let (list, _) = list.split_once("];").unwrap();
        for name in list.split('"').skip(1).step_by(2) {
            assert!(page.contains(&format!("`{name}`")), "`{name}` of {source} is not on the page");
        }
    }
}

#[test]
fn records_before_the_first_timestamp_get_that_time() {
    let reading = disk(
        "x.jsonl",
        &[
            r#"{"type":"permission-mode","permissionMode":"plan"}"#,
            r#"{"type":"summary","summary":"A title"}"#,
            r#"{"type":"user","uuid":"p","timestamp":"2026-06-08T08:14:42.123Z","message":{"content":"Go."}}"#,
        ],
    );
    let times: Vec<_> =
        reading.events.iter().map(|event| (&event["timestamp"], &event["ts_inferred"])).collect();
    assert_eq!(times.len(), 5, "{}", reading.lines.concat());
    assert!(times.iter().all(|(time, _)| **time == "2026-06-08T08:14:42.123Z"), "{times:?}");
    assert!(times[..3].iter().all(|(_, inferred)| **inferred == true) && times[4].1.is_null(), "{times:?}");
}

#[test]
fn subagent_of_a_copied_call_belongs_to_the_original_session() {
    let other = "0f000000-0000-4000-8000-000000000009";
    let call = r#"{"type":"assistant","uuid":"a","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Agent","input":{"prompt":"Count."}}]}}"#;
    let result = r#"{"type":"user","uuid":"r","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"3"}]},"toolUseResult":{"agentId":"a1","status":"completed"}}"#;
    let children = |records: [String; 2]| {
        let reading = disk("x.jsonl", &records.each_ref().map(String::as_str));
        let called = reading.of_type("step.call_workflow.started");
        called.map(|event| event["child_run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let plain = |record: &str| record.replacen('{', &format!(r#"{{"sessionId":"{other}","#), 1);
    let forked = |record: &str| {
        record.replacen('{', &format!(r#"{{"forkedFrom":{{"sessionId":"{other}","messageUuid":"x"}},"#), 1)
    };
    let own = children([plain(call), plain(result)]);
    assert_eq!((own.len(), children([forked(call), forked(result)])), (1, own));
}

#[test]
fn rejection_with_a_message_of_the_user_is_a_denial() {
    let words = "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\\nNo.";
    let call = r#"{"type":"assistant","uuid":"a","message":{"id":"m","content":[{"type":"tool_use","id":"t1","name":"Write","input":{}}]}}"#;
    let result = format!(
        r#"{{"type":"user","uuid":"r","message":{{"content":[{{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":"{words}"}}]}},"toolUseResult":"Error: {words}"}}"#
    );
    let reading = disk("x.jsonl", &[call, &result]);
    assert_eq!(reading.of_type("tool.result").next().unwrap()["payload"]["outcome"], "denied");
}

#[test]
fn message_with_a_stop_reason_has_final_counts() {
    let frame = |stop: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"a{}","message":{{"id":"m1","stop_reason":{stop},"content":[{{"type":"text","text":"Hm."}}],"usage":{{"output_tokens":9}}}}}}"#,
            stop.len()
        )
    };
    let reading = stream(&[&frame("null"), &frame("\"end_turn\"")]);
    let finals: Vec<_> =
        reading.of_type("message.assistant").map(|event| &event["payload"]["final"]).collect();
    assert_eq!(finals, [false, true]);
}

#[test]
fn interleaved_responses_have_one_usage_entry_each() {
    let says = |id: &str, text: &str| {
        format!(
            r#"{{"type":"assistant","uuid":"{id}{text}","message":{{"id":"{id}","usage":{{"output_tokens":1}},"content":"{text}"}}}}"#
        )
    };
    let lines = [says("m1", "a"), says("m2", "b"), says("m1", "c"), says("m2", "d")];
    let records: Vec<&str> = [PROMPT].into_iter().chain(lines.iter().map(String::as_str)).collect();
    let reading = disk("x.jsonl", &records);
    let told = reading.entries.iter().filter(|entry| entry.kind == EntryType::TokenUsage).count();
    assert_eq!((told, reading.of_type("message.assistant").count()), (2, 4));
}

#[test]
fn repeated_line_with_an_id_is_skipped() {
    let other = PROMPT.replace("\"p\"", "\"p2\"");
    let reading = disk("x.jsonl", &[PROMPT, PROMPT, &other, PROMPT]);
    check(
        &reading,
        &[
            "0 run.started  session claude",
            "0 step.started turn-0001 turn turn-0001",
            "0 message.user turn-0001 Go.",
            "0 step.completed turn-0001 turn turn-0001",
            "0 step.started turn-0002 turn turn-0002",
            "0 message.user turn-0002 Go.",
        ],
    );
    assert_eq!((reading.completeness.records, reading.completeness.bookkeeping), (4, 2));
    // Without an id a copy cannot be distinguished from a repeated prompt.
    let nameless = PROMPT.replace(r#""uuid":"p","#, "");
    assert_eq!(disk("x.jsonl", &[&nameless, &nameless]).of_type("message.user").count(), 2);
}

#[test]
fn run_has_the_branch_of_its_first_line() {
    let branch = |line: &str| disk("s.jsonl", &[line, PROMPT]).events[0]["payload"]["git"].clone();
    let line = |branch: &str| {
        format!(
            r#"{{"type":"user","uuid":"b","cwd":"/w","gitBranch":{branch},"message":{{"content":"Hi."}}}}"#
        )
    };
    assert_eq!(branch(&line("\"fix/cart\"")), serde_json::json!({"branch": "fix/cart"}));
    for none in ["\"\"", "\"HEAD\"", "null"] {
        assert_eq!(branch(&line(none)), Value::Null, "{none}");
    }
}
