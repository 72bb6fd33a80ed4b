//! `steno tree`: rebuilds what ran from the events, as text and as JSON (R59, R75).

use serde_json::{Map, Value, json};
use steno_testkit::dice::Dice;
use steno_testkit::golden;

use crate::kit::{RUN, Steno, TIME, id};

fn event(kind: &str, path: &str, payload: Value) -> Value {
    let mut event = json!({ "type": kind, "path": path, "timestamp": TIME });
    event["payload"] = payload;
    event
}

/// The name of the step that a path leads to: its last part, with dots as they are.
fn name_of(path: &str) -> String {
    path.replace("\\.", "\0").rsplit('.').next().unwrap_or_default().replace('\0', ".")
}

fn started(path: &str, kind: &str) -> Value {
    event("step.started", path, json!({ "name": name_of(path), "kind": kind }))
}

fn completed(path: &str, kind: &str) -> Value {
    event("step.completed", path, json!({ "name": name_of(path), "kind": kind }))
}

fn failed(path: &str, kind: &str, error: &str) -> Value {
    event("step.completed", path, json!({ "name": name_of(path), "kind": kind, "error": error }))
}

/// Adds fields to the envelope.
fn with(mut event: Value, fields: &Value) -> Value {
    event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    event
}

fn calls(path: &str, child: &str) -> Value {
    let payload = json!({ "name": name_of(path), "kind": "call_workflow" });
    with(event("step.call_workflow.started", path, payload), &json!({ "child_run_id": child }))
}

fn called(path: &str, child: &str) -> Value {
    let payload = json!({ "name": name_of(path), "kind": "call_workflow" });
    with(event("step.call_workflow.completed", path, payload), &json!({ "child_run_id": child }))
}

fn run_started(name: &str) -> Value {
    event("run.started", "", json!({ "name": name, "kind": "workflow" }))
}

fn run_completed(name: &str) -> Value {
    event("run.completed", "", json!({ "name": name, "kind": "workflow" }))
}

/// The nodes of a tree without numbers and times: identity and end of a step, name of a run.
fn shape(node: &Value) -> Value {
    let keys: &[&str] = match node["node"].as_str() {
        Some("step") => &["path", "name", "kind", "iteration", "loop", "attempt", "state", "error"],
        _ => &["run_id", "name", "state", "error"],
    };
    let mut fields: Map<String, Value> =
        keys.iter().map(|key| ((*key).to_owned(), node[*key].clone())).collect();
    let children = node["children"].as_array().unwrap();
    fields.insert("children".to_owned(), children.iter().map(shape).collect());
    Value::Object(fields)
}

/// Records a run and compares its tree with the text.
#[track_caller]
fn check(events: &[Value], want: &str) {
    let steno = Steno::new();
    steno.recorded(RUN, events);
    let said = steno.run(&["tree", RUN]);
    assert_eq!((said.code, &*said.err), (0, ""));
    let (_, below) = said.out.split_once('\n').unwrap();
    assert_eq!(below, want);
}

#[test]
fn steps_are_below_the_step_of_their_path() {
    check(
        &[
            run_started("build"),
            started("a", "agent"),
            started("a.b", "command"),
            started("a.b.c", "operation"),
            completed("a.b.c", "operation"),
            completed("a.b", "command"),
            completed("a", "agent"),
            started("d", "terminal"),
            completed("d", "terminal"),
        ],
        "├─ a · agent\n\
         │  └─ a.b · command\n\
         │     └─ a.b.c · operation\n\
         └─ d · terminal\n",
    );
}

#[test]
fn dot_in_a_name_is_not_a_level() {
    check(
        &[
            started("v1\\.2", "command"),
            started("v1\\.2.x\\.y", "command"),
            completed("v1\\.2.x\\.y", "command"),
            completed("v1\\.2", "command"),
            started("v1", "command"),
            started("v1.2", "command"),
        ],
        "├─ v1\\.2 · command\n\
         │  └─ v1\\.2.x\\.y · command\n\
         └─ v1 · command  open\n   \
            └─ v1.2 · command  open\n",
    );
}

#[test]
fn open_and_failed_steps_are_marked() {
    check(
        &[
            started("a", "agent"),
            started("a.b", "command"),
            failed("a.b", "command", "exit code 3"),
            started("a.c", "command"),
            started("d", "agent"),
            completed("d", "agent"),
        ],
        "├─ a · agent  open\n\
         │  ├─ a.b · command  failed: exit code 3\n\
         │  └─ a.c · command  open\n\
         └─ d · agent\n",
    );
}

#[test]
fn content_of_a_turn_is_below_it() {
    let fact = |path: &str, payload: Value| event("step.completed", path, payload);
    let approval = json!({ "name": "be1b", "kind": "approval", "tool_call_id": "toolu_01" });
    let subagent = json!({ "name": "general-purpose", "kind": "subagent", "tool_call_id": "toolu_02" });
    let call =
        json!({ "name": "exec", "call_id": "c1", "input": {}, "output": null, "fidelity": "agent_emitted" });
    let text = json!({ "role": "user", "blocks": [{ "type": "text", "fidelity": "router", "text": "x" }] });
    check(
        &[
            started("turn-0001", "turn"),
            event("message.user", "turn-0001", text),
            event("tool.call", "turn-0001", call),
            event("step.started", "turn-0001.approval", approval.clone()),
            event("step.completed", "turn-0001.approval", approval),
            with(
                event("step.call_workflow.started", "turn-0001.subagent", subagent),
                &json!({ "child_run_id": id(0xC3) }),
            ),
            fact("turn-0001", json!({ "name": "api", "kind": "retry", "error": "529 overloaded" })),
            fact("turn-0003", json!({ "name": "c1", "kind": "amend", "tool_call_id": "c1" })),
            fact("", json!({ "name": "new-type", "kind": "unknown" })),
            completed("turn-0001", "turn"),
        ],
        "├─ turn-0001 · turn  1 message, 1 call, 0 results\n\
         │  ├─ be1b · approval\n\
         │  ├─ general-purpose · subagent  open\n\
         │  │  └─ child run c3c3c3c3…  not in the store\n\
         │  └─ api · retry  failed: 529 overloaded\n\
         └─ new-type · unknown\n",
    );
}

#[test]
fn iterations_of_a_loop_are_nodes() {
    let mut events = vec![started("loop", "for_each")];
    for iteration in 0..3 {
        for event in [
            started("loop.body", "command"),
            started("loop.body.inner", "command"),
            completed("loop.body.inner", "command"),
            if iteration == 1 {
                failed("loop.body", "command", "bad item")
            } else {
                completed("loop.body", "command")
            },
        ] {
            events.push(with(event, &json!({ "iteration": iteration })));
        }
    }
    events.push(completed("loop", "for_each"));
    let steno = Steno::new();
    steno.recorded(RUN, &events);
    let body = |iteration: u64, state: &str, error: Value| {
        json!({ "path": "loop.body", "name": "body", "kind": "command", "iteration": iteration, "loop": null,
            "attempt": null, "state": state, "error": error, "children": [
                { "path": "loop.body.inner", "name": "inner", "kind": "command", "iteration": iteration, "loop": null,
                  "attempt": null, "state": "completed", "error": null, "children": [] }
            ] })
    };
    let bodies = [
        body(0, "completed", Value::Null),
        body(1, "failed", json!("bad item")),
        body(2, "completed", Value::Null),
    ];
    let tree = shape(&steno.run(&["tree", RUN, "--json"]).json()[0]);
    assert_eq!(tree["children"][0]["children"], json!(bodies));
}

#[test]
fn nested_loops_and_attempts_are_separate() {
    let mut events = vec![started("outer", "for_each")];
    for outer in 0..2 {
        let around = json!({ "iteration": outer, "loop": [outer] });
        events.push(with(started("outer.inner", "while"), &around));
        for inner in 0..2 {
            let around = json!({ "iteration": inner, "loop": [outer, inner] });
            events.push(with(started("outer.inner.leaf", "command"), &around));
            events.push(with(completed("outer.inner.leaf", "command"), &around));
        }
        events.push(with(completed("outer.inner", "while"), &around));
    }
    events.push(completed("outer", "for_each"));
    for attempt in 1..=2 {
        events.push(with(started("flaky", "command"), &json!({ "attempt": attempt })));
        let end =
            if attempt == 1 { failed("flaky", "command", "boom") } else { completed("flaky", "command") };
        events.push(with(end, &json!({ "attempt": attempt })));
    }
    check(
        &events,
        "├─ outer · for_each\n\
         │  ├─ outer.inner · while  iteration 0\n\
         │  │  ├─ outer.inner.leaf · command  iteration 0.0\n\
         │  │  └─ outer.inner.leaf · command  iteration 0.1\n\
         │  └─ outer.inner · while  iteration 1\n\
         │     ├─ outer.inner.leaf · command  iteration 1.0\n\
         │     └─ outer.inner.leaf · command  iteration 1.1\n\
         ├─ flaky · command  attempt 1  failed: boom\n\
         └─ flaky · command  attempt 2\n",
    );
}

#[test]
fn content_of_a_retried_step_is_below_its_attempt() {
    let attempt = |number: u64, end: Value| {
        let envelope = json!({ "attempt": number });
        [
            with(started("flaky", "agent"), &envelope),
            started("flaky.tool", "command"),
            completed("flaky.tool", "command"),
            with(end, &envelope),
        ]
    };
    let events =
        [attempt(1, failed("flaky", "agent", "boom")), attempt(2, completed("flaky", "agent"))].concat();
    check(
        &events,
        "├─ flaky · agent  attempt 1  failed: boom\n\
         │  └─ flaky.tool · command\n\
         └─ flaky · agent  attempt 2\n   \
            └─ flaky.tool · command\n",
    );
}

#[test]
fn parallel_branches_end_in_any_order() {
    check(
        &[
            started("par", "parallel"),
            started("par.a", "command"),
            started("par.b", "command"),
            started("par.b.x", "command"),
            started("par.a.x", "command"),
            completed("par.b.x", "command"),
            completed("par.b", "command"),
            failed("par.a.x", "command", "no"),
            completed("par.a", "command"),
            completed("par", "parallel"),
        ],
        "└─ par · parallel\n   \
            ├─ par.a · command\n   \
            │  └─ par.a.x · command  failed: no\n   \
            └─ par.b · command\n      \
               └─ par.b.x · command\n",
    );
}

#[test]
fn two_steps_of_one_path_are_paired_by_call_or_name() {
    let approval = |what: &str, name: &str, call: &str| {
        event(what, "turn.approval", json!({ "name": name, "kind": "approval", "tool_call_id": call }))
    };
    let mut denied = approval("step.completed", "r1", "c1");
    denied["payload"]["error"] = json!("denied");
    let turn = |what: &str| event(what, "turn", json!({ "name": "turn", "kind": "turn" }));
    let (one, two) = (approval("step.started", "r1", "c1"), approval("step.started", "r2", "c2"));
    let steno = Steno::new();
    steno.recorded(
        RUN,
        &[
            turn("step.started"),
            one,
            two,
            approval("step.completed", "r2", "c2"),
            denied,
            turn("step.completed"),
        ],
    );
    let tree = shape(&steno.run(&["tree", RUN, "--json"]).json()[0]);
    let node = |name: &str, state: &str, error: Value| {
        json!({ "path": "turn.approval", "name": name, "kind": "approval", "iteration": 0, "loop": null, "attempt": null,
            "state": state, "error": error, "children": [] })
    };
    let want = json!([node("r1", "failed", json!("denied")), node("r2", "completed", Value::Null)]);
    assert_eq!(tree["children"][0]["children"], want);
}

/// A family of runs: the root calls a child that calls a grandchild, and one that is nowhere; another names the root
/// as its parent, and the root does not know it.
fn family() -> Steno {
    let steno = Steno::new();
    let (child, grandchild, missing, stray) = (id(0xC1), id(0xC2), id(0xC3), id(0xC4));
    let below = |parent: &str| json!({ "parent_run_id": parent });
    steno.recorded(
        &grandchild,
        &[
            with(run_started("grandchild"), &below(&child)),
            with(started("leaf", "agent"), &below(&child)),
            with(started("leaf.open", "command"), &below(&child)),
        ],
    );
    steno.recorded(
        RUN,
        &[
            run_started("root"),
            started("before", "command"),
            completed("before", "command"),
            calls("sub", &child),
            called("sub", &child),
            calls("gone", &missing),
            run_completed("root"),
        ],
    );
    let mut failed_run = run_completed("child");
    failed_run["payload"]["error"] = json!("gave up");
    let child_events =
        [run_started("child"), calls("deep", &grandchild), called("deep", &grandchild), failed_run];
    steno.recorded(&child, &child_events.map(|event| with(event, &below(RUN))));
    steno.recorded(&stray, &[with(run_started("stray"), &below(RUN))]);
    steno
}

#[test]
fn child_runs_are_below_the_calling_step() {
    let said = family().run(&["tree", RUN]);
    let want = "run 550e8400… root  done  7 events\n\
         ├─ before · command\n\
         ├─ sub · call_workflow\n\
         │  └─ child run c1c1c1c1… child  failed: gave up  4 events\n\
         │     └─ deep · call_workflow\n\
         │        └─ child run c2c2c2c2… grandchild  completed (reported by parent)  3 events\n\
         │           └─ leaf · agent  open\n\
         │              └─ leaf.open · command  open\n\
         ├─ gone · call_workflow  open\n\
         │  └─ child run c3c3c3c3…  not in the store\n\
         └─ child run c4c4c4c4… stray  open  1 event  unlinked\n";
    assert_eq!((said.code, &*said.out, &*said.err), (0, want, ""));
}

#[test]
fn tree_of_a_family_is_printed_as_json() {
    let said = family().run(&["tree", RUN, "--json"]);
    assert_eq!((said.code, said.out.lines().count(), &*said.err), (0, 1, ""), "one object on one line");
    golden::check("tests/golden/tree.json", &format!("{:#}\n", said.json()[0]));
}

#[test]
fn tree_can_start_at_a_child() {
    let steno = family();
    let whole = shape(&steno.run(&["tree", RUN, "--json"]).json()[0]);
    let child = shape(&steno.run(&["tree", &id(0xC1), "--json"]).json()[0]);
    assert_eq!(child, whole["children"][1]["children"][0]);
}

#[test]
fn runs_join_from_either_side_and_cycles_end() {
    // The child does not name its parent: the parent's link is enough.
    let steno = Steno::new();
    let child = id(0xC1);
    steno.recorded(RUN, &[calls("sub", &child), called("sub", &child)]);
    steno.recorded(&child, &[run_started("child"), started("s", "agent")]);
    let tree = shape(&steno.run(&["tree", RUN, "--json"]).json()[0]);
    let joined = &tree["children"][0]["children"][0];
    assert_eq!((&joined["run_id"], &joined["children"][0]["path"]), (&json!(child), &json!("s")));

    let steno = Steno::new();
    steno.recorded(RUN, &[calls("sub", &child)]);
    steno.recorded(&child, &[calls("back", RUN)]);
    for run in [RUN, &child] {
        let said = steno.run(&["tree", run]);
        assert!(said.code == 0 && said.out.contains("cycle"), "{said:?}");
        assert_eq!(steno.run(&["tree", run, "--json"]).code, 0);
    }
}

/// A step as it ran, with all that ran inside it.
struct RanStep {
    node: Value,
    children: Vec<RanStep>,
    parallel: bool,
    ended: bool,
}

/// Makes up steps below `path`, inside loops at these indices.
fn make_up(dice: &mut Dice, path: &str, around: &[usize], depth: usize) -> Vec<RanStep> {
    let mut steps = Vec::new();
    for number in 0..dice.below(4) {
        let name = ["plan", "v1.2", "a b", "é"][number].to_owned();
        let escaped = name.replace('.', "\\.");
        let path = if path.is_empty() { escaped } else { format!("{path}.{escaped}") };
        let kind = ["agent", "command", "parallel", "for_each"][dice.below(4)];
        let attempts = if kind == "command" { 1 + dice.below(3) } else { 1 };
        for attempt in 1..=attempts {
            let fails = attempt < attempts || dice.once_in(6);
            let ended = attempt < attempts || !dice.once_in(8);
            let state = if !ended {
                "open"
            } else if fails {
                "failed"
            } else {
                "completed"
            };
            let node = json!({
                "path": path, "name": name, "kind": kind,
                "iteration": around.last().copied().unwrap_or(0),
                "loop": if around.is_empty() { Value::Null } else { json!(around) },
                "attempt": if attempts > 1 { json!(attempt) } else { Value::Null },
                "state": state, "error": if state == "failed" { json!("boom") } else { Value::Null },
            });
            let mut children = Vec::new();
            if kind == "for_each" && depth > 0 {
                for index in 0..dice.below(3) {
                    children.extend(make_up(dice, &path, &[around, &[index]].concat(), depth - 1));
                }
            } else if kind != "command" && depth > 0 {
                children = make_up(dice, &path, around, depth - 1);
            }
            steps.push(RanStep { node, children, parallel: kind == "parallel", ended });
        }
    }
    steps
}

fn shape_that_ran(ran: &RanStep) -> Value {
    let children: Vec<Value> = ran.children.iter().map(shape_that_ran).collect();
    with(ran.node.clone(), &json!({ "children": children }))
}

/// The events of a step: its start, what ran inside (branches mixed at random), its end.
fn events_of(ran: &RanStep, dice: &mut Dice) -> Vec<Value> {
    let node = &ran.node;
    let envelope: Map<String, Value> = ["iteration", "loop", "attempt"]
        .into_iter()
        .filter(|key| !node[*key].is_null())
        .map(|key| (key.to_owned(), node[key].clone()))
        .collect();
    let envelope = Value::Object(envelope);
    let path = node["path"].as_str().unwrap();
    let mut payload = json!({ "name": node["name"], "kind": node["kind"] });
    let mut events = vec![with(event("step.started", path, payload.clone()), &envelope)];
    let mut branches: Vec<_> = ran.children.iter().map(|child| events_of(child, dice).into_iter()).collect();
    if ran.parallel {
        // The branches begin in order, and then go on as they like.
        events.extend(branches.iter_mut().filter_map(Iterator::next));
    }
    while !branches.is_empty() {
        let at = if ran.parallel { dice.below(branches.len()) } else { 0 };
        match branches[at].next() {
            Some(event) => events.push(event),
            None => drop(branches.remove(at)),
        }
    }
    if ran.ended {
        if !node["error"].is_null() {
            payload["error"] = node["error"].clone();
        }
        events.push(with(event("step.completed", path, payload), &envelope));
    }
    events
}

#[test]
fn generated_runs_give_their_tree() {
    let mut dice = Dice::new(75);
    let mut nodes = 0;
    for round in 0..60 {
        let ran = make_up(&mut dice, "", &[], 4);
        let events: Vec<Value> = ran.iter().flat_map(|ran| events_of(ran, &mut dice)).collect();
        nodes += events.len();
        if events.is_empty() {
            continue;
        }
        let steno = Steno::new();
        steno.recorded(RUN, &events);
        let tree = shape(&steno.run(&["tree", RUN, "--json"]).json()[0]);
        let want: Vec<Value> = ran.iter().map(shape_that_ran).collect();
        assert_eq!(tree["children"], json!(want), "round {round}: {}", steno.text(RUN));
    }
    assert!(nodes > 1_000, "{nodes} events in all");
}
