//! Compares counts with `captures/expected.json`, for each of its files of Claude.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use steno_model::EntryType;
use steno_testkit::{needs, places, shared_dir};

use crate::reading::{Reading, claude_file, is_transcript, read};

#[test]
fn counts_match_expected_json() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let captures = shared.join("captures");
    let expected = places::read(captures.join("expected.json"));
    let expected: serde_json::Map<String, Value> = serde_json::from_str(&expected).unwrap();
    let mut files = 0;
    let mut wrong = Vec::new();
    for (name, expected) in expected.iter().filter(|(name, _)| name.starts_with("claude/")) {
        files += 1;
        let (adapter, pieces) = claude_file(&captures.join(name));
        let reading = read(adapter, &pieces);
        let runs = reading.runs();
        let wanted = expected["runs"].as_object().unwrap();
        assert_eq!(runs.len(), wanted.len(), "{name}");
        // The run of the session itself comes first on both sides.
        let mut names: Vec<&String> = wanted.keys().collect();
        names.sort_by_key(|name| *name != "main");
        for (run, key) in runs.iter().zip(names) {
            compare(name, &wanted[key], &counts(&reading, run), &mut wrong);
        }
    }
    assert_eq!(files, 10);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_block_and_result_has_one_entry() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let captures = shared.join("captures/claude");
    for name in places::files_below(&captures) {
        if !is_transcript(&name) {
            continue;
        }
        let (adapter, pieces) = claude_file(&captures.join(&name));
        let reading = read(adapter, &pieces);
        let found = |kind: EntryType| reading.entries.iter().filter(|entry| entry.kind == kind).count();
        let runs = reading.runs();
        let counts: Vec<Value> = runs.iter().map(|run| counts(&reading, run)).collect();
        let sum = |what: &str| counts.iter().map(|counts| counts[what].as_u64().unwrap()).sum::<u64>();
        let system_prompts = reading
            .of_type("message.user")
            .filter(|event| event["payload"]["blocks"][0]["label"] == "system_prompt")
            .count() as u64;
        let pairs = [
            (EntryType::UserMessage, sum("message_user_prompts") + system_prompts),
            (EntryType::AssistantMessage, sum("text_blocks")),
            (EntryType::Thinking, sum("thinking_blocks")),
            (EntryType::ToolUse, sum("tool_call")),
            (EntryType::ToolResult, sum("tool_result")),
        ];
        for (kind, want) in pairs {
            assert_eq!(found(kind) as u64, want, "{name}: {kind:?}");
        }
        let of_responses = reading.of_type("message.assistant").filter(|event| {
            let payload = &event["payload"];
            payload["usage_scope"] == "response" && payload["response"].is_string()
        });
        let responses: BTreeSet<&str> =
            of_responses.map(|event| event["payload"]["response"].as_str().unwrap()).collect();
        let totals =
            reading.entries.iter().filter(|entry| entry.subtype.as_deref() == Some("turn_end")).count();
        assert!(found(EntryType::TokenUsage) >= responses.len() + totals, "{name}: token_usage");
    }
}

/// Compares every count, whether the file grades it A, B or C.
fn compare(name: &str, wanted: &Value, found: &Value, wrong: &mut Vec<String>) {
    for (what, want) in wanted.as_object().unwrap() {
        let found = &found[what];
        // A channel that carries no approvals must have none.
        let is_none = *want == Value::Null && found["asked"] == 0;
        if want != found && !is_none {
            wrong.push(format!("{name}: {what}: expected {want}, found {found}"));
        }
    }
}

fn counts(reading: &Reading, run: &str) -> Value {
    let events: Vec<&Value> = reading.of_run(run).collect();
    let of = |event_type: &str, kind: Option<&str>| {
        let fits = |event: &&&Value| {
            event["type"] == event_type && kind.is_none_or(|kind| event["payload"]["kind"] == kind)
        };
        events.iter().filter(fits).count()
    };
    let blocks = |block_type: &str| {
        let messages = events.iter().filter(|event| event["type"] == "message.assistant");
        let all = messages.flat_map(|event| event["payload"]["blocks"].as_array().unwrap());
        all.filter(|block| block["type"] == block_type).count()
    };
    let ids = |event_type: &str| -> BTreeSet<&str> {
        let fitting = events.iter().filter(|event| event["type"] == event_type);
        fitting.map(|event| event["payload"]["call_id"].as_str().unwrap()).collect()
    };
    let dangling: Vec<&str> = ids("tool.call").difference(&ids("tool.result")).copied().collect();
    let messages: Vec<&&Value> = events.iter().filter(|event| event["type"] == "message.assistant").collect();
    let responses: BTreeSet<&str> =
        messages.iter().filter_map(|event| event["payload"]["response"].as_str()).collect();
    let spoken = messages.iter().filter(|event| !event["payload"]["blocks"].as_array().unwrap().is_empty());
    let prompts = events.iter().filter(|event| {
        event["type"] == "message.user" && event["payload"]["blocks"][0]["label"] != "system_prompt"
    });
    let decided = |decision: &str| {
        events.iter().filter(|event| event["payload"]["result"]["decision"] == decision).count()
    };
    json!({
        "message_user_prompts": prompts.count(),
        "message_assistant_events": spoken.count(),
        "responses": responses.len(),
        "tool_call": of("tool.call", None),
        "tool_result": of("tool.result", None),
        "calls_without_result": dangling,
        "turns_started": of("step.started", Some("turn")),
        "turns_ended_by_a_record": of("step.completed", Some("turn")),
        "approvals": {
            "asked": of("step.started", Some("approval")),
            "allowed": decided("allowed"),
            "denied": decided("denied"),
        },
        "child_runs": of("step.call_workflow.started", None),
        "thinking_blocks": blocks("thinking"),
        "text_blocks": blocks("text"),
        "compactions": of("step.started", Some("compaction")),
        "retries": of("step.completed", Some("retry")),
    })
}
