//! What sessions cost in tokens: exact where the record is, a lower bound where it says less.
//!
//! One response may stand in several records, files and channels; it is counted once, with the largest of its counts.

#[cfg(test)]
mod tests;
mod tokens;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use steno_model::{EventType, ExchangeEvent, RunId, Word};

pub use tokens::Tokens;

use crate::fields::{PayloadFields, session_run_id};

/// What a row adds up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The day in UTC, like `2026-11-15`.
    pub day: String,
    /// Whose agent it was.
    pub provider: String,
    /// The model; empty where the record does not say.
    pub model: String,
    /// The session that it was for; a subagent's tokens are its parent's.
    pub session: RunId,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    /// How many responses, or turns where a channel counts only those.
    pub responses: u64,
    /// The tokens.
    pub tokens: Tokens,
    /// Whether some of it is known only to be at least so much.
    pub is_lower_bound: bool,
}

impl Used {
    /// Adds up.
    pub fn add(&mut self, other: Self) {
        self.responses += other.responses;
        self.tokens = self.tokens.plus(other.tokens);
        self.is_lower_bound |= other.is_lower_bound;
    }
}

/// Folds the events of any runs, in any order of runs, into what was used.
#[derive(Default)]
pub struct UsageBuilder {
    runs: HashMap<RunId, RunUse>,
    responses: HashMap<(String, String), Response>,
}

/// What is known of a run.
#[derive(Default)]
struct RunUse {
    provider: String,
    parent: Option<RunId>,
    session: Option<RunId>,
    started: String,
    turns: Vec<Turn>,
}

struct Response {
    /// The run that it counts for.
    run: RunId,
    /// When that run started; a copy counts in the run that started first.
    run_started: String,
    day: String,
    model: String,
    tokens: Tokens,
    is_final: bool,
}

struct Turn {
    day: String,
    model: String,
    tokens: Tokens,
}

impl UsageBuilder {
    /// Makes an empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Tells whether events of this type say anything about usage.
    #[must_use]
    pub fn wants(event_type: EventType) -> bool {
        matches!(event_type, EventType::RunStarted | EventType::MessageAssistant)
    }

    /// Takes an event.
    pub fn push(&mut self, event: &ExchangeEvent) {
        match event.event_type {
            Word::Known(EventType::RunStarted) => self.begin(event),
            Word::Known(EventType::MessageAssistant) => self.report(event),
            Word::Known(_) | Word::Unknown(_) => {}
        }
    }

    fn begin(&mut self, event: &ExchangeEvent) {
        let run = self.runs.entry(event.run_id).or_default();
        run.parent = event.parent_run_id;
        run.started = event.timestamp.to_string();
        run.provider = text_of(&PayloadFields::of(event), "name");
        run.session = session_run_id(event);
    }

    fn report(&mut self, event: &ExchangeEvent) {
        let fields = PayloadFields::of(event);
        let Some(tokens) = fields.json("usage").as_ref().and_then(Tokens::read) else { return };
        let (scope, model) = (text_of(&fields, "usage_scope"), text_of(&fields, "model"));
        let day: String = event.timestamp.to_string().chars().take(10).collect();
        let run = self.runs.entry(event.run_id).or_default();
        match &*scope {
            "turn" => run.turns.push(Turn { day, model, tokens }),
            "response" => {
                let is_final = fields.is_true("final");
                let seen = Response {
                    run: event.run_id,
                    run_started: run.started.clone(),
                    day,
                    model,
                    tokens,
                    is_final,
                };
                let key = (run.provider.clone(), text_of(&fields, "response"));
                match self.responses.entry(key) {
                    Entry::Occupied(mut kept) => kept.get_mut().merge(seen),
                    Entry::Vacant(free) => {
                        free.insert(seen);
                    }
                }
            }
            // What an agent has added up for itself says nothing new.
            _ => {}
        }
    }

    /// Adds everything up.
    #[must_use]
    pub fn finish(self) -> BTreeMap<RowKey, Used> {
        let mut rows: BTreeMap<RowKey, Used> = BTreeMap::new();
        let mut sessions_with_final: HashMap<RunId, bool> = HashMap::new();
        for response in self.responses.values() {
            let session = self.session_of(response.run);
            *sessions_with_final.entry(session).or_default() |= response.is_final;
        }
        let is_by_turn = |session: RunId, run: &RunUse| {
            !run.turns.is_empty() && !sessions_with_final.get(&session).copied().unwrap_or(false)
        };
        for (id, run) in &self.runs {
            let session = self.session_of(*id);
            for turn in run.turns.iter().filter(|_| is_by_turn(session, run)) {
                let key = RowKey {
                    day: turn.day.clone(),
                    provider: run.provider.clone(),
                    model: turn.model.clone(),
                    session,
                };
                let used = Used { responses: 1, tokens: turn.tokens, is_lower_bound: false };
                rows.entry(key).or_default().add(used);
            }
        }
        for ((provider, _), response) in &self.responses {
            let session = self.session_of(response.run);
            if self.runs.get(&response.run).is_some_and(|run| is_by_turn(session, run)) {
                continue;
            }
            let key = RowKey {
                day: response.day.clone(),
                provider: provider.clone(),
                model: response.model.clone(),
                session,
            };
            let used = Used { responses: 1, tokens: response.tokens, is_lower_bound: !response.is_final };
            rows.entry(key).or_default().add(used);
        }
        rows
    }

    /// Returns the session that a run belongs to: its topmost parent, or what that was recorded from outside of.
    fn session_of(&self, run: RunId) -> RunId {
        const PARENTS_MAX: usize = 64;
        let mut at = run;
        for _ in 0..PARENTS_MAX {
            match self.runs.get(&at).and_then(|run| run.parent) {
                Some(parent) if parent != at => at = parent,
                Some(_) | None => break,
            }
        }
        self.runs.get(&at).and_then(|run| run.session).unwrap_or(at)
    }
}

impl Response {
    fn merge(&mut self, other: Self) {
        self.tokens = self.tokens.max(other.tokens);
        self.is_final |= other.is_final;
        if self.model.is_empty() {
            self.model = other.model;
        }
        // Files come in any order; the same run wins whatever it is.
        if (&other.run_started, other.run) < (&self.run_started, self.run) {
            (self.run, self.run_started, self.day) = (other.run, other.run_started, other.day);
        }
    }
}

fn text_of(fields: &PayloadFields<'_>, name: &str) -> String {
    fields.string(name).map_or_else(String::new, |text| text.to_text().into_owned())
}
