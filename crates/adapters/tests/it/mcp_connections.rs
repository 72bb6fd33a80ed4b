//! Connections to MCP servers: what real clients send, and rules that the hand-made connections do not show.

use serde_json::{Value, json};
use steno_adapters::{Source, Surface, mcp, open, sniff};
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, made_of_lines, outline};

fn read_connection(name: &str) -> Option<Made> {
    let path = shared_dir()?.join("versions/mcp").join(name);
    let text = places::read(&path);
    let sniffed = sniff(text.as_bytes()).unwrap();
    assert_eq!((sniffed.surface, sniffed.is_conversation), (Surface::Mcp, true));
    let lines: Vec<&str> = text.lines().collect();
    Some(made_of_lines(open(&sniffed, Source::named("s1")).unwrap(), &lines))
}

/// Returns id, tool, input and outcome of each call.
fn calls(made: &Made) -> Vec<Value> {
    let results = made.payloads("tool.result");
    let outcome = |id: &Value| {
        results.iter().find(|result| result["call_id"] == *id).map(|result| result["outcome"].clone())
    };
    let calls = made.payloads("tool.call").into_iter();
    calls
        .map(|call| json!([call["call_id"], call["name"], call["input"], outcome(&call["call_id"])]))
        .collect()
}

#[test]
fn calls_of_claude_code_have_its_ids() {
    let made = needs!(read_connection("stdio_claude_client.ndjson"), "../shared is absent");
    let want = [
        json!(["toolu_01MOCK00002100", "mcp__demo__add", {"a": 2, "b": 3}, "ok"]),
        json!(["toolu_01MOCK00002200", "mcp__demo__fail", {"why": "test"}, "failed"]),
        json!(["toolu_01MOCK00005000", "mcp__demo__add", {"a": 2, "b": 3}, "ok"]),
        json!(["toolu_01MOCK00005100", "mcp__demo__fail", {"why": "test"}, "failed"]),
    ];
    assert_eq!(calls(&made), want);
    assert_eq!(made.completeness.unknown.len(), 0);
    assert!(made.payloads("tool.call").iter().all(|call| call["fidelity"] == "router"));
    assert_eq!(made.events[0]["session_run_id"], Value::Null);
}

#[test]
fn calls_of_codex_have_its_ids_and_name_thread_and_turn() {
    let made = needs!(read_connection("stdio_codex_client.ndjson"), "../shared is absent");
    let want = [
        json!(["call_mock00000600", "mcp__demo__add", {"a": 2, "b": 3}, "ok"]),
        json!(["call_mock00000700", "mcp__demo__fail", {"why": "x"}, "failed"]),
    ];
    assert_eq!(calls(&made), want);
    assert_eq!(made.completeness.unknown.len(), 0);
    assert_eq!(made.events[0]["session_run_id"], "01a1de08-391e-7f70-b903-ba7453e03ac0");
    let turns = made.steps("step.started", "turn");
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["turn_id"], "01a1de08-3969-7f11-b4b0-3f9703b7529e");
}

#[track_caller]
fn check(lines: &[&str], want: &[&str]) {
    let made = made_of_lines(mcp::connection(Source::named("s1")), lines);
    assert_eq!(outline(&made), want);
}

const CALL: &str = r#">{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{"callId":"c1"}}}"#;

#[test]
fn connection_without_a_call_gives_no_run() {
    check(
        &[
            r#">{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{}}}"#,
            r#"{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"n"}}}"#,
            r#">{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
        ],
        &[],
    );
}

#[test]
fn output_before_the_first_call_keeps_its_place() {
    check(
        &["listening on stdio", CALL, r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#],
        &[
            ": run",
            ": unknown unreadable no JSON object",
            ": call c1 t {}",
            r#": result c1 ok {"content":[]}"#,
        ],
    );
}

#[test]
fn both_sides_may_use_the_same_request_id() {
    check(
        &[
            CALL,
            r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
            r#">{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#,
        ],
        &[": run", ": call c1 t {}", r#": result c1 ok {"content":[]}"#],
    );
}

#[test]
fn one_side_alone_is_read_as_far_as_it_goes() {
    check(&[CALL], &[": run", ": call c1 t {}"]);
    check(&[r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#], &[]);
}

#[test]
fn protocols_are_told_apart_by_content() {
    let surface = |line: &str| sniff(line.as_bytes()).map(|sniffed| sniffed.surface);
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"n"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#,
        r#"{"dir":"c2s","msg":{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}}"#,
        r#"{"dir":"recorder","t":1.0,"ticket":1,"msg":{"method":"steno/began","params":{"protocol":"mcp"}}}"#,
    ] {
        assert_eq!(surface(line), Some(Surface::Mcp), "{line}");
    }
    // A client cannot claim to be our recorder, and `ping` is in no protocol alone.
    let app_server = r#"{"dir":"c2s","msg":{"method":"steno/began","params":{"protocol":"mcp"}}}"#;
    assert_eq!(surface(app_server), Some(Surface::CodexAppServer));
    assert_eq!(surface(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), None);
}
