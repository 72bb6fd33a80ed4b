//! Recordings of connections that the user named: several sessions in one file, of which one is forgotten.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{assert_absent, assert_present, done};
use crate::kit::Steno;

const FIRST: &str = "0199c2a4-6f1e-7b20-9c3d-5e6f70819203";
const SECOND: &str = "0199c2a4-6f1e-7b20-9c3d-5e6f70819204";

/// What is said in a session.
fn canary(session: &str) -> &'static str {
    if session == FIRST { "zq9sessionone" } else { "zq9sessiontwo" }
}

/// Messages with their directions, one per line.
fn recording(messages: impl IntoIterator<Item = (&'static str, Value)>) -> String {
    let line = |(at, (dir, message)): (usize, (&str, Value))| {
        json!({"dir": dir, "t": 1_780_906_500 + at, "msg": message}).to_string() + "\n"
    };
    messages.into_iter().enumerate().map(line).collect()
}

fn codex() -> String {
    let begin = [
        (
            "c2s",
            json!({"method": "initialize", "id": 1, "params": {"clientInfo": {"name": "e", "version": "1"}}}),
        ),
        ("s2c", json!({"id": 1, "result": {"userAgent": "e/0.166.0"}})),
    ];
    let thread = |number: usize, id: &'static str| {
        let (say, turn) = (canary(id), format!("turn{number}"));
        let text = json!([{"type": "text", "text": format!("Prompt {say}")}]);
        let thread = json!({"id": id, "sessionId": id, "preview": "", "cwd": "/w"});
        let item = json!({"type": "agentMessage", "id": "m", "text": format!("Answer {say}")});
        vec![
            ("c2s", json!({"method": "thread/start", "id": number * 10, "params": {"cwd": "/w"}})),
            ("s2c", json!({"id": number * 10, "result": {"thread": thread, "model": "m"}})),
            (
                "c2s",
                json!({"method": "turn/start", "id": number * 10 + 1, "params": {"threadId": id, "input": text}}),
            ),
            ("s2c", json!({"id": number * 10 + 1, "result": {"turn": {"id": turn}}})),
            ("s2c", json!({"method": "turn/started", "params": {"threadId": id, "turn": {"id": turn}}})),
            (
                "s2c",
                json!({"method": "item/completed", "params": {"threadId": id, "turnId": turn, "item": item}}),
            ),
            (
                "s2c",
                json!({"method": "turn/completed", "params": {"threadId": id, "turn": {"id": turn, "status": "completed"}}}),
            ),
        ]
    };
    recording(begin.into_iter().chain(thread(1, FIRST)).chain(thread(2, SECOND)))
}

fn acp() -> String {
    let agent = json!({"protocolVersion": 1, "agentInfo": {"name": "gemini-cli", "version": "0.61.0"}});
    let begin = [
        ("c2s", json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})),
        ("s2c", json!({"jsonrpc": "2.0", "id": 0, "result": agent})),
    ];
    let session = |number: usize, id: &'static str| {
        let say = canary(id);
        let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": format!("Prompt {say}")}]});
        let answer = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": format!("Answer {say}")}});
        vec![
            (
                "c2s",
                json!({"jsonrpc": "2.0", "id": number * 10, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}}),
            ),
            ("s2c", json!({"jsonrpc": "2.0", "id": number * 10, "result": {"sessionId": id}})),
            (
                "c2s",
                json!({"jsonrpc": "2.0", "id": number * 10 + 1, "method": "session/prompt", "params": prompt}),
            ),
            (
                "s2c",
                json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": id, "update": answer}}),
            ),
            ("s2c", json!({"jsonrpc": "2.0", "id": number * 10 + 1, "result": {"stopReason": "end_turn"}})),
        ]
    };
    recording(begin.into_iter().chain(session(1, FIRST)).chain(session(2, SECOND)))
}

fn mcp() -> String {
    let server = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "sums", "version": "1"}});
    let begin = [
        (
            "c2s",
            json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}),
        ),
        ("s2c", json!({"jsonrpc": "2.0", "id": 0, "result": server})),
    ];
    let call = |number: usize, id: &'static str| {
        let say = canary(id);
        let params =
            json!({"name": "add", "arguments": {"a": format!("Prompt {say}")}, "_meta": {"threadId": id}});
        let result = json!({"content": [{"type": "text", "text": format!("Answer {say}")}]});
        // It names no session: it belongs to that of the call before.
        let read = json!({"uri": format!("file:///w/{say}")});
        vec![
            ("c2s", json!({"jsonrpc": "2.0", "id": number * 10, "method": "tools/call", "params": params})),
            ("s2c", json!({"jsonrpc": "2.0", "id": number * 10, "result": result})),
            (
                "c2s",
                json!({"jsonrpc": "2.0", "id": number * 10 + 1, "method": "resources/read", "params": read}),
            ),
            (
                "s2c",
                json!({"jsonrpc": "2.0", "id": number * 10 + 1, "result": {"contents": [{"uri": "u", "text": say}]}}),
            ),
        ]
    };
    recording(begin.into_iter().chain(call(1, FIRST)).chain(call(2, SECOND)))
}

/// What the server alone wrote, without directions.
fn bare(recording: &str) -> String {
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["dir"] == "s2c").then(|| line["msg"].to_string() + "\n")
    };
    recording.lines().filter_map(line).collect()
}

/// The agent's own file of a session.
fn write_rollout(steno: &Steno, session: &str) {
    let dir = steno.dir.path().join(".codex/sessions/2026/06/08");
    fs::create_dir_all(&dir).unwrap();
    let time = "2026-06-08T08:14:42.000Z";
    let say = canary(session);
    let lines = [
        json!({"timestamp": time, "type": "session_meta", "payload": {"id": session, "cwd": "/w", "timestamp": time, "cli_version": "0.166.0"}}),
        json!({"timestamp": time, "type": "event_msg", "payload": {"type": "user_message", "message": format!("Prompt {say}")}}),
    ];
    let text: String = lines.iter().map(|line| line.to_string() + "\n").collect();
    fs::write(dir.join(format!("rollout-2026-06-08T08-14-42-{session}.jsonl")), text).unwrap();
}

/// Archives a recording of two sessions, and the agent's own files of some of them.
fn archived(steno: &Steno, content: &[u8], own: &[&str]) -> PathBuf {
    for session in own {
        write_rollout(steno, session);
    }
    if !own.is_empty() {
        done(&steno.run(&["import"]));
    }
    let file = steno.dir.path().join("recording.jsonl");
    fs::write(&file, content).unwrap();
    done(&steno.run(&["import", file.to_str().unwrap()]));
    file
}

fn sessions(steno: &Steno) -> Vec<String> {
    let mut ids: Vec<String> = steno
        .run(&["ls", "--json"])
        .json()
        .iter()
        .map(|row| row["run_id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

/// Forgets each of two sessions of a recording, with and without files of the agent, and expects the other to stay.
#[track_caller]
fn check(content: &[u8], name: &str) {
    for own in [&[][..], &[FIRST], &[SECOND], &[FIRST, SECOND]] {
        for (going, staying) in [(FIRST, SECOND), (SECOND, FIRST)] {
            let name = format!("{name}, own files {own:?}, without {going}");
            let steno = Steno::new();
            let file = archived(&steno, content, own);
            let before = sessions(&steno);
            assert_eq!(before.len(), 2, "{name}: {before:?}");
            // Without a file of the agent, the session may have the id of its run.
            let said = steno.run(&["search", canary(going), "--json"]).json();
            let id = said[0]["run_id"].as_str().or(said[0]["session"].as_str()).unwrap_or(going).to_owned();
            let shown = steno.run(&["show", staying]).out;
            done(&steno.run(&["forget", &id, "--yes"]));
            assert_absent(&steno, canary(going), &name);
            assert_eq!(sessions(&steno).len(), 1, "{name}");
            assert_present(&steno, canary(staying));
            assert_eq!(steno.run(&["show", staying]).out, shown, "{name}");
            assert_eq!(steno.run(&["verify"]).code, 0, "{name}");
            done(&steno.run(&["import"]));
            steno.run(&["import", file.to_str().unwrap()]);
            assert_absent(&steno, canary(going), &format!("{name}, after the next import"));
            // The file goes with its last session.
            done(&steno.run(&["forget", staying, "--yes"]));
            assert_absent(&steno, canary(staying), &name);
        }
    }
}

#[test]
fn one_thread_of_a_named_connection_to_codex_is_forgotten() {
    check(codex().as_bytes(), "app-server");
    check(bare(&codex()).as_bytes(), "app-server alone");
}

#[test]
fn one_session_of_a_named_connection_to_an_agent_is_forgotten() {
    check(acp().as_bytes(), "acp");
}

#[test]
fn one_session_of_a_named_connection_to_an_mcp_server_is_forgotten() {
    check(mcp().as_bytes(), "mcp");
}

#[test]
fn one_session_of_a_compressed_recording_is_forgotten() {
    check(&zstd::encode_all(codex().as_bytes(), 1).unwrap(), "compressed");
}

#[test]
fn recording_that_is_named_by_its_path_is_forgotten_alone() {
    let steno = Steno::new();
    let file = archived(&steno, codex().as_bytes(), &[FIRST]);
    done(&steno.run(&["forget", file.to_str().unwrap(), "--yes"]));
    assert_absent(&steno, canary(SECOND), "by path");
    assert_present(&steno, &format!("Prompt {}", canary(FIRST)));
    assert_eq!(sessions(&steno), [FIRST]);
}
