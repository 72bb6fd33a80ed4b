//! Random events: no panic, no lost events, and no terminal escapes in the output.

use std::collections::BTreeMap;

use proptest::prelude::*;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{ExchangeEvent, Seq, Timestamp, Vocabulary as _, Word};

use steno_session::{Content, SessionBuilder};

use super::super::{RunTree, export, join, text};
use crate::testing::run_id;

fn payload() -> impl Strategy<Value = RawJson> {
    let names = r"(a|b|\\.|\PC{0,3}|[\x00-\x1f\x80-\x9f]{0,2})";
    let step = (names, names, prop::option::of(names)).prop_map(|(name, call, error)| {
        let payload = serde_json::json!({"name": name, "kind": 1, "tool_call_id": call, "error": error});
        payload.to_string()
    });
    let odd = prop::sample::select(vec![
        "null",
        "7",
        "[]",
        "[{}]",
        "{}",
        r#"{"role":1}"#,
        r#"{"call_id":"x"}"#,
        r#"{"call_id":{}}"#,
        r#"{"name":"a","name":"\ud800","kind":"\u001b]52;c;\u0007"}"#,
        r#"{"error":{"a":[1]}}"#,
    ]);
    prop_oneof![step, odd.prop_map(str::to_owned)].prop_map(|text| RawJson::parse(&text).unwrap())
}

fn extra() -> impl Strategy<Value = Extra> {
    let value = prop::sample::select(vec!["[]", "[0]", "[1,0]", "[-1]", "1", "0", "null", "\"x\"", "{}"]);
    let name = prop::sample::select(vec!["loop", "attempt", "session_run_id", "other"]);
    prop::collection::vec((name, value), 0..4).prop_map(|pairs| {
        let mut extra = Extra::default();
        for (name, value) in pairs {
            extra.push(name, RawJson::parse(value).unwrap());
        }
        extra
    })
}

fn event() -> impl Strategy<Value = ExchangeEvent> {
    let types: Vec<_> = steno_model::EventType::ALL.iter().map(|word| Word::Known(*word)).collect();
    let types = prop_oneof![
        10 => prop::sample::select(types),
        1 => any::<String>().prop_map(|text| Word::read(JsonString::from_text(&text))),
    ];
    let path = r"(a|b|a\.b|a\.b\.a|[ab.\\]{0,6}|\PC{0,4})".prop_map(JsonString::from);
    let run = || prop::option::of((1_u32..6).prop_map(run_id));
    (types, path, 0_u64..3, payload(), extra(), run(), run()).prop_map(
        |(event_type, path, iteration, payload, extra, parent_run_id, child_run_id)| ExchangeEvent {
            seq: Seq::FIRST,
            run_id: run_id(1),
            parent_run_id,
            child_run_id,
            event_type,
            path,
            iteration,
            timestamp: Timestamp::from_record("\u{1b}".into()),
            payload,
            extra,
        },
    )
}

proptest! {
    #[test]
    fn garbage_is_folded_joined_and_shown(
        runs in prop::collection::vec(prop::collection::vec(event(), 0..40), 1..6),
    ) {
        let mut trees = BTreeMap::new();
        for (number, mut events) in (1_u32..).zip(runs) {
            let mut builder = SessionBuilder::new(run_id(number), Content::Whole);
            for (seq, event) in (1..).zip(&mut events) {
                (event.run_id, event.seq) = (run_id(number), Seq::new(seq).unwrap());
                builder.push(event);
            }
            let tree = RunTree::of(&builder.finish());
            check_nothing_lost(&tree, &events);
            trees.insert(run_id(number), tree);
        }
        let steps: usize = trees.values().map(|tree| tree.steps().len()).sum();
        let joined = join(run_id(1), trees);
        let text = text(&joined);
        prop_assert!(!text.replace('\n', "").contains(char::is_control), "{text:?}");
        let json = serde_json::to_string(&export(&joined)).unwrap();
        prop_assert_eq!(json.matches("\"node\":").count(), text.lines().count());
        if joined.outside().is_empty() {
            prop_assert_eq!(json.matches(r#""node":"step""#).count(), steps);
        }
    }
}

/// Checks that every step event is the start or the end of one step, and every other event is counted.
fn check_nothing_lost(tree: &RunTree, events: &[ExchangeEvent]) {
    let is_step = |event: &&ExchangeEvent| event.event_type.to_string().starts_with("step.");
    let want: Vec<_> = events.iter().filter(is_step).map(|event| event.seq).collect();
    let mut found: Vec<_> = tree
        .steps()
        .flat_map(|(_, step)| [step.started, step.completed])
        .flatten()
        .map(|event| event.seq)
        .collect();
    found.sort();
    assert_eq!(found, want);
    let messages: u64 = tree.steps().map(|(_, step)| step.counts.messages).sum();
    let is_message = |event: &&ExchangeEvent| event.event_type.to_string().starts_with("message.");
    // Empty messages are not counted, and none is counted twice.
    assert!(messages + tree.counts.messages <= events.iter().filter(is_message).count() as u64);
    assert_eq!(tree.events, events.len() as u64);
}
