//! Folds the events of one run into its tree.

use std::collections::HashSet;

use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent, RunId, Word};

use super::calls::{Calls, Half};
use super::messages::Messages;
use super::pairs::{Identity, Pairs};
use super::place::{Places, Spot};
use super::{Counts, Link, RunTree, Step, StepId};
use crate::State;
use crate::fields::{PayloadFields, forked_from, session_run_id};

/// Folds the events of one run, in order, into a [`RunTree`].
///
/// Nothing is lost and nothing invented: a step without a parent in the record hangs at the nearest step around it,
/// an end without a start is a step of its own, a start without an end stays open. No event makes it fail.
#[derive(Clone)]
pub struct TreeBuilder {
    tree: RunTree,
    places: Places,
    pairs: Pairs,
    calls: Calls,
    messages: Messages,
    linked: HashSet<(RunId, Option<StepId>)>,
}

impl TreeBuilder {
    /// Begins the tree of `run_id`; events of other runs are counted and left out.
    #[must_use]
    pub fn new(run_id: RunId) -> Self {
        Self {
            tree: RunTree::new(run_id),
            places: Places::new(),
            pairs: Pairs::default(),
            calls: Calls::default(),
            messages: Messages::default(),
            linked: HashSet::new(),
        }
    }

    /// Takes the next event of the run.
    pub fn push(&mut self, event: &ExchangeEvent) {
        if event.run_id != self.tree.run_id {
            self.tree.foreign_events += 1;
            return;
        }
        self.note_envelope(event);
        let step = match &event.event_type {
            Word::Known(known) => self.push_known(*known, event),
            Word::Unknown(found) => {
                *self.tree.unknown_types.entry(found.clone()).or_default() += 1;
                self.owner(event)
            }
        };
        if let Some(run_id) = event.child_run_id {
            // The start and the end of a call name the same child.
            if self.linked.insert((run_id, step)) {
                self.tree.links.push(Link { run_id, step });
            }
        }
    }

    /// Returns the tree of what has been pushed.
    #[must_use]
    pub fn finish(mut self) -> RunTree {
        for step in &mut self.tree.steps {
            let is_approval = step.kind.as_ref().is_some_and(|kind| kind.is("approval"));
            let call = step.tool_call_id.as_ref().filter(|_| is_approval);
            step.tool_name = call.and_then(|id| self.calls.tool(id)).cloned();
        }
        RunTree { dangling: self.calls.dangling(), ..self.tree }
    }

    fn note_envelope(&mut self, event: &ExchangeEvent) {
        let tree = &mut self.tree;
        tree.events += 1;
        tree.seq_last = Some(event.seq);
        tree.parent_run_id = tree.parent_run_id.or(event.parent_run_id);
        tree.session_run_id = tree.session_run_id.or_else(|| session_run_id(event));
        tree.started_at.get_or_insert_with(|| event.timestamp.clone());
        for found in event.unknown_block_types() {
            *tree.unknown_blocks.entry(found).or_default() += 1;
        }
    }

    /// Folds an event of one of the ten types; returns the step that it belongs to.
    fn push_known(&mut self, event_type: EventType, event: &ExchangeEvent) -> Option<StepId> {
        match event_type {
            EventType::RunStarted => {
                self.run_started(event);
                None
            }
            EventType::RunCompleted => {
                self.run_completed(event);
                None
            }
            EventType::StepStarted | EventType::CallWorkflowStarted => Some(self.step_started(event)),
            EventType::StepCompleted | EventType::CallWorkflowCompleted => {
                self.amend(event);
                Some(self.step_completed(event))
            }
            EventType::MessageUser => {
                let added = self.messages.user(event);
                self.count(event, |counts| counts.messages += added)
            }
            EventType::MessageAssistant => {
                let added = self.messages.assistant(event);
                self.count(event, |counts| counts.messages += added)
            }
            EventType::ToolCall => {
                let added = self.report(Half::Call, event);
                self.count(event, |counts| counts.calls += added)
            }
            EventType::ToolResult => {
                self.messages.answered();
                let added = self.report(Half::Result, event);
                let fields = PayloadFields::of(event);
                let ending = self.calls.ended(fields.string("call_id").as_ref(), &fields);
                let ending = ending.filter(|_| added > 0);
                self.count(event, |counts| {
                    counts.results += added;
                    counts.add(ending);
                })
            }
        }
    }

    /// Counts a failure that became known only after the result.
    fn amend(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        if !fields.string("kind").is_some_and(|kind| kind.is("amend")) {
            return;
        }
        let Some(id) = fields.string("tool_call_id").or_else(|| fields.string("name")) else { return };
        let ending = self.calls.ended_after_all(&id, &fields.object("result"));
        self.count(event, |counts| counts.add(ending));
    }

    fn run_started(&mut self, event: &ExchangeEvent) {
        let facts = StepFacts::read(event);
        let tree = &mut self.tree;
        tree.forked_from = tree.forked_from.or_else(|| forked_from(&PayloadFields::of(event)));
        tree.name = facts.name.or(tree.name.take());
        tree.kind = facts.kind.or(tree.kind.take());
        (tree.state, tree.error, tree.ended_at) = (State::Open, None, None);
    }

    fn run_completed(&mut self, event: &ExchangeEvent) {
        let facts = StepFacts::read(event);
        let tree = &mut self.tree;
        tree.state = facts.end_state();
        tree.name = tree.name.take().or(facts.name);
        tree.kind = tree.kind.take().or(facts.kind);
        tree.error = facts.error;
        tree.ended_at = Some(event.timestamp.clone());
    }

    fn step_started(&mut self, event: &ExchangeEvent) -> StepId {
        let spot = self.places.spot(event);
        let facts = StepFacts::read(event);
        let identity = facts.identity(&spot);
        let step = Step {
            seq_started: Some(event.seq),
            started_at: Some(event.timestamp.clone()),
            ..new_step(event, &spot, facts)
        };
        let id = self.add(step, &spot);
        self.pairs.open(id, identity, event.child_run_id);
        id
    }

    fn step_completed(&mut self, event: &ExchangeEvent) -> StepId {
        let spot = self.places.spot(event);
        let facts = StepFacts::read(event);
        let ended = (Some(event.seq), Some(event.timestamp.clone()), facts.end_state());
        let Some(id) = self.pairs.close(&facts.identity(&spot), event.child_run_id) else {
            let error = facts.error.clone();
            let (seq_completed, ended_at, state) = ended;
            let instant = Step { seq_completed, ended_at, state, error, ..new_step(event, &spot, facts) };
            return self.add(instant, &spot);
        };
        self.places.close(id);
        let step = &mut self.tree.steps[id.0];
        (step.seq_completed, step.ended_at, step.state) = ended;
        step.error = facts.error;
        step.name = step.name.take().or(facts.name);
        step.kind = step.kind.take().or(facts.kind);
        step.tool_call_id = step.tool_call_id.take().or(facts.tool_call_id);
        step.decision = facts.decision.or(step.decision.take());
        step.child_run_id = step.child_run_id.or(event.child_run_id);
        id
    }

    fn add(&mut self, mut step: Step, spot: &Spot) -> StepId {
        let id = StepId(self.tree.steps.len());
        let name = step.name.as_ref().map(JsonString::to_text);
        let standing = self.places.standing(spot.path, name.as_deref());
        step.parent = self.places.parent(spot, standing);
        match step.parent {
            Some(parent) => self.tree.steps[parent.0].children.push(id),
            None => self.tree.roots.push(id),
        }
        self.places.add(id, spot, standing, step.state);
        self.tree.steps.push(step);
        id
    }

    fn owner(&mut self, event: &ExchangeEvent) -> Option<StepId> {
        let spot = self.places.spot(event);
        self.places.owner(&spot)
    }

    fn count(&mut self, event: &ExchangeEvent, add: impl FnOnce(&mut Counts)) -> Option<StepId> {
        let owner = self.owner(event);
        add(match owner {
            Some(step) => &mut self.tree.steps[step.0].counts,
            None => &mut self.tree.counts,
        });
        owner
    }

    /// Takes one half of a call down; one without a call id can be no report of another.
    fn report(&mut self, half: Half, event: &ExchangeEvent) -> u64 {
        let fields = PayloadFields::of(event);
        match fields.string("call_id") {
            Some(id) => {
                self.calls.name(&id, fields.string("name"));
                self.calls.report(half, &id, fields.string("fidelity").as_ref())
            }
            None => 1,
        }
    }
}

/// What a step event's payload says.
struct StepFacts {
    name: Option<JsonString>,
    kind: Option<JsonString>,
    error: Option<JsonString>,
    tool_call_id: Option<JsonString>,
    decision: Option<JsonString>,
}

impl StepFacts {
    fn read(event: &ExchangeEvent) -> Self {
        let fields = PayloadFields::of(event);
        Self {
            name: fields.string("name"),
            kind: fields.string("kind"),
            error: fields.error(),
            tool_call_id: fields.string("tool_call_id"),
            decision: fields.object("result").string("decision"),
        }
    }

    fn identity(&self, spot: &Spot) -> Identity {
        let text = |text: &Option<JsonString>| text.as_ref().map(|text| text.to_text().into_owned());
        Identity::new(spot, text(&self.tool_call_id), text(&self.name))
    }

    fn end_state(&self) -> State {
        if self.error.is_some() { State::Failed } else { State::Completed }
    }
}

/// Makes an open step from what its first event says.
fn new_step(event: &ExchangeEvent, spot: &Spot, facts: StepFacts) -> Step {
    Step {
        parent: None,
        children: Vec::new(),
        path: event.path.clone(),
        name: facts.name,
        kind: facts.kind,
        iteration: spot.iteration,
        loop_indices: spot.loop_indices.clone(),
        attempt: spot.attempt,
        tool_call_id: facts.tool_call_id,
        tool_name: None,
        decision: facts.decision,
        seq_started: None,
        seq_completed: None,
        started_at: None,
        ended_at: None,
        state: State::Open,
        error: None,
        child_run_id: event.child_run_id,
        counts: Counts::default(),
    }
}
