//! Merges the runs of one session: finds equal facts, and inserts the others in order.
//!
//! One run gives the order: the agent's own file, or the longest of several copies. A fact of another run matches by id, or,
//! on channels without ids, by content within the turn. A matching fact may make the known one more exact. A new fact is
//! inserted after the last preceding fact that both runs have. Times are not used.

#[cfg(test)]
mod alike_turn_tests;
#[cfg(test)]
mod by_ids_tests;
#[cfg(test)]
mod http_call_tests;
mod http_calls;
mod identity;
#[cfg(test)]
mod property_tests;
mod router_calls;
#[cfg(test)]
mod split_message_tests;
#[cfg(test)]
mod tests;
mod turn_paths;
#[cfg(test)]
mod usage_tests;
mod words;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent, RunId, Timestamp};

pub use self::http_calls::{call_of_result, forms_of_call_id};
use self::identity::{Comparison, FactKeys, FactMatch, Identities, KeyCounts};
use self::turn_paths::is_turn;
use self::turn_paths::{PathMap, TurnPaths};
use self::words::content_hash;
use crate::builder::SessionBuilder;
use crate::calls::Content;
use crate::fields::PayloadFields;
use crate::session::{Branch, RunNumber, Session, SessionRun, channel_rank};

/// The events of one run.
#[derive(Clone)]
pub struct RunEvents {
    /// The run.
    pub id: RunId,
    /// Its events, in order.
    pub events: Vec<ExchangeEvent>,
}

/// Folds the events of all runs of a session into one.
///
/// The result does not depend on the order of `runs`.
#[must_use]
pub fn merge(id: RunId, runs: Vec<RunEvents>, content: Content) -> Session {
    let runs = runs.into_iter().map(Cow::Owned).collect();
    merge_in_order(id, &in_order_with_ids(runs), content, MatchRule::Likeness)
}

/// Does the same as [`merge()`] with runs that are still needed, because they grow.
#[must_use]
pub fn merge_borrowed(id: RunId, runs: &[RunEvents], content: Content) -> Session {
    let runs = runs.iter().map(Cow::Borrowed).collect();
    merge_in_order(id, &in_order_with_ids(runs), content, MatchRule::Likeness)
}

/// Sorts the runs of a session by precedence, and gives calls the agent's ids where they have none.
fn in_order_with_ids(runs: Vec<Cow<'_, RunEvents>>) -> Vec<Cow<'_, RunEvents>> {
    let mut runs = sorted(runs);
    http_calls::set_ids(&mut runs);
    router_calls::set_ids(&mut runs);
    runs
}

/// Passes on the events of a session's runs that may have usage, with the paths that they have in the merged session.
pub(crate) fn each_with_usage(runs: Vec<RunEvents>, mut each: impl FnMut(&ExchangeEvent)) {
    let runs = in_order_with_ids(runs.into_iter().map(Cow::Owned).collect());
    let mut heads: Vec<SessionRun> = runs.iter().map(|run| head_of(run)).collect();
    Timeline::of(&mut heads, &runs, MatchRule::Likeness).each_with_usage(&runs, &mut each);
}

/// Folds the events of runs into one session in the given order, by ids alone.
///
/// In a turn that an earlier run has, only facts with the provider's ids are taken from a later run: the turn itself, calls
/// and their approvals, and the usage of messages. Everything else is left out, and so is a run without such ids.
#[must_use]
pub fn merge_by_ids(id: RunId, runs: &[RunEvents], content: Content) -> Session {
    let runs: Vec<Cow<'_, RunEvents>> = runs.iter().map(Cow::Borrowed).collect();
    merge_in_order(id, &runs, content, MatchRule::Ids)
}

/// How facts of two runs are matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchRule {
    /// The provider's ids.
    Ids,
    /// The provider's ids, else the content.
    Likeness,
}

/// Sorts the runs of a session by precedence: the agent's own file first, the longest of copies.
#[must_use]
pub fn merged_order(runs: Vec<RunEvents>) -> Vec<RunEvents> {
    let runs = sorted(runs.into_iter().map(Cow::Owned).collect());
    runs.into_iter().map(Cow::into_owned).collect()
}

fn sorted(runs: Vec<Cow<'_, RunEvents>>) -> Vec<Cow<'_, RunEvents>> {
    let mut runs: Vec<_> = runs.into_iter().map(|run| (head_of(&run), run)).collect();
    runs.sort_by_cached_key(|(head, run)| {
        let last = head.summary.last_at.as_ref().and_then(Timestamp::instant);
        (rank(head), Reverse(run.events.len()), Reverse(last), content_hash(&run.events), run.id)
    });
    runs.into_iter().map(|(_, run)| run).collect()
}

fn merge_in_order(id: RunId, runs: &[Cow<'_, RunEvents>], content: Content, matching: MatchRule) -> Session {
    let ids: Vec<RunId> = runs.iter().map(|run| run.id).collect();
    let mut heads: Vec<SessionRun> = runs.iter().map(|run| head_of(run)).collect();
    let line = Timeline::of(&mut heads, runs, matching);
    let mut builder = SessionBuilder::of_runs(id, &ids, content);
    builder.runs = heads;
    builder.branches = line.branches(runs);
    line.each_with_usage(runs, &mut |event| builder.use_tokens(event));
    line.fold(runs, &mut builder);
    builder.finish()
}

fn head_of(run: &RunEvents) -> SessionRun {
    let mut head = SessionRun::new(run.id);
    run.events.iter().for_each(|event| head.push(event));
    head
}

/// Returns the precedence of a run's channel, the best first.
fn rank(head: &SessionRun) -> u8 {
    channel_rank(head.channel.as_deref())
}

/// Tells whether a run's ids are the provider's. `codex exec` numbers its items, and its ids are not valid elsewhere.
#[must_use]
pub fn has_provider_ids(head: &SessionRun) -> bool {
    head.channel.as_deref() != Some("exec")
}

/// The facts of the session in order, as a linked list.
#[derive(Default)]
struct Timeline {
    nodes: Vec<FactNode>,
    identities: Identities,
    turns: TurnPaths,
    /// The paths of each run's turns in the session; `None` for a run that adds nothing.
    paths: Vec<Option<PathMap>>,
    /// How many branches were removed.
    branches: usize,
}

/// A fact, and the events of other runs about it.
struct FactNode {
    /// The run and the index of its event.
    event: (RunNumber, usize),
    path: Option<JsonString>,
    /// The branch that it is part of; branches are not shown.
    branch: Option<usize>,
    again: Vec<RepeatedEvent>,
    next: Option<usize>,
}

/// An event of another run about the same fact.
struct RepeatedEvent {
    run: RunNumber,
    place: usize,
    path: Option<JsonString>,
    /// Whether no id links it to the session.
    is_left_out: bool,
}

/// An event of a run that is being added.
struct NewEvent<'a> {
    place: usize,
    event: &'a ExchangeEvent,
    /// Its path in the session, if it differs from its own.
    path: Option<JsonString>,
    turn: Option<String>,
    keys: FactKeys,
    /// The same fact in the session, by id.
    same: Option<usize>,
}

/// The positions in the session where the next facts of a run are inserted.
#[derive(Default)]
struct InsertPositions {
    /// The last fact of the turn that began last. Initially the start of the session, which all runs have.
    last: usize,
    /// The turn that began last.
    turn: Option<String>,
    /// The last fact of each turn. The end of a turn may be reported after the next one has begun.
    by_turn: HashMap<String, usize>,
}

impl InsertPositions {
    /// Returns the fact to insert after: the last one of its turn, else the start of the turn.
    fn before(&mut self, new: &NewEvent<'_>, identities: &Identities) -> usize {
        if is_turn(new.event) {
            self.turn.clone_from(&new.turn);
        }
        let Some(turn) = &new.turn else { return self.last };
        let known = self.by_turn.get(turn).copied();
        known.or_else(|| identities.beginning_of(turn)).unwrap_or(self.last)
    }

    /// Records the position of a fact.
    fn take(&mut self, new: &NewEvent<'_>, node: usize) {
        if let Some(turn) = &new.turn {
            self.by_turn.insert(turn.clone(), node);
        }
        if new.turn.is_none() || self.turn.is_none() || new.turn == self.turn {
            self.last = node;
        }
    }
}

impl Timeline {
    /// Puts the facts of all runs in order.
    fn of(heads: &mut [SessionRun], runs: &[Cow<'_, RunEvents>], matching: MatchRule) -> Self {
        let mut line = Self::default();
        for (number, (head, run)) in heads.iter_mut().zip(runs).enumerate() {
            match RunNumber(number) {
                RunNumber::MAIN => line.begin(head, &run.events),
                run_number if has_provider_ids(head) => line.add(run_number, head, &run.events, matching),
                _ => line.compare(head, &run.events),
            }
        }
        line
    }

    /// Adds the run that gives the order.
    fn begin(&mut self, head: &SessionRun, events: &[ExchangeEvent]) {
        let mut counts = KeyCounts::new();
        self.paths.push(Some(PathMap::default()));
        for event in events {
            self.turns.note(event);
        }
        let channel = head.channel.as_deref().unwrap_or_default();
        for (place, event) in events.iter().enumerate() {
            let path = event.path.to_text();
            let turn = self.turns.turn_of(&path);
            let keys = FactKeys::of(event, turn.unwrap_or_default(), &mut counts);
            self.identities.add(&keys, turn, place, channel);
            self.identities.see(event);
            let next = (place + 1 < events.len()).then_some(place + 1);
            let event = (RunNumber::MAIN, place);
            self.nodes.push(FactNode { event, path: None, branch: None, again: Vec::new(), next });
        }
    }

    /// Adds another run.
    fn add(&mut self, run: RunNumber, head: &mut SessionRun, events: &[ExchangeEvent], matching: MatchRule) {
        let paths = self.turns.map(events, head, &self.identities, matching);
        let mut compared = Comparison::new(head.channel.as_deref());
        let matches = self.find_same(events, &paths, matching);
        matches.iter().filter_map(|matches| matches.same).for_each(|node| compared.take(node));
        let mut places = InsertPositions::default();
        // For each fact of the run, the node that it adds.
        let mut added = Vec::new();
        for new in matches {
            let before = places.before(&new, &self.identities);
            // By ids alone nothing ties such a fact to the turn.
            if paths.is_alike(new.event) && (matching == MatchRule::Ids || !self.is_new(&new)) {
                self.leave_out((run, before), head, new, (&mut compared, &mut places));
                continue;
            }
            let known = match (new.same, matching) {
                (Some(node), _) => FactMatch::SameFact(node),
                (None, MatchRule::Likeness) => {
                    self.identities.find(&new.keys, new.turn.as_deref(), &mut compared)
                }
                (None, MatchRule::Ids) => {
                    let is_own = new.turn.as_ref().is_none_or(|turn| paths.is_own(turn));
                    Identities::find_id(&new.keys, is_own)
                }
            };
            match known {
                FactMatch::SameFact(node) | FactMatch::Alike(node) => {
                    let is_alike = known == FactMatch::Alike(node);
                    *(if is_alike { &mut head.alike } else { &mut head.matched }) += 1;
                    compared.take(node);
                    let channel = head.channel.as_deref().unwrap_or_default();
                    self.identities.name(&new.keys, new.turn.as_deref(), node, channel);
                    // A fact that another channel has is not part of a copy's branch.
                    if rank(head) != 0 {
                        self.nodes[node].branch = None;
                    }
                    places.take(&new, node);
                    added.push(None);
                    self.nodes[node].again.push(new.again(run, false));
                }
                // The usage of the turn comes from the run that has the turn.
                FactMatch::UsageElsewhere(node) if self.nodes[node].event.0 != run => {
                    self.nodes[before].again.push(new.again(run, false));
                }
                FactMatch::Usage => self.nodes[before].again.push(new.again(run, false)),
                FactMatch::Untied => self.nodes[before].again.push(new.again(run, true)),
                FactMatch::UsageElsewhere(_) | FactMatch::New => {
                    let node = self.nodes.len();
                    places.take(&new, node);
                    self.insert(run, head, new, before);
                    compared.take(node);
                    added.push(Some(node));
                }
            }
        }
        if rank(head) == 0 {
            self.cut_branch(run, events, &added);
        }
        self.paths.push(Some(paths));
    }

    /// Tells whether the session lacks a fact of a turn that only texts match.
    fn is_new(&self, new: &NewEvent<'_>) -> bool {
        new.same.is_none() && self.identities.is_new_to(new.turn.as_deref(), new.event)
    }

    /// Compares a fact of a turn that only texts match, as one of a run without ids. It is not added.
    fn leave_out(
        &mut self,
        (run, before): (RunNumber, usize),
        head: &mut SessionRun,
        new: NewEvent<'_>,
        (compared, places): (&mut Comparison, &mut InsertPositions),
    ) {
        head.compare(self.identities.looks_like(new.event));
        if let FactMatch::Alike(node) = self.identities.find(&new.keys, new.turn.as_deref(), compared) {
            compared.take(node);
            places.take(&new, node);
        }
        self.nodes[before].again.push(new.again(run, true));
    }

    /// Finds the events of a run that the session has, by id.
    fn find_same<'a>(
        &self,
        events: &'a [ExchangeEvent],
        paths: &PathMap,
        matching: MatchRule,
    ) -> Vec<NewEvent<'a>> {
        let mut counts = KeyCounts::new();
        let is_fact = |event: &ExchangeEvent| {
            !matches!(event.event_type.known(), Some(EventType::RunStarted | EventType::RunCompleted))
        };
        let facts = events.iter().enumerate().filter(|(_, event)| is_fact(event));
        let matches = facts.map(|(place, event)| {
            let path = paths.path_of(event);
            let text = path.as_ref().map_or_else(|| event.path.to_text(), JsonString::to_text);
            let turn = self.turns.turn_of(&text).map(str::to_owned);
            let keys = FactKeys::of(event, turn.as_deref().unwrap_or_default(), &mut counts);
            let same = self.identities.same(&keys, turn.as_deref(), matching);
            NewEvent { place, event, path, turn, keys, same }
        });
        matches.collect()
    }

    /// Inserts a fact after another one.
    fn insert(&mut self, run: RunNumber, head: &SessionRun, new: NewEvent<'_>, before: usize) {
        let node = self.nodes.len();
        let channel = head.channel.as_deref().unwrap_or_default();
        self.identities.add(&new.keys, new.turn.as_deref(), node, channel);
        self.identities.see(new.event);
        let next = self.nodes.get(before).and_then(|before| before.next);
        let event = (run, new.place);
        self.nodes.push(FactNode { event, path: new.path, branch: None, again: Vec::new(), next });
        if node > 0 {
            self.nodes[before].next = Some(node);
        }
    }

    /// Removes the end of a copy when the session continues differently from the same point.
    fn cut_branch(&mut self, run: RunNumber, events: &[ExchangeEvent], added: &[Option<usize>]) {
        // The facts after the last one that another run has.
        let Some(fork) = added.iter().rposition(Option::is_none) else { return };
        let tail: Vec<usize> = added[fork..].iter().copied().flatten().collect();
        let says = |event: &ExchangeEvent| {
            matches!(
                event.event_type.known(),
                Some(EventType::MessageUser | EventType::MessageAssistant | EventType::ToolCall)
            )
        };
        let has_words = tail.iter().any(|node| says(&events[self.nodes[*node].event.1]));
        let mut next = tail.last().and_then(|last| self.nodes[*last].next);
        let mut goes_on = false;
        while let Some(node) = next.filter(|_| !goes_on) {
            let (of, _) = self.nodes[node].event;
            goes_on = of != run && self.nodes[node].branch.is_none();
            next = self.nodes[node].next;
        }
        if !has_words || !goes_on {
            return;
        }
        for node in tail {
            self.nodes[node].branch = Some(self.branches);
        }
        self.branches += 1;
    }

    /// Returns the branches, without facts that another channel has.
    fn branches(&self, runs: &[Cow<'_, RunEvents>]) -> Vec<Branch> {
        let mut branches: Vec<Option<Branch>> = vec![None; self.branches];
        for node in &self.nodes {
            let Some(number) = node.branch else { continue };
            let (run, place) = node.event;
            let first = runs[run.0].events[place].seq;
            branches[number].get_or_insert(Branch { run, first, events: 0 }).events += 1;
        }
        branches.into_iter().flatten().collect()
    }

    /// Counts the facts of a run without ids that the session has, by content.
    fn compare(&mut self, head: &mut SessionRun, events: &[ExchangeEvent]) {
        self.paths.push(None);
        for event in events {
            head.compare(self.identities.looks_like(event));
        }
    }

    /// Passes on what may have usage in all runs, including branches.
    fn each_with_usage(&self, runs: &[Cow<'_, RunEvents>], each: &mut dyn FnMut(&ExchangeEvent)) {
        let is_total = |event: &ExchangeEvent| {
            event.event_type.known() == Some(EventType::RunStarted)
                || PayloadFields::of(event).text("usage_scope").is_some_and(|scope| scope == "session")
        };
        for (run, paths) in runs.iter().zip(&self.paths) {
            for event in &run.events {
                match paths {
                    Some(paths) => each(&moved(event, paths.path_of(event).as_ref())),
                    None if is_total(event) => each(event),
                    None => {}
                }
            }
        }
    }

    fn fold(&self, runs: &[Cow<'_, RunEvents>], builder: &mut SessionBuilder) {
        let mut next = if self.nodes.is_empty() { None } else { Some(0) };
        while let Some(number) = next {
            let node = &self.nodes[number];
            next = node.next;
            if node.branch.is_some() {
                continue;
            }
            let (run, place) = node.event;
            take(builder, run, &runs[run.0].events[place], node.path.as_ref(), false);
            for again in &node.again {
                let event = &runs[again.run.0].events[again.place];
                if again.is_left_out {
                    builder.leave_out(again.run, &moved(event, again.path.as_ref()));
                } else {
                    take(builder, again.run, event, again.path.as_ref(), true);
                }
            }
        }
    }
}

impl NewEvent<'_> {
    fn again(self, run: RunNumber, is_left_out: bool) -> RepeatedEvent {
        RepeatedEvent { run, place: self.place, path: self.path, is_left_out }
    }
}

/// Passes an event to the fold, with its path in the session.
fn take(
    builder: &mut SessionBuilder,
    run: RunNumber,
    event: &ExchangeEvent,
    path: Option<&JsonString>,
    is_repeat: bool,
) {
    builder.take(run, &moved(event, path), is_repeat);
}

/// Returns an event with its path in the session.
fn moved<'a>(event: &'a ExchangeEvent, path: Option<&JsonString>) -> Cow<'a, ExchangeEvent> {
    match path {
        None => Cow::Borrowed(event),
        Some(path) => Cow::Owned(ExchangeEvent { path: path.clone(), ..event.clone() }),
    }
}
