//! Requests to a model that name no session: they are forgotten with the session that their ids are in.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{assert_absent, assert_present, done};
use crate::kit::Steno;

const SESSION: &str = "5a000000-0000-4000-8000-000000000001";
const CANARY: &str = "zq9forgetme";
const OTHER: &str = "zq9staysthere";

/// The recording of a proxy: two requests of the session, and one of nobody known.
fn recording() -> String {
    let mut lines: Vec<Value> = Vec::new();
    let mut line = |dir: &str, message: Value| {
        let ticket = lines.len() + 1;
        lines.push(json!({"dir": dir, "t": 1_780_906_500 + ticket, "ticket": ticket, "msg": message}));
    };
    line(
        "recorder",
        json!({"method": "steno/http", "params": {"version": 1, "upstream": "https://api.example.com"}}),
    );
    let mut exchange = |number: u32, contents: &Value, parts: Value| {
        let body = json!({"contents": contents, "tools": [{"functionDeclarations": []}]});
        let answer = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
            "modelVersion": "gem-1", "responseId": format!("g{number}")});
        let path = "/v1beta/models/gem-1:generateContent";
        line(
            "c2s",
            json!({"http": "request", "exchange": number, "method": "POST", "path": path,
            "headers": {"user_agent": "GeminiCLI/0.61.0"}, "body": body}),
        );
        line("s2c", json!({"http": "response", "exchange": number, "status": 200, "headers": {}}));
        line("s2c", json!({"http": "body", "exchange": number, "body": answer}));
        line("s2c", json!({"http": "end", "exchange": number, "outcome": "complete"}));
    };
    let user = |text: &str| json!({"role": "user", "parts": [{"text": text}]});
    let prompt = user(&format!("Go {CANARY}"));
    let dir = json!({"dir": "."});
    exchange(1, &json!([prompt]), json!([{"functionCall": {"name": "list", "args": dir}}]));
    let call = json!({"role": "model",
        "parts": [{"functionCall": {"name": "list", "id": "list_100_0", "args": dir}}]});
    let result = json!({"role": "user",
        "parts": [{"functionResponse": {"name": "list", "id": "list_100_0", "response": {"output": "done"}}}]});
    exchange(2, &json!([prompt, call, result]), json!([{"text": format!("Done {CANARY}")}]));
    exchange(3, &json!([user(OTHER)]), json!([{"text": "Blue."}]));
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

/// The agent's own file of the session.
fn chat() -> String {
    let time = "2026-06-08T08:15:02.000Z";
    let result =
        json!([{"functionResponse": {"id": "list_100_0", "name": "list", "response": {"output": "done"}}}]);
    let call = json!({"id": "list_100_0", "name": "list", "args": {"dir": "."}, "result": result,
        "status": "success", "timestamp": time});
    let lines = [
        json!({"sessionId": SESSION, "projectHash": "h", "startTime": time, "lastUpdated": time, "kind": "main"}),
        json!({"id": "u1", "timestamp": time, "type": "user", "content": [{"text": format!("Go {CANARY}")}]}),
        json!({"id": "m1", "timestamp": time, "type": "gemini", "content": "", "model": "gem-1",
            "toolCalls": [call]}),
        json!({"id": "m2", "timestamp": time, "type": "gemini", "content": format!("Done {CANARY}"),
            "model": "gem-1"}),
    ];
    lines.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n") + "\n"
}

/// Archives the session and the recording, and forgets the session.
fn forget_with(steno: &Steno, recording_at: &Path) {
    let chats = steno.dir.path().join(".gemini/tmp/shop/chats");
    fs::create_dir_all(&chats).unwrap();
    fs::write(chats.join("session-2026-06-08T08-15-5a000000.jsonl"), chat()).unwrap();
    done(&steno.run(&["import"]));
    fs::create_dir_all(recording_at.parent().unwrap()).unwrap();
    fs::write(recording_at, recording()).unwrap();
    if recording_at.starts_with(steno.store()) {
        done(&steno.run(&["import"]));
    } else {
        done(&steno.run(&["import", recording_at.to_str().unwrap()]));
    }
    let listed = steno.run(&["ls", "--json"]).json();
    let joined = listed.iter().find(|row| row["run_id"] == SESSION).unwrap();
    assert_eq!((listed.len(), &joined["runs"]), (2, &json!(2)), "{listed:?}");
    assert_present(steno, CANARY);

    let said = steno.run(&["forget", SESSION, "--yes"]);
    done(&said);
    let is_closed = said.err.contains("what is added to this file later is not archived");
    assert_eq!(is_closed, !recording_at.starts_with(steno.store()), "{said:?}");
    assert_absent(steno, CANARY, "after forget");
    assert_present(steno, OTHER);
    assert_eq!(steno.run(&["verify"]).code, 0);
    assert_eq!(steno.run(&["ls", "--json"]).json().len(), 1);
}

#[test]
fn requests_on_a_connection_are_forgotten_with_their_session() {
    let steno = Steno::new();
    let id = "0b6d7f1e-1111-4222-8333-444455556666";
    forget_with(&steno, &steno.store().join(format!("connections/{id}.jsonl")));
    done(&steno.run(&["import"]));
    assert_absent(&steno, CANARY, "after the next import");
}

#[test]
fn requests_in_a_named_file_are_forgotten_with_their_session() {
    let steno = Steno::new();
    let file = steno.dir.path().join("requests.jsonl");
    forget_with(&steno, &file);
    done(&steno.run(&["import"]));
    done(&steno.run(&["import", file.to_str().unwrap()]));
    // Nor if exchanges of others are added to it. That is a limit, not a wish: `forget` says it.
    fs::write(&file, recording() + &recording().replace(CANARY, "zq9later")).unwrap();
    let said = steno.run(&["import", file.to_str().unwrap()]);
    assert!(said.out.contains("forgotten or skipped before"), "{said:?}");
    assert_absent(&steno, CANARY, "after the next import");
    assert_present(&steno, OTHER);
}
