//! Runs that are derived from one session: merged in any order they give that session, and another run removes
//! nothing.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::tests::{asked, call, end, prompt, result, run, run_id, said, shown, turn};
use super::usage_tests::{of_store, of_turns};
use super::*;
use crate::session::{Speaker, TurnStatus};
use crate::{Effect, Outcome};

const OUTCOMES: [&str; 4] = ["ok", "failed", "denied", "interrupted"];

#[derive(Clone, Debug)]
struct PlannedTurn {
    responses: Vec<PlannedResponse>,
    /// Whether the agent's file has a record of its end.
    has_end: bool,
}

#[derive(Clone, Debug)]
struct PlannedResponse {
    words: u8,
    tokens: u64,
    call: Option<PlannedCall>,
    /// Whether a connection has its words.
    is_sent: bool,
}

#[derive(Clone, Debug)]
struct PlannedCall {
    /// One of a few values, so that ids are reused in other turns.
    id: u8,
    class: &'static str,
    /// `None` for a call without a result.
    outcome: Option<usize>,
    is_asked: bool,
    /// Whether the agent's file says `unknown`, or `failed` for `denied`.
    is_coarse: bool,
    /// Whether a connection has it.
    is_sent: bool,
}

/// A session, and how runs are made from it.
#[derive(Clone, Debug)]
struct SessionPlan {
    turns: Vec<PlannedTurn>,
    /// How much of the agent's file a checkpoint has.
    checkpoint: prop::sample::Index,
    /// The first turn of the connection.
    connected: prop::sample::Index,
    /// How much of the stream was recorded.
    streamed: prop::sample::Index,
}

fn plan() -> impl Strategy<Value = SessionPlan> {
    let class = prop::sample::select(vec!["command", "file_change"]);
    let call = (0..3_u8, class, prop::option::weighted(0.9, 0..4_usize), any::<[bool; 3]>());
    let call = call.prop_map(|(id, class, outcome, [is_asked, is_coarse, is_sent])| PlannedCall {
        id,
        class,
        outcome,
        is_asked,
        is_coarse,
        is_sent,
    });
    let response = (0..3_u8, 1..50_u64, prop::option::of(call), any::<bool>());
    let response =
        response.prop_map(|(words, tokens, call, is_sent)| PlannedResponse { words, tokens, call, is_sent });
    let turn = (prop::collection::vec(response, 0..4), any::<bool>());
    let turn = turn.prop_map(|(mut responses, has_end)| {
        let mut ids = HashSet::new();
        for response in &mut responses {
            response.call = response.call.take().filter(|call| ids.insert(call.id));
        }
        PlannedTurn { responses, has_end }
    });
    let cuts = any::<[prop::sample::Index; 3]>();
    (prop::collection::vec(turn, 1..4), cuts).prop_map(|(turns, [checkpoint, connected, streamed])| {
        SessionPlan { turns, checkpoint, connected, streamed }
    })
}

fn usage(path: &str, response: &Value, tokens: u64, is_final: bool) -> Value {
    json!(["message.assistant", path, {"role": "assistant", "blocks": [], "response": response,
        "usage": {"output_tokens": tokens}, "usage_scope": "response", "final": is_final}])
}

fn call_lines(path: &str, call_of: &PlannedCall, outcome: Option<&str>) -> (Value, Option<Value>) {
    let id = format!("c{}", call_of.id);
    (call(path, &id, call_of.class), outcome.map(|outcome| result(path, &id, outcome)))
}

impl SessionPlan {
    /// Returns the agent's file: everything except approvals, some outcomes inexact, some ends missing.
    fn file(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for (number, of) in self.turns.iter().enumerate() {
            let path = format!("turn-{number:04}");
            lines.extend([
                turn(&path, &format!("t{number}")),
                prompt(&path, Some(&format!("p{number}")), "Go"),
            ]);
            for (place, response) in of.responses.iter().enumerate() {
                let name = format!("{number}-{place}");
                let mut words = said(&path, &format!("m{name}"), &format!("word {}", response.words));
                words[2]["response"] = json!(format!("r{name}"));
                lines.push(words);
                if let Some(call) = &response.call {
                    let outcome = call.outcome.map(|outcome| match OUTCOMES[outcome] {
                        "denied" if call.is_coarse => "failed",
                        _ if call.is_coarse => "unknown",
                        outcome => outcome,
                    });
                    let (called, answered) = call_lines(&path, call, outcome);
                    lines.push(json!(["message.assistant", path, {"role": "assistant", "id": format!("u{name}"),
                        "response": format!("r{name}"), "blocks": [{"type": "tool_use", "tool_name": "tool",
                        "tool_id": format!("c{}", call.id), "tool_input": {}, "fidelity": "agent_emitted"}]}]));
                    lines.push(usage(&path, &json!(format!("r{name}")), response.tokens, true));
                    lines.push(called);
                    lines.extend(answered);
                } else {
                    lines.push(usage(&path, &json!(format!("r{name}")), response.tokens, true));
                }
            }
            lines.extend(of.has_end.then(|| end(&path)));
        }
        lines
    }

    /// Returns a connection: it starts at some turn and has other message ids, numbers for responses, approvals, exact
    /// outcomes, and some texts and calls.
    fn connection(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        let mut responses = 0;
        let first = self.connected.index(self.turns.len());
        for (number, of) in self.turns.iter().enumerate().skip(first) {
            let path = format!("turn-{:04}", number - first);
            lines.extend([turn(&path, &format!("t{number}")), prompt(&path, None, "Go")]);
            for (place, response) in of.responses.iter().enumerate() {
                if response.is_sent {
                    lines.push(said(
                        &path,
                        &format!("i{number}-{place}"),
                        &format!("word {}", response.words),
                    ));
                }
                if let Some(call) = response.call.as_ref().filter(|call| call.is_sent) {
                    let outcome = call.outcome.map(|outcome| OUTCOMES[outcome]);
                    let (called, answered) = call_lines(&path, call, outcome);
                    lines.push(called);
                    if call.is_asked {
                        let decision = if outcome == Some("denied") { "denied" } else { "allowed" };
                        lines.extend(asked(&path, &format!("c{}", call.id), decision));
                    }
                    lines.extend(answered);
                }
                responses += 1;
                lines.push(usage(&path, &json!(responses), response.tokens, true));
            }
            lines.push(end(&path));
        }
        lines
    }

    /// Returns a stream: it has the ids of the file, early counts, a sum for each turn, and no results.
    fn stream(&self) -> Vec<Value> {
        let mut lines = Vec::new();
        for (number, of) in self.turns.iter().enumerate() {
            let path = format!("turn-{number:04}");
            lines.extend([
                turn(&path, &format!("t{number}")),
                prompt(&path, Some(&format!("p{number}")), "Go"),
            ]);
            for (place, response) in of.responses.iter().enumerate() {
                let name = format!("{number}-{place}");
                let mut words = said(&path, &format!("m{name}"), &format!("word {}", response.words));
                words[2]["response"] = json!(format!("r{name}"));
                words[2]["usage"] = json!({"output_tokens": 1});
                lines.push(words);
                if let Some(call) = &response.call {
                    let outcome = call.outcome.map(|outcome| OUTCOMES[outcome]);
                    let (_, answered) = call_lines(&path, call, outcome);
                    lines.push(json!(["message.assistant", path, {"role": "assistant", "id": format!("u{name}"),
                        "response": format!("r{name}"), "blocks": [{"type": "tool_use", "tool_name": "tool",
                        "tool_id": format!("c{}", call.id), "tool_input": {}, "fidelity": "agent_emitted"}]}]));
                    lines.extend(answered);
                }
            }
            let sum: u64 = of.responses.iter().map(|response| response.tokens).sum();
            lines.push(json!(["message.assistant", path, {"role": "assistant", "blocks": [],
                "usage": {"output_tokens": sum}, "usage_scope": "turn", "final": true}]));
            lines.push(end(&path));
        }
        lines
    }

    /// Returns the channels and lines of all runs; the first has everything.
    fn runs(&self) -> [(&'static str, Vec<Value>); 4] {
        let (file, stream) = (self.file(), self.stream());
        let checkpoint = file[..self.checkpoint.index(file.len())].to_vec();
        let stream = stream[..=self.streamed.index(stream.len())].to_vec();
        [("disk", file), ("disk", checkpoint), ("app-server", self.connection()), ("stream", stream)]
    }
}

/// Makes runs in an order. Their ids follow the order, so that ids do not influence the result.
fn made(runs: &[(&'static str, Vec<Value>)], order: &[usize]) -> Vec<RunEvents> {
    let numbers = 2_u32..;
    let made = order.iter().zip(numbers).map(|(place, number)| run(number, runs[*place].0, &runs[*place].1));
    made.collect()
}

/// Returns the counts of a session, which another run must not lower.
fn counts(session: &Session) -> Vec<(&'static str, u64)> {
    let calls =
        |is: &dyn Fn(&crate::Call) -> bool| session.calls.iter().filter(|call| is(call)).count() as u64;
    let messages = |speaker| session.messages.iter().filter(|said| said.speaker == speaker).count() as u64;
    let ended = session.turns.iter().filter(|turn| turn.status != TurnStatus::InProgress).count();
    let used = session.used.unwrap_or_default();
    vec![
        ("turns", session.turns.len() as u64),
        ("ended turns", ended as u64),
        ("prompts", messages(Speaker::User)),
        ("messages", messages(Speaker::Model)),
        ("calls", calls(&|_| true)),
        ("results", calls(&|call| call.is_answered)),
        ("known outcomes", calls(&|call| !matches!(call.outcome(), Outcome::Open | Outcome::Unknown))),
        ("denials", calls(&|call| call.outcome() == Outcome::Denied)),
        ("file changes", calls(&|call| call.effect() == Effect::Change)),
        ("approvals", session.approvals.len() as u64),
        ("responses", used.responses),
        ("tokens", used.tokens.total()),
    ]
}

/// Returns everything about a session except where it was read.
fn facts(session: &Session) -> String {
    let costs: Vec<_> =
        session.turns.iter().map(|turn| turn.usage.as_ref().map(|cost| &cost.report)).collect();
    format!("{:#?}\n{:?}\n{costs:?}\n{:?}", shown(session), counts(session), session.used)
}

/// Returns all permutations.
fn orders(places: &[usize]) -> Vec<Vec<usize>> {
    if places.is_empty() {
        return vec![Vec::new()];
    }
    let first = |at: usize| {
        let rest: Vec<usize> = places.iter().copied().filter(|place| *place != places[at]).collect();
        orders(&rest).into_iter().map(move |order| [vec![places[at]], order].concat())
    };
    (0..places.len()).flat_map(first).collect()
}

/// Merges runs in all orders; checks that the session and its usage are the same each time.
fn merged(runs: &[(&'static str, Vec<Value>)], places: &[usize]) -> Result<Session, TestCaseError> {
    let session = merge(run_id(1), made(runs, places), Content::Whole);
    for order in orders(places) {
        let runs = made(runs, &order);
        let store = of_store(runs.iter());
        let other = merge(run_id(1), runs, Content::Whole);
        prop_assert_eq!(facts(&other), facts(&session), "in the order {:?} of {:?}", order, places);
        let used = other.used.unwrap_or_default();
        prop_assert_eq!(store, used, "usage in the order {:?}", order);
        prop_assert_eq!(of_turns(&other), (used.tokens.total(), used.is_lower_bound), "turns of {:?}", order);
    }
    Ok(session)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn merge_is_order_independent_and_monotonic(plan in plan()) {
        let runs = plan.runs();
        let sets: Vec<Vec<usize>> = (1..16_usize)
            .map(|set| (0..4).filter(|place| set & (1 << place) != 0).collect())
            .collect();
        let sessions = sets.iter().map(|set| merged(&runs, set)).collect::<Result<Vec<_>, _>>()?;
        for (set, session) in sets.iter().zip(&sessions) {
            for (more, larger) in sets.iter().zip(&sessions) {
                if more.len() != set.len() + 1 || !set.iter().all(|place| more.contains(place)) {
                    continue;
                }
                for ((what, count), (_, with_more)) in counts(session).into_iter().zip(counts(larger)) {
                    prop_assert!(count <= with_more, "{}: {} of {:?}, {} of {:?}", what, count, set, with_more, more);
                }
            }
        }
        let all = counts(&sessions[14]);
        let calls = plan.turns.iter().flat_map(|turn| &turn.responses).filter(|said| said.call.is_some());
        let responses: Vec<_> = plan.turns.iter().flat_map(|turn| &turn.responses).collect();
        let tokens: u64 = responses.iter().map(|response| response.tokens).sum();
        for want in [
            ("turns", plan.turns.len() as u64),
            ("prompts", plan.turns.len() as u64),
            ("calls", calls.count() as u64),
            ("responses", responses.len() as u64),
            ("tokens", tokens),
        ] {
            prop_assert!(all.contains(&want), "{:?} is not in {:?}", want, all);
        }
    }
}
