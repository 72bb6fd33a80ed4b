//! Foreign values stay unchanged: each goes from a sent line to a line that is read back, and every byte is compared.

use steno_model::json::RawJson;
use steno_model::limits::DEPTH_MAX;
use steno_model::{BlockContent, Draft, EventType, ExchangeEvent, Payload, StepPayload};

use crate::kit::{json, run, time, token, written};

/// Sends a value in every field that may have a foreign value.
#[track_caller]
fn check(value: &str) {
    let payloads = [
        ("step.completed", format!(r#"{{"name":"n","kind":"k","result":{value},"more":{value}}}"#)),
        ("tool.call", format!(r#"{{"name":"n","call_id":"c","input":{value},"fidelity":"router"}}"#)),
        (
            "tool.result",
            format!(r#"{{"name":"n","call_id":"c","output":{value},"fidelity":"router","x":{value}}}"#),
        ),
        (
            "message.assistant",
            format!(
                r#"{{"role":"assistant","blocks":[{{"type":"tool_use","fidelity":"agent_emitted","tool_name":"n","tool_id":"t","tool_input":{value}}},{{"type":"tool_result","fidelity":"router","tool_id":"t","tool_content":{value},"y":{value}}}]}}"#
            ),
        ),
    ];
    for (event_type, payload) in payloads {
        let sent =
            format!(r#"{{"type":"{event_type}","payload":{payload},"evidence":{value},"z z":{value}}}"#);
        let recorded = written(sent.as_bytes()).unwrap();
        let event = ExchangeEvent::parse(recorded.as_bytes()).unwrap();
        assert_eq!(event.payload.as_str(), payload);
        assert_eq!(event.payload().to_json().as_str(), payload, "through the typed payload");
        assert_eq!(event.extra.get("evidence").map(RawJson::as_str), Some(value));
        assert_eq!(event.extra.get("z z").map(RawJson::as_str), Some(value));
        assert_eq!(event.to_line(), recorded);
        assert!(recorded.ends_with(&format!(r#""payload":{payload},"evidence":{value},"z z":{value}}}"#)));
    }
}

#[test]
fn numbers_are_not_rounded() {
    for number in [
        "0",
        "-0",
        "-0.0",
        "1.0",
        "9007199254740993",
        "18446744073709551616",
        "-170141183460469231731687303715884105728",
        "123456789012345678901234567890.123456789012345678901234567890",
        "1e400",
        "-1E+999999",
        "2.50e-0",
    ] {
        check(number);
    }
}

#[test]
fn strings_keep_their_spelling() {
    for string in [
        r#""""#,
        r#""\u0000""#,
        r#""a\u0000b\u0000""#,
        r#""\ud800""#,
        r#""\udfff\ud800""#,
        r#""\uD83D\uDE00 \ud83d\ude00 😀""#,
        r#""\/\u002f/""#,
        r#""\u00e9 é""#,
        r#""\b\f\n\r\t\"\\""#,
        "\"\u{2028}\u{2029}\u{feff}\u{7f}\u{85}\"",
        "\"\u{202e}right to left\u{202c} \u{10ffff}\"",
        r#""\u001b]52;c;AAAA\u0007""#,
    ] {
        check(string);
    }
}

#[test]
fn objects_keep_order_duplicates_and_strange_keys() {
    for object in [
        r#"{"b":1,"a":2,"b":3}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"":null,"":{}}"#,
        r#"{"\ud800":1,"\udfff":{"\u0000":[]}}"#,
        r#"{"seq":7,"type":"x","payload":{"role":1,"call_id":2,"kind":3}}"#,
        r#"{"__proto__":{"a":1},"constructor":1}"#,
        "{ \"a\" :\t[ 1 , 2 ] }",
    ] {
        check(object);
    }
}

#[test]
fn nesting_is_kept_up_to_the_limit() {
    // Payload, array of blocks and block are three levels around a value.
    let deepest = DEPTH_MAX - 3;
    for (open, close) in [("[", "]"), (r#"{"a":"#, "}")] {
        let inner = if open == "[" { "" } else { "1" };
        check(&format!("{}{inner}{}", open.repeat(deepest), close.repeat(deepest)));
    }
}

#[test]
fn only_line_breaks_between_tokens_are_changed() {
    let sent =
        "{\"type\":\"step.started\",\r\n\"payload\":\r{\n\"name\": \"n\",\n\t\"kind\":\"k\\n\"\r\n}}\r";
    let event = ExchangeEvent::parse(written(sent.as_bytes()).unwrap().as_bytes()).unwrap();
    assert_eq!(event.payload.as_str(), "{ \"name\": \"n\", \t\"kind\":\"k\\n\"  }");
}

#[test]
fn extra_envelope_fields_keep_names_values_and_order() {
    let extra = r#""\ud800":1,"loop":[0,2],"":{"b":1,"b":2},"p\u0061th2":"x","attempt":18446744073709551616"#;
    let sent = format!(r#"{{"type":"run.started",{extra}}}"#);
    let recorded = written(sent.as_bytes()).unwrap();
    assert!(recorded.ends_with(&format!(r#""payload":null,{extra}}}"#)), "{recorded}");
    let event = ExchangeEvent::parse(recorded.as_bytes()).unwrap();
    assert_eq!(event.to_line(), recorded);
    assert_eq!((event.loop_indices(), event.attempt()), (Some(vec![0, 2]), None));
}

#[test]
fn path_keeps_its_token() {
    let sent = r#"{"type":"run.started","path":"a\u002eb\\.c.\ud800"}"#;
    let recorded = written(sent.as_bytes()).unwrap();
    assert!(recorded.contains(r#""path":"a\u002eb\\.c.\ud800","#), "{recorded}");
    assert_eq!(ExchangeEvent::parse(recorded.as_bytes()).unwrap().to_line(), recorded);
}

#[test]
fn typed_payload_keeps_raw_values() {
    let mut step = StepPayload::new(token(r#""n\u0000""#), "k");
    step.error = Some(token(r#""\ud800""#));
    step.result = Some(json(r#"{"n":1e400,"n":-0}"#));
    let draft = Draft::new(EventType::StepCompleted, &Payload::Step(step.clone())).unwrap();
    let event = draft.encode(run(), time).into_event(steno_model::Seq::FIRST);
    assert_eq!(
        event.payload.as_str(),
        r#"{"name":"n\u0000","kind":"k","error":"\ud800","result":{"n":1e400,"n":-0}}"#
    );
    assert_eq!(event.payload(), Payload::Step(step));
}

#[test]
fn text_of_a_block_is_shown_decoded() {
    let payload = json(
        r#"[{"type":"text","fidelity":"agent_emitted","text":"\u0041\ud83d\ude00\ud800\u0000"},{"type":"command","fidelity":"router","command":"ls\t\/"}]"#,
    );
    let blocks = Payload::read(&payload).blocks().to_vec();
    let texts: Vec<_> = blocks
        .iter()
        .filter_map(|block| {
            let (BlockContent::Text(text) | BlockContent::Command(text)) = &block.content else {
                return None;
            };
            text.as_ref().map(ToString::to_string)
        })
        .collect();
    assert_eq!(texts, ["A😀\u{fffd}\0", "ls\t/"]);
}
