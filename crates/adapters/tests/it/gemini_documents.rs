//! Chat files that are one document: rewritten at each change, torn, moved to a log, and very long.

use serde_json::{Value, json};
use steno_adapters::{Adapter, Source, gemini};
use steno_model::{Frame, Seq, Timestamp};

const SESSION: &str = "0a000000-0000-4000-8000-000000000001";

fn user(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:05.000Z", "type": "user", "content": text})
}

fn said(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-01-02T03:04:06.000Z", "type": "gemini", "content": text, "thoughts": [],
        "tokens": {"input": 1, "output": 2}, "model": "gemini-x"})
}

fn called(id: &str, text: &str, calls: Value) -> Value {
    let mut message = said(id, text);
    message["toolCalls"] = calls;
    message
}

fn call(id: &str, result: Option<&str>) -> Value {
    let status = if result.is_some() { "success" } else { "executing" };
    let result = result.map(
        |text| json!([{"functionResponse": {"id": id, "name": "read_file", "response": {"output": text}}}]),
    );
    json!({"id": id, "name": "read_file", "args": {"file_path": "a"}, "result": result, "status": status,
        "timestamp": "2026-01-02T03:04:07.000Z"})
}

/// Writes a document as Gemini CLI does, with the time of the change in its header.
fn document(change: usize, messages: &[Value]) -> String {
    let document = json!({"sessionId": SESSION, "projectHash": "p", "startTime": "2026-01-02T03:04:05.000Z",
        "lastUpdated": format!("2026-01-02T03:04:{:02}.000Z", 5 + change), "messages": messages});
    serde_json::to_string_pretty(&document).unwrap()
}

fn chat() -> Adapter {
    gemini::chat(Source::named("s1"))
}

/// Shows the events that each generation adds.
fn added(generations: &[String]) -> Vec<Vec<String>> {
    let mut adapter = chat();
    let mut added = Vec::new();
    for (generation, text) in (0..).zip(generations) {
        let mut drafts = Vec::new();
        adapter.feed(Frame { generation, ..Frame::of_file(0, text.as_bytes()) }, &mut drafts);
        adapter.pause(&mut drafts);
        let now = || Timestamp::parse("1999-01-01T00:00:00Z").unwrap();
        let shown = drafts.into_iter().map(|(run, draft)| {
            let event = draft.into_event(run, Seq::FIRST, now);
            let payload: Value = serde_json::from_str(event.payload.as_str()).unwrap();
            let block = |block: &Value| {
                ["text", "tool_id"].iter().find_map(|name| block[*name].as_str()).unwrap_or("?").to_owned()
            };
            if let Some(blocks) = payload["blocks"].as_array() {
                return blocks.iter().map(block).collect::<Vec<_>>().join("+");
            }
            let name = payload["call_id"].as_str().or(payload["name"].as_str()).unwrap().to_owned();
            let result = payload["outcome"].as_str().or(payload["ended_by"].as_str());
            result.map(|result| format!("{name} {result}")).unwrap_or(name)
        });
        added.push(shown.collect());
    }
    added
}

#[test]
fn each_rewrite_adds_what_is_new_under_an_id_and_nothing_else() {
    let one = [user("u1", "Read it.")];
    let two = [user("u1", "Read it."), said("m1", "I read.")];
    let three = [user("u1", "Read it."), called("m1", "I read.", json!([call("c1", None)]))];
    let four = [user("u1", "Read it."), called("m1", "I read.", json!([call("c1", Some("x"))]))];
    let calls = json!([call("c1", Some("x")), call("c2", Some("y"))]);
    let five = [user("u1", "Read it."), called("m1", "I read. Twice.", calls), said("m2", "Done.")];
    let generations: Vec<String> = [&one[..], &two, &three, &four, &four, &five]
        .iter()
        .enumerate()
        .map(|(n, all)| document(n, all))
        .collect();
    let want: [&[&str]; 6] = [
        &["gemini", "turn-0001", "Read it."],
        &["I read."],
        &["c1", "c1"],
        &["c1 ok"],
        &[],
        &[" Twice.", "c2", "c2", "c2 ok", "Done."],
    ];
    assert_eq!(added(&generations), want);
}

#[test]
fn messages_that_a_rewrite_leaves_out_are_told_at_once() {
    let all = [user("u1", "One."), said("m1", "Yes."), user("u2", "Two."), said("m2", "No.")];
    let less = [user("u1", "One."), said("m1", "Yes.")];
    let other = [user("u1", "One."), said("m1", "Yes."), user("u3", "Three.")];
    let generations = [document(0, &all), document(1, &less), document(2, &other), document(3, &all)];
    let steps = added(&generations);
    assert_eq!(steps[1], ["vanished", "vanished"]);
    assert_eq!(steps[2], ["turn-0002 prompt", "turn-0003", "Three."]);
    // They are back, and were told already.
    assert_eq!(steps[3], ["vanished"]);
}

#[test]
fn torn_rewrite_is_kept_and_counted() {
    let all = [user("u1", "One."), said("m1", "Yes."), said("m2", "And no.")];
    let whole = document(1, &all);
    let mut drafts = Vec::new();
    for end in 1..whole.len() {
        let mut adapter = chat();
        drafts.clear();
        adapter.feed(Frame::of_file(0, &whole.as_bytes()[..end]), &mut drafts);
        adapter.pause(&mut drafts);
        let torn = adapter.completeness().clone();
        assert_eq!((torn.unreadable, torn.unknown.len(), torn.vanished), (0, 0, 0), "{end}");
        adapter.feed(Frame { generation: 1, ..Frame::of_file(0, whole.as_bytes()) }, &mut drafts);
        adapter.finish(&mut drafts);
        assert_eq!(adapter.completeness().torn_bytes, 0, "{end}");
        assert_eq!(drafts.len(), 5, "{end}");
    }
}

#[test]
fn document_that_became_a_log_gives_the_same_events() {
    let all = [
        user("u1", "One."),
        called("m1", "Yes.", json!([call("c1", Some("x"))])),
        user("u2", "Two."),
        said("m2", "No."),
    ];
    let header = json!({"sessionId": SESSION, "projectHash": "p", "startTime": "2026-01-02T03:04:05.000Z"});
    let lines: Vec<String> = std::iter::once(&header).chain(&all).map(|line| format!("{line}\n")).collect();
    assert_eq!(added(&[document(0, &all)]), added(&[lines.concat()]));
}

#[test]
fn log_whose_header_has_an_empty_list_is_a_log() {
    let header = format!(r#"{{"sessionId":"{SESSION}","projectHash":"p","messages":[],"kind":"main"}}"#);
    let log = |messages: &[Value]| {
        let lines: Vec<String> = messages.iter().map(|line| format!("{line}\n")).collect();
        format!("{header}\n{}", lines.concat())
    };
    let one = log(&[user("u1", "One."), said("m1", "Yes.")]);
    let two = log(&[user("u1", "One."), said("m1", "Yes."), said("m2", "No.")]);
    let want: [&[&str]; 2] = [&["gemini", "turn-0001", "One.", "Yes."], &["No."]];
    assert_eq!(added(&[one, two]), want);
}

#[test]
fn long_document_is_read_message_by_message() {
    let text = "x".repeat(1024 * 1024);
    let messages: Vec<Value> =
        (0..40).map(|number| said(&format!("m{number}"), &format!("{number} {text}"))).collect();
    for one_line in [false, true] {
        let mut document = document(0, &messages);
        if one_line {
            document = serde_json::from_str::<Value>(&document).unwrap().to_string();
        }
        let mut adapter = chat();
        let mut drafts = Vec::new();
        for (number, piece) in document.as_bytes().chunks(65_536).enumerate() {
            adapter.feed(Frame::of_file(number as u64 * 65_536, piece), &mut drafts);
        }
        adapter.finish(&mut drafts);
        assert_eq!((drafts.len(), adapter.completeness().torn_bytes), (41, 0));
    }
}
