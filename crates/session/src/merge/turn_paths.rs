//! Matches the turns of runs: by the provider's turn id, else by a fact that both runs have, else by their texts.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent};

use super::MatchRule;
use super::identity::{Identities, KeyCounts};
use crate::fields::PayloadFields;
use crate::path_tree::PathTree;
use crate::session::SessionRun;

/// The turns of the session so far, by their paths in it.
#[derive(Default)]
pub(super) struct TurnPaths {
    /// Each with its provider's id, if one is known.
    paths: PathTree<Option<String>>,
    by_turn_id: HashMap<String, String>,
}

/// The paths of one run's turns in the session.
#[derive(Default)]
pub(super) struct PathMap {
    paths: PathTree<String>,
    /// The session paths of turns that no earlier run has.
    own: HashSet<String>,
    /// The run's own paths of turns that only texts match with one of the session.
    alike: HashSet<String>,
}

/// A turn of a run that is being matched.
struct NewTurn {
    path: String,
    id: Option<String>,
    /// Its path in the session.
    known: Option<String>,
    /// Whether only its texts match.
    is_alike: bool,
}

impl PathMap {
    /// Returns the path of an event in the session; `None` if it is unchanged.
    pub(super) fn path_of(&self, event: &ExchangeEvent) -> Option<JsonString> {
        let path = event.path.to_text();
        let (mapped, end) = self.paths.around(&path)?;
        let (turn, rest) = path.split_at(end);
        (mapped != turn).then(|| JsonString::from(format!("{mapped}{rest}").as_str()))
    }

    /// Tells whether an event is in a turn that only texts match with one of the session.
    pub(super) fn is_alike(&self, event: &ExchangeEvent) -> bool {
        let path = event.path.to_text();
        self.paths.around(&path).is_some_and(|(_, end)| self.alike.contains(&path[..end]))
    }

    /// Tells whether no earlier run has the turn at this path.
    pub(super) fn is_own(&self, turn: &str) -> bool {
        self.own.contains(turn)
    }
}

impl TurnPaths {
    /// Records the turn that an event of the main run begins, if any.
    pub(super) fn note(&mut self, event: &ExchangeEvent) {
        if is_turn(event) {
            self.add(&event.path.to_text(), turn_id(event));
        }
    }

    /// Adds a turn at a path of the session, or the id of a known one.
    fn add(&mut self, path: &str, id: Option<String>) {
        if let Some(id) = &id {
            self.by_turn_id.entry(id.clone()).or_insert_with(|| path.to_owned());
        }
        let known = self.paths.get(path).cloned().flatten();
        self.paths.insert(path, known.or(id));
    }

    /// Returns the turn that a path of the session is in.
    pub(super) fn turn_of<'a>(&self, path: &'a str) -> Option<&'a str> {
        self.paths.around(path).map(|(_, end)| &path[..end])
    }

    /// Maps each turn of a run to a path of the session; a new turn gets an unused path.
    pub(super) fn map(
        &mut self,
        events: &[ExchangeEvent],
        head: &SessionRun,
        identities: &Identities,
        matching: MatchRule,
    ) -> PathMap {
        let mut turns = self.turns_by_id(events);
        self.find_by_facts(&mut turns, events, identities, matching);
        find_by_texts(&mut turns, events, identities);
        let mut map = PathMap::default();
        for turn in turns {
            if turn.is_alike {
                map.alike.insert(turn.path.clone());
            }
            let path = turn.known.unwrap_or_else(|| {
                let own = self.free(&turn.path, head.channel.as_deref().unwrap_or("other"));
                self.add(&own, turn.id);
                map.own.insert(own.clone());
                own
            });
            map.paths.insert(&turn.path, path);
        }
        map
    }

    /// Returns the turns of a run, with their session paths if the provider's id is known.
    fn turns_by_id(&self, events: &[ExchangeEvent]) -> Vec<NewTurn> {
        let mut begun = HashSet::new();
        let mut turns = Vec::new();
        for event in events.iter().filter(|event| is_turn(event)) {
            let path = event.path.to_text().into_owned();
            let id = turn_id(event);
            let known = id.as_ref().and_then(|id| self.by_turn_id.get(id)).cloned();
            if begun.insert(path.clone()) {
                turns.push(NewTurn { path, id, known, is_alike: false });
            }
        }
        turns
    }

    /// Matches the other turns by a fact that both runs have. Turns with different ids are never the same.
    fn find_by_facts(
        &mut self,
        turns: &mut [NewTurn],
        events: &[ExchangeEvent],
        identities: &Identities,
        matching: MatchRule,
    ) {
        let mut places = PathTree::default();
        for (number, turn) in turns.iter().enumerate() {
            places.insert(&turn.path, number);
        }
        let mut counts = KeyCounts::new();
        for event in events {
            let turn_path = identities.turn_of(event, matching, &mut counts);
            let place = places.around(&event.path.to_text()).map(|(number, _)| *number);
            let (Some(turn_path), Some(number)) = (turn_path, place) else { continue };
            let turn = &mut turns[number];
            if turn.known.is_some() {
                continue;
            }
            let has_other_id = self.paths.get(&turn_path).is_some_and(Option::is_some) && turn.id.is_some();
            if !has_other_id {
                self.add(&turn_path, turn.id.clone());
                turn.known = Some(turn_path);
            }
        }
    }

    fn free(&self, path: &str, channel: &str) -> String {
        let numbered = (2..).map(|number| format!("{path}@{channel}-{number}"));
        let names = [path.to_owned(), format!("{path}@{channel}")].into_iter().chain(numbered);
        names.into_iter().find(|name| self.paths.get(name).is_none()).unwrap_or_default()
    }
}

/// Matches turns without any id by their texts: with the last turn that has all of them, otherwise with the last one that
/// has the same prompt and no answer. An answer that was cut off may be on one channel only.
fn find_by_texts(turns: &mut [NewTurn], events: &[ExchangeEvent], identities: &Identities) {
    let mut taken: HashSet<String> = turns.iter().filter_map(|turn| turn.known.clone()).collect();
    let mut places = PathTree::default();
    for (number, turn) in turns.iter().enumerate() {
        places.insert(&turn.path, number);
    }
    // For each turn, the turns of the session that have all of its texts so far.
    let mut candidates: HashMap<usize, Vec<&str>> = HashMap::new();
    // For each turn, those that have its first prompt and no answer.
    let mut with_prompt: HashMap<usize, Vec<&str>> = HashMap::new();
    for event in events {
        let Some((number, _)) = places.around(&event.path.to_text()) else { continue };
        if turns[*number].known.is_some() || turns[*number].id.is_some() {
            continue;
        }
        let Some(with_text) = identities.turns_with_texts(event) else { continue };
        if event.event_type.known() == Some(EventType::MessageUser) {
            let open = with_text.iter().map(String::as_str).filter(|turn| !identities.is_answered(turn));
            with_prompt.entry(*number).or_insert_with(|| open.collect());
        }
        let is_there = |turn: &&str| with_text.iter().any(|known| known == turn);
        match candidates.entry(*number) {
            Entry::Occupied(mut known) => known.get_mut().retain(is_there),
            Entry::Vacant(new) => {
                new.insert(with_text.iter().map(String::as_str).collect());
            }
        }
    }
    for (number, turn) in turns.iter_mut().enumerate() {
        let like = candidates.remove(&number).unwrap_or_default();
        let like = with_prompt.remove(&number).unwrap_or_default().into_iter().chain(like);
        if let Some(path) = like.rev().find(|path| !taken.contains(*path)) {
            taken.insert(path.to_owned());
            (turn.known, turn.is_alike) = (Some(path.to_owned()), true);
        }
    }
}

/// Tells whether an event begins a turn.
pub(super) fn is_turn(event: &ExchangeEvent) -> bool {
    event.event_type.known() == Some(EventType::StepStarted)
        && PayloadFields::of(event).text("kind").is_some_and(|kind| kind == "turn")
}

fn turn_id(event: &ExchangeEvent) -> Option<String> {
    PayloadFields::of(event).text("turn_id").map(std::borrow::Cow::into_owned)
}
