//! The tree of one run: pairing, nesting, loops, attempts, guests, calls.

use steno_model::{CallId, ExchangeEvent, Seq, Timestamp};

use steno_session::{Content, SessionBuilder};

use super::super::{Counts, Link, RunTree, State, StepId};
use super::{fold, outline};
use crate::EventRef;
use crate::digest::DigestState;
use crate::testing::{events, run_id, time};

#[track_caller]
fn check(lines: &[&str], want: &[&str]) {
    assert_eq!(outline(&fold(1, lines)), want, "{lines:?}");
}

#[test]
fn steps_nest_by_path() {
    check(
        &["> par", "> par.a", "> par.b", "< par.a", "< par.b error=boom", "< par", "> next"],
        &["par:par 1..6", "  par.a:a 2..4", "  par.b:b 3..5 failed: boom", "next:next 7.. open"],
    );
}

#[test]
fn escaped_dot_does_not_nest() {
    check(
        &["> v1", r"> v1\.2", r"> v1\.2.x"],
        &["v1:v1 1.. open", r"v1\.2:v1.2 2.. open", r"  v1\.2.x:x 3.. open"],
    );
}

#[test]
fn orphan_step_goes_to_the_nearest_ancestor() {
    check(&["> a.b.c", "< a.b.c"], &["a.b.c:c 1..2"]);
    check(&["> a", "> a.b.c", "u a.b.c.d"], &["a:a 1.. open", "  a.b.c:c 2.. 1m0c0r open"]);
}

#[test]
fn end_belongs_to_the_latest_start() {
    check(&["> a", "> a", "< a", "> a"], &["a:a 1.. open", "a:a 2..3", "a:a 4.. open"]);
}

#[test]
fn end_without_start_is_an_instant_step() {
    check(&["< a error=lost", "< a"], &["a:a ..1 failed: lost", "a:a ..2"]);
}

#[test]
fn each_iteration_is_a_step() {
    check(
        &["> loop", "> loop.body", "< loop.body", "> loop.body it=1", "u loop.body it=1", "< loop.body it=1"],
        &["loop:loop 1.. open", "  loop.body:body 2..3", "  loop.body:body #1 4..6 1m0c0r"],
    );
}

#[test]
fn parallel_iterations_keep_their_steps() {
    check(
        &[
            "> loop",
            "> loop.x loop=0",
            "> loop.x loop=1",
            "> loop.x.y loop=0",
            "u loop.x.y loop=0",
            "> loop.x.y loop=1",
            "< loop.x.y loop=0",
            "< loop.x loop=0",
            "a loop.x loop=0",
        ],
        &[
            "loop:loop 1.. open",
            "  loop.x:x @[0] 2..8 1m0c0r",
            "    loop.x.y:y @[0] 4..7 1m0c0r",
            "  loop.x:x @[1] 3.. open",
            "    loop.x.y:y @[1] 6.. open",
        ],
    );
}

#[test]
fn step_search_stops_at_the_loop_limit() {
    let loops = |len| vec!["0"; len].join(",");
    let around = |len| {
        let lines = [format!("> a loop={}", loops(len)), format!("> a.b loop={}", loops(100))];
        fold(1, &lines).step(StepId(1)).unwrap().facts.parent
    };
    assert_eq!(around(100), Some(StepId(0)));
    assert_eq!(around(63), Some(StepId(0)));
    assert_eq!(around(64), None);
}

#[test]
fn event_without_loop_indices_matches_any_loop() {
    check(
        &["> a loop=0", "> a loop=1", "> a.b", "u a it=1"],
        &["a:a @[0] 1.. open", "a:a @[1] 2.. 1m0c0r open", "  a.b:b 3.. open"],
    );
}

#[test]
fn inner_iteration_does_not_match_the_outer_loop() {
    check(
        &[
            "> o",
            "> o.in",
            "> o.in.x",
            "< o.in.x",
            "< o.in",
            "> o.in it=1",
            "> o.in.x",
            "< o.in.x",
            "> o.in.x it=1",
            "< o.in.x it=1",
            "< o.in it=1",
        ],
        &[
            "o:o 1.. open",
            "  o.in:in 2..5",
            "    o.in.x:x 3..4",
            "  o.in:in #1 6..11",
            "    o.in.x:x 7..8",
            "    o.in.x:x #1 9..10",
        ],
    );
}

#[test]
fn late_fact_goes_to_its_iteration_and_attempt() {
    check(
        &["> b", "< b", "> b it=1", "u b", "< b name=late kind=amend"],
        &["b:b 1..2 1m0c0r", "  b:late ..5", "b:b #1 3.. open"],
    );
    check(&["> b try=1", "< b try=1", "> b try=2", "u b try=1"], &["b:b ^1 1..2 1m0c0r", "b:b ^2 3.. open"]);
}

#[test]
fn each_attempt_is_a_step() {
    check(
        &["> a try=1", "> a.b", "< a try=1 error=once", "> a try=2", "> a.c", "< a try=2"],
        &["a:a ^1 1..3 failed: once", "  a.b:b 2.. open", "a:a ^2 4..6", "  a.c:c 5.. open"],
    );
}

#[test]
fn guests_are_siblings_below_the_owner() {
    check(
        &[
            "> turn-0001 kind=turn",
            "c turn-0001 call=t1",
            "> turn-0001.approval name=be1b kind=approval call=t1",
            "> turn-0001.approval name=be1b kind=approval call=t2",
            "< turn-0001.approval name=be1b kind=approval call=t1",
            "< turn-0001 name=api kind=retry error=529_overloaded",
            "< turn-0001 kind=turn",
            "< turn-0001 name=call kind=amend call=t1",
            "< - name=new-type kind=unknown",
        ],
        &[
            "turn-0001:turn-0001 1..7 0m1c0r",
            "  turn-0001.approval:be1b 3..5",
            "  turn-0001.approval:be1b 4.. open",
            "  turn-0001:api ..6 failed: 529 overloaded",
            "  turn-0001:call ..8",
            ":new-type ..9",
        ],
    );
}

#[test]
fn guest_owns_a_path_without_owner() {
    check(
        &["> a name=Nice_name", "> a.b name=Other", "u a.b", "< a name=fact", "u a", "> a name=Third"],
        &["a:Nice name 1.. 1m0c0r open", "  a.b:Other 2.. 1m0c0r open", "a:fact ..4", "a:Third 6.. open"],
    );
}

#[test]
fn child_run_end_is_found_by_its_id() {
    check(
        &[
            ">> t1.subagent name=x call=c1 child=2",
            ">> t1.subagent name=x call=c1 child=3",
            "<< t2.subagent name=y child=2",
            "<< t1.subagent name=x call=c1 child=4",
        ],
        &["t1.subagent:x 1..3", "t1.subagent:x 2.. open", "t1.subagent:x ..4"],
    );
    check(&[">> a", "<< a child=2"], &["a:a 1..2"]);
}

#[test]
fn child_called_twice_ends_at_its_own_step() {
    check(&[">> a child=2", ">> b child=2", "<< a child=2", "<< b child=2"], &["a:a 1..3", "b:b 2..4"]);
}

#[test]
fn links_are_ordered_and_unique_per_step() {
    let tree =
        fold(1, &[">> a child=3", ">> b child=2", "<< a child=3", "u - child=4", "future.type b child=5"]);
    let link = |run, step: Option<usize>| Link { run_id: run_id(run), step: step.map(StepId) };
    assert_eq!(tree.links, [link(3, Some(0)), link(2, Some(1)), link(4, None), link(5, Some(1))]);
    assert_eq!(tree.step(StepId(0)).unwrap().facts.child_run_id, Some(run_id(3)));
}

#[test]
fn calls_without_results_are_dangling() {
    let tree = fold(1, &["c - call=a", "c - call=b", "r - call=a", "c - call=c", "r - call=zz"]);
    assert_eq!(tree.dangling, [CallId::from("b"), CallId::from("c")]);
    assert_eq!(tree.counts, Counts { messages: 0, calls: 3, results: 2, ..Counts::default() });
}

#[test]
fn reused_call_id_is_another_call() {
    let tree = fold(1, &["c - call=0", "r - call=0", "c - call=0"]);
    assert_eq!((tree.counts.calls, tree.dangling), (2, vec![CallId::from("0")]));
}

#[test]
fn call_on_two_channels_counts_once() {
    let tree =
        fold(1, &["c -", "c - via=router", "r - via=router", "c - via=router", "c -", "r -", "r - via=new"]);
    assert_eq!(tree.counts, Counts { messages: 0, calls: 2, results: 1, ..Counts::default() });
    assert_eq!(tree.dangling, [CallId::from("call-1")]);
}

/// Lines as 002 and EVENTS.md show them.
const EXAMPLES: [&str; 9] = [
    r#""type":"run.started","path":"","payload":null"#,
    r#""type":"step.started","path":"analyze","payload":{"name":"analyze","kind":"agent"}"#,
    r#""type":"message.user","path":"analyze","payload":{"role":"user","blocks":[{"type":"text","fidelity":"router","text":"Review."}]}"#,
    r#""type":"tool.call","path":"analyze","payload":{"name":"Read","call_id":"tool_01H","input":{"path":"main.go"},"output":null,"fidelity":"router"}"#,
    r#""type":"step.started","path":"analyze.approval","payload":{"name":"be1b","kind":"approval","tool_call_id":"tool_01H"}"#,
    r#""type":"step.completed","path":"analyze.approval","payload":{"name":"be1b","kind":"approval","tool_call_id":"tool_01H","result":{"decision":"denied"}}"#,
    r#""type":"step.call_workflow.started","child_run_id":"00000002-0000-4000-8000-000000000000","path":"analyze.subagent","payload":{"name":"general-purpose","kind":"subagent","tool_call_id":"toolu_01d2"}"#,
    r#""type":"step.completed","path":"analyze","payload":{"name":"api","kind":"retry","error":"529 overloaded","result":{"attempt":1}}"#,
    r#""type":"step.completed","path":"","payload":{"name":"new-type","kind":"unknown"},"evidence":{"source":"s1","offset":9012}"#,
];

#[test]
fn document_examples_give_a_tree() {
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    for (seq, line) in (1..).zip(EXAMPLES) {
        let envelope =
            format!(r#"{{"seq":{seq},"run_id":"{}","iteration":0,"timestamp":"",{line}}}"#, run_id(1));
        builder.push(&ExchangeEvent::parse(envelope.as_bytes()).unwrap());
    }
    let tree = RunTree::of(&builder.finish());
    // The call was denied, and so needs no result.
    let want = [
        "analyze:analyze 2.. 1m1c0r0f1d open",
        "  analyze.approval:be1b 5..6",
        "  analyze.subagent:general-purpose 7.. open",
        "  analyze:api ..8 failed: 529 overloaded",
        ":new-type ..9",
    ];
    assert_eq!(outline(&tree), want);
    assert_eq!(tree.dangling, [CallId::from("tool_01H")]);
    assert_eq!(tree.links, [Link { run_id: run_id(2), step: Some(StepId(2)) }]);
}

#[track_caller]
fn check_state(lines: &[&str], state: State, error: Option<&str>, ended: Option<u64>) {
    let tree = fold(1, lines);
    let ended_at = ended.map(|seq| Timestamp::parse(&time(seq)).unwrap());
    assert_eq!(
        (tree.state, tree.error, tree.ended_at),
        (state, error.map(Into::into), ended_at),
        "{lines:?}"
    );
}

#[test]
fn run_is_open_until_its_end_is_recorded() {
    check_state(&[], State::Open, None, None);
    check_state(&["run", "> a", "< a"], State::Open, None, None);
    check_state(&["run", "end"], State::Completed, None, Some(2));
    check_state(&["run", "end - error=exit_1"], State::Failed, Some("exit 1"), Some(2));
    check_state(&["run", "end - error=exit_1", "run"], State::Open, None, None);
}

#[test]
fn run_has_name_relatives_and_unknown_counts() {
    let lines = [
        "run - name=review kind=workflow parent=7",
        "u - session=9",
        "future.type",
        "future.type",
        "end - name=other parent=8 session=8",
    ];
    let want = RunTree {
        parent_run_id: Some(run_id(7)),
        session_run_id: Some(run_id(9)),
        name: Some("review".into()),
        kind: Some("workflow".into()),
        state: State::Completed,
        session_state: DigestState::Done,
        started_at: Some(Timestamp::parse(&time(1)).unwrap()),
        ended_at: Some(Timestamp::parse(&time(5)).unwrap()),
        last: Seq::new(5).map(|seq| EventRef { run: run_id(1), seq }),
        events: 5,
        counts: Counts { messages: 1, calls: 0, results: 0, ..Counts::default() },
        unknown_types: [("future.type".into(), 2)].into(),
        ..RunTree::new(run_id(1))
    };
    assert_eq!(fold(1, &lines), want);
}

#[test]
fn foreign_events_are_counted_and_left_out() {
    let mut builder = SessionBuilder::new(run_id(1), Content::Whole);
    builder.push(&events(2, &["> a"])[0]);
    assert_eq!(RunTree::of(&builder.finish()), RunTree { foreign_events: 1, ..RunTree::new(run_id(1)) });
}

#[test]
fn step_id_of_a_larger_tree_finds_nothing() {
    assert_eq!(fold(1, &["> a"]).step(StepId(1)), None);
}
