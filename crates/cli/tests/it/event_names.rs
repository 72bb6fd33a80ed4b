//! Events are named `RUN:SEQ` everywhere, because a session may have several runs.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::kit::{Steno, TIME, id};

/// Which field has the run of a number.
const NUMBERS: [(&str, &str); 6] = [
    ("seq", "run"),
    ("seq_started", "run_started"),
    ("seq_completed", "run_completed"),
    ("seq_last", "run_last"),
    ("seq_call", "run"),
    ("seq_result", "run"),
];

fn event(kind: &str, path: &str, payload: &Value) -> Value {
    json!({"type": kind, "path": path, "timestamp": TIME, "payload": payload})
}

fn started(channel: &str) -> Value {
    let source = json!({"channel": channel, "adapter": "codex/2", "carries": ["calls", "approvals"]});
    event("run.started", "", &json!({"name": "codex", "kind": "session", "source": source}))
}

/// A session with its own file, and a connection that has the approval of its call.
fn session() -> Steno {
    let steno = Steno::new();
    let path = "turn-0001";
    let turn = json!({"name": path, "kind": "turn", "turn_id": "t1"});
    let call =
        json!({"name": "sh", "call_id": "c1", "input": {}, "fidelity": "agent_emitted", "class": "command"});
    let result =
        json!({"name": "sh", "call_id": "c1", "output": "o", "outcome": "ok", "fidelity": "agent_emitted"});
    let says =
        json!({"role": "user", "blocks": [{"type": "text", "fidelity": "agent_emitted", "text": "Go."}]});
    let asks = json!({"name": "q1", "kind": "approval", "tool_call_id": "c1"});
    let answers =
        json!({"name": "q1", "kind": "approval", "tool_call_id": "c1", "result": {"decision": "allowed"}});
    let own = [
        started("disk"),
        event("step.started", path, &turn),
        event("message.user", path, &says),
        event("tool.call", path, &call),
        event("tool.result", path, &result),
        event("step.completed", path, &turn),
    ];
    let mut connection = vec![started("app-server"), event("step.started", path, &turn)];
    connection.push(event("step.started", "", &json!({"name": "odd", "kind": "system"})));
    connection.push(event("tool.call", path, &call));
    connection.push(event("step.started", "turn-0001.approval", &asks));
    connection.push(event("step.completed", "turn-0001.approval", &answers));
    connection[0]["session_run_id"] = id(1).into();
    steno.recorded(&id(1), &own);
    steno.recorded(&id(2), &connection);
    steno
}

/// Collects the events that a value names, each as `RUN:SEQ`. A number without a run fails.
fn named(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (seq, run) in NUMBERS {
                let Some(number) = fields.get(seq).and_then(Value::as_u64) else { continue };
                let run = fields.get(run).or_else(|| fields.get("run_id")).and_then(Value::as_str);
                found.insert(format!("{}:{number}", run.unwrap_or_else(|| panic!("`{seq}` in {value}"))));
            }
            fields.values().for_each(|value| named(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| named(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn event_numbers_are_printed_with_their_run() {
    let steno = session();
    let commands: [&[&str]; 3] =
        [&["tree", "--json"], &["show", "--json"], &["export", "atif", "--output", "-"]];
    for command in commands {
        let said = steno.run(&[command, &[id(1).as_str()]].concat());
        assert_eq!(said.code, 0, "{command:?}: {said:?}");
        let mut found = BTreeSet::new();
        let answer: Vec<Value> =
            serde_json::Deserializer::from_str(&said.out).into_iter().map(Result::unwrap).collect();
        for value in &answer {
            named(value, &mut found);
        }
        for event in &found {
            let said = steno.run(&["events", event, "--json"]);
            assert_eq!((said.code, said.json().len()), (0, 1), "{command:?} names {event}");
        }
        // The approval belongs to the connection, not to the event of the same number in the session's own file.
        let is_asked = found.contains(&format!("{}:5", id(2)));
        assert!(is_asked || command[0] == "export", "{command:?}: {found:?}");
        assert!(found.iter().any(|event| event.starts_with(&id(1))), "{command:?}: {found:?}");
    }
}

#[test]
fn tree_step_names_the_run_of_its_events() {
    let steno = session();
    let tree = steno.run(&["tree", "--json", &id(1)]).json().remove(0);
    let turn = tree["children"].as_array().unwrap().iter().find(|step| step["kind"] == "turn").unwrap();
    let approval =
        turn["children"].as_array().unwrap().iter().find(|step| step["kind"] == "approval").unwrap();
    assert_eq!((&turn["run_started"], &turn["seq_started"]), (&json!(id(1)), &json!(2)));
    assert_eq!((&approval["run_started"], &approval["seq_started"]), (&json!(id(2)), &json!(5)));
    assert_eq!((&approval["run_completed"], &approval["seq_completed"]), (&json!(id(2)), &json!(6)));
    assert_eq!(approval["below"], json!({"run_id": id(1), "run": id(1), "seq": 2}));
    assert_eq!((&tree["run_last"], &tree["seq_last"]), (&json!(id(1)), &json!(6)));
}

#[test]
fn receipt_text_and_lines_check_name_events_by_run() {
    let steno = session();
    let turn = ["--thread", &id(1), "--turn", "turn-0001"];
    let text = steno.run(&[&["receipt", "export", "--format", "text"], &turn[..]].concat()).out;
    let span = format!("5 from {0}:2 to {0}:6, missing: none", id(1));
    assert!(text.contains(&span), "{text}");
    let receipt = steno.dir.path().join("receipt.json");
    fs::write(&receipt, steno.run(&[&["receipt", "export", "--integrity"], &turn[..]].concat()).out).unwrap();
    let lines = steno.run(&[&["receipt", "lines"], &turn[..]].concat()).out;
    let without: Vec<&str> = lines.lines().filter(|line| !line.contains("q1")).collect();
    let without = without.join("\n");
    let said =
        steno.run_with(&["receipt", "verify", receipt.to_str().unwrap(), "--lines", "-"], without.as_bytes());
    assert!(
        said.code == 1 && said.err.contains(&format!("the line of event {}:5 is missing", id(2))),
        "{said:?}"
    );
}
