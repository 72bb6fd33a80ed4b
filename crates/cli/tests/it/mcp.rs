//! `steno mcp`: agent and server work as usual, and calls are recorded, even after kills.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use crate::app_server::AppServerClient;
use crate::kit::{Steno, wait_until};

const SESSION: &str = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const STENO_RUN: &str = "7c9e6679-7425-40de-944b-e07fc1f90aff";

/// A server that answers calls as far as it goes, and ends with 7.
const SERVER: &str = r#"
printf 'sums is ready\n'
while IFS= read -r line; do
  case "$line" in
    *initialize*) printf '%s\n' '{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"sums","version":"1"}}}' ;;
    *'"bad"'*) printf '%s\n' '{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such tool"}}' ;;
    *tools/call*) printf '%s\n' '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\u00e9 5"}]}}' ;;
  esac
done
exit 7
"#;

const SAID: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{},"clientInfo":{"name":"a","version":"3"}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":2},"_meta":{"claudecode/toolUseId":"toolu_1"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"bad"}}"#,
];

fn command(steno: &Steno, args: &[&str]) -> Command {
    let mut command = steno.command(&[&["mcp"], args, &["--", "sh", "-c", SERVER]].concat());
    for name in ["CLAUDE_CODE_SESSION_ID", "COPILOT_AGENT_SESSION_ID", "STENO_RUN"] {
        command.env_remove(name);
    }
    command
}

/// Talks to the server and ends the connection; returns what it answered, the exit code and the messages on stderr.
fn talk(command: Command) -> (Vec<String>, i32, String) {
    let mut connected = AppServerClient::of(command);
    let mut answers = vec![connected.hear()];
    for line in SAID {
        connected.say(line);
        answers.push(connected.hear());
    }
    let (rest, code, talk) = connected.end();
    assert_eq!(rest, "");
    (answers, code, talk)
}

/// Returns the events of all runs.
fn events(steno: &Steno) -> Vec<Value> {
    let mut events = Vec::new();
    for entry in fs::read_dir(steno.store().join("transcripts")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap_or_default();
        events.extend(text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    events.retain(|event| event.get("type").is_some());
    events
}

fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[test]
fn both_sides_get_every_byte_and_calls_are_recorded() {
    let steno = Steno::new();
    let mut named = command(&steno, &["--name", "calc"]);
    named.env("CLAUDE_CODE_SESSION_ID", SESSION).env("STENO_RUN", STENO_RUN);
    let (answers, code, talk) = talk(named);
    assert_eq!((code, talk.as_str()), (7, ""));
    assert_eq!(answers[0], "sums is ready\n");
    assert_eq!(
        answers[2],
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9 5\"}]}}\n"
    );
    let events = events(&steno);
    let want = [
        "run.started",
        "step.completed",
        "tool.call",
        "tool.result",
        "tool.call",
        "tool.result",
        "run.completed",
    ];
    assert_eq!(types(&events), want);
    assert_eq!(events[0]["session_run_id"], SESSION);
    let call = &events[2]["payload"];
    assert_eq!((&call["name"], &call["call_id"]), (&json!("mcp__calc__add"), &json!("toolu_1")));
    assert_eq!(call["fidelity"], "router");
    assert_eq!(events[5]["payload"]["error"], "no such tool");
    assert_eq!(events[6]["payload"]["exit_code"], 7);
    // The vault has the connection, and no spine was made of it.
    assert_eq!(fs::read_dir(steno.store().join("connections")).unwrap().count(), 0);
    assert!(!steno.store().join("spine").exists());
    assert_eq!(steno.run(&["verify"]).code, 0);
    let shown = steno.run(&["show", SESSION]);
    assert!(shown.code == 0 && shown.out.contains("mcp__calc__add"), "{shown:?}");
    // No agent has written the recording, but it is known.
    let imported = steno.run(&["import", "--json"]).json();
    assert_eq!(imported[0]["files_of_no_agent"], 0, "{imported:?}");
}

#[test]
fn run_of_steno_run_is_the_session_if_the_agent_names_none() {
    let steno = Steno::new();
    let mut named = command(&steno, &[]);
    named.env("STENO_RUN", STENO_RUN);
    talk(named);
    let events = events(&steno);
    assert_eq!(
        (&events[0]["session_run_id"], &events[2]["payload"]["name"]),
        (&json!(STENO_RUN), &json!("mcp__sums__add"))
    );
}

#[test]
fn server_starts_although_nothing_can_be_recorded() {
    let steno = Steno::new();
    fs::write(steno.store(), "not a directory").unwrap();
    let (answers, code, talk_of_store) = talk(command(&steno, &[]));
    assert_eq!((answers.len(), code), (4, 7));
    assert!(talk_of_store.contains("NOTHING IS RECORDED"), "{talk_of_store}");
    let config = steno.dir.path().join("broken.toml");
    fs::write(&config, "color = 7\n").unwrap();
    let config = config.to_str().unwrap().to_owned();
    let (answers, code, talk_of_settings) = talk(command(&steno, &["--config", &config]));
    assert_eq!((answers.len(), code), (4, 7));
    assert!(talk_of_settings.contains("NOTHING IS RECORDED"), "{talk_of_settings}");
}

#[test]
fn killed_recorder_loses_no_call_it_wrote() {
    let steno = Steno::new();
    let mut connected = AppServerClient::of(command(&steno, &[]));
    connected.hear();
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    let dir = steno.store().join("connections");
    let spooled = || {
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        entries.map(|entry| fs::read_to_string(entry.path()).unwrap().lines().count()).sum::<usize>()
    };
    wait_until("all is written", || spooled() == 8);
    connected.child.kill().unwrap();
    connected.child.wait().unwrap();
    let said = steno.run(&["verify"]);
    assert!(said.code == 0 && said.out.contains("left by a crash"), "{said:?}");
    let path = fs::read_dir(&dir).unwrap().next().unwrap().unwrap().path();
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"dir\":\"c2s\",\"t\":1").unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    let events = events(&steno);
    assert_eq!(
        types(&events),
        ["run.started", "step.completed", "tool.call", "tool.result", "tool.call", "tool.result"]
    );
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
    assert!(!steno.store().join("spine").exists());
}

#[test]
fn nothing_is_recorded_of_a_forgotten_session_or_during_a_pause() {
    let steno = Steno::new();
    let of_session = |steno: &Steno| {
        let mut named = command(steno, &[]);
        named.env("CLAUDE_CODE_SESSION_ID", SESSION);
        talk(named)
    };
    of_session(&steno);
    assert_eq!(events(&steno).len(), 7);
    assert_eq!(steno.run(&["forget", SESSION, "--yes"]).code, 0);
    assert_eq!(events(&steno).len(), 0);
    let (_, code, _) = of_session(&steno);
    assert_eq!((code, events(&steno).len()), (7, 0));
    let other = Steno::new();
    of_session(&other);
    other.run(&["pause"]);
    of_session(&other);
    other.run(&["resume"]);
    other.run(&["import"]);
    let calls = |events: Vec<Value>| events.iter().filter(|event| event["type"] == "tool.call").count();
    assert_eq!(calls(events(&other)), 2);
}

#[test]
fn usage_is_checked() {
    let steno = Steno::new();
    assert_eq!(steno.run(&["mcp"]).code, 2);
    assert_eq!(steno.run(&["mcp", "--undo", "--", "true"]).code, 2);
    let said = steno.run(&["mcp", "--", "/nothing/there"]);
    assert!(said.code == 3 && said.err.contains("hint:"), "{said:?}");
}

/// A session file of Claude Code that makes the first call.
fn claude_file(steno: &Steno) -> String {
    let head = format!(r#""sessionId":"{SESSION}","timestamp":"2026-06-08T08:14:42.123Z""#);
    let lines = [
        format!(r#"{{"type":"user","uuid":"u1",{head},"message":{{"role":"user","content":"Add it."}}}}"#),
        format!(
            r#"{{"type":"assistant","uuid":"u2","parentUuid":"u1",{head},"message":{{"id":"msg_1","role":"assistant","model":"m","stop_reason":"tool_use","content":[{{"type":"tool_use","id":"toolu_1","name":"mcp__calc__add","input":{{"a":2}}}}],"usage":{{"input_tokens":3,"output_tokens":5}}}}}}"#
        ),
        format!(
            r#"{{"type":"user","uuid":"u3","parentUuid":"u2",{head},"message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_1","content":"5"}}]}}}}"#
        ),
    ];
    let path = steno.dir.path().join(format!("{SESSION}.jsonl"));
    fs::write(&path, lines.map(|line| line + "\n").concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn channels_of_each_fact_are_shown() {
    let steno = Steno::new();
    let mut named = command(&steno, &["--name", "calc"]);
    named.env("CLAUDE_CODE_SESSION_ID", SESSION);
    talk(named);
    assert_eq!(steno.run(&["import", &claude_file(&steno)]).code, 0);
    let shown = steno.run(&["show", SESSION, "--channels", "--json"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let rows: Vec<(Value, Value, Value)> = shown
        .json()
        .into_iter()
        .map(|row| (row["fact"].clone(), row["name"].clone(), row["channels"].clone()))
        .collect();
    let row = |fact: &str, name: Value, channels: Value| (json!(fact), name, channels);
    let want = [
        row("prompt", json!("Add it."), json!(["disk"])),
        row("call", json!("mcp__calc__add"), json!(["disk", "mcp"])),
        row("result", json!("ok"), json!(["mcp"])),
        row("usage", Value::Null, json!(["disk"])),
    ];
    for want in want {
        assert!(rows.contains(&want), "{want:?} in {rows:#?}");
    }
    // The call that only the server saw.
    assert!(rows.contains(&row("call", json!("mcp__calc__bad"), json!(["mcp"]))), "{rows:#?}");
    let text = steno.run(&["show", SESSION, "--channels"]).out;
    assert!(text.contains("call      disk, mcp         mcp__calc__add"), "{text}");
}
