//! Small hand-written runs and their conversations.

use serde_json::{Value, json};
use steno_model::ExchangeEvent;
use steno_session::{Content, SessionBuilder};

use super::*;
use crate::testing::{run_id, time};

/// Makes the events of a run from type, path and payload; a fourth value adds fields to the envelope.
fn events(lines: &[Value]) -> Vec<ExchangeEvent> {
    let event = |(index, line): (usize, &Value)| {
        let seq = index as u64 + 1;
        let mut whole = json!({
            "seq": seq, "run_id": run_id(1).to_string(), "type": line[0], "path": line[1], "iteration": 0,
            "timestamp": time(seq), "payload": line[2],
        });
        for (name, value) in line[3].as_object().into_iter().flatten() {
            whole[name] = value.clone();
        }
        ExchangeEvent::parse(whole.to_string().as_bytes()).unwrap()
    };
    lines.iter().enumerate().map(event).collect()
}

fn fold(lines: &[Value]) -> Conversation {
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    for event in events(lines) {
        builder.push(&event);
    }
    Conversation::of(&builder.finish())
}

/// Compares the conversation of a run, one line for each item; items of turns are indented.
#[track_caller]
fn check(lines: &[Value], want: &[&str]) {
    let conversation = serde_json::to_value(fold(lines)).unwrap();
    let mut shown: Vec<String> = Vec::new();
    for prompt in conversation["system_prompts"].as_array().unwrap() {
        shown.push(format!("system: {}", blocks(&prompt["blocks"])));
    }
    shown.extend(conversation["outside"].as_array().unwrap().iter().map(item));
    for turn in conversation["turns"].as_array().unwrap() {
        shown.push(format!("{} {}", word(&turn["path"]), word(&turn["state"])));
        shown.extend(turn["items"].as_array().unwrap().iter().map(|found| format!("  {}", item(found))));
    }
    assert_eq!(shown, want);
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn item(item: &Value) -> String {
    let kind = word(&item["item"]);
    match &*kind {
        "prompt" | "call" => format!("{kind}: {}", blocks(&item["blocks"])),
        "message" => format!("{kind} {}: {}", word(&item["response"]), blocks(&item["blocks"])),
        "approval" => format!("{kind} {}", approval(item)),
        "child" => format!("{kind} {}", child(item)),
        _ => format!(
            "{kind} {} {} {} {}",
            word(&item["kind"]),
            word(&item["name"]),
            word(&item["state"]),
            item["result"]
        ),
    }
}

fn approval(approval: &Value) -> String {
    format!("{} {} by {}", word(&approval["request"]), word(&approval["decision"]), word(&approval["by"]))
}

fn child(child: &Value) -> String {
    format!("{} {}", word(&child["name"]), word(&child["state"]))
}

fn blocks(blocks: &Value) -> String {
    blocks.as_array().unwrap().iter().map(block).collect::<Vec<_>>().join(", ")
}

fn block(block: &Value) -> String {
    match block["type"].as_str().unwrap() {
        "tool_use" => {
            let mut shown = format!("use {} {}", word(&block["tool_name"]), word(&block["tool_id"]));
            if block["is_dangling"] == true {
                shown.push_str(" (dangling)");
            }
            for asked in block["approvals"].as_array().unwrap() {
                shown.push_str(&format!(" [{}]", approval(asked)));
            }
            for begun in block["child_runs"].as_array().unwrap() {
                shown.push_str(&format!(" <{}>", child(begun)));
            }
            shown
        }
        "tool_result" => {
            let amended = if block["is_amended"] == true { " amended" } else { "" };
            format!("result {} {}{amended}", word(&block["outcome"]), block["tool_content"])
        }
        other => format!("{other} {}", word(block.get(other).unwrap_or(&Value::Null))),
    }
}

fn turn() -> Value {
    json!(["step.started", "t1", {"name": "t1", "kind": "turn", "turn_id": "u1"}])
}

fn prompt(text: &str) -> Value {
    json!(["message.user", "t1", {"role": "user", "blocks": [{"type": "text", "fidelity": "agent_emitted", "text": text}]}])
}

/// A message with blocks given as `text:words`, `thinking:words` or `use:id`.
fn message(response: Option<&str>, parts: &[&str]) -> Value {
    let block = |part: &&str| match part.split_once(':').unwrap() {
        ("use", id) => {
            json!({"type": "tool_use", "fidelity": "agent_emitted", "tool_name": "Bash", "tool_id": id, "tool_input": {}})
        }
        (kind, words) => json!({"type": kind, "fidelity": "agent_emitted", kind: words}),
    };
    let blocks: Vec<Value> = parts.iter().map(block).collect();
    json!(["message.assistant", "t1", {"role": "assistant", "blocks": blocks, "response": response}])
}

fn call(id: &str) -> Value {
    json!(["tool.call", "t1", {"name": "Bash", "call_id": id, "input": {"command": "ls"}, "output": null, "fidelity": "agent_emitted", "class": "command"}])
}

fn result(id: &str, output: &str) -> Value {
    json!(["tool.result", "t1", {"name": "Bash", "call_id": id, "input": null, "output": output, "fidelity": "agent_emitted", "outcome": "ok"}])
}

fn step(event_type: &str, path: &str, payload: &Value) -> Value {
    json!([event_type, path, payload])
}

#[test]
fn result_follows_its_call() {
    check(
        &[
            turn(),
            prompt("Go"),
            message(Some("m1"), &["thinking:Hm"]),
            message(Some("m1"), &["text:Two", "use:c1"]),
            call("c1"),
            message(Some("m1"), &["use:c2"]),
            call("c2"),
            result("c2", "b"),
            result("c1", "a"),
            message(Some("m2"), &["text:Done"]),
            step("step.completed", "t1", &json!({"name": "t1", "kind": "turn"})),
        ],
        &[
            "t1 completed",
            "  prompt: text Go",
            r#"  message m1: thinking Hm, text Two, use Bash c1, result ok "a", use Bash c2, result ok "b""#,
            "  message m2: text Done",
        ],
    );
}

#[test]
fn response_without_id_ends_with_usage_or_results() {
    let usage = json!(["message.assistant", "t1", {"role": "assistant", "blocks": [], "response": "r1", "usage": {}}]);
    check(
        &[
            turn(),
            message(None, &["text:One"]),
            message(None, &["use:c1"]),
            call("c1"),
            usage,
            message(None, &["use:c2"]),
            call("c2"),
            result("c1", "a"),
            result("c2", "b"),
            message(None, &["text:Three"]),
            json!(["message.assistant", "t1", {"role": "assistant", "blocks": [], "response": 2, "usage": {}}]),
        ],
        &[
            "t1 open",
            r#"  message r1: text One, use Bash c1, result ok "a""#,
            r#"  message null: use Bash c2, result ok "b""#,
            "  message 2: text Three",
        ],
    );
}

#[test]
fn response_continues_after_a_result() {
    check(
        &[
            turn(),
            message(Some("m1"), &["use:c1"]),
            call("c1"),
            result("c1", "a"),
            message(Some("m1"), &["use:c2"]),
            call("c2"),
        ],
        &["t1 open", r#"  message m1: use Bash c1, result ok "a", use Bash c2 (dangling)"#],
    );
}

#[test]
fn dangling_and_loose_calls_are_shown() {
    let lines =
        [turn(), message(None, &["use:c1"]), call("c1"), call("c2"), result("c2", "x"), result("c3", "y")];
    check(
        &lines,
        &[
            "t1 open",
            "  message null: use Bash c1 (dangling)",
            r#"  call: use Bash c2, result ok "x""#,
            r#"  call: use Bash c3, result ok "y""#,
        ],
    );
    let conversation = fold(&lines);
    assert_eq!((conversation.calls, conversation.dangling_calls), (3, vec!["c1".into()]));
}

#[test]
fn amendments_are_folded_in() {
    let amend = |id: &str| {
        step(
            "step.completed",
            "t1",
            &json!({"name": id, "kind": "amend", "tool_call_id": id, "result": {"outcome": "failed", "exit_code": -1}}),
        )
    };
    let lines = [
        turn(),
        message(None, &["use:c1", "use:c2"]),
        call("c1"),
        call("c2"),
        result("c1", "x"),
        amend("c1"),
        amend("c2"),
        amend("c9"),
    ];
    check(
        &lines,
        &[
            "t1 open",
            r#"  message null: use Bash c1, result failed "x" amended, use Bash c2 (dangling), result failed null amended"#,
            r#"  fact amend c9 completed {"exit_code":-1,"outcome":"failed"}"#,
        ],
    );
}

#[test]
fn reused_ids_are_new_calls_and_channels_are_joined() {
    let router = |kind: &str, output: Value| json!([kind, "t1", {"name": "bash", "call_id": "c1", "input": {"real": 1}, "output": output, "fidelity": "router", "outcome": "failed"}]);
    check(
        &[
            turn(),
            message(Some("m1"), &["use:c1"]),
            call("c1"),
            router("tool.call", json!(null)),
            router("tool.result", json!("real")),
            result("c1", "told"),
            message(Some("m2"), &["use:c1"]),
            call("c1"),
            result("c1", "again"),
        ],
        &[
            "t1 open",
            r#"  message m1: use bash c1, result failed "real""#,
            r#"  message m2: use Bash c1, result ok "again""#,
        ],
    );
}

#[test]
fn early_router_report_is_shown_in_the_message() {
    check(
        &[turn(), call("c1"), result("c1", "x"), message(None, &["use:c1"])],
        &["t1 open", r#"  message null: use Bash c1, result ok "x""#],
    );
}

#[test]
fn approvals_and_children_follow_their_calls() {
    let asked = |kind: &str, name: &str, call: Option<&str>, result: Value| {
        step(
            kind,
            "t1.approval",
            &json!({"name": name, "kind": "approval", "tool_call_id": call, "result": result}),
        )
    };
    let child = |kind: &str, number: u32, call: Option<&str>| json!([kind, "t1.subagent", {"name": "helper", "kind": "subagent", "tool_call_id": call}, {"child_run_id": run_id(number).to_string()}]);
    check(
        &[
            turn(),
            message(None, &["use:c1"]),
            call("c1"),
            asked("step.started", "q1", Some("c1"), json!(null)),
            asked("step.completed", "q1", None, json!({"decision": "allowed", "by": "host"})),
            asked("step.started", "q2", None, json!(null)),
            asked("step.completed", "q2", None, json!({"decision": "denied", "by": "user"})),
            asked("step.started", "q3", Some("c1"), json!(null)),
            child("step.call_workflow.started", 7, Some("c1")),
            child("step.call_workflow.completed", 7, Some("c1")),
            child("step.call_workflow.started", 8, None),
        ],
        &[
            "t1 open",
            "  message null: use Bash c1 (dangling) [q1 allowed by host] [q3 null by null] <helper completed>",
            "  approval q2 denied by user",
            "  child helper open",
        ],
    );
}

#[test]
fn compaction_and_system_prompt_are_separate() {
    let system = json!(["message.user", "", {"role": "user", "blocks": [{"type": "text", "text": "Be brief.", "label": "system_prompt"}]}]);
    let compaction = |kind: &str, result: Value| {
        step(kind, "t1.compaction", &json!({"name": "compaction", "kind": "compaction", "result": result}))
    };
    check(
        &[
            system,
            step("step.completed", "", &json!({"name": "resume", "kind": "system"})),
            turn(),
            prompt("Go"),
            compaction("step.started", json!(null)),
            compaction("step.completed", json!("So far.")),
            compaction("step.started", json!(null)),
        ],
        &[
            "system: text Be brief.",
            "fact system resume completed null",
            "t1 open",
            "  prompt: text Go",
            r#"  compaction compaction compaction completed "So far.""#,
            "  compaction compaction compaction open null",
        ],
    );
}

#[test]
fn unknown_records_are_counted() {
    let conversation = fold(&[
        json!(["run.started", "", {"name": "claude", "kind": "session"}]),
        step("step.completed", "", &json!({"name": "dream", "kind": "unknown"})),
        step("step.completed", "", &json!({"name": "dream", "kind": "unknown"})),
        json!(["run.paused", "", null]),
        json!(["message.user", "", {"role": "user", "blocks": [{"type": "hologram", "text": "x"}]}]),
        json!(["message.user", "", 7, {"run_id": run_id(2).to_string()}]),
    ]);
    assert_eq!(conversation.unknown_records, BTreeMap::from([("dream".to_owned(), 2)]));
    assert_eq!(conversation.unknown_types, BTreeMap::from([("run.paused".to_owned(), 1)]));
    assert_eq!(conversation.unknown_blocks, BTreeMap::from([("hologram".to_owned(), 1)]));
    assert_eq!((conversation.foreign_events, conversation.outside.len()), (1, 1));
}

#[test]
fn results_in_messages_answer_their_calls() {
    let answer = json!(["message.user", "t1", {"role": "user", "blocks": [
        {"type": "tool_result", "tool_id": "c1", "tool_content": "x"},
        {"type": "tool_result", "tool_id": "c9", "tool_content": "y"},
    ]}]);
    check(
        &[turn(), message(None, &["use:c1"]), answer],
        &["t1 open", r#"  message null: use Bash c1, result null "x""#, r#"  prompt: result null "y""#],
    );
}

#[test]
fn payloads_of_any_shape_are_accepted() {
    let odd = [json!(null), json!(7), json!([]), json!({"blocks": 7}), json!({"blocks": [7, {}]})];
    for event_type in ["message.user", "message.assistant", "tool.call", "tool.result", "step.started"] {
        for payload in &odd {
            let conversation = fold(&[json!([event_type, "", payload])]);
            assert!(serde_json::to_string(&conversation).is_ok(), "{event_type} {payload}");
        }
    }
}

#[test]
fn json_keeps_foreign_text_and_every_field() {
    let line = |seq: u32, rest: &str| {
        format!(
            r#"{{"seq":{seq},"run_id":"{}","path":"t1","iteration":0,"timestamp":"2026-06-08T00:00:01Z",{rest}}}"#,
            run_id(1)
        )
    };
    let lines = [
        line(1, r#""type":"step.started","payload":{"name":"t1","kind":"turn"}"#),
        line(
            2,
            r#""type":"message.assistant","payload":{"role":"assistant","blocks":[{"type":"text","fidelity":"agent_emitted","text":"\ud800 1e999"}]}"#,
        ),
        line(
            3,
            r#""type":"tool.call","payload":{"name":"\u0041","call_id":"c1","input":{"n":1e999,"n":2},"output":null,"fidelity":"router"}"#,
        ),
        line(
            4,
            r#""type":"tool.result","payload":{"name":"\u0041","call_id":"c1","input":null,"output":"\udc00","fidelity":"router","exit_code":3}"#,
        ),
    ];
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    for line in &lines {
        builder.push(&ExchangeEvent::parse(line.as_bytes()).unwrap());
    }
    let want = concat!(
        r#"{"run_id":"00000001-0000-4000-8000-000000000000","runs":[{"run_id":"00000001-0000-4000-8000-000000000000","channel":null,"adapter":null,"events":4,"matched":0,"alike":0,"unmatched":0}],"parent_run_id":null,"session_run_id":null,"#,
        r#""forked_from":null,"name":null,"state":"open","error":null,"system_prompts":[],"outside":[],"#,
        r#""turns":[{"path":"t1","#,
        r#""turn_id":null,"run":"00000001-0000-4000-8000-000000000000","seq":1,"started_at":"2026-06-08T00:00:01Z","ended_at":null,"state":"open","status":"in_progress","ended_by":null,"error":null,"#,
        r#""items":[{"item":"message","run":"00000001-0000-4000-8000-000000000000","seq":2,"at":"2026-06-08T00:00:01Z","copied_from":null,"response":null,"#,
        r#""model":null,"stop_reason":null,"blocks":[{"type":"text","fidelity":"agent_emitted","text":"\ud800 1e999"}]},"#,
        r#"{"item":"call","run":"00000001-0000-4000-8000-000000000000","seq":3,"blocks":[{"type":"tool_use","fidelity":"router","tool_name":"\u0041","tool_id":"c1","#,
        r#""tool_input":{"n":1e999,"n":2},"class":null,"run":"00000001-0000-4000-8000-000000000000","seq_call":3,"is_dangling":false,"approvals":[],"child_runs":[]},"#,
        r#"{"type":"tool_result","fidelity":"router","tool_id":"c1","tool_content":"\udc00","outcome":"failed","error":null,"#,
        r#""exit_code":3,"run":"00000001-0000-4000-8000-000000000000","seq_result":4,"duration_ms":0,"is_amended":false}]}]}],"responses":0,"calls":1,"file_changes":0,"usage":null,"dangling_calls":[],"branches":0,"unknown_records":{},"#,
        r#""unknown_types":{},"unknown_blocks":{},"foreign_events":0}"#,
    );
    let conversation = Conversation::of(&builder.finish());
    assert_eq!(serde_json::to_string(&conversation).unwrap(), want);
}
