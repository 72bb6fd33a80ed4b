//! Finds the step around an event, by its path, loop indices, iteration and attempt.
//!
//! A step whose name is the last name of its path owns the path. Any other step there is a guest: an approval, a retry,
//! an unknown record. Guests are below the owner. A guest represents the path only if there is no owner.

use std::collections::HashMap;

use steno_model::ExchangeEvent;
use steno_model::json::JsonString;

use super::StepPath;
use crate::session::StepId;
use crate::state::State;

/// How many outer loops are tried when looking for the step around an event.
const LOOPS_MAX: usize = 64;

/// A path of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PathId(usize);

/// The location of an event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct StepLocation {
    pub(super) path: PathId,
    pub(super) loop_indices: Option<Vec<u64>>,
    pub(super) iteration: u64,
    pub(super) attempt: Option<u64>,
}

/// Whether a step owns its path or is a guest there.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PathRole {
    Owner,
    Guest,
}

#[derive(Clone)]
struct PathNode {
    name: String,
    /// `None` at run level.
    parent: Option<PathId>,
    has_steps: bool,
}

/// The steps at one path with the same role and round.
#[derive(Clone, PartialEq, Eq, Hash)]
struct StepGroup {
    standing: PathRole,
    path: PathId,
    /// `None` for steps of any loop.
    loop_indices: Option<Vec<u64>>,
    round: Round,
}

/// How exactly iteration and attempt have to match within a group.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Round {
    Any,
    Iteration(u64),
    Attempt(u64, Option<u64>),
}

#[derive(Clone)]
struct GroupSteps {
    latest: StepId,
    /// In order; closed steps are removed when they are found at the end, so that a lookup stays cheap.
    open: Vec<StepId>,
}

/// Every path of a run, and the steps at it.
#[derive(Clone)]
pub(super) struct StepIndex {
    paths: Vec<PathNode>,
    by_token: HashMap<JsonString, PathId>,
    by_name: HashMap<(PathId, String), PathId>,
    groups: HashMap<StepGroup, GroupSteps>,
    is_open: Vec<bool>,
}

impl StepIndex {
    const RUN_LEVEL: PathId = PathId(0);

    pub(super) fn new() -> Self {
        Self {
            paths: vec![PathNode { name: String::new(), parent: None, has_steps: false }],
            by_token: HashMap::new(),
            by_name: HashMap::new(),
            groups: HashMap::new(),
            is_open: Vec::new(),
        }
    }

    pub(super) fn spot(&mut self, event: &ExchangeEvent) -> StepLocation {
        StepLocation {
            path: self.path(&event.path),
            loop_indices: event.loop_indices(),
            iteration: event.iteration,
            attempt: event.attempt(),
        }
    }

    fn path(&mut self, token: &JsonString) -> PathId {
        if let Some(&known) = self.by_token.get(token) {
            return known;
        }
        let mut path = Self::RUN_LEVEL;
        for name in StepPath::parse(&token.to_text()).names() {
            let next = PathId(self.paths.len());
            let id = *self.by_name.entry((path, name.clone())).or_insert(next);
            if id == next {
                self.paths.push(PathNode { name: name.clone(), parent: Some(path), has_steps: false });
            }
            path = id;
        }
        self.by_token.insert(token.clone(), path);
        path
    }

    /// Returns the role of a step called `name` at `path`; a step without a name is the owner.
    pub(super) fn standing(&self, path: PathId, name: Option<&str>) -> PathRole {
        match name {
            Some(name) if name != self.paths[path.0].name => PathRole::Guest,
            Some(_) | None => PathRole::Owner,
        }
    }

    /// Adds the next step; a closed guest is not indexed.
    pub(super) fn add(&mut self, step: StepId, spot: &StepLocation, standing: PathRole, state: State) {
        let is_open = state == State::Open;
        debug_assert_eq!(step.0, self.is_open.len(), "steps are added in order");
        self.is_open.push(is_open);
        if spot.path == Self::RUN_LEVEL || (standing == PathRole::Guest && !is_open) {
            return;
        }
        self.paths[spot.path.0].has_steps = true;
        let loops = spot.loop_indices.clone().unwrap_or_default();
        for loop_indices in [Some(loops), None] {
            for round in
                [Round::Any, Round::Iteration(spot.iteration), Round::Attempt(spot.iteration, spot.attempt)]
            {
                let group =
                    StepGroup { standing, path: spot.path, loop_indices: loop_indices.clone(), round };
                let steps = self.groups.entry(group).or_insert(GroupSteps { latest: step, open: Vec::new() });
                steps.latest = step;
                if is_open {
                    steps.open.push(step);
                }
            }
        }
    }

    pub(super) fn close(&mut self, step: StepId) {
        self.is_open[step.0] = false;
    }

    /// Returns the step of an event at `spot`: the one at its path, else the nearest around it.
    pub(super) fn owner(&mut self, spot: &StepLocation) -> Option<StepId> {
        let here = |places: &mut Self, standing| places.at(standing, spot, Self::here);
        here(self, PathRole::Owner).or_else(|| here(self, PathRole::Guest)).or_else(|| self.above(spot))
    }

    /// Returns the step around a step at `spot`.
    pub(super) fn parent(&mut self, spot: &StepLocation, standing: PathRole) -> Option<StepId> {
        match standing {
            PathRole::Owner => self.above(spot),
            PathRole::Guest => self.at(PathRole::Owner, spot, Self::here).or_else(|| self.above(spot)),
        }
    }

    /// Returns the nearest step at a path around that of `spot`.
    fn above(&mut self, spot: &StepLocation) -> Option<StepId> {
        let mut outer = spot.clone();
        while let Some(path) = self.paths[outer.path.0].parent {
            outer.path = path;
            for standing in [PathRole::Owner, PathRole::Guest] {
                if let Some(step) = self.at(standing, &outer, Self::around) {
                    return Some(step);
                }
            }
        }
        None
    }

    /// Returns the step at the path of `spot` whose loop indices begin those of `spot`, closest loop first.
    ///
    /// An event without loop indices matches any loop.
    fn at(
        &mut self,
        standing: PathRole,
        spot: &StepLocation,
        choose: fn(&mut Self, &StepGroup, &StepLocation) -> Option<StepId>,
    ) -> Option<StepId> {
        if !self.paths[spot.path.0].has_steps {
            return None;
        }
        let mut group = StepGroup { standing, path: spot.path, loop_indices: None, round: Round::Any };
        let indices = spot.loop_indices.as_deref().unwrap_or_default();
        for len in std::iter::once(indices.len()).chain((0..indices.len().min(LOOPS_MAX)).rev()) {
            group.loop_indices = Some(indices[..len].to_vec());
            if let Some(step) = choose(self, &group, spot) {
                return Some(step);
            }
        }
        group.loop_indices = None;
        if spot.loop_indices.is_none() { choose(self, &group, spot) } else { None }
    }

    /// Chooses for an event at the step's own path, where iteration and attempt are those of the step.
    fn here(&mut self, group: &StepGroup, spot: &StepLocation) -> Option<StepId> {
        let rounds =
            [Round::Attempt(spot.iteration, spot.attempt), Round::Iteration(spot.iteration), Round::Any];
        rounds.into_iter().find_map(|round| {
            let group = StepGroup { round, ..group.clone() };
            self.latest_open(&group).or_else(|| self.latest(&group))
        })
    }

    /// Chooses for an event at an inner path. Its iteration may be that of an inner loop, and equal that of an old step. So an
    /// open step wins over one with the same iteration.
    fn around(&mut self, group: &StepGroup, spot: &StepLocation) -> Option<StepId> {
        let same = StepGroup { round: Round::Iteration(spot.iteration), ..group.clone() };
        let any = StepGroup { round: Round::Any, ..group.clone() };
        self.latest_open(&same)
            .or_else(|| self.latest_open(&any))
            .or_else(|| self.latest(&same))
            .or_else(|| self.latest(&any))
    }

    fn latest(&self, group: &StepGroup) -> Option<StepId> {
        self.groups.get(group).map(|steps| steps.latest)
    }

    fn latest_open(&mut self, group: &StepGroup) -> Option<StepId> {
        let steps = self.groups.get_mut(group)?;
        while let Some(&last) = steps.open.last() {
            if self.is_open[last.0] {
                return Some(last);
            }
            steps.open.pop();
        }
        None
    }
}
