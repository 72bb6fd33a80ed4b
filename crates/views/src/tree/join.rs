//! Joins the trees of several runs into one, by the links in a parent's events and by the parent that a child's events
//! name. Without recursion, so that runs may nest to any depth.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use steno_model::RunId;

use super::walk::{Node, Walk};
use super::{RunTree, StepId};
use crate::{ParentReport, State};

/// How a run is joined to its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinKind {
    /// The parent's events name it; it is nested here.
    Linked,
    /// Only its own events name the parent; it is nested here.
    Unlinked,
    /// The parent's events name it, and it is not among the runs.
    Missing,
    /// It is one of its own ancestors. The tree is cut here.
    Cycle,
    /// It is nested elsewhere: below its own parent, or where it was named first.
    Elsewhere,
}

/// A run below a step, or below a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child {
    /// The child.
    pub run_id: RunId,
    /// The parent run.
    pub parent: RunId,
    /// The step of the parent that it is below; `None` at run level.
    pub step: Option<StepId>,
    /// How it is joined.
    pub join: JoinKind,
}

impl Child {
    /// Tells whether the child's own tree is nested at this place.
    #[must_use]
    pub fn is_nested(&self) -> bool {
        match self.join {
            JoinKind::Linked | JoinKind::Unlinked => true,
            JoinKind::Missing | JoinKind::Cycle | JoinKind::Elsewhere => false,
        }
    }
}

/// Several runs as one or more trees. Every run that can be reached from a root is nested exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forest {
    roots: Vec<RunId>,
    runs: BTreeMap<RunId, RunTree>,
    children: BTreeMap<(RunId, Option<StepId>), Vec<Child>>,
    outside: Vec<RunId>,
}

impl Forest {
    /// Returns the runs at the top; the one given to [`join()`] may be missing from the runs.
    #[must_use]
    pub fn roots(&self) -> &[RunId] {
        &self.roots
    }

    /// Returns a run of the set.
    #[must_use]
    pub fn run(&self, run_id: RunId) -> Option<&RunTree> {
        self.runs.get(&run_id)
    }

    /// Iterates over all runs of the set, those outside the tree included.
    pub fn runs(&self) -> impl Iterator<Item = &RunTree> {
        self.runs.values()
    }

    /// Iterates over the runs that are nested somewhere, each before those below it, as they are shown.
    pub fn nested(&self) -> impl Iterator<Item = &RunTree> {
        Walk::new(self).filter_map(|visit| match visit.node {
            Node::Run { run, below: _ } => Some(run),
            Node::Step { .. } | Node::Absent { .. } => None,
        })
    }

    /// Returns the runs directly below a step, or with `None` those below the run itself.
    #[must_use]
    pub fn children(&self, run_id: RunId, step: Option<StepId>) -> &[Child] {
        self.children.get(&(run_id, step)).map_or(&[], Vec::as_slice)
    }

    /// Returns how runs ended as reported by their parents, for runs without a recorded end.
    #[must_use]
    pub fn reported(&self) -> BTreeMap<RunId, ParentReport> {
        let nested = self.children.values().flatten().filter(|child| child.is_nested());
        let parents: BTreeMap<RunId, RunId> = nested.map(|child| (child.run_id, child.parent)).collect();
        let is_open = |run_id: &RunId| self.run(*run_id).is_some_and(|run| run.state == State::Open);
        let mut reports = BTreeMap::new();
        for parent in parents.values().collect::<BTreeSet<_>>() {
            for (_, step) in self.run(*parent).into_iter().flat_map(RunTree::steps) {
                let child = step.facts.child_run_id.filter(|child| parents.get(child) == Some(parent));
                let Some(child) = child.filter(is_open) else { continue };
                // Of a child that was called again, the last call counts.
                match step.facts.state {
                    State::Open => reports.remove(&child),
                    State::Completed | State::Failed => reports.insert(
                        child,
                        ParentReport { state: step.facts.state, error: step.facts.error.clone() },
                    ),
                };
            }
        }
        reports
    }

    /// Returns the runs of the set that cannot be reached from a root.
    #[must_use]
    pub fn outside(&self) -> &[RunId] {
        &self.outside
    }
}

/// Joins `runs` into one tree below `root`.
///
/// A run goes below the step that links it; one that several runs link goes to the run that it calls its parent
/// itself, else to the first. One that names its parent and is linked nowhere in it goes below that run as
/// [`JoinKind::Unlinked`].
#[must_use]
pub fn join(root: RunId, runs: BTreeMap<RunId, RunTree>) -> Forest {
    let mut joiner = Joiner::new(&runs);
    joiner.place_below(&[root]);
    let placed = joiner.finish();
    placed.of(runs)
}

/// Joins `runs` into as many trees as needed to show them all, oldest first; otherwise like [`join()`].
///
/// At the top are the runs whose parent is not among them, and of runs that are each other's parents the oldest.
#[must_use]
pub fn join_all(runs: BTreeMap<RunId, RunTree>) -> Forest {
    let mut by_age: Vec<RunId> = runs.keys().copied().collect();
    by_age.sort_by_key(|run_id| age(&runs, *run_id));
    let below: BTreeSet<RunId> = runs.values().flat_map(|run| children_of(run, &runs)).collect();
    let mut joiner = Joiner::new(&runs);
    let tops: Vec<RunId> = by_age.iter().filter(|run_id| !below.contains(run_id)).copied().collect();
    joiner.place_below(&tops);
    for run_id in by_age {
        if !joiner.places.contains_key(&run_id) {
            joiner.place_below(&[run_id]);
        }
    }
    joiner.roots.sort_by_key(|run_id| age(&runs, *run_id));
    let placed = joiner.finish();
    placed.of(runs)
}

/// Returns the runs that are below others according to a run's events: those it links, and itself if its parent is here.
fn children_of<'a>(run: &'a RunTree, runs: &'a BTreeMap<RunId, RunTree>) -> impl Iterator<Item = RunId> + 'a {
    let is_other = |other: &RunId| *other != run.run_id && runs.contains_key(other);
    let is_below = run.parent_run_id.is_some_and(|parent| is_other(&parent));
    run.links.iter().map(|link| link.run_id).filter(is_other).chain(is_below.then_some(run.run_id))
}

/// Returns the sort key of a run's age.
fn age(runs: &BTreeMap<RunId, RunTree>, run_id: RunId) -> impl Ord + use<> {
    let started_at = runs.get(&run_id).and_then(|run| run.started_at.as_ref());
    (started_at.and_then(steno_model::Timestamp::instant), run_id)
}

struct Joiner<'a> {
    runs: &'a BTreeMap<RunId, RunTree>,
    /// The runs that name a run as their parent, oldest first.
    claims: BTreeMap<RunId, Vec<RunId>>,
    roots: Vec<RunId>,
    /// The parent below which each run was placed.
    places: BTreeMap<RunId, Option<RunId>>,
    children: Vec<Child>,
    /// Children that were left for the parent they name, by their number in `children`.
    left: VecDeque<usize>,
    queue: VecDeque<RunId>,
}

/// The result of a [`Joiner`], without the runs.
struct Placement {
    roots: Vec<RunId>,
    children: BTreeMap<(RunId, Option<StepId>), Vec<Child>>,
    outside: Vec<RunId>,
}

impl Placement {
    fn of(self, runs: BTreeMap<RunId, RunTree>) -> Forest {
        let Self { roots, children, outside } = self;
        Forest { roots, runs, children, outside }
    }
}

impl<'a> Joiner<'a> {
    fn new(runs: &'a BTreeMap<RunId, RunTree>) -> Self {
        let mut claims: BTreeMap<RunId, Vec<RunId>> = BTreeMap::new();
        for run in runs.values() {
            if let Some(parent) = run.parent_run_id {
                claims.entry(parent).or_default().push(run.run_id);
            }
        }
        for claimants in claims.values_mut() {
            claimants.sort_by_key(|run_id| age(runs, *run_id));
        }
        Self {
            runs,
            claims,
            roots: Vec::new(),
            places: BTreeMap::new(),
            children: Vec::new(),
            left: VecDeque::new(),
            queue: VecDeque::new(),
        }
    }

    /// Places roots and everything that can be reached from them.
    fn place_below(&mut self, roots: &[RunId]) {
        for &root in roots {
            self.roots.push(root);
            self.places.insert(root, None);
            self.queue.push_back(root);
        }
        self.place_all();
    }

    fn finish(self) -> Placement {
        let mut children: BTreeMap<_, Vec<Child>> = BTreeMap::new();
        for child in self.children {
            children.entry((child.parent, child.step)).or_default().push(child);
        }
        let outside = self.runs.keys().filter(|run_id| !self.places.contains_key(run_id)).copied().collect();
        Placement { roots: self.roots, children, outside }
    }

    fn place_all(&mut self) {
        loop {
            while let Some(run_id) = self.queue.pop_front() {
                self.place_children(run_id);
            }
            // The parent that a child names may be unreachable. Then the child is nested where it is linked, so that it
            // is not lost.
            let Some(index) = self.left.pop_front() else { return };
            let child = self.children[index];
            if !self.places.contains_key(&child.run_id) {
                self.children[index].join = JoinKind::Linked;
                self.place(child.run_id, child.parent);
            }
        }
    }

    fn place_children(&mut self, parent: RunId) {
        let runs = self.runs;
        let links = runs.get(&parent).map_or(&[][..], |run| &run.links);
        for link in links {
            self.add(Child { run_id: link.run_id, parent, step: link.step, join: JoinKind::Linked });
        }
        let linked: BTreeSet<RunId> = links.iter().map(|link| link.run_id).collect();
        for run_id in self.claims.remove(&parent).unwrap_or_default() {
            if !linked.contains(&run_id) {
                self.add(Child { run_id, parent, step: None, join: JoinKind::Unlinked });
            }
        }
    }

    /// Decides how `child` is joined, and nests it if possible.
    fn add(&mut self, mut child: Child) {
        let Some(run) = self.runs.get(&child.run_id) else {
            child.join = JoinKind::Missing;
            self.children.push(child);
            return;
        };
        let claims_another = run
            .parent_run_id
            .is_some_and(|claimed| claimed != child.parent && self.runs.contains_key(&claimed));
        if self.places.contains_key(&child.run_id) {
            let around = self.is_around(child.run_id, child.parent);
            child.join = if around { JoinKind::Cycle } else { JoinKind::Elsewhere };
        } else if claims_another {
            child.join = JoinKind::Elsewhere;
            self.left.push_back(self.children.len());
        } else {
            self.place(child.run_id, child.parent);
        }
        self.children.push(child);
    }

    fn place(&mut self, run_id: RunId, parent: RunId) {
        self.places.insert(run_id, Some(parent));
        self.queue.push_back(run_id);
    }

    /// Tells whether `run_id` is `inner` or one of its ancestors.
    fn is_around(&self, run_id: RunId, inner: RunId) -> bool {
        let mut at = Some(inner);
        while let Some(outer) = at {
            if outer == run_id {
                return true;
            }
            at = self.places.get(&outer).copied().flatten();
        }
        false
    }
}
