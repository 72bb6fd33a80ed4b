//! The step tree of a run, and the join of several runs into one tree (R57 to R59, R75).
//!
//! [`RunTree::of`] builds the tree of a session, [`join()`] and [`join_all()`] join several, [`text`] and [`export`] show the
//! result. Steps are in one list and refer to each other by [`StepId`], so that no depth can overflow the stack.

mod build;
mod export;
mod join;
#[cfg(test)]
mod tests;
mod text;
mod walk;

use std::collections::BTreeMap;

use steno_model::json::JsonString;
use steno_model::{CallId, RunId, Timestamp};
use steno_session::{Step as SessionStep, StepId};

use crate::digest::DigestState;
use crate::{EventRef, State};

pub use export::{export, export_all};
pub use join::{Child, Forest, JoinKind, join, join_all};
pub use steno_session::StepPath;
pub use text::{TreeStyle, TreeTone, styled_text, text};

/// How many events of each kind are in a step or at run level, without those of inner steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages of users and models with content; a response counts once. System prompts do not count.
    pub messages: u64,
    /// Calls; one that both the router and the agent report counts once (R50).
    pub calls: u64,
    /// Results, counted like calls.
    pub results: u64,
    /// Calls that failed or were interrupted.
    pub failed: u64,
    /// Calls that were not allowed.
    pub denied: u64,
}

/// One execution of a step. Every iteration and every attempt is a separate step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step in the session; state, error and end of a turn are those of the turn.
    pub facts: SessionStep,
    /// The event that began it; `None` for an instant step, which has only an end.
    pub started: Option<EventRef>,
    /// The event that ended it.
    pub completed: Option<EventRef>,
    /// The tool of the call that it belongs to, for an approval.
    pub tool_name: Option<JsonString>,
    /// Whether it is an interrupted turn.
    pub is_interrupted: bool,
    /// Whether it amends a call that is in the session: the call's result has it, so the text form leaves it out.
    pub is_folded: bool,
    /// What is located in it.
    pub counts: Counts,
}

impl Step {
    /// Returns the first event of the step.
    #[must_use]
    pub fn first(&self) -> Option<EventRef> {
        self.started.or(self.completed)
    }
}

/// A run that an event names as its child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The child.
    pub run_id: RunId,
    /// The step that names it; `None` when it is named at run level.
    pub step: Option<StepId>,
}

/// The steps of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTree {
    /// The run.
    pub run_id: RunId,
    /// The run that called it, as its own events say.
    pub parent_run_id: Option<RunId>,
    /// The session that the run belongs to, for a run that records a session from outside.
    pub session_run_id: Option<RunId>,
    /// The run that it is a fork of.
    pub forked_from: Option<RunId>,
    /// Its name, from `run.started`.
    pub name: Option<JsonString>,
    /// Its kind, from `run.started`.
    pub kind: Option<JsonString>,
    /// What is known about its end; a `run.started` after a `run.completed` opens it again.
    pub state: State,
    /// The state of the session, as its record has it, in the words of lists.
    pub session_state: DigestState,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The time of its first event.
    pub started_at: Option<Timestamp>,
    /// The time of `run.completed`.
    pub ended_at: Option<Timestamp>,
    /// Its last event; with several runs, that of the run that gives the order.
    pub last: Option<EventRef>,
    /// How many events were folded.
    pub events: u64,
    /// What is located at run level, in no step.
    pub counts: Counts,
    /// The steps at run level, in the order in which they appear.
    pub roots: Vec<StepId>,
    /// The runs that it names as its children, in order.
    pub links: Vec<Link>,
    /// The calls that have no result, in the order of their first appearance.
    pub dangling: Vec<CallId>,
    /// How many events there are of every type that is none of the ten.
    pub unknown_types: BTreeMap<JsonString, u64>,
    /// How many blocks there are of every type that is none of the six.
    pub unknown_blocks: BTreeMap<JsonString, u64>,
    /// How many events named another run and were left out.
    pub foreign_events: u64,
    steps: Vec<Step>,
}

impl RunTree {
    fn new(run_id: RunId) -> Self {
        Self {
            run_id,
            parent_run_id: None,
            session_run_id: None,
            forked_from: None,
            name: None,
            kind: None,
            state: State::Open,
            session_state: DigestState::Open,
            error: None,
            started_at: None,
            ended_at: None,
            last: None,
            events: 0,
            counts: Counts::default(),
            roots: Vec::new(),
            links: Vec::new(),
            dangling: Vec::new(),
            unknown_types: BTreeMap::new(),
            unknown_blocks: BTreeMap::new(),
            foreign_events: 0,
            steps: Vec::new(),
        }
    }

    /// Returns a step; `None` for an id of another tree that has more steps.
    #[must_use]
    pub fn step(&self, id: StepId) -> Option<&Step> {
        self.steps.get(id.0)
    }

    /// Iterates over all steps, in the order in which they appear.
    #[must_use]
    pub fn steps(&self) -> impl ExactSizeIterator<Item = (StepId, &Step)> {
        self.steps.iter().enumerate().map(|(index, step)| (StepId(index), step))
    }
}
