//! Finds the open step of an end event.

use std::collections::HashMap;

use steno_model::RunId;

use super::step_index::StepLocation;
use crate::session::StepId;

/// What a step's start and end have in common.
///
/// `iteration` is used only without loop indices, because these are more exact.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct StepKey {
    spot: StepLocation,
    who: StepLabel,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum StepLabel {
    Call(String),
    Name(Option<String>),
}

impl StepKey {
    pub(super) fn new(spot: &StepLocation, tool_call_id: Option<String>, name: Option<String>) -> Self {
        let iteration = if spot.loop_indices.is_some() { 0 } else { spot.iteration };
        let who = tool_call_id.map_or(StepLabel::Name(name), StepLabel::Call);
        Self { spot: StepLocation { iteration, ..spot.clone() }, who }
    }
}

/// The steps that have a start and no end yet.
#[derive(Clone, Default)]
pub(super) struct OpenSteps {
    by_identity: HashMap<StepKey, Vec<StepId>>,
    by_child: HashMap<RunId, Vec<StepId>>,
    opened: HashMap<StepId, (StepKey, Option<RunId>)>,
}

impl OpenSteps {
    pub(super) fn open(&mut self, step: StepId, identity: StepKey, child: Option<RunId>) {
        self.by_identity.entry(identity.clone()).or_default().push(step);
        if let Some(child) = child {
            self.by_child.entry(child).or_default().push(step);
        }
        self.opened.insert(step, (identity, child));
    }

    /// Removes and returns the step of an end: the latest one that matches.
    pub(super) fn close(&mut self, identity: &StepKey, child: Option<RunId>) -> Option<StepId> {
        let step = self.find(identity, child)?;
        self.drop(step);
        Some(step)
    }

    /// Removes a step that has ended.
    pub(super) fn drop(&mut self, step: StepId) {
        let Some((identity, child)) = self.opened.remove(&step) else { return };
        remove(&mut self.by_identity, &identity, step);
        if let Some(child) = child {
            remove(&mut self.by_child, &child, step);
        }
    }

    fn find(&self, identity: &StepKey, child: Option<RunId>) -> Option<StepId> {
        let opened = |step: &&StepId| self.opened.get(step);
        if let Some(callers) = child.and_then(|child| self.by_child.get(&child)) {
            // The child run identifies its caller, even at another path: an agent may report the end a turn later.
            // Several steps match only if a child was called twice.
            let same = |step: &&StepId| opened(step).is_some_and(|(known, _)| known == identity);
            return callers.iter().rfind(same).or(callers.last()).copied();
        }
        // Different children are different steps, even if everything else is equal.
        let fits = |step: &&StepId| {
            opened(step).is_some_and(|(_, known_child)| known_child.is_none() || child.is_none())
        };
        self.by_identity.get(identity)?.iter().rfind(fits).copied()
    }
}

fn remove<K: Eq + std::hash::Hash>(map: &mut HashMap<K, Vec<StepId>>, key: &K, step: StepId) {
    if let Some(steps) = map.get_mut(key) {
        if let Some(at) = steps.iter().rposition(|&other| other == step) {
            steps.remove(at);
        }
        if steps.is_empty() {
            map.remove(key);
        }
    }
}
