//! Which run stands below which: a session with the subagents that it began, and theirs.

use std::collections::{BTreeMap, BTreeSet};

use steno_model::RunId;

use super::build::Run;

/// Who a run says that it belongs to.
#[derive(Clone, Debug, Default)]
pub struct Kin {
    /// The run that it names as its parent.
    pub parent: Option<RunId>,
    /// The runs that it says it began.
    pub links: Vec<RunId>,
}

/// Returns the parent of each run that has one among them. A run stands below the one that says it began it, else below the
/// one that it names itself; of several, below one. Nobody stands below himself.
#[must_use]
pub fn parents_of(runs: &BTreeMap<RunId, Kin>) -> BTreeMap<RunId, RunId> {
    let mut linked = BTreeMap::<RunId, Vec<RunId>>::new();
    for (id, run) in runs {
        for child in run.links.iter().filter(|child| *child != id && runs.contains_key(child)) {
            linked.entry(*child).or_default().push(*id);
        }
    }
    let mut parents = BTreeMap::new();
    for (id, run) in runs {
        let claimed = run.parent.filter(|parent| parent != id && runs.contains_key(parent));
        let by_link = linked.get(id).map(Vec::as_slice).unwrap_or_default();
        let best = claimed.filter(|parent| by_link.contains(parent)).or(by_link.first().copied()).or(claimed);
        if let Some(parent) = best.filter(|parent| !leads_to(&parents, *parent, *id)) {
            parents.insert(*id, parent);
        }
    }
    parents
}

/// Runs that belong together, ready to be written as trajectories.
pub struct Family {
    pub(super) runs: BTreeMap<RunId, Run>,
    parents: BTreeMap<RunId, RunId>,
}

impl Family {
    /// Puts runs together, each below its [parent](parents_of).
    #[must_use]
    pub fn new(runs: BTreeMap<RunId, Run>) -> Self {
        let kin = |run: &Run| Kin { parent: run.parent, links: run.links.clone() };
        let parents = parents_of(&runs.iter().map(|(id, run)| (*id, kin(run))).collect());
        Self { runs, parents }
    }

    /// Returns the runs that stand below no other.
    #[must_use]
    pub fn roots(&self) -> Vec<RunId> {
        self.runs.keys().filter(|run| !self.parents.contains_key(run)).copied().collect()
    }

    /// Returns the runs below a run that have something to show: first those that it names, as it names them.
    pub(super) fn children(&self, of: &Run) -> Vec<&Run> {
        let is_child = |run: &RunId| self.parents.get(run) == Some(&of.id);
        let named: BTreeSet<RunId> = of.links.iter().copied().collect();
        let others = self.parents.iter().filter(|(run, parent)| **parent == of.id && !named.contains(run));
        let all = of.links.iter().filter(|run| is_child(run)).chain(others.map(|(run, _)| run));
        // Without a step there is no trajectory.
        all.filter_map(|run| self.runs.get(run)).filter(|run| !run.steps.is_empty()).collect()
    }
}

/// Tells whether going up from a run leads to another: then it cannot be below it.
fn leads_to(parents: &BTreeMap<RunId, RunId>, from: RunId, to: RunId) -> bool {
    let mut at = Some(from);
    while let Some(run) = at {
        if run == to {
            return true;
        }
        at = parents.get(&run).copied();
    }
    false
}
