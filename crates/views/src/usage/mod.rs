//! What sessions cost in tokens: exact where the record is, a lower bound where it says less.
//!
//! One response may stand in several records, files and channels; it is counted once, with the largest of its counts.

#[cfg(test)]
mod tests;
mod tokens;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::json::RawJson;
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
    turns: Vec<Turn>,
    /// What the agent has added up for the session, model by model, as it stood last.
    total: Vec<Amount>,
}

struct Turn {
    /// The provider's own id of the report, if it has one.
    id: Option<String>,
    amount: Amount,
}

struct Response {
    /// The run that it counts for.
    run: RunId,
    /// When that run started; a copy counts in the run that started first.
    run_started: String,
    /// The other runs that have it.
    copies: Vec<RunId>,
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
        let Some(usage) = fields.json("usage") else { return };
        let Some(tokens) = Tokens::read(&usage) else { return };
        let day: String = event.timestamp.to_string().chars().take(10).collect();
        let model = if model.is_empty() { run.model.clone() } else { model };
        let amount = Amount { day, model, tokens };
        match &*text_of(&fields, "usage_scope") {
            "turn" => {
                let id = fields.string("id").map(|id| id.to_text().into_owned());
                run.turns.push(Turn { id, amount });
            }
            "session" => run.total = amount.by_model(&usage),
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
                    copies: Vec::new(),
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
        let mut turns = HashSet::new();
        for (id, run) in &self.runs {
            match telling_of(*id) {
                Telling::Turns => {
                    // A copied recording has the same turns.
                    for turn in &run.turns {
                        if turn.id.as_deref().is_none_or(|id| turns.insert(id)) {
                            self.add(&mut rows, *id, &turn.amount, false);
                        }
                    }
                }
                // A total may leave out what subagents used.
                Telling::Total => run.total.iter().for_each(|total| self.add(&mut rows, *id, total, true)),
                Telling::Numbers | Telling::Ids => {}
            }
        }
        self.mark_incomplete(&mut rows);
        rows
    }

    /// Marks the sessions of which the agent itself has counted more than there is on record: it also asks the model for
    /// what it shows nobody, like the summary of a compaction.
    fn mark_incomplete(&self, rows: &mut Rows) {
        // A fork goes on from the total of what it was forked from.
        let is_copied = |response: &&Response| !response.copies.is_empty();
        let copied = self.responses.values().filter(is_copied);
        let forks: HashSet<RunId> = copied
            .flat_map(|response| {
                let own = self.session_of(response.run);
                let others = response.copies.iter().map(|run| self.session_of(*run));
                others.filter(move |session| *session != own)
            })
            .collect();
        let mut counted = HashMap::<RunId, Tokens>::new();
        for (key, used) in &*rows {
            let tokens = counted.entry(key.session).or_default();
            *tokens = tokens.plus(used.tokens);
        }
        let mut incomplete = HashSet::new();
        for (id, run) in &self.runs {
            let session = self.session_of(*id);
            let told = run.total.iter().fold(Tokens::default(), |sum, amount| sum.plus(amount.tokens));
            let found = counted.get(&session).copied().unwrap_or_default();
            if !forks.contains(&session) && found.max(told) != found {
                incomplete.insert(session);
            }
        }
        let incomplete = rows.iter_mut().filter(|(key, _)| incomplete.contains(&key.session));
        incomplete.for_each(|(_, used)| used.is_lower_bound = true);
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

impl Amount {
    /// Takes a total apart by its models, where it has them.
    fn by_model(self, usage: &RawJson) -> Vec<Self> {
        let models = Tokens::read_by_model(usage);
        if models.is_empty() {
            return vec![self];
        }
        let of = |(model, tokens)| Self { day: self.day.clone(), model, tokens };
        models.into_iter().map(of).collect()
    }
}

impl Response {
    fn merge(&mut self, other: Self) {
        self.amount.tokens = self.amount.tokens.max(other.amount.tokens);
        self.is_final |= other.is_final;
        self.is_lower_bound &= other.is_lower_bound;
        if self.amount.model.is_empty() {
            self.amount.model = other.amount.model;
        }
        if other.run == self.run {
            return;
        }
        // Files come in any order; the same run wins whatever it is.
        let mut copy = other.run;
        if (&other.run_started, other.run) < (&self.run_started, self.run) {
            copy = std::mem::replace(&mut self.run, other.run);
            (self.run_started, self.amount.day) = (other.run_started, other.amount.day);
        }
        if !self.copies.contains(&copy) {
            self.copies.push(copy);
        }
    }
}

fn text_of(fields: &PayloadFields<'_>, name: &str) -> String {
    fields.string(name).map_or_else(String::new, |text| text.to_text().into_owned())
}
