//! Several runs of one session as one: which facts are the same, where the others belong, and whose order counts.
//!
//! One run gives the order: the agent's own file, of several copies the longest. A fact of another run is known if ids show
//! it, or, where a channel has no ids, if the turn has one that says the same. What is known may tell it more exactly and
//! adds nothing; what is not known follows the last fact before it that both runs have. Times decide nothing.

mod identity;
#[cfg(test)]
mod tests;
mod turn_paths;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;

use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent, RunId, Timestamp};

use self::identity::{Identities, Known, content_hash};
use self::turn_paths::TurnPaths;
use crate::builder::SessionBuilder;
use crate::calls::Content;
use crate::session::{Branch, RunHead, RunNumber, Session};

/// The events of one run.
pub struct RunEvents {
    /// The run.
    pub id: RunId,
    /// Its events, in order.
    pub events: Vec<ExchangeEvent>,
}

/// Folds the events of all runs of a session into one.
///
/// The result depends on the runs and not on the order in which they are handed in.
#[must_use]
pub fn merge(id: RunId, runs: Vec<RunEvents>, content: Content) -> Session {
    merge_in_order(id, &merged_order(runs), content, Matching::Likeness)
}

/// Folds the events of runs into one session, in an order that somebody has decided, and by ids alone.
///
/// In a turn that an earlier run has, only that is taken from a later one which has the provider's ids: the turn itself,
/// calls and their approvals, and what messages use. Everything else is left out, and so is a run without such ids.
#[must_use]
pub fn merge_by_ids(id: RunId, runs: &[RunEvents], content: Content) -> Session {
    merge_in_order(id, runs, content, Matching::Ids)
}

/// What makes a fact of one run the same as one of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Matching {
    /// The provider's ids.
    Ids,
    /// Where there are none, what it says.
    Likeness,
}

/// Puts the runs of a session in the order in which they count: the agent's own file first, of copies the longest.
#[must_use]
pub fn merged_order(runs: Vec<RunEvents>) -> Vec<RunEvents> {
    let mut runs: Vec<(RunHead, RunEvents)> = runs.into_iter().map(|run| (head_of(&run), run)).collect();
    runs.sort_by_cached_key(|(head, run)| {
        let last = head.last_at.as_ref().and_then(Timestamp::instant);
        (rank(head), Reverse(run.events.len()), Reverse(last), content_hash(&run.events), run.id)
    });
    runs.into_iter().map(|(_, run)| run).collect()
}

fn merge_in_order(id: RunId, runs: &[RunEvents], content: Content, matching: Matching) -> Session {
    let ids: Vec<RunId> = runs.iter().map(|run| run.id).collect();
    let mut heads: Vec<RunHead> = runs.iter().map(head_of).collect();
    let mut line = Line::default();
    for (number, (head, run)) in heads.iter_mut().zip(runs).enumerate() {
        match RunNumber(number) {
            RunNumber::MAIN => line.begin(&run.events),
            run_number if has_provider_ids(head) => line.add(run_number, head, &run.events, matching),
            _ => line.compare(head, &run.events),
        }
    }
    let mut builder = SessionBuilder::of_runs(id, &ids, content);
    builder.runs = heads;
    builder.branches = std::mem::take(&mut line.branches);
    runs.iter().flat_map(|run| &run.events).for_each(|event| builder.use_tokens(event));
    line.fold(runs, &mut builder);
    builder.finish()
}

fn head_of(run: &RunEvents) -> RunHead {
    let mut head = RunHead::new(run.id);
    run.events.iter().for_each(|event| head.note(event));
    head
}

/// Tells which channel's order counts, the best first.
fn rank(head: &RunHead) -> u8 {
    match head.channel.as_deref() {
        Some("disk") => 0,
        Some("app-server" | "control") => 1,
        Some("stream") => 2,
        Some("progress") => 3,
        Some("exec") => 4,
        Some(_) | None => 5,
    }
}

/// Tells whether a run's ids are the provider's. `codex exec` counts its items, and its ids mean nothing elsewhere.
#[must_use]
pub fn has_provider_ids(head: &RunHead) -> bool {
    head.channel.as_deref() != Some("exec")
}

/// Facts in the order of the session, as a linked list.
#[derive(Default)]
struct Line {
    nodes: Vec<Node>,
    identities: Identities,
    turns: TurnPaths,
    branches: Vec<Branch>,
}

/// A fact, and what other runs say of the same one.
struct Node {
    /// The run and the place of its event.
    event: (RunNumber, usize),
    path: Option<JsonString>,
    /// Whether it is part of a branch, or of nothing that is shown.
    is_left_out: bool,
    again: Vec<Again>,
    next: Option<usize>,
}

impl Node {
    fn new(run: RunNumber, place: usize, path: Option<JsonString>) -> Self {
        Self { event: (run, place), path, is_left_out: false, again: Vec::new(), next: None }
    }
}

/// What another run says.
struct Again {
    run: RunNumber,
    place: usize,
    path: Option<JsonString>,
    /// Whether no id ties it to the session.
    is_left_out: bool,
}

/// A fact of a run, where it goes.
enum Place {
    Known(usize),
    New(usize),
}

impl Line {
    /// Takes the run whose order counts.
    fn begin(&mut self, events: &[ExchangeEvent]) {
        let mut counts = HashMap::new();
        for event in events {
            self.turns.note(event, None);
        }
        for (place, event) in events.iter().enumerate() {
            let turn = self.turns.turn_of(&event.path.to_text());
            self.identities.learn(event, turn.as_deref(), &mut counts, place);
            self.nodes.push(Node::new(RunNumber::MAIN, place, None));
            if place > 0 {
                self.nodes[place - 1].next = Some(place);
            }
        }
    }

    /// Adds what another run has.
    fn add(&mut self, run: RunNumber, head: &mut RunHead, events: &[ExchangeEvent], matching: Matching) {
        let paths = self.turns.map(events, head, &self.identities, matching);
        let mut counts = HashMap::new();
        // The beginning of the session is what all runs have.
        let mut last = 0;
        let mut added = Vec::new();
        for (place, event) in events.iter().enumerate() {
            if matches!(event.event_type.known(), Some(EventType::RunStarted | EventType::RunCompleted)) {
                continue;
            }
            let path = paths.path_of(event);
            let text = path.as_ref().map_or_else(|| event.path.to_text(), JsonString::to_text);
            let turn = self.turns.turn_of(&text);
            let is_own = turn.as_ref().is_none_or(|turn| paths.is_own(turn));
            let found = match matching {
                Matching::Likeness => self.identities.find(event, turn.as_deref(), &mut counts),
                Matching::Ids => self.identities.find_id(event, turn.as_deref(), &mut counts, is_own),
            };
            // The run that tells the turn's usage goes on telling it.
            let is_its_own = |node: usize| self.nodes[node].event.0 == run;
            let is_more = matches!(found, Known::UsageElsewhere(node) if is_its_own(node));
            let found = if is_more { Known::New } else { found };
            let again = |path: Option<JsonString>, is_left_out: bool| Again { run, place, path, is_left_out };
            match found {
                Known::SameFact(node) => {
                    head.matched += 1;
                    last = node;
                    added.push(Place::Known(node));
                    self.nodes[node].again.push(again(path, false));
                }
                Known::Alike(node) => {
                    head.alike += 1;
                    last = node;
                    added.push(Place::Known(node));
                    self.nodes[node].again.push(again(path, false));
                }
                // The turn has its usage from the run whose turn it is.
                Known::UsageElsewhere(_) | Known::Usage => self.nodes[last].again.push(again(path, false)),
                Known::Untied => self.nodes[last].again.push(again(path, true)),
                Known::New => {
                    let node = self.nodes.len();
                    let next = self.nodes.get(last).and_then(|before| before.next);
                    self.nodes.push(Node { next, ..Node::new(run, place, path) });
                    if node > 0 {
                        self.nodes[last].next = Some(node);
                    }
                    self.identities.add(event, turn.as_deref(), &mut counts, node);
                    last = node;
                    added.push(Place::New(node));
                }
            }
        }
        if rank(head) == 0 {
            self.cut_branch(run, events, &added);
        }
    }

    /// Leaves out the end of a copy when the session goes on otherwise from the same point.
    fn cut_branch(&mut self, run: RunNumber, events: &[ExchangeEvent], added: &[Place]) {
        let tail =
            added.iter().rposition(|place| matches!(place, Place::Known(_))).map_or(0, |last| last + 1);
        let fork = added[..tail].last().map(|place| match place {
            Place::Known(node) | Place::New(node) => *node,
        });
        let tail: Vec<usize> = added[tail..]
            .iter()
            .filter_map(|place| match place {
                Place::New(node) => Some(*node),
                Place::Known(_) => None,
            })
            .collect();
        let says = |event: &ExchangeEvent| {
            matches!(
                event.event_type.known(),
                Some(EventType::MessageUser | EventType::MessageAssistant | EventType::ToolCall)
            )
        };
        let has_words = tail.iter().any(|node| says(&events[self.nodes[*node].event.1]));
        let after_tail = tail.last().and_then(|last| self.nodes[*last].next);
        let mut next = after_tail;
        let mut goes_on = false;
        while let Some(node) = next {
            let (of, _) = self.nodes[node].event;
            goes_on |= of != run && !self.nodes[node].is_left_out;
            next = self.nodes[node].next;
        }
        let (Some(first), true, true, Some(_)) = (tail.first(), has_words, goes_on, fork) else { return };
        let first = events[self.nodes[*first].event.1].seq;
        self.branches.push(Branch { run, first, events: tail.len() as u64 });
        for node in tail {
            self.nodes[node].is_left_out = true;
        }
    }

    /// Counts what a run without ids has in common with the session, by how it looks.
    fn compare(&self, head: &mut RunHead, events: &[ExchangeEvent]) {
        for event in events {
            match self.identities.looks_like(event) {
                Some(true) => head.alike += 1,
                Some(false) => head.unmatched += 1,
                None => {}
            }
        }
    }

    fn fold(&self, runs: &[RunEvents], builder: &mut SessionBuilder) {
        let mut next = if self.nodes.is_empty() { None } else { Some(0) };
        while let Some(number) = next {
            let node = &self.nodes[number];
            next = node.next;
            if node.is_left_out {
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

/// Hands an event to the fold, at the path that it has in the session.
fn take(
    builder: &mut SessionBuilder,
    run: RunNumber,
    event: &ExchangeEvent,
    path: Option<&JsonString>,
    is_again: bool,
) {
    builder.take(run, &moved(event, path), is_again);
}

/// Returns an event at the path that it has in the session.
fn moved<'a>(event: &'a ExchangeEvent, path: Option<&JsonString>) -> Cow<'a, ExchangeEvent> {
    match path {
        None => Cow::Borrowed(event),
        Some(path) => Cow::Owned(ExchangeEvent { path: path.clone(), ..event.clone() }),
    }
}
