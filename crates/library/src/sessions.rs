//! Groups runs into sessions, and finds the runs below them. Pure: made from the heads of runs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent, RunId};

use crate::RunHead;

/// A top-level session with all its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRuns {
    /// The agent's id, even if only a run of another channel is stored.
    pub id: RunId,
    /// The runs that show it: the agent's own file first, then copies, streams and connections in the order of their ids.
    pub runs: Vec<RunId>,
    /// The runs below it, on all channels.
    pub below: Vec<RunId>,
}

/// The relations of runs, from their first events.
#[derive(Clone, Debug, Default)]
pub struct Relations {
    /// The session that each run shows.
    owners: HashMap<RunId, RunId>,
    /// The top-level session of each run.
    roots: HashMap<RunId, RunId>,
    children: BTreeMap<RunId, Vec<RunId>>,
    shown: BTreeMap<RunId, Vec<RunId>>,
    /// The sessions of runs that name none.
    by_ids: HashMap<RunId, RunId>,
}

impl Relations {
    /// Takes the heads of all runs.
    #[must_use]
    pub fn of(heads: &[RunHead]) -> Self {
        let mut relations = Self::default();
        for head in heads {
            if let Some(parent) = head.parent {
                relations.children.entry(parent).or_default().push(head.run);
            }
        }
        // A run may name a session that names another one: the last one counts.
        let sessions = heads.iter().map(|head| (head.run, head.shows())).collect();
        relations.owners = ends_of(&sessions);
        for head in heads.iter().filter(|head| head.shows().is_some()) {
            let session = relations.owner(head.run);
            relations.shown.entry(session).or_default().push(head.run);
        }
        // A parent that the store does not have is ignored.
        let is_known = |run: &RunId| sessions.contains_key(run) || relations.shown.contains_key(run);
        let above = |head: &RunHead| (head.run, head.parent.filter(is_known).or(head.shows()));
        relations.roots = ends_of(&heads.iter().map(above).collect());
        for runs in relations.children.values_mut().chain(relations.shown.values_mut()) {
            runs.sort_unstable();
        }
        let by_ids = heads.iter().filter_map(|head| Some((head.run, head.session_by_ids?)));
        relations.by_ids = by_ids.collect();
        relations
    }

    /// Tells whether only its ids connect a run with the session that it shows.
    #[must_use]
    pub fn is_by_ids(&self, run: RunId) -> bool {
        self.by_ids.contains_key(&run)
    }

    /// Tells whether a session has a run that only its ids connect with it.
    pub(crate) fn has_runs_by_ids(&self, session: RunId) -> bool {
        !self.by_ids.is_empty()
            && self.shown.get(&session).into_iter().flatten().any(|run| self.is_by_ids(*run))
    }

    /// Adds the session to the start of a run that does not name it, so that its events are read as those of others.
    pub(crate) fn name_session(&self, run: RunId, events: &mut [ExchangeEvent]) {
        let is_start = |event: &&mut ExchangeEvent| event.event_type.known() == Some(EventType::RunStarted);
        for event in events.iter_mut().filter(|_| self.is_by_ids(run)).filter(is_start) {
            let session = self.owner(run).to_string();
            event.extra.push("session_run_id", JsonString::from(session.as_str()).to_json());
        }
    }

    /// Tells whether a run is among them.
    #[must_use]
    pub fn knows(&self, run: RunId) -> bool {
        self.owners.contains_key(&run)
    }

    /// Returns the session that a run shows: the one that it names, else its own.
    #[must_use]
    pub fn owner(&self, run: RunId) -> RunId {
        self.owners.get(&run).copied().unwrap_or(run)
    }

    /// Returns the top-level session of a run, or of a session that only other runs show.
    #[must_use]
    pub fn root(&self, run: RunId) -> RunId {
        let shown = || self.shown.get(&run)?.first();
        self.roots.get(&run).or_else(|| self.roots.get(shown()?)).copied().unwrap_or(run)
    }

    /// Returns the children of each run.
    #[must_use]
    pub fn children(&self) -> &BTreeMap<RunId, Vec<RunId>> {
        &self.children
    }

    /// Returns the runs that show a session, the agent's own file first.
    #[must_use]
    pub fn runs_of(&self, session: RunId) -> Vec<RunId> {
        let own = self.knows(session).then_some(session);
        let others = self.shown.get(&session).into_iter().flatten().copied();
        own.into_iter().chain(others.filter(|run| Some(*run) != own)).collect()
    }

    /// Returns the top-level sessions, in the order of their ids.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionRuns> {
        let mut groups = BTreeMap::<RunId, BTreeSet<RunId>>::new();
        for (run, root) in &self.roots {
            groups.entry(*root).or_default().insert(*run);
        }
        let session = |(id, mut below): (RunId, BTreeSet<RunId>)| {
            let mut runs = self.runs_of(id);
            runs.retain(|run| below.remove(run));
            SessionRuns { id, runs, below: below.into_iter().collect() }
        };
        groups.into_iter().map(session).collect()
    }

    /// Returns every id with its session.
    pub fn ids(&self) -> impl Iterator<Item = (RunId, RunId)> + '_ {
        let absent = self.shown.keys().filter(|session| !self.knows(**session));
        self.owners.keys().chain(absent).map(|id| (*id, self.owner(*id)))
    }
}

/// Returns the end of the chain from each run; in a circle, its smallest run.
fn ends_of(next: &HashMap<RunId, Option<RunId>>) -> HashMap<RunId, RunId> {
    let mut ends = HashMap::<RunId, RunId>::with_capacity(next.len());
    for from in next.keys() {
        let (mut way, mut places, mut at) = (Vec::new(), HashMap::new(), *from);
        let end = loop {
            if let Some(end) = ends.get(&at) {
                break *end;
            }
            if let Some(first) = places.get(&at) {
                break way[*first..].iter().copied().min().unwrap_or(at);
            }
            let Some(further) = next.get(&at).copied().flatten() else { break at };
            places.insert(at, way.len());
            way.push(at);
            at = further;
        };
        ends.extend(way.into_iter().chain([*from]).map(|run| (run, end)));
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> RunId {
        RunId::parse(&format!("{number:08}-0000-4000-8000-000000000000")).unwrap()
    }

    /// A run, the one that began it, and the session that it names; 0 for none.
    fn head((run, parent, session): (u32, u32, u32)) -> RunHead {
        let some = |number| (number > 0).then(|| id(number));
        RunHead { parent: some(parent), session: some(session), ..RunHead::unknown(id(run)) }
    }

    #[track_caller]
    fn check(runs: &[(u32, u32, u32)], want: &[(u32, &[u32], &[u32])]) {
        let ids = |numbers: &[u32]| numbers.iter().map(|number| id(*number)).collect();
        let want: Vec<SessionRuns> = want
            .iter()
            .map(|(of, runs, below)| SessionRuns { id: id(*of), runs: ids(runs), below: ids(below) })
            .collect();
        let heads: Vec<RunHead> = runs.iter().copied().map(head).collect();
        assert_eq!(Relations::of(&heads).sessions(), want, "{runs:?}");
    }

    #[test]
    fn session_groups_copies_streams_and_children() {
        check(&[(1, 0, 0)], &[(1, &[1], &[])]);
        check(&[(2, 1, 0), (1, 0, 0), (3, 2, 0)], &[(1, &[1], &[2, 3])]);
        check(&[(9, 0, 5), (5, 0, 0), (3, 0, 5)], &[(5, &[5, 3, 9], &[])]);
        check(&[(1, 0, 0), (2, 0, 0)], &[(1, &[1], &[]), (2, &[2], &[])]);
    }

    #[test]
    fn session_id_is_the_agents_id_without_its_file() {
        check(&[(9, 0, 5), (3, 0, 5)], &[(5, &[3, 9], &[])]);
    }

    #[test]
    fn child_without_stored_parent_is_a_session() {
        check(&[(9, 5, 0)], &[(9, &[9], &[])]);
        check(&[(9, 5, 0), (8, 5, 0), (7, 8, 0)], &[(8, &[8], &[7]), (9, &[9], &[])]);
        check(&[(12, 11, 2)], &[(2, &[12], &[])]);
        // The parent's own file is not stored, and a stream of it is.
        check(&[(9, 5, 0), (6, 0, 5)], &[(5, &[6], &[9])]);
    }

    /// Quadratic time would take minutes, cubic time weeks.
    #[test]
    fn long_chains_take_linear_time() {
        const RUNS: u32 = 50_000;
        type Link = fn(u32) -> (u32, u32, u32);
        let chains: [(Link, usize, usize); 2] =
            [(|run| (run, run - 1, 0), 1, 49_999), (|run| (run, 0, run - 1), 50_000, 0)];
        for (link, runs, below) in chains {
            let heads: Vec<RunHead> = (1..=RUNS).map(link).map(head).collect();
            let relations = Relations::of(&heads);
            let sessions = relations.sessions();
            let sizes: Vec<_> =
                sessions.iter().map(|session| (session.runs.len(), session.below.len())).collect();
            assert_eq!(sizes, [(runs, below)]);
            assert_eq!(relations.ids().count(), RUNS as usize);
            assert!(heads.iter().all(|head| relations.root(head.run) == id(1)));
        }
    }

    #[test]
    fn child_runs_of_other_channels_are_below_the_parent() {
        // Thread 2 was begun by thread 1 on a connection, which shows them as 11 and 12.
        check(&[(11, 0, 1), (12, 11, 2)], &[(1, &[11], &[12])]);
        check(&[(11, 0, 1), (12, 11, 2), (1, 0, 0), (2, 1, 0)], &[(1, &[1, 11], &[2, 12])]);
        // A copy of a child's records in its parent's file.
        check(&[(1, 0, 0), (2, 1, 0), (7, 0, 2)], &[(1, &[1], &[2, 7])]);
    }

    #[test]
    fn root_of_a_session_without_own_file_is_that_of_its_runs() {
        let relations = Relations::of(&[(11, 0, 1), (12, 11, 2)].map(head));
        assert_eq!([1, 2, 11, 12].map(|run| relations.root(id(run))), [id(1); 4]);
    }

    #[test]
    fn session_links_are_followed_to_the_last() {
        check(&[(1, 0, 0), (2, 0, 1), (3, 0, 2)], &[(1, &[1, 2, 3], &[])]);
        check(&[(2, 0, 1), (3, 0, 2)], &[(1, &[2, 3], &[])]);
        check(&[(1, 0, 2), (2, 0, 3), (3, 0, 1)], &[(1, &[1, 2, 3], &[])]);
    }

    #[test]
    fn circular_links_are_one_session() {
        check(&[(1, 2, 0), (2, 3, 0), (3, 1, 0), (4, 3, 0)], &[(1, &[1], &[2, 3, 4])]);
        check(&[(1, 0, 2), (2, 0, 1)], &[(1, &[1, 2], &[])]);
    }

    #[test]
    fn owner_is_the_named_session_or_the_run() {
        let heads = [(1, 0, 0), (2, 1, 0), (9, 0, 1), (7, 0, 2)].map(head);
        let relations = Relations::of(&heads);
        for (run, want) in [(1, 1), (9, 1), (2, 2), (7, 2), (8, 8)] {
            assert_eq!(relations.owner(id(run)), id(want), "{run}");
        }
        let ids: BTreeSet<_> = relations.ids().collect();
        assert_eq!(ids, BTreeSet::from([(1, 1), (2, 2), (9, 1), (7, 2)].map(|(a, b)| (id(a), id(b)))));
    }
}
