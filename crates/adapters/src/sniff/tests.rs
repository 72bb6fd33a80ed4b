//! Tests of the sniffer: the beginning of each surface, and content that only looks like one.

use super::*;

#[track_caller]
fn check(head: &str, want: Option<(Surface, Option<&str>)>) {
    let found = sniff(head.as_bytes());
    let found = found.map(|found| (found.surface, found.version.map(|text| text.to_text().into_owned())));
    assert_eq!(found, want.map(|(surface, version)| (surface, version.map(str::to_owned))), "{head:.100}");
}

#[test]
fn sniff_recognizes_exchanges_over_http() {
    let http = Some((Surface::Http, None));
    check(r#"{"dir":"recorder","t":1.5,"ticket":1,"msg":{"method":"steno/http","params":{}}}"#, http);
    check(r#"{"dir":"c2s","t":1.5,"ticket":2,"msg":{"http":"request","exchange":1}}"#, http);
    check(r#"{"model":"m","messages":[{"role":"user","content":"Hi."}]}"#, http);
    check(r#"{"contents":[{"role":"user","parts":[]}]}"#, http);
    check(r#"{"model":"m","input":"Hi."}"#, http);
    check(r#"{"id":"x","object":"chat.completion","choices":[]}"#, http);
    check("event: x\ndata: {\"type\":\"message_start\",\"message\":{}}\n", http);
    assert!(sniff(b"data: {\"object\":\"response\"}\n").unwrap().is_event_stream);
    // Without a model it is a sample for training, or an item of something else.
    check(r#"{"messages":[{"role":"user","content":"Hi."}]}"#, None);
    check(r#"{"type":"message","role":"assistant","content":[]}"#, None);
    check("data: none\n", None);
}

#[test]
fn sniff_recognizes_each_surface() {
    let disk = r#"{"type":"user","uuid":"u","sessionId":"s","version":"2.1.3"}"#;
    check(disk, Some((Surface::ClaudeDisk, Some("2.1.3"))));
    check(r#"{"type":"system","session_id":"s","sessionId":"s"}"#, Some((Surface::ClaudeDisk, None)));
    check(
        r#"{"type":"system","subtype":"init","session_id":"s","claude_code_version":"2"}"#,
        Some((Surface::ClaudeStream, Some("2"))),
    );
    check(
        r#"{"timestamp":"t","type":"session_meta","payload":{"cli_version":"0.1"}}"#,
        Some((Surface::CodexRollout, Some("0.1"))),
    );
    check(r#"{"id":"i","timestamp":"t","instructions":null}"#, Some((Surface::CodexRollout, None)));
    check(r#"{"type":"thread.started","thread_id":"t"}"#, Some((Surface::CodexExec, None)));
    check(r#"{"workdir":"w","sandbox":"s"}"#, Some((Surface::CodexExec, None)));
    check(
        r#"{"id":0,"result":{"userAgent":"x/0.166.0 (y)"}}"#,
        Some((Surface::CodexAppServer, Some("0.166.0"))),
    );
    check(r#"{"sessionId":"s","projectHash":"p"}"#, Some((Surface::GeminiChat, None)));
    check(r#"{"type":"init","session_id":"s"}"#, Some((Surface::GeminiStream, None)));
    check(r#"{"type":"session.start","data":{},"id":"i"}"#, Some((Surface::CopilotEvents, None)));
    check(
        r#"{"type":"text","timestamp":7,"sessionID":"s","part":{}}"#,
        Some((Surface::OpenCodeStream, None)),
    );
    let failed = r#"{"type":"error","timestamp":7,"sessionID":"s","error":{"name":"APIError"}}"#;
    check(failed, Some((Surface::OpenCodeStream, None)));
    let result = r#"{"type":"result","sessionId":"s","exitCode":0}"#;
    check(result, Some((Surface::CopilotStream, None)));
    let torn = r#"{"type":"tool_result","timestamp":"t","tool_id":"x","status":"success"}"#;
    check(torn, Some((Surface::GeminiStream, None)));
    check(r#"{"session_id":"s","response":"Hello."}"#, Some((Surface::GeminiOutput, None)));
    check(r#"{"response":"Hello.","stats":{"models":{},"tools":{}}}"#, Some((Surface::GeminiOutput, None)));
    check(r#"{"session_id":"s","error":{"type":"Error"}}"#, Some((Surface::GeminiOutput, None)));
}

#[test]
fn sniff_recognizes_documents_over_many_lines() {
    let chat = "{\n  \"sessionId\": \"s\",\n  \"projectHash\": \"p\",\n  \"messages\": [\n";
    check(chat, Some((Surface::GeminiChat, None)));
    check(&format!("\u{feff}{chat}"), Some((Surface::GeminiChat, None)));
    let whole = format!("{chat}    {{\"id\": \"}}\"}}\n  ]\n}}");
    check(&whole, Some((Surface::GeminiChat, None)));
    let output = "{\n  \"session_id\": \"s\",\n  \"response\": \"Hello.\",\n  \"stats\": {";
    check(output, Some((Surface::GeminiOutput, None)));
    check(&format!("YOLO mode {{\n}}\n{output}"), Some((Surface::GeminiOutput, None)));
    check("{\n  \"name\": \"package\"\n}\n", None);
    let request =
        "{\n  \"model\": \"m\",\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"a, \\\"b\"}";
    check(&format!("{request}\n  ]\n}}"), Some((Surface::Http, None)));
    // Longer than the bytes that are looked at, or without a newline at its end.
    check(&format!("{request},\n    {{\"role\": \"assi"), Some((Surface::Http, None)));
    check(&format!("{request}\n  ],\n  \"stream\": true\n"), Some((Surface::Http, None)));
    check("{\n  \"contents\": [\n    {\"role\": \"user\", \"parts\": [{\"te", Some((Surface::Http, None)));
    check("{\n  \"messages\": [\n    {\"role\": \"user\", \"content\": \"a\"}\n  ]\n}\n", None);
}

#[test]
fn output_of_copilot_has_records_that_its_file_never_has() {
    let start = r#"{"type":"session.start","data":{"copilotVersion":"1.0.24"},"id":"i","parentId":null}"#;
    let user = r#"{"type":"user.message","data":{},"id":"u","parentId":"i"}"#;
    let live = r#"{"type":"assistant.intent","data":{},"id":"e","ephemeral":true}"#;
    check(&format!("{start}\n{user}\n"), Some((Surface::CopilotEvents, Some("1.0.24"))));
    check(&format!("{user}\n{live}\n"), Some((Surface::CopilotStream, None)));
    check(&format!("{start}\n{live}\n{user}\n"), Some((Surface::CopilotStream, Some("1.0.24"))));
    // A file is not searched for them to its end.
    check(&format!("{start}\n{user}\n{live}\n"), Some((Surface::CopilotEvents, Some("1.0.24"))));
}

#[test]
fn sniff_returns_none_for_unknown_content() {
    for text in [
        "",
        "hello",
        "[1]",
        r#"{"session_id":"s"}"#,
        r#"{"type":"text","timestamp":"t","sessionID":"s","part":{}}"#,
        r#"{"type":"text","timestamp":7,"sessionID":"s","part":7}"#,
        r#"{"type":"text","sessionID":"s","messageID":"m","text":"Hi."}"#,
        r#"{"jsonrpc":"2.0","method":"x"}"#,
        r#"{"seq":1,"run_id":"r","type":"run.started","timestamp":"t","payload":null}"#,
        r#"{"seq":1,"run_id":"r","type":"run.started","timestamp":"t","payload":{}}"#,
    ] {
        check(text, None);
    }
}

#[test]
fn archives_and_spines_are_not_sessions() {
    let line = r#"{"timestamp":"t","type":"session_meta","payload":{"cli_version":"0.1"}}"#;
    let archive = |magic: &str| format!("{:\0<257}{magic}{:\0<249}\n{line}\n", "bundle/rollout/x.jsonl", "");
    check(&archive("usta\0r"), Some((Surface::CodexRollout, Some("0.1"))));
    for magic in ["ustar\0", "ustar "] {
        check(&archive(magic), None);
        assert_eq!(no_session(archive(magic).as_bytes()), Some(NoSession::Archive));
    }
    let spine = line.replacen('{', r#"{"schema_version":"codex_trace_spine_v1","#, 1);
    check(&spine, None);
    assert_eq!(no_session(spine.as_bytes()), Some(NoSession::Spine));
    // A first line that is longer than the bytes that are read.
    let cut = spine.replace("0.1", &"x".repeat(9_000));
    assert_eq!(no_session(&cut.as_bytes()[..8_000]), Some(NoSession::Spine));
    assert_eq!(no_session(line.as_bytes()), None);
}

#[test]
fn leading_unrelated_lines_are_skipped() {
    let disk = r#"{"type":"user","uuid":"u","sessionId":"s","version":"2.1.3"}"#;
    check(&format!("{}{disk}", "{\"junk\":1}\n".repeat(1_000)), Some((Surface::ClaudeDisk, Some("2.1.3"))));
    check(&format!("\u{feff}{disk}"), Some((Surface::ClaudeDisk, Some("2.1.3"))));
}

#[test]
fn cut_first_line_is_recognized_by_its_first_fields() {
    let long = format!(
        r#"{{"type":"user","sessionId":"s","version":"2.1.3","message":{{"content":"{}"#,
        "x".repeat(9_000)
    );
    check(&long, Some((Surface::ClaudeDisk, Some("2.1.3"))));
}
