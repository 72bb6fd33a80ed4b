//! Hand-written runs of one session, and the merged session.

use serde_json::{Value, json};
use steno_model::{ExchangeEvent, RunId};

use super::*;
use crate::session::{ItemKind, TurnStatus};
use crate::{Effect, Outcome};

pub(super) fn run_id(number: u32) -> RunId {
    RunId::parse(&format!("{number:08x}-0000-4000-8000-000000000000")).unwrap()
}

/// Makes a run from type, path and payload of its events.
pub(super) fn run(number: u32, channel: &str, lines: &[Value]) -> RunEvents {
    let head = json!(["run.started", "", {"name": "codex", "kind": "session",
        "source": {"channel": channel, "adapter": "codex/2", "carries": ["calls"]}}]);
    let event = |(index, line): (usize, &Value)| {
        let whole = json!({
            "seq": index + 1, "run_id": run_id(number).to_string(), "type": line[0], "path": line[1],
            "iteration": 0, "timestamp": format!("2026-06-08T08:00:{:02}Z", index % 60), "payload": line[2],
            "session_run_id": run_id(1).to_string(),
        });
        ExchangeEvent::parse(whole.to_string().as_bytes()).unwrap()
    };
    let events = [&head].into_iter().chain(lines).enumerate().map(event).collect();
    RunEvents { id: run_id(number), events }
}

pub(super) fn turn(path: &str, id: &str) -> Value {
    json!(["step.started", path, {"name": path, "kind": "turn", "turn_id": id}])
}

pub(super) fn end(path: &str) -> Value {
    json!(["step.completed", path, {"name": path, "kind": "turn", "ended_by": "record"}])
}

pub(super) fn prompt(path: &str, id: Option<&str>, text: &str) -> Value {
    json!(["message.user", path, {"role": "user", "id": id, "blocks": [{"type": "text", "text": text}]}])
}

pub(super) fn said(path: &str, id: &str, text: &str) -> Value {
    json!(["message.assistant", path, {"role": "assistant", "id": id, "blocks": [{"type": "text", "text": text}]}])
}

pub(super) fn call(path: &str, id: &str, class: &str) -> Value {
    json!(["tool.call", path, {"name": "tool", "call_id": id, "input": {}, "output": null,
        "fidelity": "agent_emitted", "class": class}])
}

pub(super) fn result(path: &str, id: &str, outcome: &str) -> Value {
    json!(["tool.result", path, {"name": "tool", "call_id": id, "input": null, "output": "out",
        "fidelity": "agent_emitted", "outcome": outcome}])
}

pub(super) fn asked(path: &str, call: &str, decision: &str) -> [Value; 2] {
    let at = format!("{path}.approval");
    [
        json!(["step.started", at, {"name": "r", "kind": "approval", "tool_call_id": call}]),
        json!(["step.completed", at, {"name": "r", "kind": "approval", "tool_call_id": call,
            "result": {"decision": decision, "by": "host"}}]),
    ]
}

/// Shows a session without runs and numbers: a line for each turn and each item.
pub(super) fn shown(session: &Session) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, turn) in session.turns.iter().enumerate() {
        let id = turn.turn_id.as_ref().map(ToString::to_string).unwrap_or_default();
        lines.push(format!("{} {id} {}", turn.name, turn.status.name()));
        for item in session.items.iter().filter(|item| item.turn.is_some_and(|turn| turn.0 == number)) {
            lines.push(format!("  {}", item_line(session, item.kind)));
        }
    }
    lines
}

fn item_line(session: &Session, kind: ItemKind) -> String {
    let words = |message: &crate::Message| {
        let texts = message.blocks.iter().filter_map(|block| match block {
            crate::Block::Recorded(block) => {
                Some(PayloadFields::parse(block.as_str()).text("text")?.into_owned())
            }
            crate::Block::Call(_) | crate::Block::Elsewhere => None,
        });
        texts.collect::<Vec<_>>().join(" ")
    };
    match kind {
        ItemKind::Prompt(id) => format!("user: {}", words(&session.messages[id.0])),
        ItemKind::SystemPrompt(_) => "system prompt".to_owned(),
        ItemKind::Response(id) => {
            let messages = session.responses[id.0].messages.iter();
            let said: Vec<String> = messages.map(|id| words(&session.messages[id.0])).collect();
            format!("model: {}", said.join(" "))
        }
        ItemKind::Call(number) => {
            let call = &session.calls[number.0];
            let decisions = call.approvals.iter().map(|id| {
                session.approvals[id.0].decision.as_ref().map(ToString::to_string).unwrap_or_default()
            });
            let decisions: Vec<String> = decisions.collect();
            let id = call.id.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("call {id} {:?} {decisions:?}", call.outcome())
        }
        ItemKind::Approval(_) => "approval".to_owned(),
        ItemKind::Child(_) => "child".to_owned(),
        ItemKind::Fact(id) => {
            let fact = &session.facts[id.0];
            format!("fact {}", fact.name.as_ref().map(ToString::to_string).unwrap_or_default())
        }
    }
}

/// Checks the merged session of runs, in both orders.
#[track_caller]
pub(super) fn check(runs: &dyn Fn() -> Vec<RunEvents>, want: &[&str]) -> Session {
    let forward = merge(run_id(1), runs(), Content::Whole);
    assert_eq!(shown(&forward), want);
    let backward = merge(run_id(1), runs().into_iter().rev().collect(), Content::Whole);
    assert_eq!(shown(&backward), want, "in the other order");
    forward
}

fn rollout() -> RunEvents {
    run(
        1,
        "disk",
        &[
            turn("turn-0001", "t1"),
            prompt("turn-0001", Some("m1"), "Go"),
            said("turn-0001", "m2", "Well"),
            call("turn-0001", "c1", "command"),
            result("turn-0001", "c1", "unknown"),
            call("turn-0001", "c2", "file_change"),
            result("turn-0001", "c2", "failed"),
            said("turn-0001", "m3", "Done"),
            end("turn-0001"),
        ],
    )
}

fn connection(number: u32) -> RunEvents {
    let [ask, answer] = asked("turn-0007", "c1", "allowed");
    let [ask2, answer2] = asked("turn-0007", "c2", "denied");
    run(
        number,
        "app-server",
        &[
            turn("turn-0007", "t1"),
            prompt("turn-0007", None, "Go"),
            said("turn-0007", "m2", "Well"),
            call("turn-0007", "c1", "command"),
            ask,
            answer,
            result("turn-0007", "c1", "ok"),
            json!(["step.completed", "turn-0007", {"name": "api", "kind": "retry", "error": "529"}]),
            call("turn-0007", "c2", "file_change"),
            ask2,
            answer2,
            result("turn-0007", "c2", "denied"),
            end("turn-0007"),
        ],
    )
}

#[test]
fn connection_adds_approvals() {
    let session = check(
        &|| vec![rollout(), connection(2)],
        &[
            "turn-0001 t1 completed",
            "  user: Go",
            "  model: Well",
            "  call c1 Ok [\"allowed\"]",
            "  fact api",
            "  call c2 Denied [\"denied\"]",
            "  model: Done",
        ],
    );
    assert_eq!(session.runs[0].id(), run_id(1));
    assert_eq!(session.calls[1].effect(), Effect::None);
    // The prompt has no id on the connection.
    assert_eq!(session.runs[1].alike, 1);
}

#[test]
fn turn_of_one_run_is_kept() {
    let other = || run(2, "app-server", &[turn("turn-0001", "t9"), said("turn-0001", "m9", "Alone")]);
    check(
        &|| vec![run(1, "disk", &[turn("turn-0001", "t1"), end("turn-0001")]), other()],
        // Nothing before it is in both runs, so it comes first.
        &["turn-0001@app-server t9 in_progress", "  model: Alone", "turn-0001 t1 completed"],
    );
}

#[test]
fn longest_copy_gives_the_order() {
    let lines = [
        turn("turn-0001", "t1"),
        prompt("turn-0001", Some("m1"), "Go"),
        said("turn-0001", "m2", "One"),
        said("turn-0001", "m3", "Two"),
    ];
    let copy = |number, len| run(number, "disk", &lines[..len]);
    let want = ["turn-0001 t1 in_progress", "  user: Go", "  model: One Two"];
    let session = check(&|| vec![copy(1, 2), copy(2, 4), copy(3, 3)], &want);
    assert_eq!((session.runs[0].id(), session.branches.len()), (run_id(2), 0));
}

#[test]
fn diverging_copy_is_a_branch() {
    let start = || vec![turn("turn-0001", "t1"), prompt("turn-0001", Some("m1"), "Go")];
    let long = || {
        let more = [said("turn-0001", "m2", "One"), said("turn-0001", "m3", "Two")];
        run(1, "disk", &[start(), more.to_vec()].concat())
    };
    let short = || run(2, "disk", &[start(), vec![said("turn-0001", "x2", "Else")]].concat());
    let session =
        check(&|| vec![short(), long()], &["turn-0001 t1 in_progress", "  user: Go", "  model: One Two"]);
    assert_eq!(session.branches.len(), 1);
    assert_eq!(session.branches[0].events, 1);
}

#[test]
fn facts_missing_in_a_copy_are_restored_in_place() {
    let lines = [
        turn("turn-0001", "t1"),
        prompt("turn-0001", Some("m1"), "Go"),
        said("turn-0001", "m2", "One"),
        call("turn-0001", "c1", "command"),
        result("turn-0001", "c1", "ok"),
        said("turn-0001", "m3", "Two"),
    ];
    let whole = || run(1, "disk", &lines[..5]);
    let rewritten = || {
        let kept = [lines[0].clone(), lines[1].clone(), lines[3].clone(), lines[4].clone(), lines[5].clone()];
        run(2, "disk", &[&kept[..], &[said("turn-0001", "m4", "Three")]].concat())
    };
    check(
        &|| vec![whole(), rewritten()],
        &["turn-0001 t1 in_progress", "  user: Go", "  model: One", "  call c1 Ok []", "  model: Two Three"],
    );
}

#[test]
fn exec_items_are_compared_but_not_counted() {
    let exec = || {
        run(
            2,
            "exec",
            &[
                turn("turn-0001", "x"),
                said("turn-0001", "item_0", "Well"),
                said("turn-0001", "item_1", "Only here"),
            ],
        )
    };
    let session = check(
        &|| vec![rollout(), exec()],
        &[
            "turn-0001 t1 completed",
            "  user: Go",
            "  model: Well",
            "  call c1 Unknown []",
            "  call c2 Failed []",
            "  model: Done",
        ],
    );
    assert_eq!((session.runs[1].alike, session.runs[1].unmatched), (1, 1));
}

#[test]
fn another_run_never_makes_a_fact_less_exact() {
    let alone = merge(run_id(1), vec![connection(2)], Content::Whole);
    let both = merge(run_id(1), vec![connection(2), rollout()], Content::Whole);
    let three = merge(run_id(1), vec![connection(2), rollout(), connection(3)], Content::Whole);
    for session in [&alone, &both, &three] {
        assert_eq!(session.approvals.len(), 2);
        assert_eq!(session.calls.len(), 2);
        assert_eq!(session.calls[1].outcome(), Outcome::Denied);
        assert_eq!(session.turns[0].status, TurnStatus::Completed);
    }
}

#[test]
fn system_prompt_is_not_a_user_message() {
    let labelled = json!(["message.user", "turn-0001", {"role": "user", "blocks": [
        {"type": "text", "text": "You are an agent.", "label": "system_prompt"},
        {"type": "text", "text": "Go"},
    ]}]);
    let session =
        merge(run_id(1), vec![run(1, "disk", &[turn("turn-0001", "t1"), labelled])], Content::Whole);
    assert_eq!(shown(&session), ["turn-0001 t1 in_progress", "  system prompt", "  user: Go"]);
}

#[test]
fn merge_by_ids_keeps_calls_and_leaves_out_words() {
    let session = merge_by_ids(run_id(1), &[rollout(), connection(2)], Content::Whole);
    let (turn, calls) = (&session.turns[0], &session.calls);
    assert_eq!(calls.iter().map(crate::Call::outcome).collect::<Vec<_>>(), [Outcome::Ok, Outcome::Denied]);
    assert_eq!(session.approvals.len(), 2);
    // The prompt and the retry have no id that both runs have; a message has.
    let left_out: Vec<u64> = turn.left_out.iter().map(|at| at.seq.get()).collect();
    assert_eq!((left_out, session.messages.len(), session.facts.len()), (vec![3, 9], 3, 0));
    assert_eq!((turn.runs.len(), turn.ended_in.len()), (2, 2));
}

#[test]
fn first_yes_or_no_decides_an_approval() {
    let [ask, timeout] = asked("turn-0001", "c1", "timeout");
    let [_, no] = asked("turn-0001", "c1", "denied");
    let [_, yes] = asked("turn-0001", "c1", "allowed");
    let lines = [turn("turn-0001", "t1"), call("turn-0001", "c1", "command"), ask, timeout, no, yes];
    let session = merge(run_id(1), vec![run(1, "disk", &lines)], Content::Whole);
    let answers: Vec<Option<bool>> = session.approvals.iter().map(crate::Approval::is_allowed).collect();
    assert_eq!(answers, [Some(false)]);
}

#[test]
fn all_records_of_the_last_response_decide_an_open_turn() {
    let record = |kind: &str, response: Option<&str>, stop: Option<&str>| {
        let blocks =
            if kind.is_empty() { json!([]) } else { json!([{"type": kind, "text": "x", "thinking": "x"}]) };
        json!(["message.assistant", "turn-0001", {"role": "assistant", "blocks": blocks, "response": response,
            "stop_reason": stop, "usage": {"output_tokens": 1}}])
    };
    let status = |lines: &[Value]| {
        let lines = [&[turn("turn-0001", "t1")], lines].concat();
        merge(run_id(1), vec![run(1, "disk", &lines)], Content::Whole).turns[0].status
    };
    let thought = record("thinking", Some("r1"), Some("end_turn"));
    // A thought already has the reason of its response.
    assert_eq!(status(std::slice::from_ref(&thought)), TurnStatus::InProgress);
    assert_eq!(status(&[thought.clone(), record("text", Some("r1"), None)]), TurnStatus::Completed);
    assert_eq!(status(&[thought, record("text", Some("r2"), None)]), TurnStatus::InProgress);
    let (words, last) = (record("text", Some("r1"), None), record("", Some("r1"), Some("end_turn")));
    assert_eq!(status(&[words.clone(), last]), TurnStatus::Completed);
    assert_eq!(status(&[words, record("", None, Some("end_turn"))]), TurnStatus::InProgress);
}

#[test]
fn turn_lists_outside_events_of_its_calls() {
    let [ask, answer] = asked("turn-0001", "c1", "allowed");
    let later = json!(["step.completed", "turn-0002.approval", answer[2]]);
    let lines = [
        turn("turn-0001", "t1"),
        call("turn-0001", "c1", "command"),
        ask,
        turn("turn-0002", "t2"),
        later,
        result("turn-0002", "c1", "ok"),
    ];
    let session = merge(run_id(1), vec![run(1, "disk", &lines)], Content::Whole);
    let others = |turn: usize| {
        let mut seqs: Vec<u64> = session.turns[turn].others.iter().map(|at| at.seq.get()).collect();
        seqs.sort_unstable();
        seqs.dedup();
        seqs
    };
    assert_eq!((others(0), others(1)), (vec![6, 7], vec![3, 4]));
}

#[test]
fn words_with_usage_are_kept_beside_another_run() {
    let spoken = |id: &str, text: &str| {
        let mut message = said("turn-0001", id, text);
        message[2]["usage"] = json!({"output_tokens": 5});
        message[2]["response"] = json!(format!("r-{id}"));
        message
    };
    let disk = || run(1, "disk", &[turn("turn-0001", "t1"), spoken("m1", "One")]);
    let stream = || {
        run(
            2,
            "stream",
            &[turn("turn-0001", "t1"), spoken("m1", "One"), spoken("m2", "Two"), spoken("m3", "Three")],
        )
    };
    check(
        &|| vec![disk(), stream()],
        &["turn-0001 t1 in_progress", "  model: One", "  model: Two", "  model: Three"],
    );
    // The same in a turn that only one run has.
    let other = || run(1, "disk", &[turn("turn-0001", "t0")]);
    let session = merge(run_id(1), vec![other(), stream()], Content::Whole);
    assert_eq!(session.responses.len(), 3);
}

#[test]
fn turns_with_different_ids_stay_separate() {
    let file = || {
        let lines = [turn("turn-0001", "t1"), call("turn-0001", "c1", "command"), end("turn-0001")];
        run(1, "disk", &lines)
    };
    let other = || {
        let lines = [turn("turn-0001", "t2"), call("turn-0001", "c1", "command"), end("turn-0001")];
        run(2, "app-server", &lines)
    };
    check(
        &|| vec![file(), other()],
        &[
            "turn-0001@app-server t2 completed",
            "  call c1 Open []",
            "turn-0001 t1 completed",
            "  call c1 Open []",
        ],
    );
}

#[test]
fn turn_takes_its_id_from_another_run() {
    let unnamed = || {
        let start = json!(["step.started", "turn-0001", {"name": "turn-0001", "kind": "turn"}]);
        run(1, "disk", &[start, said("turn-0001", "m1", "One")])
    };
    let named = |number, channel: &str, id: &str, message: &str| {
        run(number, channel, &[turn("turn-0001", id), said("turn-0001", message, "One")])
    };
    check(
        &|| {
            let (first, second) = (named(2, "app-server", "t1", "m1"), named(3, "stream", "t1", "m9"));
            vec![unnamed(), first, second, named(4, "progress", "t2", "m1")]
        },
        &["turn-0001@progress t2 in_progress", "turn-0001 t1 in_progress", "  model: One"],
    );
}

#[test]
fn facts_of_a_third_run_survive_a_removed_branch() {
    let start = || vec![turn("turn-0001", "t1"), prompt("turn-0001", Some("m1"), "Go")];
    let long = || {
        let more = [said("turn-0001", "m2", "One"), said("turn-0001", "m3", "Two"), end("turn-0001")];
        run(1, "disk", &[start(), more.to_vec()].concat())
    };
    let short = || {
        let more = [call("turn-0001", "c1", "command"), said("turn-0001", "x2", "Else")];
        run(2, "disk", &[start(), more.to_vec()].concat())
    };
    let [ask, answer] = asked("turn-0001", "c1", "allowed");
    let connection = || {
        let more = [call("turn-0001", "c1", "command"), ask.clone(), answer.clone()];
        run(3, "app-server", &[start(), more.to_vec()].concat())
    };
    let session = check(
        &|| vec![long(), short(), connection()],
        &["turn-0001 t1 completed", "  user: Go", "  call c1 Open [\"allowed\"]", "  model: One Two"],
    );
    assert_eq!((session.branches.len(), session.branches[0].events), (1, 1));
    // A copy of the branch is the branch.
    let copied = check(
        &|| {
            vec![
                long(),
                short(),
                run(3, "disk", &[start(), vec![call("turn-0001", "c1", "command")]].concat()),
            ]
        },
        &["turn-0001 t1 completed", "  user: Go", "  model: One Two"],
    );
    assert_eq!((copied.branches.len(), copied.branches[0].events), (1, 2));
}

#[test]
fn equal_messages_with_different_ids_stay_separate() {
    let copy = |number, id: &str| {
        let lines = [turn("turn-0001", "t1"), prompt("turn-0001", Some(id), "Go on"), end("turn-0001")];
        run(number, "disk", &lines)
    };
    let file = || copy(1, "m1");
    let copies = ["turn-0001 t1 completed", "  user: Go on", "  user: Go on"];
    let session = check(&|| vec![file(), copy(2, "m2")], &copies);
    assert_eq!(session.runs[1].alike, 0);
    // Another channel has other ids: each of its messages equals one of the file.
    let channel = || {
        let said = [prompt("turn-0001", Some("i1"), "Go on"), prompt("turn-0001", Some("i2"), "Go on")];
        run(3, "app-server", &[vec![turn("turn-0001", "t1")], said.to_vec()].concat())
    };
    let session = check(&|| vec![file(), copy(2, "m2"), channel()], &copies);
    assert_eq!(session.runs[2].alike, 2);
    // A message with a known id is not matched with another message of the same text.
    let later = || {
        let said = [prompt("turn-0001", None, "Go on"), prompt("turn-0001", Some("i1"), "Go on")];
        run(4, "app-server", &[vec![turn("turn-0001", "t1")], said.to_vec()].concat())
    };
    check(&|| vec![file(), copy(2, "m2"), channel(), later()], &copies);
}

#[test]
fn retries_match_by_order_in_the_turn() {
    let retry = |path: &str, error: &str| json!(["step.completed", path, {"name": "api", "kind": "retry", "error": error}]);
    let file = || {
        let lines = [turn("turn-0001", "t1"), retry("turn-0001", "529 overloaded"), end("turn-0001")];
        run(1, "disk", &lines)
    };
    let connection = || {
        let told = [retry("turn-0007", "overloaded (529)"), retry("turn-0007", "overloaded (529)")];
        run(2, "app-server", &[vec![turn("turn-0007", "t1")], told.to_vec()].concat())
    };
    check(&|| vec![file(), connection()], &["turn-0001 t1 completed", "  fact api", "  fact api"]);
}

#[test]
fn deep_path_belongs_to_the_turn_above() {
    let deep = format!("turn-0001.{}", vec!["a"; 10_000].join("."));
    let lines = [turn("turn-0001", "t1"), said(&deep, "m1", "One")];
    let runs = || vec![run(1, "disk", &lines), run(2, "app-server", &lines)];
    check(&runs, &["turn-0001 t1 in_progress", "  model: One"]);
}

#[test]
fn reused_call_id_is_another_call_in_another_turn() {
    let uses = |path: &str, id: &str, outcome: &str| {
        vec![turn(path, id), call(path, "c1", "command"), result(path, "c1", outcome), end(path)]
    };
    let file =
        || run(1, "disk", &[uses("turn-0001", "t1", "ok"), uses("turn-0002", "t2", "unknown")].concat());
    // The connection has only the second one.
    let connection = || {
        let [ask, answer] = asked("turn-0001", "c1", "denied");
        let mut lines = uses("turn-0001", "t2", "denied");
        lines.splice(2..2, [ask, answer]);
        run(2, "app-server", &lines)
    };
    check(
        &|| vec![file(), connection()],
        &[
            "turn-0001 t1 completed",
            "  call c1 Ok []",
            "turn-0002 t2 completed",
            "  call c1 Denied [\"denied\"]",
        ],
    );
}

#[test]
fn second_approval_of_a_call_is_kept() {
    let ask = |path: &str, name: &str, decision: &str| {
        let at = format!("{path}.approval");
        let payload = json!({"name": name, "kind": "approval", "tool_call_id": "c1"});
        let mut answer = payload.clone();
        answer["result"] = json!({"decision": decision});
        vec![json!(["step.started", at, payload]), json!(["step.completed", at, answer])]
    };
    let run_with = |number, channel: &str, asks: &[Vec<Value>]| {
        let start = vec![turn("turn-0001", "t1"), call("turn-0001", "c1", "command")];
        run(number, channel, &[start, asks.concat()].concat())
    };
    let once = || run_with(1, "disk", &[ask("turn-0001", "q1", "allowed")]);
    let twice =
        || run_with(2, "app-server", &[ask("turn-0001", "7", "allowed"), ask("turn-0001", "8", "denied")]);
    check(
        &|| vec![once(), twice()],
        &["turn-0001 t1 in_progress", "  call c1 Open [\"allowed\", \"denied\"]"],
    );
}

#[test]
fn result_prefers_the_call_of_its_turn() {
    let lines = [
        turn("turn-0001", "t1"),
        call("turn-0001", "c1", "command"),
        turn("turn-0002", "t2"),
        call("turn-0002", "c1", "command"),
        result("turn-0002", "c1", "ok"),
        turn("turn-0003", "t3"),
        result("turn-0003", "c1", "failed"),
    ];
    let want = [
        "turn-0001 t1 in_progress",
        "  call c1 Failed []",
        "turn-0002 t2 in_progress",
        "  call c1 Ok []",
        "turn-0003 t3 in_progress",
    ];
    check(&|| vec![run(1, "disk", &lines)], &want);
    check(&|| vec![run(1, "disk", &lines), run(2, "app-server", &lines[2..])], &want);
}

#[test]
fn late_turn_end_does_not_end_another_turn() {
    let disk = [
        turn("turn-0001", "t1"),
        said("turn-0001", "m1", "One."),
        end("turn-0001"),
        turn("turn-0002", "t2"),
        said("turn-0002", "m2", "Two."),
    ];
    // The stream has the end of the first turn after the start of the second.
    let stream = [
        turn("turn-0001", "t1"),
        said("turn-0001", "m1", "One."),
        turn("turn-0002", "t2"),
        said("turn-0002", "m2", "Two."),
        end("turn-0001"),
        end("turn-0002"),
    ];
    for matching in [MatchRule::Likeness, MatchRule::Ids] {
        let runs = merged_order(vec![run(1, "disk", &disk), run(2, "stream", &stream)]);
        let runs: Vec<Cow<'_, RunEvents>> = runs.into_iter().map(Cow::Owned).collect();
        let session = merge_in_order(run_id(1), &runs, Content::Whole, matching);
        let turns: Vec<_> =
            session.turns.iter().map(|turn| (turn.name.as_str(), turn.status, turn.events.len())).collect();
        assert_eq!(
            turns,
            [("turn-0001", TurnStatus::Completed, 6), ("turn-0002", TurnStatus::Completed, 5)],
            "{matching:?}"
        );
    }
}

#[test]
fn inferred_end_time_becomes_the_last_fact_time() {
    let lines = [turn("turn-0001", "t1"), said("turn-0001", "m1", "One."), end("turn-0001")];
    let mut stream = run(1, "stream", &lines);
    let end = stream.events.last_mut().unwrap();
    let line = end.to_line().trim_end().replacen('{', "{\"ts_inferred\":true,", 1).replace(":03Z", ":59Z");
    *end = ExchangeEvent::parse(line.as_bytes()).unwrap();
    let session = merge(run_id(1), vec![stream], Content::Whole);
    let ended_at = session.turns[0].ended_at.as_ref().map(ToString::to_string);
    assert_eq!(ended_at.as_deref(), Some("2026-06-08T08:00:02Z"));
}

#[test]
fn run_ids_do_not_decide_between_copies() {
    let lines =
        [turn("turn-0001", "t1"), json!(["step.completed", "", {"name": "warning", "kind": "system"}])];
    let copy = |number: u32, last: &str| {
        let mut run = run(number, "app-server", &lines);
        let fork = format!("\"payload\":{{\"forked_from\":{{\"run_id\":\"{}\"}},", run_id(number + 10));
        for event in &mut run.events {
            let line = event.to_line().replace(":01Z", last);
            let line = if line.contains("run.started") { line.replace("\"payload\":{", &fork) } else { line };
            *event = ExchangeEvent::parse(line.trim_end().as_bytes()).unwrap();
        }
        run
    };
    let started = |first: u32, second: u32| {
        let session = merge(run_id(9), vec![copy(first, ":01.1Z"), copy(second, ":01.2Z")], Content::Whole);
        session.turns[0].started_at.clone()
    };
    for number in 3..20 {
        assert_eq!(started(1, number), started(number, 1), "{number}");
    }
}

#[test]
fn stream_without_ids_repeats_nothing_that_the_file_has() {
    let begun = |path: &str| json!(["step.started", path, {"name": path, "kind": "turn"}]);
    let message = |path: &str, id: Option<&str>, blocks: Value| json!(["message.assistant", path, {"role": "assistant", "id": id, "blocks": blocks}]);
    let text = json!({"type": "text", "text": "Two at once."});
    let used = |id: &str| json!({"type": "tool_use", "tool_id": id, "tool_name": "tool", "tool_input": {}});
    let file = [
        begun("turn-0001"),
        prompt("turn-0001", Some("u1"), "Go."),
        message("turn-0001", Some("m1"), json!([{"type": "thinking", "thinking": "Hm."}, text])),
        message("turn-0001", None, json!([used("c1"), used("c2")])),
        call("turn-0001", "c1", "other"),
        call("turn-0001", "c2", "other"),
        begun("turn-0002"),
        prompt("turn-0002", Some("u2"), "More."),
        said("turn-0002", "m2", "No."),
    ];
    let stream = [
        begun("turn-0001"),
        prompt("turn-0001", None, "Go."),
        message("turn-0001", None, json!([text])),
        message("turn-0001", None, json!([used("c1")])),
        call("turn-0001", "c1", "other"),
        message("turn-0001", None, json!([used("c2")])),
        call("turn-0001", "c2", "other"),
        // No id matches this turn: it is compared, and adds nothing.
        begun("turn-0002"),
        prompt("turn-0002", None, "More."),
        message("turn-0002", None, json!([{"type": "text", "text": "No."}])),
        end("turn-0002"),
    ];
    let alone = shown(&merge(run_id(1), vec![run(1, "disk", &file)], Content::Whole));
    let both = merge(run_id(1), vec![run(1, "disk", &file), run(2, "stream", &stream)], Content::Whole);
    assert_eq!(shown(&both), alone);
    // Another answer to the same prompt is another turn.
    let other =
        [&stream[7..9], &[message("turn-0002", None, json!([{"type": "text", "text": "Yes."}]))]].concat();
    let both = merge(run_id(1), vec![run(1, "disk", &file), run(2, "stream", &other)], Content::Whole);
    assert_eq!(both.turns.len(), 3);
}
