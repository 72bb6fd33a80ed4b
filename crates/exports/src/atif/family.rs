//! The hierarchy of runs: a session, its subagents, and theirs.

use std::collections::{BTreeMap, BTreeSet};

use steno_model::RunId;
use steno_session::{FamilyLinks, parents_of};

use super::build::Run;

/// Runs that belong together and can be written as trajectories.
pub struct Family {
    pub(super) runs: BTreeMap<RunId, Run>,
    parents: BTreeMap<RunId, RunId>,
}

impl Family {
    /// Groups runs, each below its [parent](parents_of).
    #[must_use]
    pub fn new(runs: BTreeMap<RunId, Run>) -> Self {
        let links = |run: &Run| FamilyLinks { parent: run.parent, children: run.links.clone() };
        let parents = parents_of(&runs.iter().map(|(id, run)| (*id, links(run))).collect());
        Self { runs, parents }
    }

    /// Returns the runs that have no parent.
    #[must_use]
    pub fn roots(&self) -> Vec<RunId> {
        self.runs.keys().filter(|run| !self.parents.contains_key(run)).copied().collect()
    }

    /// Returns the runs below a run that have steps. Those that the run names come first, in its order.
    pub(super) fn children(&self, of: &Run) -> Vec<&Run> {
        let is_child = |run: &RunId| self.parents.get(run) == Some(&of.id);
        let named: BTreeSet<RunId> = of.links.iter().copied().collect();
        let others = self.parents.iter().filter(|(run, parent)| **parent == of.id && !named.contains(run));
        let all = of.links.iter().filter(|run| is_child(run)).chain(others.map(|(run, _)| run));
        // A trajectory needs a step.
        all.filter_map(|run| self.runs.get(run)).filter(|run| !run.steps.is_empty()).collect()
    }
}
