//! The token usage of sessions: exact if the records are complete, else a lower bound.
//!
//! A response may be in several records, files and channels. It counts once, with its largest counts.

mod by_model;
mod choice;
mod counted;
mod dollars;
mod family;
mod processes;
mod session;
mod tally;
#[cfg(test)]
mod tests;
mod tokens;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::{EventType, ExchangeEvent, RunId, Timestamp, Word};

pub(crate) use choice::{Choice, NameKind, ResponseReport, TurnReport, choose};
pub(crate) use session::SessionUsage;

pub use by_model::{ModelUsage, RequestLength, add_by_model};
pub use counted::{CountedUsage, RowKey, TokenUsage, UsageRecord, UsedSession};
pub use dollars::Dollars;
pub use family::{UsageParts, UsedBelow, count_families_once, used_below};
pub use tokens::{Counts, Tokens};

use self::by_model::RequestCount;
use self::processes::ProcessSum;
use self::tally::Tally;
use crate::fields::{PayloadFields, run_id_in, session_run_id};
use crate::merge::{RunEvents, each_with_usage};
use crate::path_tree::PathTree;

/// The name of the step for a record that could not be read.
const UNREADABLE: &[u8] = b"\"unreadable\"";

/// Sums the usage in the events of any runs, in any order of runs.
#[derive(Default)]
pub struct UsageBuilder {
    runs: HashMap<RunId, RunEntry>,
    responses: Vec<ResponseEntry>,
    /// The index of each response.
    places: HashMap<ResponseKey, usize>,
    /// The turns of each run.
    turns: Vec<TurnEntry>,
    /// The sums of processes.
    processes: Vec<ProcessSum>,
    /// Whether the runs belong to one session, with the same paths for the same turns.
    is_session: bool,
    /// The sessions whose runs were taken with the same paths for the same turns.
    merged: HashSet<RunId>,
}

/// The identity of a response.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ResponseKey {
    /// The provider's id.
    Id { provider: String, id: String },
    /// The agent's total after the response, which is equal in copies and on other channels.
    Total { agent: RunId, tokens: String },
    /// A number that is valid in its run.
    Number { run: RunId, number: String },
}

/// The usage of a run.
#[derive(Default)]
struct RunEntry {
    provider: String,
    channel: String,
    parent: Option<RunId>,
    session: Option<RunId>,
    directory: Option<String>,
    branch: Option<String>,
    started: String,
    /// The model that spoke last.
    model: String,
    /// The turns by their paths.
    turns: PathTree<usize>,
    /// How many turns have begun at a path.
    begun: HashMap<String, usize>,
    /// The entry for usage outside of turns.
    outside: Option<usize>,
    /// The agent's last total of the session, by model.
    total: Vec<Amount>,
    /// Whether a part of its source cannot be read.
    is_incomplete: bool,
}

/// The usage of a turn in one run, or of what is outside of turns.
struct TurnEntry {
    run: RunId,
    /// Its start, if recorded.
    name: Option<TurnName>,
    /// The agent's total of it.
    total: Option<TurnTotal>,
    responses: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct TurnName {
    /// The provider's id of it.
    id: Option<String>,
    path: String,
    /// How many turns began at the path before.
    number: usize,
}

struct TurnTotal {
    /// The provider's own id of the report, if it has one.
    id: Option<String>,
    amount: Amount,
}

struct ResponseEntry {
    name: NameKind,
    /// The run that it counts for.
    run: RunId,
    /// When that run started; a copy counts in the run that started first.
    run_started: String,
    /// The other runs that have it.
    copies: Vec<RunId>,
    amount: Amount,
    is_final: bool,
    /// Whether its counts are a lower bound.
    is_lower_bound: bool,
}

#[derive(Clone)]
struct Amount {
    at_ms: Option<i64>,
    model: String,
    tokens: Tokens,
    count: RequestCount,
    /// What it costs according to the agent.
    cost: Option<Dollars>,
}

impl UsageBuilder {
    /// Creates an empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder for the runs of one session, whose events have session paths.
    pub(crate) fn of_session() -> Self {
        Self { is_session: true, ..Self::default() }
    }

    /// Tells whether events of this type may have usage, or identify its turn.
    #[must_use]
    pub fn wants(event_type: EventType) -> bool {
        matches!(event_type, EventType::RunStarted | EventType::StepStarted | EventType::MessageAssistant)
    }

    /// Tells whether events of this type may have usage, or show that some is lost.
    pub(crate) fn may_tell(event_type: EventType) -> bool {
        Self::wants(event_type) || event_type == EventType::StepCompleted
    }

    /// Tells whether a line of a transcript may have usage, or show that some is lost.
    #[must_use]
    pub fn wants_line(event_type: EventType, line: &[u8]) -> bool {
        let is_unreadable = || line.windows(UNREADABLE.len()).any(|bytes| bytes == UNREADABLE);
        Self::wants(event_type) || event_type == EventType::StepCompleted && is_unreadable()
    }

    /// Takes an event.
    pub fn push(&mut self, event: &ExchangeEvent) {
        if event.event_type.known().is_some_and(Self::may_tell) {
            self.push_read(event, &PayloadFields::of(event));
        }
    }

    /// Takes the events of all runs of a session together. Needed for runs that have no id of a turn or a response in
    /// common, and whose first events name the session: only the merged session knows which of their turns are the same.
    pub fn push_session(&mut self, session: RunId, runs: Vec<RunEvents>) {
        self.merged.insert(session);
        each_with_usage(runs, |event| self.push(event));
    }

    /// Takes an event whose payload was read.
    pub(crate) fn push_read(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        match event.event_type {
            Word::Known(EventType::RunStarted) => self.begin(event, fields),
            Word::Known(EventType::StepStarted) => self.begin_turn(event, fields),
            Word::Known(EventType::MessageAssistant) => self.report(event, fields),
            Word::Known(EventType::StepCompleted) => self.lose(event, fields),
            Word::Known(_) | Word::Unknown(_) => {}
        }
    }

    /// Marks a run whose source could not be read completely, so that its usage is a lower bound.
    pub fn mark_incomplete(&mut self, run: RunId) {
        self.runs.entry(run).or_default().is_incomplete = true;
    }

    /// Marks the run of a record that its adapter could not read.
    fn lose(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        if fields.text("kind").as_deref() == Some("unknown")
            && fields.text("name").as_deref() == Some("unreadable")
        {
            self.mark_incomplete(event.run_id);
        }
    }

    fn begin(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let run = self.runs.entry(event.run_id).or_default();
        run.parent = event.parent_run_id;
        run.started = event.timestamp.to_string();
        run.provider = text_of(fields, "name");
        run.channel = text_of(&fields.object("source"), "channel");
        run.session = session_run_id(event);
        let word = |text: String| (!text.is_empty()).then_some(text);
        run.directory = run.directory.take().or_else(|| word(text_of(fields, "cwd")));
        run.branch = run.branch.take().or_else(|| word(text_of(&fields.object("git"), "branch")));
    }

    fn begin_turn(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        if fields.text("kind").as_deref() != Some("turn") {
            return;
        }
        let run = self.runs.entry(event.run_id).or_default();
        let path = event.path.to_text().into_owned();
        let begun = run.begun.entry(path.clone()).or_default();
        *begun += 1;
        run.turns.insert(&path, self.turns.len());
        let name = TurnName { id: fields.text("turn_id").map(Cow::into_owned), path, number: *begun };
        self.turns.push(TurnEntry {
            run: event.run_id,
            name: Some(name),
            total: None,
            responses: Vec::new(),
        });
    }

    /// Returns the turn of an event, or the entry outside of turns.
    fn turn_of(&mut self, event: &ExchangeEvent) -> &mut TurnEntry {
        let run = self.runs.entry(event.run_id).or_default();
        let turn = run.turns.around(&event.path.to_text()).map(|(turn, _)| *turn);
        let place = turn.unwrap_or_else(|| *run.outside.get_or_insert(self.turns.len()));
        if place == self.turns.len() {
            let run = event.run_id;
            self.turns.push(TurnEntry { run, name: None, total: None, responses: Vec::new() });
        }
        &mut self.turns[place]
    }

    fn report(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let run = self.runs.entry(event.run_id).or_default();
        let model = fields.text("model").filter(|model| !model.is_empty());
        if let Some(model) = model.filter(|model| *model != run.model) {
            run.model = model.into_owned();
        }
        let Some(usage) = fields.json_text("usage") else { return };
        let Some(mut counts) = Counts::read(usage) else { return };
        let by_model = Tokens::read_by_model(usage);
        if !by_model.is_empty() {
            counts.tokens = by_model.into_iter().fold(Tokens::default(), |sum, (_, of)| sum.plus(of));
        }
        match fields.text("usage_scope").as_deref() {
            // A turn of a local command does not call the model.
            Some("turn" | "process") if counts.tokens == Tokens::default() => {}
            Some("turn") => {
                let id = fields.text("id").map(Cow::into_owned);
                let amount = Amount::of_several(event, run, counts.tokens);
                let turn = self.turn_of(event);
                turn.total = Some(TurnTotal { id, amount });
                if turn.name.is_none() {
                    // The total covers what came before outside of turns.
                    self.runs.entry(event.run_id).or_default().outside = None;
                }
            }
            Some("process") => {
                let amount = Amount::of_several(event, run, counts.tokens);
                self.processes.push(ProcessSum::new(event, amount));
            }
            Some("session") => run.total = Amount::of_several(event, run, counts.tokens).by_model(usage),
            Some("response") | None => self.respond(event, fields, counts),
            Some(_) => {}
        }
    }

    fn respond(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>, counts: Counts) {
        let run = self.runs.entry(event.run_id).or_default();
        let key = ResponseKey::of(event, fields, run, self.responses.len());
        let name = key.kind();
        let place = *self.places.entry(key).or_insert(self.responses.len());
        let turn = self.turn_of(event);
        if turn.responses.last() != Some(&place) {
            turn.responses.push(place);
        }
        let run = self.runs.entry(event.run_id).or_default();
        let is_final = fields.is_true("final");
        let is_lower_bound = fields.is_true("lower_bound") || !counts.is_whole;
        let cost = fields.json_text("cost_usd").and_then(Dollars::parse);
        let new = |run: &RunEntry| ResponseEntry {
            name,
            run: event.run_id,
            run_started: run.started.clone(),
            copies: Vec::new(),
            amount: Amount { cost, ..Amount::of(event, run, counts.tokens) },
            is_final,
            is_lower_bound,
        };
        match self.responses.get_mut(place) {
            // Most responses have several records in a row.
            Some(known) if known.run == event.run_id => {
                known.refine(counts.tokens, is_final, is_lower_bound);
                known.amount.cost = known.amount.cost.max(cost);
                if known.amount.model.is_empty() {
                    known.amount.model.clone_from(&run.model);
                }
            }
            Some(known) => known.merge(new(run)),
            None => self.responses.push(new(run)),
        }
    }

    /// Returns everything that counts: the most exact reports of each agent, and nothing twice.
    #[must_use]
    pub fn records(self) -> Vec<UsageRecord> {
        Tally::of(&self).records()
    }

    /// Returns everything that counts, and what is known of its sessions.
    #[must_use]
    pub fn count(self) -> CountedUsage {
        Tally::of(&self).count()
    }

    /// Sums everything that counts.
    #[must_use]
    pub fn finish(self) -> BTreeMap<RowKey, TokenUsage> {
        let mut rows = BTreeMap::<RowKey, TokenUsage>::new();
        for record in self.records() {
            let day = record.at_ms.and_then(Timestamp::from_unix_ms).map(|time| time.to_string());
            let key = RowKey {
                day: day.map_or_else(String::new, |day| day.chars().take(10).collect()),
                provider: record.provider,
                model: record.model.model,
                session: record.session,
            };
            rows.entry(key).or_default().add(record.used);
        }
        rows
    }
}

impl ResponseKey {
    /// Returns the key of a report; `unnamed` makes a report without a name unique.
    fn of(event: &ExchangeEvent, fields: &PayloadFields<'_>, run: &RunEntry, unnamed: usize) -> Self {
        if let Some(id) = fields.text("response") {
            return Self::Id { provider: run.provider.clone(), id: id.into_owned() };
        }
        if let Some(tokens) = fields.json_text("thread_tokens") {
            let copied_from = run_id_in(event, "copied_from");
            let agent = copied_from.or(run.session).unwrap_or(event.run_id);
            return Self::Total { agent, tokens: tokens.to_owned() };
        }
        let number = fields.json_text("response").map(str::to_owned);
        Self::Number { run: event.run_id, number: number.unwrap_or_else(|| format!("?{unnamed}")) }
    }
}

impl ResponseKey {
    fn kind(&self) -> NameKind {
        match self {
            Self::Id { .. } => NameKind::Id,
            Self::Total { .. } => NameKind::Total,
            Self::Number { .. } => NameKind::Number,
        }
    }
}

impl Amount {
    /// Makes the amount of a response, for the last model of the run.
    fn of(event: &ExchangeEvent, run: &RunEntry, tokens: Tokens) -> Self {
        let at_ms = event.timestamp.unix_ms();
        Self { at_ms, model: run.model.clone(), tokens, count: RequestCount::One, cost: None }
    }

    /// Makes the amount of several responses.
    fn of_several(event: &ExchangeEvent, run: &RunEntry, tokens: Tokens) -> Self {
        Self { count: RequestCount::Several, ..Self::of(event, run, tokens) }
    }

    /// Returns what of it counts, by the length of its requests.
    fn model_usage(&self, used: TokenUsage) -> ModelUsage {
        ModelUsage {
            model: self.model.clone(),
            length: RequestLength::of(used.tokens, self.count),
            tokens: used.tokens,
            is_lower_bound: used.is_lower_bound,
        }
    }

    /// Splits a total by model, if it has models.
    fn by_model(self, usage: &str) -> Vec<Self> {
        let models = Tokens::read_by_model(usage);
        if models.is_empty() {
            return vec![self];
        }
        let costs = Dollars::by_model(usage);
        let of = |(model, tokens)| {
            let cost = costs.iter().find(|(name, _)| *name == model).map(|(_, cost)| *cost);
            Self { model, tokens, cost, ..self.clone() }
        };
        models.into_iter().map(of).collect()
    }
}

impl ResponseEntry {
    /// Adds another record of the same run.
    fn refine(&mut self, tokens: Tokens, is_final: bool, is_lower_bound: bool) {
        self.amount.tokens = self.amount.tokens.max(tokens);
        self.is_final |= is_final;
        self.is_lower_bound &= is_lower_bound;
    }

    fn merge(&mut self, other: Self) {
        self.refine(other.amount.tokens, other.is_final, other.is_lower_bound);
        self.amount.cost = self.amount.cost.max(other.amount.cost);
        if self.amount.model.is_empty() {
            self.amount.model = other.amount.model;
        }
        // The same run wins in any order of files.
        let mut copy = other.run;
        if (&other.run_started, other.run) < (&self.run_started, self.run) {
            copy = std::mem::replace(&mut self.run, other.run);
            (self.run_started, self.amount.at_ms) = (other.run_started, other.amount.at_ms);
        }
        if !self.copies.contains(&copy) {
            self.copies.push(copy);
        }
    }
}

fn text_of(fields: &PayloadFields<'_>, name: &str) -> String {
    fields.string(name).map_or_else(String::new, |text| text.to_text().into_owned())
}
