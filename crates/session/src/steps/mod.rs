//! The steps of a session: matches starts with ends, and nests steps.

mod open_steps;
mod path;
mod step_index;

use steno_model::ExchangeEvent;
use steno_model::json::JsonString;

use self::open_steps::{OpenSteps, StepKey};
use self::step_index::{StepIndex, StepLocation};
use crate::builder::IncomingEvent;
use crate::fields::PayloadFields;
use crate::session::{EventPosition, Step, StepId};
use crate::state::State;

pub use path::StepPath;

/// Folds step events. Nothing is lost and nothing is inferred: a step without a recorded parent goes below the nearest step
/// around it, an end without a start is a separate step, a start without an end stays open.
pub(crate) struct StepFold {
    pub(crate) steps: Vec<Step>,
    pub(crate) roots: Vec<StepId>,
    places: StepIndex,
    pairs: OpenSteps,
}

impl StepFold {
    pub(crate) fn new() -> Self {
        Self { steps: Vec::new(), roots: Vec::new(), places: StepIndex::new(), pairs: OpenSteps::default() }
    }

    /// Takes the start of a step.
    pub(crate) fn started(
        &mut self,
        event: &ExchangeEvent,
        fields: &PayloadFields<'_>,
        at: EventPosition,
    ) -> StepId {
        let spot = self.places.spot(event);
        let facts = StepFacts::read(fields);
        let identity = facts.identity(&spot);
        let step = Step {
            started: Some(at),
            started_at: Some(event.timestamp.clone()),
            ..new_step(event, &spot, facts)
        };
        let id = self.add(step, &spot);
        self.pairs.open(id, identity, event.child_run_id);
        id
    }

    /// Takes the end of a step.
    pub(crate) fn completed(
        &mut self,
        event: &ExchangeEvent,
        fields: &PayloadFields<'_>,
        at: EventPosition,
    ) -> StepId {
        let spot = self.places.spot(event);
        let facts = StepFacts::read(fields);
        let (ended_at, state) = (Some(event.timestamp.clone()), facts.end_state());
        let Some(id) = self.pairs.close(&facts.identity(&spot), event.child_run_id) else {
            let error = facts.error.clone();
            let instant =
                Step { completed: Some(at), ended_at, state, error, ..new_step(event, &spot, facts) };
            return self.add(instant, &spot);
        };
        self.places.close(id);
        let step = &mut self.steps[id.0];
        (step.completed, step.ended_at, step.state) = (Some(at), ended_at, state);
        step.error = facts.error;
        step.name = step.name.take().or(facts.name);
        step.kind = step.kind.take().or(facts.kind);
        step.tool_call_id = step.tool_call_id.take().or(facts.tool_call_id);
        step.decision = facts.decision.or(step.decision.take());
        step.child_run_id = step.child_run_id.or(event.child_run_id);
        id
    }

    /// Ends the step of a turn. The turn identifies it, because another run may name it differently.
    pub(crate) fn end_turn(&mut self, step: StepId, incoming: &IncomingEvent<'_>) {
        let (event, fields) = (incoming.event, &incoming.fields);
        let Some(open) = self.steps.get_mut(step.0).filter(|open| open.completed.is_none()) else {
            return;
        };
        let error = fields.error();
        (open.completed, open.ended_at) = (Some(incoming.at), Some(event.timestamp.clone()));
        (open.state, open.error) = (State::of_end(error.is_some()), error);
        self.pairs.drop(step);
        self.places.close(step);
    }

    /// Returns the step that an event is located in.
    pub(crate) fn owner(&mut self, event: &ExchangeEvent) -> Option<StepId> {
        let spot = self.places.spot(event);
        self.places.owner(&spot)
    }

    fn add(&mut self, mut step: Step, spot: &StepLocation) -> StepId {
        let id = StepId(self.steps.len());
        let name = step.name.as_ref().map(JsonString::to_text);
        let standing = self.places.standing(spot.path, name.as_deref());
        step.parent = self.places.parent(spot, standing);
        match step.parent {
            Some(parent) => self.steps[parent.0].children.push(id),
            None => self.roots.push(id),
        }
        self.places.add(id, spot, standing, step.state);
        self.steps.push(step);
        id
    }
}

/// The fields of a step event's payload.
struct StepFacts {
    name: Option<JsonString>,
    kind: Option<JsonString>,
    error: Option<JsonString>,
    tool_call_id: Option<JsonString>,
    decision: Option<JsonString>,
}

impl StepFacts {
    fn read(fields: &PayloadFields<'_>) -> Self {
        Self {
            name: fields.string("name"),
            kind: fields.string("kind"),
            error: fields.error(),
            tool_call_id: fields.string("tool_call_id"),
            decision: fields.object("result").string("decision"),
        }
    }

    fn identity(&self, spot: &StepLocation) -> StepKey {
        let text = |text: &Option<JsonString>| text.as_ref().map(|text| text.to_text().into_owned());
        StepKey::new(spot, text(&self.tool_call_id), text(&self.name))
    }

    fn end_state(&self) -> State {
        State::of_end(self.error.is_some())
    }
}

/// Makes an open step from its first event.
fn new_step(event: &ExchangeEvent, spot: &StepLocation, facts: StepFacts) -> Step {
    Step {
        parent: None,
        children: Vec::new(),
        turn: None,
        path: event.path.clone(),
        name: facts.name,
        kind: facts.kind,
        iteration: spot.iteration,
        loop_indices: spot.loop_indices.clone(),
        attempt: spot.attempt,
        tool_call_id: facts.tool_call_id,
        decision: facts.decision,
        started: None,
        completed: None,
        started_at: None,
        ended_at: None,
        state: State::Open,
        error: None,
        child_run_id: event.child_run_id,
    }
}
