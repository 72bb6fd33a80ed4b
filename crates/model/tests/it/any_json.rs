//! Arbitrary JSON as text: odd escapes, lone surrogates, huge numbers, duplicate keys, spaces between tokens.

use proptest::collection::vec;
use proptest::prelude::*;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{
    BlockContent, ContentBlock, EventType, ExchangeEvent, Fidelity, MessagePayload, Payload, Role, RunId,
    Seq, StepPayload, Timestamp, ToolPayload, Vocabulary, Word,
};

use crate::kit::{extra, json, token};

/// String tokens, quotes included.
pub fn string_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-c .:/{}\\[\\]]{0,4}",
        1 => any::<char>()
            .prop_filter("raw in a string", |c| !matches!(c, '"' | '\\' | '\0'..='\x1f'))
            .prop_map(String::from),
        2 => prop::sample::select(vec![
            r"\n", r"\r", r"\t", r"\b", r"\f", r"\/", r"\\", r#"\""#, r"\u0000", r"\u001B", r"\u0061", r"\ud800",
            r"\udfff", r"\uD83D\uDE00", r"\ud83d", "\u{2028}", "\u{7f}", "😀",
        ])
        .prop_map(str::to_owned),
    ];
    vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat()))
}

/// Any JSON value as text; few keys, so that duplicates occur.
pub fn value_text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        prop::sample::select(vec![
            "null",
            "true",
            "false",
            "-0",
            "1e400",
            "18446744073709551616",
            "[]",
            "{}"
        ])
        .prop_map(str::to_owned),
        "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,6})?([eE][+-]?[0-9]{1,4})?",
        string_text(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let space = || prop::sample::select(vec!["", "", " ", "\t"]);
        let array = (vec(inner.clone(), 0..4), space())
            .prop_map(|(items, space)| format!("[{space}{}{space}]", items.join(&format!("{space},"))));
        let field =
            (key_text(), inner, space()).prop_map(|(key, value, space)| format!("{key}:{space}{value}"));
        prop_oneof![array, vec(field, 0..4).prop_map(|fields| format!("{{{}}}", fields.join(",")))]
    })
}

/// Keys that our types do not know.
fn key_text() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![r#""xa""#, r#""xb""#, r#""x\u0061""#, r#""x\ud800""#, r#""x""#])
            .prop_map(str::to_owned),
        string_text().prop_map(|text| text.replacen('"', "\"x", 1)),
    ]
}

pub fn raw_json() -> impl Strategy<Value = RawJson> {
    value_text().prop_map(|text| json(&text))
}

pub fn json_string() -> impl Strategy<Value = JsonString> {
    string_text().prop_map(|text| token(&text))
}

/// Fields that our types do not know, perhaps twice.
pub fn any_extra() -> impl Strategy<Value = Extra> {
    let field = (key_text(), value_text()).prop_map(|(key, value)| format!("{key}:{value}"));
    vec(field, 0..3).prop_map(|fields| extra(&format!("{{{}}}", fields.join(","))))
}

/// Words of a vocabulary, and a few that it does not have.
pub fn word<V: Vocabulary + std::fmt::Debug>() -> impl Strategy<Value = Word<V>> {
    prop_oneof![
        3 => prop::sample::select(V::ALL).prop_map(Word::Known),
        1 => key_text().prop_map(|text| Word::Unknown(token(&text))),
    ]
}

fn content() -> impl Strategy<Value = BlockContent> {
    let string = || prop::option::of(json_string());
    let value = || prop::option::of(raw_json());
    prop_oneof![
        string().prop_map(BlockContent::Text),
        string().prop_map(BlockContent::Thinking),
        (string(), string(), value()).prop_map(|(tool_name, tool_id, tool_input)| {
            BlockContent::ToolUse { tool_name, tool_id, tool_input }
        }),
        (string(), value())
            .prop_map(|(tool_id, tool_content)| BlockContent::ToolResult { tool_id, tool_content }),
        string().prop_map(BlockContent::Command),
        string().prop_map(BlockContent::Stream),
        key_text().prop_map(|text| BlockContent::Unknown(token(&text))),
    ]
}

fn block() -> impl Strategy<Value = ContentBlock> {
    (prop::option::of(word::<Fidelity>()), content(), any_extra())
        .prop_map(|(fidelity, content, extra)| ContentBlock { fidelity, content, extra })
}

fn step() -> impl Strategy<Value = StepPayload> {
    let optional = (prop::option::of(json_string()), prop::option::of(raw_json()));
    (json_string(), json_string(), optional, any_extra())
        .prop_map(|(name, kind, (error, result), extra)| StepPayload { name, kind, error, result, extra })
}

fn message() -> impl Strategy<Value = MessagePayload> {
    (word::<Role>(), vec(block(), 0..4), any_extra()).prop_map(|(role, blocks, extra)| MessagePayload {
        role,
        blocks,
        extra,
    })
}

fn tool() -> impl Strategy<Value = ToolPayload> {
    let values = (prop::option::of(raw_json()), prop::option::of(raw_json()));
    let words = (prop::option::of(json_string()), prop::option::of(word::<Fidelity>()));
    (json_string(), json_string(), values, words, any_extra()).prop_map(
        |(name, call_id, (input, output), (error, fidelity), extra)| {
            let call_id = steno_model::CallId(call_id);
            ToolPayload { name, call_id, input, output, error, fidelity, extra }
        },
    )
}

pub fn payload() -> impl Strategy<Value = Payload> {
    // A generated value has no mark of a shape, so it is null, an array, or anything; arrays may look like blocks.
    let other = raw_json()
        .prop_filter("read as blocks or null", |raw| matches!(Payload::read(raw), Payload::Other(_)));
    prop_oneof![
        Just(Payload::Null),
        vec(block(), 0..4).prop_map(Payload::Blocks),
        message().prop_map(Payload::Message),
        tool().prop_map(Payload::Tool),
        step().prop_map(Payload::Step),
        other.prop_map(Payload::Other),
    ]
}

pub fn run_id() -> impl Strategy<Value = RunId> {
    any::<u128>().prop_map(|bits| RunId::from_uuid(uuid::Uuid::from_u128(bits)))
}

pub fn seq() -> impl Strategy<Value = Seq> {
    (1..=u64::MAX).prop_map(|number| Seq::new(number).unwrap())
}

pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    json_string().prop_map(Timestamp::from_record)
}

/// Any event that a reader may meet.
pub fn event() -> impl Strategy<Value = ExchangeEvent> {
    let runs = (run_id(), prop::option::of(run_id()), prop::option::of(run_id()));
    let place = (word::<EventType>(), json_string(), any::<u64>(), timestamp());
    let raw = prop_oneof![raw_json(), payload().prop_map(|payload| payload.to_json())];
    (seq(), runs, place, raw, any_extra()).prop_map(
        |(
            seq,
            (run_id, parent_run_id, child_run_id),
            (event_type, path, iteration, timestamp),
            payload,
            extra,
        )| {
            ExchangeEvent {
                seq,
                run_id,
                parent_run_id,
                child_run_id,
                event_type,
                path,
                iteration,
                timestamp,
                payload,
                extra,
            }
        },
    )
}
