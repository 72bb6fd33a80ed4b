//! Records of subagents in `progress` lines of the parent's file (2.1.12 to 2.1.81).

use serde_json::{Value, json};
use steno_adapters::{Source, claude};
use steno_model::Frame;
use steno_testkit::{needs, shared_dir};

use crate::adapter_output::{Made, made_of_lines, outline, outline_of_runs};
use crate::reading::{claude_file, read};

const SESSION: &str = "0f000000-0000-4000-8000-000000000001";
const FORK: &str = "0f000000-0000-4000-8000-000000000002";

fn line(record: &Value, time: u32) -> Value {
    let mut line = json!({"sessionId": SESSION, "version": "2.1.19", "timestamp": format!("2026-01-02T03:00:{time:02}Z")});
    line.as_object_mut().unwrap().extend(record.as_object().unwrap().clone());
    line
}

fn prompt() -> Value {
    line(&json!({"type": "user", "uuid": "p1", "message": {"content": "Go."}}), 0)
}

fn calls() -> Value {
    let call = json!({"type": "tool_use", "id": "t1", "name": "Task", "input": {"prompt": "Count."}});
    line(&json!({"type": "assistant", "uuid": "a1", "message": {"id": "m1", "content": [call]}}), 1)
}

/// The records of the subagent, without the fields that every line of its own file has.
fn childs() -> [Value; 4] {
    let call = json!({"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "ls"}});
    let result = json!({"type": "tool_result", "tool_use_id": "t2", "content": "a b"});
    let usage = json!({"input_tokens": 2, "output_tokens": 1});
    let said = json!([{"type": "text", "text": "Two."}]);
    [
        json!({"type": "user", "uuid": "c1", "timestamp": "2026-01-02T03:00:02Z", "message": {"content": "Count."}}),
        json!({"type": "assistant", "uuid": "c2", "timestamp": "2026-01-02T03:00:04Z", "requestId": "r2",
            "message": {"id": "m2", "model": "m", "content": [call], "stop_reason": null, "usage": usage}}),
        json!({"type": "user", "uuid": "c3", "timestamp": "2026-01-02T03:00:06Z", "message": {"content": [result]}}),
        json!({"type": "assistant", "uuid": "c4", "timestamp": "2026-01-02T03:00:08Z", "requestId": "r3",
            "message": {"id": "m3", "model": "m", "content": said, "stop_reason": "end_turn", "usage": usage}}),
    ]
}

/// Wraps a record of a subagent in a `progress` line; `number` gives the line's id and time.
fn progress(agent: &str, inner: &Value, number: u32) -> Value {
    let data = json!({"message": inner, "normalizedMessages": [], "type": "agent_progress", "prompt": "Count.", "agentId": agent});
    line(
        &json!({"type": "progress", "uuid": format!("g{number}"), "data": data, "parentToolUseID": "t1"}),
        number,
    )
}

fn session() -> Vec<Value> {
    let told = childs().into_iter().zip([3, 5, 7, 9]).map(|(inner, number)| progress("ab1", &inner, number));
    [prompt(), calls()].into_iter().chain(told).collect()
}

fn disk(name: &str, lines: &[Value]) -> Made {
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let source = Source { file_name: Some(name.to_owned()), ..Source::named("s1") };
    made_of_lines(claude::disk(source), &lines.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Returns the events of all runs but the first.
fn of_progress(made: &Made) -> Vec<Value> {
    let own = made.events[0]["run_id"].clone();
    made.events.iter().filter(|event| event["run_id"] != own).cloned().collect()
}

#[test]
fn progress_gives_the_events_of_the_subagent_file() {
    let here = of_progress(&disk("x.jsonl", &session()));
    let own_lines: Vec<Value> = childs()
        .into_iter()
        .map(|mut record| {
            let fields =
                json!({"sessionId": SESSION, "version": "2.1.19", "isSidechain": true, "agentId": "ab1"});
            record.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            record
        })
        .collect();
    let own = disk("agent-ab1.jsonl", &own_lines).events;
    assert_eq!(here.len(), own.len());
    assert_eq!(here[0]["session_run_id"], own[0]["run_id"]);
    assert_eq!(here[0]["payload"]["source"]["channel"], "progress");
    assert_eq!(here[0]["payload"]["source"]["carries"], json!(["prompts", "calls", "results", "usage"]));
    let bare = |event: &Value| {
        let mut event = event.clone();
        for field in ["run_id", "evidence", "session_run_id"] {
            event.as_object_mut().unwrap().remove(field);
        }
        if event["type"] == "run.started" {
            event["payload"]["source"] = Value::Null;
        }
        event
    };
    assert_eq!(here.iter().map(bare).collect::<Vec<_>>(), own.iter().map(bare).collect::<Vec<_>>());
}

#[test]
fn parent_run_has_the_link_but_no_events_of_the_subagent() {
    let made = disk("x.jsonl", &session());
    let shown = outline_of_runs(&made);
    let own: Vec<&String> = shown.iter().filter(|line| line.starts_with('0')).collect();
    assert_eq!(
        own,
        [
            "0 : run",
            "0 turn-0001: turn turn-0001 begins",
            "0 turn-0001: user text Go.",
            "0 turn-0001: assistant tool_use Task",
            r#"0 turn-0001: call t1 Task {"prompt":"Count."}"#,
            "0 turn-0001.subagent: child subagent begins",
        ]
    );
    let link = made.events.iter().find(|event| event["type"] == "step.call_workflow.started").unwrap();
    assert_eq!(link["child_run_id"], of_progress(&made)[0]["session_run_id"]);
    // The time of a `progress` line is later than that of its inner record. An untimed line gets the outer time.
    let untimed = json!({"type": "ai-title", "aiTitle": "T", "sessionId": SESSION});
    let made = disk("x.jsonl", &[session(), vec![untimed]].concat());
    let title = made.events.last().unwrap();
    assert_eq!(
        (title["payload"]["name"].as_str(), title["timestamp"].as_str()),
        (Some("title"), Some("2026-01-02T03:00:09Z"))
    );
}

#[test]
fn each_subagent_is_a_run_and_repeated_progress_is_skipped() {
    let [first, second, ..] = childs();
    let lines = [
        prompt(),
        progress("ab1", &first, 3),
        progress("ab2", &first, 4),
        progress("ab1", &second, 5),
        progress("ab1", &second, 6),
    ];
    let made = disk("x.jsonl", &lines);
    let shown = outline_of_runs(&made);
    assert_eq!(
        shown[3..],
        [
            "1 : run",
            "1 turn-0001: turn turn-0001 begins",
            "1 turn-0001: user text Count.",
            "2 : run",
            "2 turn-0001: turn turn-0001 begins",
            "2 turn-0001: user text Count.",
            r#"1 turn-0001: assistant used {"input_tokens":2,"output_tokens":1} response"#,
            r#"1 turn-0001: call t2 Bash {"command":"ls"}"#,
        ]
    );
    assert_eq!(made.completeness.bookkeeping, 1);
}

#[test]
fn progress_without_a_prompt_begins_a_turn() {
    let [_, second, ..] = childs();
    let made = disk("x.jsonl", &[prompt(), progress("ab1", &second, 5)]);
    assert_eq!(outline_of_runs(&made)[3..5], ["1 : run", "1 turn-0001: turn turn-0001 begins"]);
    assert!(of_progress(&made)[1]["payload"]["turn_id"].is_null());
}

#[test]
fn copied_progress_of_a_fork_gives_separate_runs() {
    let original = disk("x.jsonl", &session());
    // Claude Code's own fork writes its id into every line, without a mark.
    let silent: Vec<Value> = session()
        .into_iter()
        .map(|mut line| {
            line["sessionId"] = FORK.into();
            line
        })
        .collect();
    let silent = disk(&format!("{FORK}.jsonl"), &silent);
    // The file of a resumed session has the original lines.
    let resumed = disk(&format!("{FORK}.jsonl"), &session());
    let marked: Vec<Value> = session()
        .into_iter()
        .map(|mut line| {
            line["forkedFrom"] = json!({"sessionId": SESSION, "messageUuid": line["uuid"]});
            line["sessionId"] = FORK.into();
            line
        })
        .collect();
    let marked = disk(&format!("{FORK}.jsonl"), &marked);
    let head = |made: &Made| of_progress(made)[0].clone();
    let origin = head(&original);
    for (copy, is_marked) in [(&silent, false), (&resumed, true), (&marked, true)] {
        let [run, said] = [head(copy), of_progress(copy)[2].clone()];
        assert_ne!(run["run_id"], origin["run_id"]);
        assert_eq!(run["parent_run_id"], FORK);
        assert_eq!(run["session_run_id"] == origin["session_run_id"], is_marked);
        let from = if is_marked { origin["run_id"].clone() } else { Value::Null };
        assert_eq!((&said["copied_from"], said["copied_id"].is_null()), (&from, !is_marked));
    }
}

#[test]
fn unreadable_progress_is_unknown_and_the_rest_is_read() {
    let [first, ..] = childs();
    let change = |name: &str, value: Value| {
        let mut line = progress("ab1", &first, 3);
        line["data"][name] = value;
        line
    };
    let broken = [
        change("agentId", Value::Null),
        change("agentId", json!(7)),
        change("agentId", json!("")),
        change("message", Value::Null),
        change("message", json!("text")),
        change("message", json!([first])),
    ];
    for line in broken {
        let made = disk("x.jsonl", &[prompt(), line.clone(), progress("ab1", &first, 4)]);
        assert_eq!(made.completeness.unknown, [("agent_progress".to_owned(), 1)].into(), "{line}");
        assert_eq!(of_progress(&made).len(), 3, "{line}");
    }
    // The inner record is read like a line of a file, in the subagent's run.
    let strange = [
        json!({}),
        json!({"type": "new"}),
        json!({"type": "user", "message": 7}),
        json!({"type": "assistant"}),
    ];
    for inner in strange {
        let made = disk("x.jsonl", &[prompt(), progress("ab1", &inner, 3)]);
        assert_eq!(made.completeness.unknown.len(), 1, "{inner}");
        assert!(outline(&made).last().unwrap().contains("unknown"), "{inner}");
    }
    // Progress inside progress is not read, at any depth.
    let deep = (0..60).fold(first.clone(), |inner, number| progress("ab1", &inner, number));
    let made = disk("x.jsonl", &[prompt(), deep]);
    assert_eq!((of_progress(&made).len(), made.completeness.bookkeeping), (0, 1));
}

#[test]
fn progress_waits_for_a_session_and_a_time() {
    let mut lines = session();
    let first = lines.remove(2);
    let untimed = |mut line: Value| {
        let fields = line.as_object_mut().unwrap();
        fields.remove("timestamp");
        fields.remove("sessionId");
        line["data"]["message"].as_object_mut().unwrap().remove("timestamp");
        line
    };
    lines.insert(0, untimed(first));
    let made = disk("x.jsonl", &lines);
    let shown = outline_of_runs(&made);
    assert_eq!(
        shown[..4],
        ["0 : run", "1 : run", "1 turn-0001: turn turn-0001 begins", "1 turn-0001: user text Count."]
    );
    assert_eq!(of_progress(&made)[0]["ts_inferred"], true);
}

#[test]
fn rewritten_file_repeats_no_progress() {
    let source = Source { file_name: Some("x.jsonl".to_owned()), ..Source::named("s1") };
    let mut adapter = claude::disk(source);
    let mut drafts = Vec::new();
    let text = session().iter().map(Value::to_string).collect::<Vec<_>>().join("\n") + "\n";
    adapter.feed(Frame::of_file(0, text.as_bytes()), &mut drafts);
    let before = drafts.len();
    let again = Frame { generation: 1, ..Frame::of_file(0, text.as_bytes()) };
    adapter.feed(again, &mut drafts);
    let runs: Vec<_> = drafts[before..].iter().map(|(run, _)| run.to_string()).collect();
    assert_eq!(runs, [SESSION], "that it was rewritten is all");
}

#[test]
fn progress_of_a_real_session_is_complete() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let (adapter, pieces) = claude_file(&shared.join("recordings/claude/real_2.1.19_agent_progress.jsonl"));
    let reading = read(adapter, &pieces);
    let runs = reading.runs();
    let count = |kind: &str| reading.of_run(&runs[1]).filter(|event| event["type"] == kind).count();
    assert_eq!((runs.len(), count("message.user"), count("tool.call"), count("tool.result")), (2, 1, 18, 18));
    let mut responses: Vec<&str> =
        reading.of_run(&runs[1]).filter_map(|event| event["payload"]["response"].as_str()).collect();
    responses.sort_unstable();
    responses.dedup();
    assert_eq!(responses.len(), 10);
}
