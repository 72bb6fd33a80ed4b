//! Which turn of one run is which turn of another: by the provider's id of it, else by a fact that both have.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use steno_model::json::JsonString;
use steno_model::{EventType, ExchangeEvent};

use super::Matching;
use super::identity::Identities;
use crate::fields::PayloadFields;
use crate::session::RunHead;

/// The turns of the session so far, by their paths in it.
#[derive(Default)]
pub(super) struct TurnPaths {
    paths: HashSet<String>,
    by_turn_id: HashMap<String, String>,
}

/// Where the turns of one run stand in the session.
pub(super) struct PathMap {
    paths: HashMap<String, String>,
    /// The paths in the session of turns that no run before has.
    own: HashSet<String>,
}

impl PathMap {
    /// Returns the path of an event in the session; `None` where it is the event's own.
    pub(super) fn path_of(&self, event: &ExchangeEvent) -> Option<JsonString> {
        let path = event.path.to_text();
        let (turn, rest) = split(&path, |prefix| self.paths.contains_key(prefix))?;
        let mapped = &self.paths[turn];
        (mapped != turn).then(|| JsonString::from(format!("{mapped}{rest}").as_str()))
    }

    /// Tells whether no run before has the turn at this path of the session.
    pub(super) fn is_own(&self, turn: &str) -> bool {
        self.own.contains(turn)
    }
}

impl TurnPaths {
    /// Takes note of a turn that an event begins, at a path of the session.
    pub(super) fn note(&mut self, event: &ExchangeEvent, path: Option<&str>) {
        if !is_turn(event) {
            return;
        }
        let path = path.map_or_else(|| event.path.to_text().into_owned(), str::to_owned);
        if let Some(id) = PayloadFields::of(event).text("turn_id") {
            self.by_turn_id.entry(id.into_owned()).or_insert_with(|| path.clone());
        }
        self.paths.insert(path);
    }

    /// Returns the turn that a path of the session is in.
    pub(super) fn turn_of(&self, path: &str) -> Option<String> {
        split(path, |prefix| self.paths.contains(prefix)).map(|(turn, _)| turn.to_owned())
    }

    /// Finds the place of each turn of a run; a turn that the session does not have gets a path of its own.
    pub(super) fn map(
        &mut self,
        events: &[ExchangeEvent],
        head: &RunHead,
        identities: &Identities,
        matching: Matching,
    ) -> PathMap {
        let begun: HashSet<String> = events
            .iter()
            .filter(|event| is_turn(event))
            .map(|event| event.path.to_text().into_owned())
            .collect();
        let mut map = HashMap::<String, String>::new();
        for event in events.iter().filter(|event| is_turn(event)) {
            let id = PayloadFields::of(event).text("turn_id");
            if let Some(known) = id.and_then(|id| self.by_turn_id.get(&*id)) {
                map.insert(event.path.to_text().into_owned(), known.clone());
            }
        }
        for event in events {
            let path = event.path.to_text();
            let Some((turn, _)) = split(&path, |prefix| begun.contains(prefix)) else { continue };
            if map.contains_key(turn) {
                continue;
            }
            if let Some(known) = identities.turn_of(event, matching) {
                map.insert(turn.to_owned(), known);
            }
        }
        let mut new = HashSet::new();
        for event in events.iter().filter(|event| is_turn(event)) {
            if let Entry::Vacant(place) = map.entry(event.path.to_text().into_owned()) {
                let own = self.free(place.key(), head.channel.as_deref().unwrap_or("other"));
                self.note(event, Some(&own));
                new.insert(own.clone());
                place.insert(own);
            }
        }
        PathMap { paths: map, own: new }
    }

    fn free(&self, path: &str, channel: &str) -> String {
        let numbered = (2..).map(|number| format!("{path}@{channel}-{number}"));
        let names = [path.to_owned(), format!("{path}@{channel}")].into_iter().chain(numbered);
        names.into_iter().find(|name| !self.paths.contains(name)).unwrap_or_default()
    }
}

fn is_turn(event: &ExchangeEvent) -> bool {
    event.event_type.known() == Some(EventType::StepStarted)
        && PayloadFields::of(event).text("kind").is_some_and(|kind| kind == "turn")
}

/// Splits a path behind the longest beginning that is known.
fn split(path: &str, is_known: impl Fn(&str) -> bool) -> Option<(&str, &str)> {
    let mut end = path.len();
    loop {
        if is_known(&path[..end]) {
            return Some(path.split_at(end));
        }
        // A dot in a step's name is written `\.`.
        let mut dots = path[..end].rmatch_indices('.').filter(|(at, _)| !path[..*at].ends_with('\\'));
        end = dots.next()?.0;
    }
}
