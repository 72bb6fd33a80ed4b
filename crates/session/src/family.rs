//! Which run is the parent of which: a session with its subagents, and theirs.

use std::collections::BTreeMap;

use steno_model::RunId;

/// The runs that a run names as its parent and its children.
#[derive(Clone, Debug, Default)]
pub struct FamilyLinks {
    /// Its parent.
    pub parent: Option<RunId>,
    /// The runs that it started.
    pub children: Vec<RunId>,
}

/// Returns the parent of each run whose parent is among these runs.
///
/// The parent of a run is the run that names it as its child, otherwise the run that it names as its parent. If several
/// runs name the same child, one of them is chosen. No run is its own ancestor.
#[must_use]
pub fn parents_of(runs: &BTreeMap<RunId, FamilyLinks>) -> BTreeMap<RunId, RunId> {
    let mut linked = BTreeMap::<RunId, Vec<RunId>>::new();
    for (id, run) in runs {
        for child in run.children.iter().filter(|child| *child != id && runs.contains_key(child)) {
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

/// Tells whether `to` is `from` or one of its ancestors.
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
