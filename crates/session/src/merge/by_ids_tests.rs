//! Merging by ids alone, as receipts do: what only texts tie to the session is left out.

use serde_json::{Value, json};

use super::tests::{call, end, prompt, result, run, run_id, said, turn};
use super::*;

fn begun(path: &str) -> Value {
    json!(["step.started", path, {"name": path, "kind": "turn"}])
}

fn message(path: &str, blocks: &Value) -> Value {
    json!(["message.assistant", path, {"role": "assistant", "blocks": blocks}])
}

fn text(path: &str, words: &str) -> Value {
    message(path, &json!([{"type": "text", "text": words}]))
}

fn uses(id: &str) -> Value {
    json!({"type": "tool_use", "tool_id": id, "tool_name": "tool", "tool_input": {}})
}

fn by_ids(runs: &[RunEvents]) -> Session {
    merge_by_ids(run_id(1), runs, Content::ForReceipts)
}

/// Returns the name of each turn with the numbers of the events that were left out of it.
fn left_out(session: &Session) -> Vec<(&str, Vec<u64>)> {
    let of = |turn: &'_ crate::Turn| turn.left_out.iter().map(|at| at.seq.get()).collect();
    session.turns.iter().map(|turn| (turn.name.as_str(), of(turn))).collect()
}

fn file() -> RunEvents {
    let lines = [
        begun("turn-0001"),
        prompt("turn-0001", Some("u1"), "Go."),
        said("turn-0001", "m1", "Gone."),
        begun("turn-0002"),
        prompt("turn-0002", Some("u2"), "Go."),
        said("turn-0002", "m2", "Gone."),
    ];
    run(1, "disk", &lines)
}

#[test]
fn turn_that_only_texts_tie_is_left_out() {
    let other = [
        begun("turn-0001"),
        prompt("turn-0001", None, "Go."),
        text("turn-0001", "Gone."),
        call("turn-0001", "c1", "command"),
        result("turn-0001", "c1", "ok"),
        end("turn-0001"),
    ];
    let session = by_ids(&[file(), run(2, "acp", &other)]);
    // Of two turns with the same texts, it is the last one.
    assert_eq!(left_out(&session), [("turn-0001", vec![]), ("turn-0002", vec![2, 3, 4, 5, 6, 7])]);
    assert_eq!((session.calls.len(), session.turns[1].runs.len()), (0, 1));
    // Another text, or an id, makes it a turn of its own.
    for turn in
        [[begun("turn-0001"), text("turn-0001", "Going.")], [turn("turn-0001", "t1"), other[2].clone()]]
    {
        let session = by_ids(&[file(), run(2, "acp", &[&turn[..], &other[1..]].concat())]);
        let names = [("turn-0001", vec![]), ("turn-0001@acp", vec![]), ("turn-0002", vec![])];
        let mut found = left_out(&session);
        found.sort_unstable();
        assert_eq!((found, session.calls.len()), (names.to_vec(), 1));
    }
}

#[test]
fn texts_of_a_nested_turn_are_not_those_of_the_turn_around() {
    let other = [
        begun("turn-0001"),
        prompt("turn-0001", None, "Go."),
        text("turn-0001", "Gone."),
        turn("turn-0001.inner", "t2"),
        prompt("turn-0001.inner", None, "Elsewhere."),
        call("turn-0001.inner", "c1", "command"),
    ];
    let session = by_ids(&[file(), run(2, "acp", &other)]);
    // The inner turn has an id of its own, and so its call is a fact.
    let names = [("turn-0001", vec![]), ("turn-0001.inner", vec![]), ("turn-0002", vec![2, 3, 4])];
    let mut found = left_out(&session);
    found.sort_unstable();
    assert_eq!((found, session.calls.len()), (names.to_vec(), 1));
}

#[test]
fn call_id_in_a_message_with_words_counts_in_its_turn() {
    let words = json!({"type": "text", "text": "First."});
    let first = [
        turn("turn-0001", "t1"),
        message("turn-0001", &json!([words, uses("c1")])),
        turn("turn-0002", "t2"),
        said("turn-0002", "m1", "Second."),
    ];
    let second = [turn("turn-0002", "t2"), message("turn-0002", &json!([uses("c1")]))];
    let session = by_ids(&[run(1, "disk", &first), run(2, "stream", &second)]);
    // The agent uses the id again: the second call is in the second turn.
    let calls: Vec<_> = session.calls.iter().map(|call| call.turn.map(|turn| turn.0)).collect();
    assert_eq!(calls, [Some(0), Some(1)]);
    assert_eq!(session.responses.len(), 3);
}

#[test]
fn third_run_is_tied_by_an_id_that_the_second_adds() {
    let response = |id: &str, message: Option<&str>| {
        let blocks = json!([{"type": "text", "text": "Done."}]);
        json!(["message.assistant", "turn-0001",
            {"role": "assistant", "id": message, "response": id, "blocks": blocks}])
    };
    let first = [turn("turn-0001", "t1"), said("turn-0001", "m1", "Done.")];
    let second = [begun("turn-0001"), response("r1", Some("m1"))];
    let third = [begun("turn-0001"), response("r1", None), call("turn-0001", "c1", "command")];
    let runs = [run(1, "disk", &first), run(2, "stream", &second), run(3, "http", &third)];
    let session = by_ids(&runs);
    assert_eq!(left_out(&session), [("turn-0001", vec![])]);
    assert_eq!((session.turns[0].runs.len(), session.calls[0].turn.map(|turn| turn.0)), (3, Some(0)));
}
