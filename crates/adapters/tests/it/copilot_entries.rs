//! The same work gives the same types of entries in Copilot's records as in those of other agents (R32).

use steno_adapters::{Source, copilot};
use steno_model::{EntryType, Vocabulary as _};
use steno_testkit::{needs, places, shared_dir};

use crate::codex_files::files_below;
use crate::reading::{Entry, output, read, source_of};

/// The types of entries, without those by which each program tells of itself.
fn types(entries: &[Entry]) -> Vec<&'static str> {
    let kept = |kind: &EntryType| {
        !matches!(kind, EntryType::SystemEvent | EntryType::TokenUsage | EntryType::Unknown)
    };
    entries.iter().map(|entry| entry.kind).filter(kept).map(EntryType::as_str).collect()
}

/// Reads lines after the beginning of a session.
#[track_caller]
fn check(name: &str, lines: &[&str], want: &str) {
    const START: &str = r#"{"type":"session.start","data":{"sessionId":"3c000000-0000-4000-8000-000000000001"},"id":"e0","timestamp":"2026-06-08T08:14:42.000Z"}"#;
    let text = [&[START], lines, &[""]].concat().join("\n");
    let reading = read(copilot::events(Source::named("s1")), &[output(text.as_bytes())]);
    assert_eq!(types(&reading.entries).join(" "), want, "{name}");
    assert_eq!(reading.completeness.unknown.len(), 0, "{name}");
    assert!(reading.entries.len() > lines.len(), "{name}: every line has an entry");
}

#[test]
fn each_operation_has_the_usual_entries() {
    let says = |data: &str| format!(r#"{{"type":"assistant.message","data":{{{data}}},"id":"e1"}}"#);
    let call =
        |id: &str, name: &str| format!(r#"{{"toolCallId":"{id}","name":"{name}","arguments":{{"a":1}}}}"#);
    let done = |id: &str, more: &str| {
        format!(r#"{{"type":"tool.execution_complete","data":{{"toolCallId":"{id}",{more}}},"id":"r{id}"}}"#)
    };
    let start = |id: &str| {
        format!(
            r#"{{"type":"tool.execution_start","data":{{"toolCallId":"{id}","toolName":"bash","arguments":{{"a":1}}}},"id":"s{id}"}}"#
        )
    };
    let ok = r#""success":true,"result":{"content":"x"}"#;
    let failed = r#""success":false,"error":{"message":"no","code":"failure"}"#;
    let one = says(&format!(r#""content":"","toolRequests":[{}]"#, call("c1", "bash")));
    let two = says(&format!(r#""toolRequests":[{},{}]"#, call("c1", "view"), call("c2", "apply_patch")));
    check("a prompt", &[r#"{"type":"user.message","data":{"content":"Go"},"id":"e1"}"#], "user_message");
    check("a text", &[&says(r#""content":"Done.""#)], "assistant_message");
    check("a thought", &[&says(r#""content":"","reasoningText":"Hm.""#)], "thinking");
    check(
        "a thought that is told twice",
        &[
            &says(r#""content":"","reasoningText":"Hm.""#),
            r#"{"type":"assistant.reasoning","data":{"reasoningId":"r","content":"Hm."},"id":"e2","ephemeral":true}"#,
        ],
        "thinking",
    );
    check("a command", &[&one, &start("c1"), &done("c1", ok)], "tool_use tool_result");
    check("a call that failed", &[&one, &done("c1", failed)], "tool_use tool_result");
    check(
        "two calls at once",
        &[&two, &start("c1"), &start("c2"), &done("c2", ok), &done("c1", ok)],
        "tool_use tool_use tool_result tool_result",
    );
    check("a call without a result", &[&one], "tool_use");
    check("a result without a call", &[&done("c9", ok)], "tool_result");
    check(
        "an error",
        &[r#"{"type":"session.error","data":{"errorType":"x","message":"no"},"id":"e1"}"#],
        "error",
    );
}

const THOUGHT_TEXT_CALL: &str = "thinking assistant_message tool_use tool_result";
const TWO_CALLS: &str = "tool_use tool_use tool_result tool_result";
const CALL: &str = "tool_use tool_result";

/// The rounds of the main agent: the same script as that of the other agents, but for what it delegates.
const ROUNDS: [&str; 11] = [
    "user_message user_message",
    THOUGHT_TEXT_CALL,
    "thinking tool_use tool_result",
    "assistant_message tool_use tool_use tool_result tool_result",
    CALL,
    CALL,
    "tool_use tool_use tool_use tool_result tool_result tool_result",
    TWO_CALLS,
    TWO_CALLS,
    "assistant_message tool_use tool_result",
    "thinking assistant_message",
];

#[test]
fn script_of_the_captures_gives_the_same_types() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let capture = shared.join("captures/copilot/1.0.102/main_responses");
    let path = files_below(&capture.join("home"), "events.jsonl").remove(0);
    let reading = read(copilot::events(source_of(&path)), &[output(&places::read_bytes(&path))]);
    let (main, sub): (Vec<Entry>, Vec<Entry>) =
        reading.entries.into_iter().partition(|entry| entry.source == "main");
    assert_eq!(types(&main).join(" "), ROUNDS.join(" "));
    assert_eq!(
        types(&sub).join(" "),
        format!("user_message user_message thinking {CALL} {CALL} assistant_message")
    );
    let count =
        |entries: &[Entry]| entries.iter().filter(|entry| entry.kind == EntryType::TokenUsage).count();
    // 10 responses and the session's total; 3 responses.
    assert_eq!((count(&main), count(&sub)), (11, 3));
}
