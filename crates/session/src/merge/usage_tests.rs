//! Usage of several runs: the session, its turns and `usage` give the same sum.

use serde_json::{Value, json};

use super::tests::{end, run, run_id, turn};
use super::*;
use crate::usage::{Counts, TokenUsage, UsageBuilder};

/// Returns a usage report of a response.
fn used(path: &str, response: &Value, output: u64, is_final: bool) -> Value {
    json!(["message.assistant", path, {"role": "assistant", "blocks": [], "response": response, "model": "m",
        "usage": {"output_tokens": output}, "usage_scope": "response", "final": is_final}])
}

fn total(path: &str, output: u64) -> Value {
    json!(["message.assistant", path, {"role": "assistant", "blocks": [],
        "usage": {"output_tokens": output}, "usage_scope": "turn", "final": true}])
}

/// Returns a turn with final usage reports.
fn told(path: &str, id: &str, reports: &[(Value, u64)]) -> Vec<Value> {
    let reports = reports.iter().map(|(response, output)| used(path, response, *output, true));
    [turn(path, id)].into_iter().chain(reports).chain([end(path)]).collect()
}

/// Returns the total usage of a store with these runs.
pub(super) fn of_store<'a>(runs: impl Iterator<Item = &'a RunEvents>) -> TokenUsage {
    let mut builder = UsageBuilder::new();
    runs.flat_map(|run| &run.events).for_each(|event| builder.push(event));
    let mut sum = TokenUsage::default();
    builder.finish().values().for_each(|used| sum.add(*used));
    sum
}

/// Returns the total usage of the turns of a session.
pub(super) fn of_turns(session: &Session) -> (u64, bool) {
    let costs = session.turns.iter().filter_map(|turn| turn.usage.as_ref());
    costs.fold((0, false), |(sum, is_bound), cost| {
        let counts = Counts::read(cost.report.as_str()).unwrap();
        (sum + counts.tokens.output, is_bound || cost.is_lower_bound)
    })
}

/// Checks responses, output and whether it is a lower bound, in both orders and from all three places.
#[track_caller]
fn check(runs: &dyn Fn() -> Vec<RunEvents>, want: (u64, u64, bool)) {
    let mut backward = runs();
    backward.reverse();
    for runs in [runs(), backward] {
        let store = of_store(runs.iter());
        assert_eq!((store.responses, store.tokens.output, store.is_lower_bound), want, "the store");
        let session = merge(run_id(1), runs, Content::Whole);
        let used = session.used.unwrap();
        assert_eq!((used.responses, used.tokens.output, used.is_lower_bound), want, "the session");
        assert_eq!(of_turns(&session), (want.1, want.2), "its turns");
    }
}

#[test]
fn shared_turns_count_once_and_single_turns_count() {
    let ids = || run(1, "disk", &told("turn-0001", "t1", &[(json!("r1"), 5), (json!("r2"), 6)]));
    let numbers = || {
        let first = told("turn-0001", "t1", &[(json!(1), 5), (json!(2), 6)]);
        run(2, "app-server", &[first, told("turn-0002", "t2", &[(json!(3), 7)])].concat())
    };
    check(&|| vec![ids(), numbers()], (3, 18, false));
    // The other way around.
    let numbers = || run(1, "disk", &told("turn-0001", "t1", &[(json!(1), 5), (json!(2), 6)]));
    let ids = || {
        let first = told("turn-0004", "t1", &[(json!("r1"), 5), (json!("r2"), 6)]);
        run(2, "stream", &[first, told("turn-0005", "t2", &[(json!("r3"), 7)])].concat())
    };
    check(&|| vec![numbers(), ids()], (3, 18, false));
}

#[test]
fn response_numbers_are_valid_within_one_run() {
    let one = || run(1, "disk", &told("turn-0001", "t1", &[(json!(3), 5)]));
    let other = || run(2, "app-server", &told("turn-0001", "t2", &[(json!(3), 7)]));
    check(&|| vec![one(), other()], (2, 12, false));
    let again = || run(2, "app-server", &told("turn-0001", "t1", &[(json!(3), 5), (json!(4), 7)]));
    check(&|| vec![one(), again()], (2, 12, false));
}

#[test]
fn copies_with_ids_are_joined() {
    let copy =
        |number, ids: [&str; 2]| run(number, "disk", &told("turn-0001", "t1", &ids.map(|id| (json!(id), 5))));
    check(&|| vec![copy(1, ["r1", "r2"]), copy(2, ["r2", "r3"])], (3, 15, false));
}

#[test]
fn cut_off_run_does_not_lower_the_sum() {
    let cut = || run(1, "disk", &[turn("turn-0001", "t1"), used("turn-0001", &json!("r1"), 5, true)]);
    let numbers = || run(2, "app-server", &told("turn-0001", "t1", &[(json!(1), 5), (json!(2), 6)]));
    check(&|| vec![cut(), numbers()], (2, 11, false));
    let stream = || {
        let early = ["r1", "r2", "r3"].map(|id| used("turn-0001", &json!(id), 1, false));
        let lines = [&[turn("turn-0001", "t1")], &early[..], &[total("turn-0001", 30)]].concat();
        run(2, "stream", &lines)
    };
    check(&|| vec![stream()], (3, 30, false));
    check(&|| vec![cut(), stream()], (3, 30, false));
}

#[test]
fn final_counts_win_over_turn_totals() {
    let early = || {
        let said = [used("turn-0001", &json!("r1"), 1, false), total("turn-0001", 9)];
        run(2, "stream", &[vec![turn("turn-0001", "t1")], said.to_vec()].concat())
    };
    let file =
        |is_final| run(1, "disk", &[turn("turn-0001", "t1"), used("turn-0001", &json!("r1"), 8, is_final)]);
    check(&|| vec![early(), file(true)], (1, 8, false));
    check(&|| vec![early(), file(false)], (1, 9, false));
    check(&|| vec![file(false)], (1, 8, true));
}

#[test]
fn partial_ids_do_not_lower_the_sum() {
    let mixed = || run(1, "disk", &told("turn-0001", "t1", &[(json!("r1"), 5), (json!(2), 6)]));
    let prefix = || run(2, "disk", &told("turn-0001", "t1", &[(json!("r1"), 5)]));
    check(&|| vec![mixed(), prefix()], (2, 11, false));
    let whole = || run(2, "stream", &told("turn-0001", "t1", &[(json!("r1"), 5), (json!("r2"), 6)]));
    check(&|| vec![mixed(), whole()], (2, 11, false));
}

#[test]
fn shared_response_joins_turns_without_ids() {
    let start = json!(["step.started", "turn-0001", {"name": "turn-0001", "kind": "turn"}]);
    let said = |id: &str| {
        let mut message = used("turn-0001", &json!(id), 5, true);
        message[2]["blocks"] = json!([{"type": "text", "text": "Well"}]);
        message
    };
    let file = || run(1, "disk", &[start.clone(), said("r1"), used("turn-0001", &json!(7), 6, true)]);
    let stream = || run(2, "stream", &[start.clone(), said("r1"), used("turn-0001", &json!(1), 6, true)]);
    check(&|| vec![file(), stream()], (2, 11, false));
}

#[test]
fn channels_with_different_ids_are_not_joined() {
    let file = || run(1, "disk", &told("turn-0001", "t1", &[(json!("r1"), 5), (json!("r2"), 6)]));
    let connection = || run(2, "app-server", &told("turn-0001", "t1", &[(json!("x1"), 4), (json!("x2"), 8)]));
    check(&|| vec![file(), connection()], (2, 11, false));
    let cut = || run(3, "disk", &[turn("turn-0001", "t1"), used("turn-0001", &json!("r1"), 5, true)]);
    check(&|| vec![cut(), connection()], (2, 12, false));
    check(&|| vec![cut(), connection(), file()], (2, 11, false));
}
