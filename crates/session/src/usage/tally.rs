//! Adds up what was reported, each response once: by itself where its counts are final, else by its turn, else as far as
//! it was counted; an agent's own total where there is nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::RunId;

use super::{Amount, Response, RowKey, RunUse, Tokens, UsageBuilder, Used};

/// What was used, row by row.
type Rows = BTreeMap<RowKey, Used>;

/// The sum in the making.
pub(super) struct Tally<'a> {
    usage: &'a UsageBuilder,
    /// The runs in the order in which they started, so that the same ones win whatever was read first.
    runs: Vec<(RunId, &'a RunUse)>,
    /// The runs that have responses with final counts and the provider's ids.
    runs_with_ids: HashSet<RunId>,
    /// The agents of these runs.
    agents_with_ids: HashSet<RunId>,
    /// The agents that have responses with final counts.
    with_finals: HashSet<RunId>,
    /// The responses whose turn tells what they cost.
    in_turns: HashSet<usize>,
    /// The agents of whom something was counted.
    counted: HashSet<RunId>,
    rows: Rows,
}

impl<'a> Tally<'a> {
    pub(super) fn of(usage: &'a UsageBuilder) -> Self {
        let mut runs: Vec<_> = usage.runs.iter().map(|(id, run)| (*id, run)).collect();
        runs.sort_by(|(id, run), (other_id, other)| (&run.started, id).cmp(&(&other.started, other_id)));
        let mut tally = Self {
            usage,
            runs,
            runs_with_ids: HashSet::new(),
            agents_with_ids: HashSet::new(),
            with_finals: HashSet::new(),
            in_turns: HashSet::new(),
            counted: HashSet::new(),
            rows: Rows::new(),
        };
        for response in usage.responses.iter().filter(|response| response.is_final) {
            let agent = tally.agent_of(response.run);
            tally.with_finals.insert(agent);
            if response.has_id {
                tally.runs_with_ids.extend(response.copies.iter().copied().chain([response.run]));
                tally.agents_with_ids.insert(agent);
            }
        }
        tally
    }

    /// Returns what was used.
    pub(super) fn rows(mut self) -> Rows {
        self.add_turns();
        self.add_responses();
        self.add_totals();
        self.mark_incomplete();
        self.rows
    }

    /// Adds the turns whose responses do not tell themselves what they cost.
    fn add_turns(&mut self) {
        let mut told = HashSet::new();
        for (id, run) in self.runs.clone() {
            for turn in &run.turns {
                let is_copy = turn.id.as_deref().is_some_and(|id| !told.insert(id));
                let known = turn.responses.iter().all(|place| self.in_turns.contains(place));
                let is_told = match &turn.responses[..] {
                    [] => self.with_finals.contains(&self.agent_of(id)),
                    responses => known || responses.iter().all(|place| self.usage.responses[*place].is_final),
                };
                if is_told {
                    continue;
                }
                let responses = turn.responses.iter().filter(|place| self.in_turns.insert(**place)).count();
                if !is_copy {
                    let responses = (responses as u64).max(1);
                    let used = Used { responses, tokens: turn.amount.tokens, is_lower_bound: false };
                    self.add(id, &turn.amount, used);
                }
            }
        }
    }

    /// Adds the responses that no turn has added up.
    fn add_responses(&mut self) {
        for (place, response) in self.usage.responses.iter().enumerate() {
            // Beside ids in another recording of the agent, numbers tell the same again.
            let is_again = !response.has_id
                && self.agents_with_ids.contains(&self.agent_of(response.run))
                && !self.runs_with_ids.contains(&response.run);
            if !is_again && !self.in_turns.contains(&place) {
                self.add(response.run, &response.amount, response.used());
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
            if self.counted.contains(&agent) {
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
        let copied = self.usage.responses.iter().filter(|response| !response.copies.is_empty());
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
        self.counted.insert(self.agent_of(run));
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
