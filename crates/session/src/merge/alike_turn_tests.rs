//! Turns of a channel without ids of turns and messages: they are matched by their words.

use serde_json::{Value, json};

use super::tests::{call, check, prompt, run, run_id, said};
use super::*;
use crate::session::ItemKind;

/// A turn of a file without ids of turns, and the same turn in a stream whose messages have no ids.
fn file_and_stream(file: &[Value], stream: &[Value]) -> Vec<RunEvents> {
    let begin = json!(["step.started", "turn-0001", {"name": "turn-0001", "kind": "turn"}]);
    let file = [&[begin.clone(), prompt("turn-0001", Some("m1"), "Go")], file].concat();
    let stream = [&[begin, prompt("turn-0001", None, "Go")], stream].concat();
    vec![run(1, "disk", &file), run(2, "stream", &stream)]
}

fn said_without_id(text: &str) -> Value {
    let blocks = json!([{"type": "text", "text": text}]);
    json!(["message.assistant", "turn-0001", {"role": "assistant", "blocks": blocks}])
}

#[test]
fn call_that_only_a_stream_has_is_added_to_the_turn_with_the_same_words() {
    check(
        &|| {
            let stream = [said_without_id("Well"), call("turn-0001", "c1", "command")];
            file_and_stream(&[said("turn-0001", "m2", "Well")], &stream)
        },
        &["turn-0001  in_progress", "  user: Go", "  model: Well", "  call c1 Open []"],
    );
}

#[test]
fn answer_that_was_cut_off_is_added_to_the_turn_with_the_same_prompt() {
    check(
        &|| file_and_stream(&[], &[said_without_id("Wel")]),
        &["turn-0001  in_progress", "  user: Go", "  model: Wel"],
    );
}

#[test]
fn prompt_with_the_files_that_it_names_is_the_prompt_that_was_typed() {
    let begin = json!(["step.started", "turn-0001", {"name": "turn-0001", "kind": "turn"}]);
    let blocks = json!([{"type": "text", "text": "See @a"}, {"type": "text", "text": "a's content"}]);
    let whole = json!(["message.user", "turn-0001", {"role": "user", "id": "m1", "blocks": blocks}]);
    for answer in [None, Some(call("turn-0001", "c1", "command"))] {
        let file = [&[begin.clone(), whole.clone()], answer.as_slice()].concat();
        let stream = [&[begin.clone(), prompt("turn-0001", None, "See @a")], answer.as_slice()].concat();
        let session =
            merge(run_id(1), vec![run(1, "disk", &file), run(2, "stream", &stream)], Content::Whole);
        let prompts = session.items.iter().filter(|item| matches!(item.kind, ItemKind::Prompt(_)));
        assert_eq!((session.turns.len(), prompts.count()), (1, 1));
    }
}
