//! Every JSON example of the specifications 000, 002 and 004 and of the mapping rules, copied out by hand: each is
//! read and written back with the same meaning, and with the same bytes once its fields are in canonical order.

use steno_model::{EntryType, ExchangeEvent, LogRecord, SpineRecord, Unknowns};

use crate::kit::{line, meaning, written};

/// 002, the envelope.
const ENVELOPE: &str = r#"{
  "seq": 1,
  "run_id": "550e8400-e29b-41d4-a716-446655440000",
  "type": "run.started",
  "path": "",
  "iteration": 0,
  "timestamp": "2026-06-08T08:14:42.123Z",
  "payload": null
}"#;

/// 002, payloads: examples that show a type and a payload, and leave the rest of the envelope out.
const EVENTS: [&str; 3] = [
    r#"{
  "type": "step.started",
  "payload": {
    "name": "analyze",
    "kind": "agent"
  }
}"#,
    r#"{
  "type": "message.user",
  "payload": {
    "role": "user",
    "blocks": [
      {"type": "text", "fidelity": "router", "text": "Review main.go for bugs."}
    ]
  }
}"#,
    r#"{
  "type": "tool.call",
  "payload": {
    "name": "Read",
    "call_id": "tool_01H...",
    "input": {"path": "main.go"},
    "output": null,
    "fidelity": "router"
  }
}"#,
];

/// 002, blocks.
const BLOCKS: [&str; 5] = [
    r#"{"type": "text", "fidelity": "agent_emitted", "text": "Found 2 issues."}"#,
    r#"{"type": "thinking", "fidelity": "agent_emitted", "thinking": "First I should..."}"#,
    r#"{"type": "tool_use", "fidelity": "agent_emitted", "tool_name": "Read", "tool_id": "toolu_01", "tool_input": {"path": "main.go"}}"#,
    r#"{"type": "tool_result", "fidelity": "router", "tool_id": "toolu_01", "tool_content": "package main\n..."}"#,
    r#"{"type": "command", "fidelity": "router", "command": "go test ./..."}"#,
];

/// 000, a log record that carries an entry.
const ENTRY: &str = r#"{
  "event": "transcript.entry",
  "context": {
    "prompt_name": "code-review",
    "adapter": "claude_agent_sdk",
    "entry_type": "assistant_message",
    "sequence_number": 3,
    "source": "main",
    "timestamp": "2024-01-15T10:30:00.123+00:00",
    "session_id": "550e8400-e29b-41d4-a716-446655440000",
    "detail": {
      "sdk_entry": {
        "type": "assistant",
        "message": { "role": "assistant", "content": "I'll analyze the code..." }
      }
    }
  }
}"#;

/// 004, the envelope of a spine record.
const SPINE: &str = r#"{
  "schema_version": "codex_trace_spine_v1",
  "thread_id": "thread_123",
  "seq": 42,
  "timestamp": "2026-01-31T08:15:24.123Z",
  "type": "event",
  "payload": { "id": "turn_abc", "msg": { "type": "exec_command_end", "payload": { "exit_code": 0 } } }
}"#;

/// The mapping rules' own examples: steps of custom kinds, extra fields in envelopes and payloads.
const MAPPED: [&str; 10] = [
    r#"{"type":"run.started","payload":{"name":"claude","kind":"session","source":{"channel":"disk","version":"2.1.325","adapter":"claude/1","carries":["calls","thinking","usage"]}}}"#,
    r#"{"type":"step.started","path":"turn-0001","payload":{"name":"turn-0001","kind":"turn","turn_id":"01a1…","settings":{"model":"gpt-5.5","approval_policy":"never"}}}"#,
    r#"{"type":"message.assistant","path":"turn-0001","payload":{"role":"assistant","blocks":[{"type":"text","fidelity":"agent_emitted","text":"Delegating."}],"id":"0516…","response":"msg_0166…","model":"claude-opus-5-5","stop_reason":"tool_use","usage":{"output_tokens":72},"usage_scope":"response","final":true}}"#,
    r#"{"type":"tool.call","path":"turn-0001","payload":{"name":"exec_command","call_id":"call_62c1…","input":{"cmd":"exit 3"},"output":null,"fidelity":"agent_emitted","class":"command"}}"#,
    r#"{"type":"tool.result","path":"turn-0001","payload":{"name":"exec_command","call_id":"call_62c1…","input":null,"output":"partial\nboom\n","error":"exit code 3","outcome":"failed","exit_code":3,"fidelity":"agent_emitted"}}"#,
    r#"{"type":"step.started","path":"turn-0001.approval","payload":{"name":"be1b…","kind":"approval","tool_call_id":"toolu_01c2…"}}"#,
    r#"{"type":"step.completed","path":"turn-0001.approval","payload":{"name":"be1b…","kind":"approval","tool_call_id":"toolu_01c2…","result":{"decision":"denied","by":"host","scope":"once","raw":"deny"}}}"#,
    r#"{"type":"step.call_workflow.started","child_run_id":"0b1f9a52-6c3e-5f0d-9a77-2f1f6f0c9d11","path":"turn-0001.subagent","payload":{"name":"general-purpose","kind":"subagent","tool_call_id":"toolu_01d2…"}}"#,
    r#"{"type":"step.completed","path":"turn-0001","payload":{"name":"api","kind":"retry","error":"529 overloaded","result":{"attempt":1,"max":10,"delay_ms":1000}}}"#,
    r#"{"type":"step.completed","path":"","payload":{"name":"new-type","kind":"unknown"},"evidence":{"source":"s1","generation":0,"offset":9012,"length":88,"part":0}}"#,
];

/// Reads an event line in every mode, writes it back, and looks for a change.
#[track_caller]
fn check(line: &str) {
    let event = ExchangeEvent::parse(line.as_bytes()).unwrap();
    assert_eq!(ExchangeEvent::parse_strict(line.as_bytes()), Ok(event.clone()));
    assert_eq!(event.unknowns(), Unknowns::default());
    let canonical = event.to_line();
    assert_eq!(meaning(&canonical), meaning(line));
    let again = ExchangeEvent::parse(canonical.as_bytes()).unwrap();
    assert_eq!((again.to_line(), &again), (canonical, &event));
}

#[test]
fn envelope_example_of_002_round_trips() {
    check(ENVELOPE);
    assert_eq!(ExchangeEvent::parse(ENVELOPE.as_bytes()).unwrap().to_line(), line("run.started", "null"));
}

#[test]
fn payload_examples_of_002_round_trip() {
    for example in EVENTS {
        let recorded = written(example.as_bytes()).unwrap();
        check(&recorded);
        assert_eq!(ExchangeEvent::parse(recorded.as_bytes()).unwrap().to_line(), recorded);
        assert_eq!(meaning(&recorded)["payload"], meaning(example)["payload"]);
    }
}

#[test]
fn block_examples_of_002_round_trip() {
    for block in BLOCKS {
        let sent =
            format!(r#"{{"type":"message.assistant","payload":{{"role":"assistant","blocks":[{block}]}}}}"#);
        let recorded = written(sent.as_bytes()).unwrap();
        check(&recorded);
        let event = ExchangeEvent::parse(recorded.as_bytes()).unwrap();
        assert!(event.payload.as_str().contains(block), "{recorded}");
        assert_eq!(meaning(event.payload().to_json().as_str())["blocks"][0], meaning(block));
    }
}

#[test]
fn mapping_examples_round_trip() {
    for example in MAPPED {
        let recorded = written(example.as_bytes()).unwrap();
        check(&recorded);
        for (name, value) in meaning(example).as_object().unwrap() {
            assert_eq!(meaning(&recorded)[name], *value, "{name} of {recorded}");
        }
    }
}

#[test]
fn entry_example_of_000_round_trips() {
    let record = LogRecord::parse(ENTRY).unwrap();
    assert_eq!(meaning(&record.to_line()), meaning(ENTRY));
    let entry = record.entry().unwrap().unwrap();
    assert_eq!((entry.entry_type(), entry.sequence_number()), (EntryType::AssistantMessage, 3));
    assert_eq!(meaning(entry.to_json().as_str()), meaning(ENTRY)["context"]);
    let again = LogRecord::parse(&LogRecord::of_entry(&entry).to_line()).unwrap();
    assert_eq!(again.entry().unwrap(), Some(entry));
}

#[test]
fn record_example_of_004_round_trips() {
    let record = SpineRecord::parse(SPINE.as_bytes()).unwrap();
    let canonical = record.to_line();
    assert_eq!(meaning(&canonical), meaning(SPINE));
    assert_eq!(SpineRecord::parse(canonical.as_bytes()).unwrap(), record);
}
