//! Payload dispatch (R51): which shape a reader sees, in which order it looks, and what it does with the rest.

use steno_model::{BlockContent, BlockType, ContentBlock, ExchangeEvent, Fidelity, Payload, Word};

use crate::kit::{json, line, token};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Null,
    Blocks,
    Message,
    Tool,
    Step,
    Other,
}

fn shape(payload: &Payload) -> Shape {
    match payload {
        Payload::Null => Shape::Null,
        Payload::Blocks(_) => Shape::Blocks,
        Payload::Message(_) => Shape::Message,
        Payload::Tool(_) => Shape::Tool,
        Payload::Step(_) => Shape::Step,
        Payload::Other(_) => Shape::Other,
    }
}

/// Reads a payload in an event of every kind: the shape depends on the payload alone.
#[track_caller]
fn check(payload: &str, want: Shape) {
    let read = Payload::read(&json(payload));
    assert_eq!(shape(&read), want, "{payload}");
    assert_eq!(Payload::read(&read.to_json()), read, "{payload}");
    for event_type in ["run.started", "message.user", "tool.result", "never.seen"] {
        let line = line(event_type, payload);
        let event = ExchangeEvent::parse(line.as_bytes()).unwrap();
        assert_eq!((event.payload(), event.to_line()), (read.clone(), line));
    }
}

const MESSAGE: &str = r#""role":"user","blocks":[]"#;
const TOOL: &str = r#""name":"n","call_id":"c""#;
const STEP: &str = r#""name":"n","kind":"k""#;

#[test]
fn each_marker_field_gives_its_shape() {
    check("null", Shape::Null);
    check("[]", Shape::Blocks);
    check(r#"[{"type":"text","fidelity":"router","text":"t"}]"#, Shape::Blocks);
    check(&format!("{{{MESSAGE}}}"), Shape::Message);
    check(&format!("{{{TOOL}}}"), Shape::Tool);
    check(&format!("{{{STEP}}}"), Shape::Step);
    check(r#"{"other":1}"#, Shape::Other);
}

#[test]
fn role_comes_before_call_id_and_call_id_before_kind() {
    check(&format!(r#"{{"kind":"k","call_id":"c",{MESSAGE}}}"#), Shape::Message);
    check(&format!(r#"{{{MESSAGE},"call_id":"c"}}"#), Shape::Message);
    check(&format!(r"{{{MESSAGE},{STEP}}}"), Shape::Message);
    check(&format!(r#"{{"kind":"k",{TOOL}}}"#), Shape::Tool);
    check(&format!(r#"{{{TOOL},"kind":"k"}}"#), Shape::Tool);
}

#[test]
fn marker_names_are_compared_decoded() {
    check(r#"{"r\u006fle":"user","blocks":[]}"#, Shape::Message);
    check(r#"{"name":"n","call\u005fid":"c"}"#, Shape::Tool);
    check(r#"{"name":"n","\u006bind":"k"}"#, Shape::Step);
}

#[test]
fn nested_marker_field_does_not_count() {
    check(r#"{"x":{"role":"user","blocks":[]}}"#, Shape::Other);
    check(&format!(r#"{{{STEP},"result":{{"role":"user","call_id":"c"}}}}"#), Shape::Step);
    check(r#"{"Role":"user","blocks":[]}"#, Shape::Other);
}

#[test]
fn payload_with_a_marker_but_without_its_fields_is_kept() {
    for payload in [
        r#"{"role":"user"}"#,
        r#"{"role":7,"blocks":[]}"#,
        r#"{"role":"user","blocks":{}}"#,
        r#"{"role":"user","role":"user","blocks":[]}"#,
        r#"{"role":"user","blocks":[{"fidelity":"router"}]}"#,
        r#"{"role":"user","blocks":[7]}"#,
        r#"{"call_id":"c"}"#,
        r#"{"call_id":7,"name":"n"}"#,
        r#"{"kind":"k"}"#,
        r#"{"kind":"k","name":"n","name":"m"}"#,
        "[7]",
        r#"[{"type":"text","text":7}]"#,
    ] {
        check(payload, Shape::Other);
    }
}

#[test]
fn scalar_payloads_are_other() {
    for payload in ["7", "true", "\"role\"", "1e400", r#""\ud800""#] {
        check(payload, Shape::Other);
    }
}

#[test]
fn missing_payload_is_null() {
    let without = line("run.completed", "null").replace(r#","payload":null"#, "");
    let event = ExchangeEvent::parse(without.as_bytes()).unwrap();
    assert_eq!((event.payload(), event.payload.is_null()), (Payload::Null, true));
    assert_eq!(event.to_line(), line("run.completed", "null"));
}

#[test]
fn stream_block_is_read_from_chunk_or_text_and_written_as_chunk() {
    let stream = |chunk: &str, extra: &str| {
        let content = BlockContent::Stream(Some(chunk.into()));
        ContentBlock { extra: crate::kit::extra(extra), ..ContentBlock::new(Fidelity::Router, content) }
    };
    let blocks = |text: &str| Payload::read(&json(text)).blocks().to_vec();
    let chunk = r#"[{"type":"stream","fidelity":"router","chunk":"a"}]"#;
    assert_eq!(blocks(chunk), [stream("a", "{}")]);
    assert_eq!(blocks(&chunk.replace("chunk", "text")), [stream("a", "{}")]);
    let both = r#"[{"type":"stream","fidelity":"router","chunk":"a","text":"b"}]"#;
    assert_eq!(blocks(both), [stream("a", r#"{"text":"b"}"#)]);
    for (read, want) in [(chunk, chunk), (&chunk.replace("chunk", "text"), chunk), (both, both)] {
        assert_eq!(Payload::read(&json(read)).to_json().as_str(), want);
    }
}

#[test]
fn unknown_fields_of_a_block_are_extra() {
    let text = r#"[{"type":"text","fidelity":"router","text":"t","chunk":"c","tool_id":1}]"#;
    let block = Payload::read(&json(text)).blocks()[0].clone();
    assert_eq!(block.block_type(), Word::Known(BlockType::Text));
    assert_eq!(block.extra, crate::kit::extra(r#"{"chunk":"c","tool_id":1}"#));
}

#[test]
fn block_without_fields_round_trips() {
    for block in ["text", "thinking", "tool_use", "tool_result", "command", "stream", "hologram"] {
        check(&format!(r#"[{{"type":"{block}"}}]"#), Shape::Blocks);
        check(&format!(r#"{{"role":"assistant","blocks":[{{"type":"{block}"}}]}}"#), Shape::Message);
    }
    assert_eq!(
        Payload::read(&json(r#"[{"type":"text"}]"#)).blocks(),
        [ContentBlock { fidelity: None, content: BlockContent::Text(None), extra: crate::kit::extra("{}") }]
    );
}

#[test]
fn tool_payload_distinguishes_absent_and_null() {
    let read = |text: &str| {
        let Payload::Tool(tool) = Payload::read(&json(text)) else { panic!("no tool payload: {text}") };
        tool
    };
    let bare = read(r#"{"name":"n","call_id":"\u0063"}"#);
    assert_eq!((bare.input, bare.output, bare.fidelity), (None, None, None));
    assert_eq!((bare.call_id.0.clone(), bare.call_id.to_string()), (token(r#""\u0063""#), "c".into()));
    let full = read(r#"{"name":"n","call_id":"c","input":null,"output":null,"error":null}"#);
    assert_eq!((full.input, full.output, full.error), (Some(json("null")), Some(json("null")), None));
}
