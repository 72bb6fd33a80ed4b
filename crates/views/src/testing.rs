//! Events from a short notation, for tests.
//!
//! A line is `TYPE PATH [field=value …]`; `-` is the empty path. Types: `run`, `end`, `>` and `<` for a step's start
//! and end, `>>` and `<<` for a called workflow's, `u` and `a` for messages, `c` and `r` for a call and its result;
//! anything else is the type itself. A step has the last name of its path unless `name=` gives another.

use serde_json::{Map, Value, json};
use steno_model::{ExchangeEvent, RunId};

use crate::tree::StepPath;

/// Returns the id of the test run with this number.
pub(crate) fn run_id(number: u32) -> RunId {
    RunId::parse(&format!("{number:08x}-0000-4000-8000-000000000000")).unwrap()
}

/// Returns the events of a test run, numbered from 1, one second apart.
pub(crate) fn events<S: AsRef<str>>(run: u32, lines: &[S]) -> Vec<ExchangeEvent> {
    let event = |(index, line): (usize, &S)| event(run, index as u64 + 1, line.as_ref());
    lines.iter().enumerate().map(event).collect()
}

/// Returns the time of the event with this number.
pub(crate) fn time(seq: u64) -> String {
    format!("2026-06-08T{:02}:{:02}:{:02}Z", seq / 3600 % 24, seq / 60 % 60, seq % 60)
}

fn event(run: u32, seq: u64, line: &str) -> ExchangeEvent {
    let mut words = line.split_whitespace();
    let (short, path) = (words.next().unwrap(), words.next().unwrap_or("-"));
    let path = if path == "-" { "" } else { path };
    let fields: Map<String, Value> = words
        .map(|word| word.split_once('=').expect("field=value"))
        .map(|(name, value)| (name.to_owned(), value.replace('_', " ").into()))
        .collect();
    let mut line = json!({
        "seq": seq,
        "run_id": run_id(run).to_string(),
        "type": long_type(short),
        "path": path,
        "iteration": 0,
        "timestamp": time(seq),
        "payload": payload(short, path, &fields),
    });
    for (name, value) in &fields {
        let text = value.as_str().unwrap();
        match name.as_str() {
            "it" => line["iteration"] = number(text),
            "try" => line["attempt"] = number(text),
            "loop" => line["loop"] = text.split(',').map(number).collect(),
            "child" | "parent" | "session" => {
                line[format!("{name}_run_id")] = run_id(text.parse().unwrap()).to_string().into();
            }
            _ => {}
        }
    }
    ExchangeEvent::parse(line.to_string().as_bytes()).unwrap()
}

fn number(text: &str) -> Value {
    text.parse::<u64>().unwrap().into()
}

fn long_type(short: &str) -> &str {
    match short {
        "run" => "run.started",
        "end" => "run.completed",
        ">" => "step.started",
        "<" => "step.completed",
        ">>" => "step.call_workflow.started",
        "<<" => "step.call_workflow.completed",
        "u" => "message.user",
        "a" => "message.assistant",
        "c" => "tool.call",
        "r" => "tool.result",
        other => other,
    }
}

fn payload(short: &str, path: &str, fields: &Map<String, Value>) -> Value {
    let field = |name: &str, default: &str| fields.get(name).cloned().unwrap_or_else(|| default.into());
    let last = StepPath::parse(path).names().last().cloned().unwrap_or_default();
    let mut payload = match short {
        "u" => json!({"role": "user", "blocks": [{"type": "text", "text": "Hi."}]}),
        "a" => json!({"role": "assistant", "blocks": [{"type": "text", "text": "Hi."}]}),
        "c" | "r" => json!({
            "name": "tool", "call_id": field("call", "call-1"), "input": {}, "output": null,
            "fidelity": field("via", "agent emitted").as_str().unwrap().replace(' ', "_"),
        }),
        "run" | "end" if fields.is_empty() => return Value::Null,
        _ => json!({"name": field("name", &last), "kind": field("kind", "command")}),
    };
    if let Some(error) = fields.get("error") {
        payload["error"] = error.clone();
    }
    if let Some(call) = fields.get("call").filter(|_| matches!(short, ">" | "<" | ">>" | "<<")) {
        payload["tool_call_id"] = call.clone();
    }
    payload
}
