//! Highlights of a tree: failed and denied calls, copies, missing runs, and no noise.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steno_model::ExchangeEvent;

use steno_session::{Content, SessionBuilder};

use super::super::{Forest, RunTree, TreeStyle, TreeTone, join, join_all, styled_text, text};
use super::{fold, join_runs};
use crate::testing::{run_id, time};

/// Joins one run given as type, path and payload.
fn of_one(lines: &[Value]) -> Forest {
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    for (index, line) in lines.iter().enumerate() {
        let seq = index as u64 + 1;
        let event = json!({"seq": seq, "run_id": run_id(1).to_string(), "type": line[0], "path": line[1],
            "iteration": 0, "timestamp": time(seq), "payload": line[2]});
        builder.push(&ExchangeEvent::parse(event.to_string().as_bytes()).unwrap());
    }
    join(run_id(1), BTreeMap::from([(run_id(1), RunTree::of(&builder.finish()))]))
}

#[track_caller]
fn check(joined: &Forest, want: &[&str]) {
    let text = text(joined);
    assert_eq!(text.lines().collect::<Vec<_>>(), want);
}

fn tool(kind: &str, id: &str, fields: &Value) -> Value {
    let mut payload = json!({"name": "Bash", "call_id": id, "fidelity": "agent_emitted"});
    payload.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!([kind, "", payload])
}

#[test]
fn failed_and_denied_calls_are_counted() {
    let mut lines: Vec<Value> = ["a", "b", "c", "d", "e"].map(|id| tool("tool.call", id, &json!({}))).into();
    let outcomes = [("a", "ok"), ("b", "failed"), ("c", "denied"), ("d", "unknown"), ("e", "interrupted")];
    lines.extend(outcomes.map(|(id, outcome)| tool("tool.result", id, &json!({"outcome": outcome}))));
    check(&of_one(&lines), &["run 00000001…  open  10 events  5 calls (2 failed, 1 denied)"]);
    // Amended outcomes count too, once.
    let amend = |id: &str| json!(["step.completed", "", {"name": id, "kind": "amend", "tool_call_id": id, "result": {"outcome": "failed"}}]);
    lines.extend([amend("d"), amend("d"), amend("b")]);
    assert!(text(&of_one(&lines)).contains("5 calls (3 failed, 1 denied)"), "{}", text(&of_one(&lines)));
}

#[test]
fn amendments_of_known_calls_are_not_shown_as_steps() {
    let amend = |id: &str| {
        let payload =
            json!({"name": id, "kind": "amend", "tool_call_id": id, "result": {"outcome": "failed"}});
        json!(["step.completed", "", payload])
    };
    let known = [tool("tool.call", "a", &json!({})), tool("tool.result", "a", &json!({})), amend("a")];
    check(&of_one(&known), &["run 00000001…  open  3 events  1 call (1 failed) outside steps"]);
    let unknown = [&known[..], &[amend("z")]].concat();
    let lines = text(&of_one(&unknown));
    assert_eq!(lines.lines().last(), Some("└─ late result of call z"), "{lines}");
}

#[test]
fn empty_messages_are_not_counted() {
    let said = |role: &str, response: Value, blocks: Value| json!([format!("message.{role}"), "", {"role": role, "blocks": blocks, "response": response}]);
    let words = json!([{"type": "text", "text": "Hi."}]);
    check(
        &of_one(&[
            said("user", Value::Null, json!([{"type": "text", "text": "Be.", "label": "system_prompt"}])),
            said("user", Value::Null, words.clone()),
            said("user", Value::Null, json!([{"type": "text", "text": "", "label": "image"}])),
            said("user", Value::Null, json!([{"type": "text", "text": ""}])),
            said("user", Value::Null, json!([{"type": "tool_result", "tool_id": "a"}])),
            said("assistant", json!("r1"), json!([{"type": "thinking", "thinking": "Hm."}])),
            said("assistant", json!("r1"), words.clone()),
            said("assistant", json!("r2"), words),
            said("assistant", json!("r2"), json!([])),
            said("assistant", json!(3), json!([])),
        ]),
        &["run 00000001…  open  10 events  4 messages"],
    );
}

#[test]
fn words_without_id_are_one_message() {
    let said = |blocks: Value, more: Value| {
        let mut payload = json!({"role": "assistant", "blocks": blocks});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!(["message.assistant", "", payload])
    };
    let words = || said(json!([{"type": "text", "text": "Hi."}]), json!({}));
    let usage = || said(json!([]), json!({"usage": {"output_tokens": 1}, "response": 1}));
    let answer = tool("tool.result", "a", &json!({}));
    for (lines, want) in [
        (vec![words(), words()], "1 message"),
        (vec![words(), answer, words()], "2 messages"),
        (vec![words(), usage(), words(), words()], "2 messages"),
        (vec![usage()], "1 event\n"),
    ] {
        let text = text(&of_one(&lines));
        assert!(text.contains(want), "{want}: {text}");
    }
}

#[test]
fn approval_shows_tool_and_decision() {
    let asked = |id: &str| json!(["step.started", "", {"name": format!("r-{id}"), "kind": "approval", "tool_call_id": id}]);
    let answered = |id: &str, decision: &str| {
        json!(["step.completed", "", {"name": format!("r-{id}"), "kind": "approval", "tool_call_id": id,
            "result": {"decision": decision, "by": "host"}}])
    };
    let joined = of_one(&[
        asked("a"),
        answered("a", "allowed"),
        tool("tool.call", "a", &json!({})),
        asked("b"),
        answered("b", "denied"),
        asked("c"),
    ]);
    let toned = styled_text(&joined, &TreeStyle::plain(&|tone, words| format!("<{tone:?} {words}>")));
    let want = [
        "<Frame ├─ >Bash <Frame · approval>  <Frame allowed>",
        "<Frame ├─ >r-b <Frame · approval>  <Failed denied>",
        "<Frame └─ >r-c <Frame · approval>  <Open open>",
    ];
    assert_eq!(toned.lines().skip(1).collect::<Vec<_>>(), want);
}

#[test]
fn open_child_shows_the_parent_report() {
    let parent = [">> a child=2", "<< a child=2", ">> b child=3", "<< b child=3 error=no", ">> c child=4"];
    let child: &[&str] = &["run - parent=1"];
    let joined = join_runs(&[(1, &parent), (2, child), (3, child), (4, child)]);
    check(
        &joined,
        &[
            "run 00000001…  open  5 events",
            "├─ a · command",
            "│  └─ child run 00000002…  completed (reported by parent)  1 event",
            "├─ b · command  failed: no",
            "│  └─ child run 00000003…  failed: no (reported by parent)  1 event",
            "└─ c · command  open",
            "   └─ child run 00000004…  open  1 event",
        ],
    );
    // The last report about a child counts, and a child with its own end ignores reports.
    let again = [">> a child=2", "<< a child=2", ">> a child=2", ">> b child=3", "<< b child=3"];
    let joined = join_runs(&[(1, &again), (2, child), (3, &["run - parent=1", "end - error=x"])]);
    assert!(joined.reported().is_empty(), "{:?}", joined.reported());
}

#[test]
fn step_without_an_end_does_not_contradict_its_run() {
    let parent = [">> a child=2", ">> b child=3", ">> c child=4"];
    let ended: &[&str] = &["run - parent=1", "end"];
    let joined = join_runs(&[(1, &parent), (2, ended), (3, &["run - parent=1"])]);
    check(
        &joined,
        &[
            "run 00000001…  open  3 events",
            "├─ a · command",
            "│  └─ child run 00000002…  done  2 events",
            "├─ b · command  open",
            "│  └─ child run 00000003…  open  1 event",
            "└─ c · command  open",
            "   └─ child run 00000004…  missing",
        ],
    );
}

#[test]
fn consecutive_system_steps_share_one_line() {
    let step = |name: &str| format!("< - kind=system name={name}");
    let quiet = ["env", "model", "env"].map(step);
    let few = [step("one"), step("two")];
    let told = [step("three"), "< - kind=system name=interrupt".to_owned(), step("four"), step("five")];
    let lines: Vec<String> =
        [&quiet[..], &["< - kind=retry name=api error=529".to_owned()], &few[..], &["u -".to_owned()]]
            .concat();
    check(
        &join_runs(&[(1, &lines)]),
        &[
            "run 00000001…  open  7 events  1 message outside steps",
            "├─ 3 system steps: env ×2, model",
            "├─ api · retry  failed: 529",
            "├─ one · system",
            "└─ two · system",
        ],
    );
    let joined = join_runs(&[(1, &told)]);
    assert_eq!(text(&joined).lines().count(), 5, "{}", text(&joined));
    let joined = join_runs(&[(1, &quiet)]);
    assert_eq!(text(&joined).lines().count(), 2);
    let plain = |_: TreeTone, words: &str| words.to_owned();
    let every = TreeStyle { has_every_step: true, ..TreeStyle::plain(&plain) };
    assert_eq!(styled_text(&joined, &every).lines().count(), 4);
}

#[test]
fn forks_and_unread_runs_are_marked() {
    let fork = json!(["run.started", "", {"name": "f", "kind": "session",
        "forked_from": {"run_id": run_id(7).to_string(), "ordinal": 5}}]);
    check(
        &of_one(&[fork]),
        &["run 00000001… f  fork of 00000007-0000-4000-8000-000000000000  open  1 event"],
    );
    let alone = join_all(BTreeMap::from([(run_id(2), fold(2, &["run - parent=1", ">> a child=3"]))]));
    let plain = |_: TreeTone, words: &str| words.to_owned();
    let look = TreeStyle { absent: "not read", ..TreeStyle::plain(&plain) };
    let want = "child run 00000002… of 00000001-0000-4000-8000-000000000000  open  2 events\n\
        └─ a · command  open\n   └─ child run 00000003…  not read\n";
    assert_eq!(styled_text(&alone, &look), want);
}

#[test]
fn reasons_and_grouped_steps_fit_the_width() {
    let long = "x".repeat(300);
    let mut lines: Vec<String> =
        (0..9).map(|number| format!("< - kind=system name=step{number}{long}")).collect();
    lines.push(format!("< - kind=retry name=api error={long}"));
    let joined = join_runs(&[(1, &lines)]);
    let plain = |_: TreeTone, words: &str| words.to_owned();
    let shown = styled_text(&joined, &TreeStyle { width: Some(90), ..TreeStyle::plain(&plain) });
    let widest = shown.lines().map(|line| line.chars().count()).max();
    assert_eq!(widest, Some(90), "{shown}");
}
