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
    responses: HashMap<ResponseKey, Response>,
}

/// What makes a response the same one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ResponseKey {
    /// The provider's own id, wherever it was seen.
    Id { provider: String, id: String },
    /// A number that its run alone knows.
    Number { run: RunId, number: String },
}

/// What is known of a run.
#[derive(Default)]
struct RunUse {
    provider: String,
    parent: Option<RunId>,
    session: Option<RunId>,
    started: String,
    /// The model that spoke last.
    model: String,
    turns: Vec<Amount>,
    /// What the agent has added up for the session, as it stood last.
    total: Option<Amount>,
}

struct Response {
    /// The run that it counts for.
    run: RunId,
    /// When that run started; a copy counts in the run that started first.
    run_started: String,
    amount: Amount,
    is_final: bool,
    /// Whether its counts are known to be only at least so much.
    is_lower_bound: bool,
}

#[derive(Clone)]
struct Amount {
    day: String,
    model: String,
    tokens: Tokens,
}

/// How exactly the runs of a session tell what it cost: the last is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Telling {
    /// By a total alone.
    #[default]
    Total,
    /// By turns, or by responses whose counts are not final.
    Turns,
    /// By responses, each with a number of its run's.
    Numbers,
    /// By responses, each with the provider's id.
    Ids,
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
        let run = self.runs.entry(event.run_id).or_default();
        let model = text_of(&fields, "model");
        if !model.is_empty() {
            run.model.clone_from(&model);
        }
        let Some(tokens) = fields.json("usage").as_ref().and_then(Tokens::read) else { return };
        let day: String = event.timestamp.to_string().chars().take(10).collect();
        let model = if model.is_empty() { run.model.clone() } else { model };
        let amount = Amount { day, model, tokens };
        match &*text_of(&fields, "usage_scope") {
            "turn" => run.turns.push(amount),
            "session" => run.total = Some(amount),
            "response" => {
                let key = match fields.string("response") {
                    Some(id) => {
                        ResponseKey::Id { provider: run.provider.clone(), id: id.to_text().into_owned() }
                    }
                    None => ResponseKey::Number {
                        run: event.run_id,
                        // Without either, each report is a response of its own.
                        number: fields.json("response").map_or_else(
                            || format!("?{}", self.responses.len()),
                            |number| number.to_string(),
                        ),
                    },
                };
                let run_started = run.started.clone();
                let seen = Response {
                    run: event.run_id,
                    run_started,
                    amount,
                    is_final: fields.is_true("final"),
                    is_lower_bound: fields.is_true("lower_bound"),
                };
                match self.responses.entry(key) {
                    Entry::Occupied(mut kept) => kept.get_mut().merge(seen),
                    Entry::Vacant(free) => {
                        free.insert(seen);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds everything up: of each session what tells it most exactly, and nothing twice.
    #[must_use]
    pub fn finish(self) -> BTreeMap<RowKey, Used> {
        let tellings = self.tellings();
        let telling_of = |run: RunId| tellings.get(&self.session_of(run)).copied().unwrap_or_default();
        let mut rows = Rows::default();
        for (key, response) in &self.responses {
            let counts = match (telling_of(response.run), key) {
                (Telling::Ids, ResponseKey::Id { .. }) | (Telling::Numbers, _) => true,
                (Telling::Turns, _) => self.runs.get(&response.run).is_none_or(|run| run.turns.is_empty()),
                (Telling::Ids, ResponseKey::Number { .. }) | (Telling::Total, _) => false,
            };
            if counts {
                let is_lower_bound = !response.is_final || response.is_lower_bound;
                self.add(&mut rows, response.run, &response.amount, is_lower_bound);
            }
        }
        for (id, run) in &self.runs {
            match telling_of(*id) {
                Telling::Turns => run.turns.iter().for_each(|turn| self.add(&mut rows, *id, turn, false)),
                // A total may leave out what subagents used.
                Telling::Total => run.total.iter().for_each(|total| self.add(&mut rows, *id, total, true)),
                Telling::Numbers | Telling::Ids => {}
            }
        }
        rows
    }

    /// Finds how exactly each session is told.
    fn tellings(&self) -> HashMap<RunId, Telling> {
        let mut tellings = HashMap::<RunId, Telling>::new();
        let mut found = |run: RunId, telling: Telling| {
            let best = tellings.entry(self.session_of(run)).or_default();
            *best = telling.max(*best);
        };
        for (key, response) in &self.responses {
            let telling = match key {
                _ if !response.is_final => Telling::Turns,
                ResponseKey::Id { .. } => Telling::Ids,
                ResponseKey::Number { .. } => Telling::Numbers,
            };
            found(response.run, telling);
        }
        let with_turns = self.runs.iter().filter(|(_, run)| !run.turns.is_empty());
        with_turns.for_each(|(id, _)| found(*id, Telling::Turns));
        tellings
    }

    fn add(&self, rows: &mut Rows, run: RunId, amount: &Amount, is_lower_bound: bool) {
        let key = RowKey {
            day: amount.day.clone(),
            provider: self.runs.get(&run).map_or_else(String::new, |run| run.provider.clone()),
            model: amount.model.clone(),
            session: self.session_of(run),
        };
        rows.entry(key).or_default().add(Used { responses: 1, tokens: amount.tokens, is_lower_bound });
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

/// What was used, row by row.
type Rows = BTreeMap<RowKey, Used>;

impl Response {
    fn merge(&mut self, other: Self) {
        self.amount.tokens = self.amount.tokens.max(other.amount.tokens);
        self.is_final |= other.is_final;
        self.is_lower_bound &= other.is_lower_bound;
        if self.amount.model.is_empty() {
            self.amount.model = other.amount.model;
        }
        // Files come in any order; the same run wins whatever it is.
        if (&other.run_started, other.run) < (&self.run_started, self.run) {
            (self.run, self.run_started, self.amount.day) = (other.run, other.run_started, other.amount.day);
        }
    }
}

fn text_of(fields: &PayloadFields<'_>, name: &str) -> String {
    fields.string(name).map_or_else(String::new, |text| text.to_text().into_owned())
}
