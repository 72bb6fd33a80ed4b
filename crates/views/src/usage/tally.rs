//! Adds up what was reported: of each agent what tells it most exactly, of each session whether that is all.

use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::RunId;

use super::{Amount, Response, ResponseKey, RowKey, Tokens, UsageBuilder, Used};

/// What was used, row by row.
type Rows = BTreeMap<RowKey, Used>;

/// How exactly an agent's usage is told, on all of its channels together: the last is the best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Telling {
    /// By a total alone.
    #[default]
    Total,
    /// By responses whose counts are not final.
    Beginnings,
    /// By turns.
    Turns,
    /// By responses that have no id of the provider's.
    Numbers,
    /// By responses, each with the provider's id.
    Ids,
}

/// The sum in the making.
pub(super) struct Tally<'a> {
    usage: &'a UsageBuilder,
    tellings: HashMap<RunId, Telling>,
    rows: Rows,
}

impl<'a> Tally<'a> {
    pub(super) fn of(usage: &'a UsageBuilder) -> Self {
        let mut tally = Self { usage, tellings: HashMap::new(), rows: Rows::new() };
        for (key, response) in &usage.responses {
            let telling = match key {
                _ if !response.is_final => Telling::Beginnings,
                ResponseKey::Id { .. } => Telling::Ids,
                ResponseKey::Total { .. } | ResponseKey::Number { .. } => Telling::Numbers,
            };
            tally.tell(response.run, telling);
        }
        for (id, run) in &usage.runs {
            if !run.turns.is_empty() {
                tally.tell(*id, Telling::Turns);
            }
        }
        tally
    }

    fn tell(&mut self, run: RunId, telling: Telling) {
        let best = self.tellings.entry(self.agent_of(run)).or_default();
        *best = telling.max(*best);
    }

    /// Returns what was used.
    pub(super) fn rows(mut self) -> Rows {
        self.add_responses();
        self.add_turns();
        self.add_totals();
        self.mark_incomplete();
        self.rows
    }

    fn telling_of(&self, run: RunId) -> Telling {
        self.tellings.get(&self.agent_of(run)).copied().unwrap_or_default()
    }

    fn add_responses(&mut self) {
        for (key, response) in &self.usage.responses {
            let is_id = matches!(key, ResponseKey::Id { .. });
            let used = match self.telling_of(response.run) {
                Telling::Ids if is_id => response.used(),
                Telling::Numbers if !is_id => response.used(),
                Telling::Beginnings => response.used(),
                // The turns tell what they cost, and these how many there were.
                Telling::Turns => Used { responses: 1, ..Used::default() },
                Telling::Ids | Telling::Numbers | Telling::Total => continue,
            };
            self.add(response.run, &response.amount, used);
        }
    }

    fn add_turns(&mut self) {
        let responding: HashSet<RunId> =
            self.usage.responses.values().map(|response| self.agent_of(response.run)).collect();
        let mut told = HashSet::new();
        for (id, run) in &self.usage.runs {
            if self.telling_of(*id) != Telling::Turns {
                continue;
            }
            let responses = u64::from(!responding.contains(&self.agent_of(*id)));
            for turn in &run.turns {
                // A copied recording has the same turns.
                if turn.id.as_deref().is_none_or(|id| told.insert(id)) {
                    let used = Used { responses, tokens: turn.amount.tokens, is_lower_bound: false };
                    self.add(*id, &turn.amount, used);
                }
            }
        }
    }

    /// Adds what agents have added up themselves, where that is all. It may leave out what subagents used.
    fn add_totals(&mut self) {
        let sum = |run: RunId| self.told_in_all(run).total();
        let mut largest = HashMap::<RunId, RunId>::new();
        for id in self.usage.runs.keys() {
            // A total goes on where the one before stood, so those of one agent are not summed.
            let best = largest.entry(self.agent_of(*id)).or_insert(*id);
            if (sum(*id), *id) > (sum(*best), *best) {
                *best = *id;
            }
        }
        for (agent, run) in largest {
            if self.tellings.contains_key(&agent) {
                continue;
            }
            for amount in self.usage.runs.get(&run).into_iter().flat_map(|run| &run.total) {
                if amount.tokens != Tokens::default() {
                    let used = Used { responses: 1, tokens: amount.tokens, is_lower_bound: true };
                    self.add(run, amount, used);
                }
            }
        }
    }

    fn told_in_all(&self, run: RunId) -> Tokens {
        let total = self.usage.runs.get(&run).into_iter().flat_map(|run| &run.total);
        total.fold(Tokens::default(), |sum, amount| sum.plus(amount.tokens))
    }

    /// Marks the sessions that used more than there is on record: a part of it cannot be read, or the agent itself has
    /// counted more. It also asks the model for what it shows nobody, like the summary of a compaction.
    fn mark_incomplete(&mut self) {
        let forks = self.forks();
        let mut counted = HashMap::<RunId, Tokens>::new();
        for (key, used) in &self.rows {
            let tokens = counted.entry(key.session).or_default();
            *tokens = tokens.plus(used.tokens);
        }
        let is_incomplete = |id: RunId| {
            let session = self.session_of(id);
            let found = counted.get(&session).copied().unwrap_or_default();
            !forks.contains(&session) && found.max(self.told_in_all(id)) != found
        };
        let runs = self.usage.runs.iter();
        let incomplete: HashSet<RunId> = runs
            .filter(|(id, run)| run.is_incomplete || is_incomplete(**id))
            .map(|(id, _)| self.session_of(*id))
            .collect();
        let rows = self.rows.iter_mut().filter(|(key, _)| incomplete.contains(&key.session));
        rows.for_each(|(_, used)| used.is_lower_bound = true);
    }

    /// Finds the sessions that have copied responses of others; their totals go on from those of the others.
    fn forks(&self) -> HashSet<RunId> {
        let copied = self.usage.responses.values().filter(|response| !response.copies.is_empty());
        copied
            .flat_map(|response| {
                let own = self.session_of(response.run);
                let others = response.copies.iter().map(|run| self.session_of(*run));
                others.filter(move |session| *session != own)
            })
            .collect()
    }

    fn add(&mut self, run: RunId, amount: &Amount, used: Used) {
        let key = RowKey {
            day: amount.day.clone(),
            provider: self.usage.runs.get(&run).map_or_else(String::new, |run| run.provider.clone()),
            model: amount.model.clone(),
            session: self.session_of(run),
        };
        self.rows.entry(key).or_default().add(used);
    }

    /// Returns the agent that a run shows: the run of its own file, wherever this one was recorded.
    fn agent_of(&self, run: RunId) -> RunId {
        self.usage.runs.get(&run).and_then(|run| run.session).unwrap_or(run)
    }

    /// Returns the session that a run belongs to: its topmost parent, or what that was recorded from outside of.
    fn session_of(&self, run: RunId) -> RunId {
        const PARENTS_MAX: usize = 64;
        let mut at = run;
        for _ in 0..PARENTS_MAX {
            match self.usage.runs.get(&at).and_then(|run| run.parent) {
                Some(parent) if parent != at => at = parent,
                Some(_) | None => break,
            }
        }
        self.agent_of(at)
    }
}

impl Response {
    fn used(&self) -> Used {
        let is_lower_bound = !self.is_final || self.is_lower_bound;
        Used { responses: 1, tokens: self.amount.tokens, is_lower_bound }
    }
}
