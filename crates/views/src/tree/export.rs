//! A joined tree as JSON: nodes with children. The `node` field says which shape a node has.
//!
//! Every field is present: null means that the record does not have it. Texts are the tokens that were read.

use std::collections::BTreeMap;

use serde::Serialize;
use steno_model::json::JsonString;
use steno_model::{CallId, RunId, Seq, Timestamp};

use super::walk::{Node, Visit, Walk};
use super::{Child, Forest, JoinKind, RunTree, Step};
use crate::State;

/// How many levels are nested. A deeper node is listed among the children of its ancestor at the last level but one, in
/// the order of the tree; its `depth` and `below` say where it belongs.
///
/// A node nests two levels of JSON, and readers like `serde_json` and jq give up at 128 or 256.
const LEVELS_NESTED_MAX: usize = 60;

/// Returns the tree as JSON for serde: the root as an object with everything else below it in `children`.
///
/// The types of this file say which fields there are. JSON nests no deeper than a line of a transcript, however
/// deep the tree is.
#[must_use]
pub fn export(joined: &Forest) -> impl Serialize {
    exports(joined).into_iter().next()
}

/// Returns each tree of [`join_all()`](super::join_all) as [`export()`] does one.
#[must_use]
pub fn export_all(joined: &Forest) -> Vec<impl Serialize> {
    exports(joined)
}

fn exports(joined: &Forest) -> Vec<NodeExport<'_>> {
    let (mut done, mut open) = (Vec::new(), Vec::new());
    for visit in Walk::new(joined) {
        // Before a root only the last root is open, and that stays whole.
        close_to(&mut open, visit.depth.clamp(1, LEVELS_NESTED_MAX));
        if visit.depth == 0 {
            done.append(&mut open);
        }
        open.push(NodeExport::new(joined, visit));
    }
    close_to(&mut open, 1);
    done.append(&mut open);
    done
}

/// A node of the tree.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum NodeExport<'a> {
    /// `"node": "run"`
    Run(Box<RunExport<'a>>),
    /// `"node": "step"`
    Step(Box<StepExport<'a>>),
    /// `"node": "absent"`
    Absent(Box<AbsentExport<'a>>),
}

/// The parent of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct ParentRef {
    /// The node of that run.
    run_id: RunId,
    /// The run that has the first event of the step; null at run level.
    run: Option<RunId>,
    /// The number of that event there.
    seq: Option<Seq>,
}

/// A run and what is below it.
#[derive(Debug, Serialize)]
struct RunExport<'a> {
    /// `run`
    node: &'static str,
    /// 0 for the root.
    depth: usize,
    /// What it stands below; null for the root.
    below: Option<ParentRef>,
    /// How it is joined to its parent; null for the root.
    join: Option<JoinKind>,
    /// The run.
    run_id: RunId,
    /// The run that called it, as its own events say.
    parent_run_id: Option<RunId>,
    /// The session that it records from outside.
    session_run_id: Option<RunId>,
    /// The run that it is a fork of.
    forked_from: Option<RunId>,
    /// Its name.
    name: Option<&'a JsonString>,
    /// Its kind.
    kind: Option<&'a JsonString>,
    /// `open`, `completed` or `failed`.
    state: State,
    /// The state of its session, as its record has it, in the words of lists.
    session_state: &'static str,
    /// Why it failed.
    error: Option<&'a JsonString>,
    /// The time of its first event.
    started_at: Option<&'a Timestamp>,
    /// The time of its end.
    ended_at: Option<&'a Timestamp>,
    /// The run that gives the order: its own, or of several the one that leads.
    run_last: Option<RunId>,
    /// The number of the last event there.
    seq_last: Option<Seq>,
    /// How many events it has.
    events: u64,
    /// Messages at run level, in no step.
    messages: u64,
    /// Calls at run level.
    calls: u64,
    /// Results at run level.
    results: u64,
    /// Calls at run level that failed or were interrupted.
    failed: u64,
    /// Calls at run level that were not allowed.
    denied: u64,
    /// The calls of the whole run that have no result.
    dangling_calls: Vec<&'a JsonString>,
    /// Types that are none of the ten.
    unknown_types: Vec<UnknownTypeExport<'a>>,
    /// Types of blocks that are none of the six.
    unknown_blocks: Vec<UnknownBlockExport<'a>>,
    /// How many lines named another run.
    foreign_events: u64,
    /// Steps, then runs.
    children: Vec<NodeExport<'a>>,
}

/// An event type that is none of the ten.
#[derive(Debug, Serialize)]
struct UnknownTypeExport<'a> {
    /// The type.
    #[serde(rename = "type")]
    event_type: &'a JsonString,
    /// How many events there are of it.
    events: u64,
}

/// A block type that is none of the six.
#[derive(Debug, Serialize)]
struct UnknownBlockExport<'a> {
    /// The type.
    #[serde(rename = "type")]
    block_type: &'a JsonString,
    /// How many blocks there are of it.
    blocks: u64,
}

/// A step and what is below it.
#[derive(Debug, Serialize)]
struct StepExport<'a> {
    /// `step`
    node: &'static str,
    /// How far it is from the root.
    depth: usize,
    /// What it stands below.
    below: ParentRef,
    /// Its path.
    path: &'a JsonString,
    /// Its name.
    name: Option<&'a JsonString>,
    /// Its kind.
    kind: Option<&'a JsonString>,
    /// How many iterations of the innermost loop or retry came before.
    iteration: u64,
    /// The indices of the loops around it, outermost first.
    #[serde(rename = "loop")]
    loop_indices: Option<&'a [u64]>,
    /// Which attempt it is.
    attempt: Option<u64>,
    /// The call that it belongs to.
    tool_call_id: Option<&'a JsonString>,
    /// The tool of that call, for an approval.
    tool_name: Option<&'a JsonString>,
    /// How an approval was decided.
    decision: Option<&'a JsonString>,
    /// `open`, `completed` or `failed`.
    state: State,
    /// Why it failed.
    error: Option<&'a JsonString>,
    /// The run that has the event that began it; null for an instant step.
    run_started: Option<RunId>,
    /// The number of that event there.
    seq_started: Option<Seq>,
    /// The run that has the event that ended it.
    run_completed: Option<RunId>,
    /// The number of that event there.
    seq_completed: Option<Seq>,
    /// When it began.
    started_at: Option<&'a Timestamp>,
    /// When it ended.
    ended_at: Option<&'a Timestamp>,
    /// The run that it calls.
    child_run_id: Option<RunId>,
    /// Messages in it, inner steps left out.
    messages: u64,
    /// Calls in it.
    calls: u64,
    /// Results in it.
    results: u64,
    /// Calls in it that failed or were interrupted.
    failed: u64,
    /// Calls in it that were not allowed.
    denied: u64,
    /// Steps, then runs.
    children: Vec<NodeExport<'a>>,
}

/// A run that is named here and not nested here.
#[derive(Debug, Serialize)]
struct AbsentExport<'a> {
    /// `absent`
    node: &'static str,
    /// How far it is from the root.
    depth: usize,
    /// What it stands below; null for a root that is missing.
    below: Option<ParentRef>,
    /// `missing`, `cycle` or `elsewhere`.
    join: JoinKind,
    /// The run.
    run_id: RunId,
    /// Always empty: the run is shown elsewhere, if at all.
    children: Vec<NodeExport<'a>>,
}

/// Hands finished nodes to their parents until only `len` are open.
fn close_to(open: &mut Vec<NodeExport<'_>>, len: usize) {
    while open.len() > len {
        let Some(done) = open.pop() else { return };
        if let Some(parent) = open.last_mut() {
            parent.children_mut().push(done);
        }
    }
}

impl<'a> NodeExport<'a> {
    fn new(joined: &'a Forest, visit: Visit<'a>) -> Self {
        let depth = visit.depth;
        match visit.node {
            Node::Run { run, below } => Self::Run(Box::new(RunExport {
                join: below.map(|child| child.join),
                below: below.map(|child| ParentRef::of_child(joined, &child)),
                depth,
                ..RunExport::of(run)
            })),
            Node::Step { run, id: _, step } => {
                let below = ParentRef::new(run.run_id, step.facts.parent.and_then(|parent| run.step(parent)));
                Self::Step(Box::new(StepExport::of(step, below, depth)))
            }
            Node::Absent { run_id, join, below } => {
                let below = below.map(|child| ParentRef::of_child(joined, &child));
                let children = Vec::new();
                Self::Absent(Box::new(AbsentExport { node: "absent", depth, below, join, run_id, children }))
            }
        }
    }

    fn children_mut(&mut self) -> &mut Vec<Self> {
        match self {
            Self::Run(run) => &mut run.children,
            Self::Step(step) => &mut step.children,
            Self::Absent(absent) => &mut absent.children,
        }
    }
}

impl ParentRef {
    fn of_child(joined: &Forest, child: &Child) -> Self {
        Self::new(child.parent, child.step.and_then(|step| joined.run(child.parent)?.step(step)))
    }

    fn new(run_id: RunId, step: Option<&Step>) -> Self {
        let first = step.and_then(Step::first);
        Self { run_id, run: first.map(|event| event.run), seq: first.map(|event| event.seq) }
    }
}

impl<'a> RunExport<'a> {
    fn of(run: &'a RunTree) -> Self {
        Self {
            node: "run",
            depth: 0,
            below: None,
            join: None,
            run_id: run.run_id,
            parent_run_id: run.parent_run_id,
            session_run_id: run.session_run_id,
            forked_from: run.forked_from,
            name: run.name.as_ref(),
            kind: run.kind.as_ref(),
            state: run.state,
            session_state: run.session_state.name(),
            error: run.error.as_ref(),
            started_at: run.started_at.as_ref(),
            ended_at: run.ended_at.as_ref(),
            run_last: run.last.map(|event| event.run),
            seq_last: run.last.map(|event| event.seq),
            events: run.events,
            messages: run.counts.messages,
            calls: run.counts.calls,
            results: run.counts.results,
            failed: run.counts.failed,
            denied: run.counts.denied,
            dangling_calls: run.dangling.iter().map(|CallId(id)| id).collect(),
            unknown_types: unknown_types(&run.unknown_types),
            unknown_blocks: unknown_blocks(&run.unknown_blocks),
            foreign_events: run.foreign_events,
            children: Vec::new(),
        }
    }
}

fn unknown_types(counts: &BTreeMap<JsonString, u64>) -> Vec<UnknownTypeExport<'_>> {
    let export = |(event_type, &events)| UnknownTypeExport { event_type, events };
    counts.iter().map(export).collect()
}

fn unknown_blocks(counts: &BTreeMap<JsonString, u64>) -> Vec<UnknownBlockExport<'_>> {
    let export = |(block_type, &blocks)| UnknownBlockExport { block_type, blocks };
    counts.iter().map(export).collect()
}

impl<'a> StepExport<'a> {
    fn of(step: &'a Step, below: ParentRef, depth: usize) -> Self {
        Self {
            node: "step",
            depth,
            below,
            path: &step.facts.path,
            name: step.facts.name.as_ref(),
            kind: step.facts.kind.as_ref(),
            iteration: step.facts.iteration,
            loop_indices: step.facts.loop_indices.as_deref(),
            attempt: step.facts.attempt,
            tool_call_id: step.facts.tool_call_id.as_ref(),
            tool_name: step.tool_name.as_ref(),
            decision: step.facts.decision.as_ref(),
            state: step.facts.state,
            error: step.facts.error.as_ref(),
            run_started: step.started.map(|event| event.run),
            seq_started: step.started.map(|event| event.seq),
            run_completed: step.completed.map(|event| event.run),
            seq_completed: step.completed.map(|event| event.seq),
            started_at: step.facts.started_at.as_ref(),
            ended_at: step.facts.ended_at.as_ref(),
            child_run_id: step.facts.child_run_id,
            messages: step.counts.messages,
            calls: step.counts.calls,
            results: step.counts.results,
            failed: step.counts.failed,
            denied: step.counts.denied,
            children: Vec::new(),
        }
    }
}
