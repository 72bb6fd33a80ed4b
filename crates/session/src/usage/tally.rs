//! Sums the reports, each response once: by itself if its counts are final, else by the total of its turn, else as a lower
//! bound; an agent's total only if there is nothing else.

use std::collections::{BTreeMap, HashMap, HashSet};

use steno_model::RunId;

use super::processes::{ProcessSum, beyond};
use super::{
    Amount, Choice, CountedUsage, NameKind, ResponseEntry, ResponseReport, TokenUsage, Tokens, TurnEntry,
    TurnReport, UsageBuilder, UsageRecord, UsedSession, choose,
};

/// How many agents above an agent are looked for.
const PARENTS_MAX: usize = 64;

/// The state of the summation.
pub(super) struct Tally<'a> {
    usage: &'a UsageBuilder,
    /// The runs, and the sessions that they show.
    known: HashSet<RunId>,
    /// The runs that have responses with final counts and the provider's ids.
    runs_with_ids: HashSet<RunId>,
    /// The agents of these runs.
    agents_with_ids: HashSet<RunId>,
    /// The agents that have responses with final counts.
    with_finals: HashSet<RunId>,
    /// The responses that were counted, or that repeat counted ones.
    responses: HashSet<usize>,
    /// The agents with counted usage, and how much.
    counted: HashMap<RunId, Tokens>,
    records: Vec<UsageRecord>,
}

/// One turn in one or more runs.
struct TurnGroup<'a> {
    turns: Vec<&'a TurnEntry>,
    agent: RunId,
    /// Whether an id or the session identifies its turns.
    is_named: bool,
}

/// The identity of a turn across runs.
#[derive(PartialEq, Eq, Hash)]
enum TurnKey<'a> {
    /// The provider's id.
    Id(RunId, &'a str),
    /// The path in a merged session, and the number of turns there before.
    Path(Option<RunId>, &'a str, usize),
    /// Usage of an agent outside of turns.
    Outside(RunId),
}

impl<'a> Tally<'a> {
    pub(super) fn of(usage: &'a UsageBuilder) -> Self {
        let runs = usage.runs.iter();
        let known = runs.flat_map(|(id, run)| [Some(*id), run.session]).flatten().collect();
        let mut tally = Self {
            usage,
            known,
            runs_with_ids: HashSet::new(),
            agents_with_ids: HashSet::new(),
            with_finals: HashSet::new(),
            responses: HashSet::new(),
            counted: HashMap::new(),
            records: Vec::new(),
        };
        for response in usage.responses.iter().filter(|response| response.is_final) {
            let agent = tally.agent_of(response.run);
            tally.with_finals.insert(agent);
            if response.name == NameKind::Id {
                tally.runs_with_ids.extend(response.copies.iter().copied().chain([response.run]));
                tally.agents_with_ids.insert(agent);
            }
        }
        tally
    }

    /// Returns what counts.
    pub(super) fn records(mut self) -> Vec<UsageRecord> {
        let groups = self.groups();
        let choices: Vec<Choice> = groups.iter().map(|group| self.choose(group)).collect();
        let mut totals = HashSet::new();
        for (group, choice) in groups.iter().zip(&choices) {
            if let Choice::Total { place, responses } = choice {
                self.add_total(group, group.turns[*place], *responses, &mut totals);
            }
        }
        for (group, choice) in groups.iter().zip(choices) {
            if let Choice::Responses { keys, .. } = choice {
                self.add_responses(group, &keys);
            }
        }
        self.add_processes();
        self.add_totals();
        self.mark_incomplete();
        self.records
    }

    /// Returns what counts, and what is known of its sessions.
    pub(super) fn count(self) -> CountedUsage {
        let mut sessions = BTreeMap::<RunId, UsedSession>::new();
        let forks = self.forks();
        for (id, run) in &self.usage.runs {
            let session = self.session_of(*id);
            let known = sessions.entry(session).or_default();
            if self.agent_of(*id) != session {
                continue;
            }
            // The channels of a session name the same place; the least is the same in any order.
            known.directory = [known.directory.take(), run.directory.clone()].into_iter().flatten().min();
            known.branch = [known.branch.take(), run.branch.clone()].into_iter().flatten().min();
            // The total of a fork begins with that of the session that it continues.
            for amount in run.total.iter().filter(|_| !forks.contains(&session)) {
                if let Some(cost) = amount.cost {
                    // Totals are cumulative.
                    let largest = known.agent_costs.entry(amount.model.clone()).or_default();
                    *largest = cost.max(*largest);
                }
            }
        }
        let records = self.records();
        let used: HashSet<RunId> = records.iter().map(|record| record.session).collect();
        sessions.retain(|session, _| used.contains(session));
        CountedUsage { records, sessions }
    }

    /// Adds what the sums of an agent's processes have beyond what the agent and those below it are known to have used.
    fn add_processes(&mut self) {
        let mut by_agent = BTreeMap::<RunId, Vec<&ProcessSum>>::new();
        for sum in &self.usage.processes {
            by_agent.entry(self.agent_of(sum.run)).or_default().push(sum);
        }
        let counted = self.counted.clone();
        for (agent, sums) in by_agent {
            let is_its = |other: &RunId| *other == agent || self.ancestors(*other).contains(&agent);
            let known = counted.iter().filter(|(other, _)| is_its(other));
            let known = known.fold(Tokens::default(), |sum, (_, tokens)| sum.plus(*tokens));
            let sums = ProcessSum::each_once(sums.into_iter());
            let rest = beyond(sums.iter().map(|sum| sum.amount.tokens), known);
            let responses = u64::from(!counted.contains_key(&agent));
            for (sum, tokens) in sums.into_iter().zip(rest) {
                if tokens != Tokens::default() {
                    let used = TokenUsage { responses, tokens, is_lower_bound: true };
                    self.add(sum.run, &sum.amount, used);
                }
            }
        }
    }

    /// Returns the agents above an agent, as far as they are known.
    fn ancestors(&self, agent: RunId) -> Vec<RunId> {
        let mut above = Vec::new();
        let mut at = agent;
        while let Some(parent) = self.usage.runs.get(&at).and_then(|run| run.parent) {
            let parent = self.agent_of(parent);
            if above.len() >= PARENTS_MAX || parent == agent || !self.known.contains(&parent) {
                break;
            }
            above.push(parent);
            at = parent;
        }
        above
    }

    /// Groups the turns of runs.
    fn groups(&self) -> Vec<TurnGroup<'a>> {
        // Sorted by the start of the runs, so that the order of reading does not matter.
        let mut turns: Vec<&TurnEntry> = self.usage.turns.iter().collect();
        let started = |turn: &TurnEntry| self.usage.runs.get(&turn.run).map(|run| &run.started);
        turns.sort_by(|turn, other| (started(turn), turn.run).cmp(&(started(other), other.run)));
        let mut groups = Vec::<TurnGroup<'_>>::new();
        let mut by_key = HashMap::new();
        let (named, unnamed): (Vec<&TurnEntry>, Vec<&TurnEntry>) =
            turns.into_iter().partition(|turn| self.key_of(turn).is_some());
        let mut by_response = HashMap::new();
        for turn in named.into_iter().chain(unnamed) {
            let agent = self.agent_of(turn.run);
            let key = self.key_of(turn);
            let is_named = turn.name.is_some() && key.is_some();
            let next = groups.len();
            let shared =
                || turn.responses.iter().find_map(|place| by_response.get(&(agent, *place)).copied());
            let place = match key {
                Some(key) => *by_key.entry(key).or_insert(next),
                None if turn.name.is_some() => shared().unwrap_or(next),
                None => next,
            };
            if place == next {
                groups.push(TurnGroup { turns: Vec::new(), agent, is_named });
            }
            groups[place].turns.push(turn);
            if turn.name.is_some() {
                turn.responses.iter().for_each(|response| {
                    by_response.entry((agent, *response)).or_insert(place);
                });
            }
        }
        groups
    }

    /// Returns the key that identifies a turn across runs.
    fn key_of(&self, turn: &'a TurnEntry) -> Option<TurnKey<'a>> {
        let agent = self.agent_of(turn.run);
        match &turn.name {
            Some(name) if self.usage.is_session => Some(TurnKey::Path(None, &name.path, name.number)),
            Some(name) if self.usage.merged.contains(&agent) => {
                Some(TurnKey::Path(Some(agent), &name.path, name.number))
            }
            Some(name) => name.id.as_deref().map(|id| TurnKey::Id(agent, id)),
            // A total outside of turns is that of a turn without a recorded start.
            None => turn.total.is_none().then_some(TurnKey::Outside(agent)),
        }
    }

    fn choose(&self, group: &TurnGroup<'_>) -> Choice {
        let report = |turn: &&TurnEntry| {
            let responses = turn.responses.iter().map(|place| {
                let response = &self.usage.responses[*place];
                let (name, is_final) = (response.name, response.is_final);
                ResponseReport { key: *place, name, is_final, tokens: response.amount.tokens }
            });
            let total = turn.total.as_ref().map(|total| total.amount.tokens);
            let channel = self.usage.runs.get(&turn.run).map_or("", |run| &run.channel);
            TurnReport { channel, responses: responses.collect(), total }
        };
        choose(&group.turns.iter().map(report).collect::<Vec<_>>())
    }

    /// Adds the agent's total of a turn.
    fn add_total(
        &mut self,
        group: &TurnGroup<'a>,
        turn: &'a TurnEntry,
        responses: usize,
        totals: &mut HashSet<&'a str>,
    ) {
        let Some(total) = &turn.total else { return };
        let is_copy = total.id.as_deref().is_some_and(|id| !totals.insert(id));
        let places = group.turns.iter().flat_map(|turn| &turn.responses);
        let is_told = match places.clone().next() {
            Some(_) => places.clone().all(|place| self.responses.contains(place)),
            None => !group.is_named && self.with_finals.contains(&group.agent),
        };
        let new = places.filter(|place| self.responses.insert(**place)).count();
        if !is_copy && !is_told {
            let responses = responses.min(new.max(1)) as u64;
            let used = TokenUsage { responses, tokens: total.amount.tokens, is_lower_bound: false };
            self.add(turn.run, &total.amount, used);
        }
    }

    /// Adds the chosen responses of a turn.
    fn add_responses(&mut self, group: &TurnGroup<'_>, places: &[usize]) {
        for place in places {
            let response = &self.usage.responses[*place];
            // If another recording of the agent has ids, numbered responses repeat them, unless their turn is known.
            let is_repeat = !group.is_named
                && response.name != NameKind::Id
                && self.agents_with_ids.contains(&group.agent)
                && !self.runs_with_ids.contains(&response.run);
            if self.responses.insert(*place) && !is_repeat {
                self.add(response.run, &response.amount, response.used());
            }
        }
        self.responses.extend(group.turns.iter().flat_map(|turn| &turn.responses));
    }

    /// Adds the agents' totals if there is nothing else. They may leave out subagents.
    fn add_totals(&mut self) {
        let sum = |run: RunId| self.reported_sum(run).total();
        let mut largest = HashMap::<RunId, RunId>::new();
        for id in self.usage.runs.keys() {
            // Totals are cumulative, so those of one agent are not summed.
            let best = largest.entry(self.agent_of(*id)).or_insert(*id);
            if (sum(*id), *id) > (sum(*best), *best) {
                *best = *id;
            }
        }
        for (agent, run) in largest {
            if self.counted.contains_key(&agent) {
                continue;
            }
            for amount in self.usage.runs.get(&run).into_iter().flat_map(|run| &run.total) {
                if amount.tokens != Tokens::default() {
                    let used = TokenUsage { responses: 1, tokens: amount.tokens, is_lower_bound: true };
                    // The cost is reported for the session.
                    self.add(run, &Amount { cost: None, ..amount.clone() }, used);
                }
            }
        }
    }

    fn reported_sum(&self, run: RunId) -> Tokens {
        let total = self.usage.runs.get(&run).into_iter().flat_map(|run| &run.total);
        total.fold(Tokens::default(), |sum, amount| sum.plus(amount.tokens))
    }

    /// Marks sessions whose usage is a lower bound: a part of the records cannot be read, or the agent's total is larger.
    /// Agents make hidden requests, like the summary of a compaction.
    fn mark_incomplete(&mut self) {
        let forks = self.forks();
        let mut counted = HashMap::<RunId, Tokens>::new();
        for record in &self.records {
            let tokens = counted.entry(record.session).or_default();
            *tokens = tokens.plus(record.used.tokens);
        }
        let is_incomplete = |id: RunId| {
            let session = self.session_of(id);
            let tokens = counted.get(&session).copied().unwrap_or_default();
            !forks.contains(&session) && self.reported_sum(id).has_more_than(tokens)
        };
        let runs = self.usage.runs.iter();
        let incomplete: HashSet<RunId> = runs
            .filter(|(id, run)| run.is_incomplete || is_incomplete(**id))
            .map(|(id, _)| self.session_of(*id))
            .collect();
        for record in self.records.iter_mut().filter(|record| incomplete.contains(&record.session)) {
            record.used.is_lower_bound = true;
            record.model.is_lower_bound = true;
        }
    }

    /// Finds the sessions that have copied responses of others; their totals include those of the others.
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

    fn add(&mut self, run: RunId, amount: &Amount, used: TokenUsage) {
        let counted = self.counted.entry(self.agent_of(run)).or_default();
        *counted = counted.plus(used.tokens);
        self.records.push(UsageRecord {
            at_ms: amount.at_ms,
            provider: self.usage.runs.get(&run).map_or_else(String::new, |run| run.provider.clone()),
            session: self.session_of(run),
            used,
            model: amount.model_usage(used),
            agent_cost: amount.cost,
        });
    }

    /// Returns the agent of a run: the run of the agent's own file.
    fn agent_of(&self, run: RunId) -> RunId {
        self.usage.runs.get(&run).and_then(|run| run.session).unwrap_or(run)
    }

    /// Returns the session of a run: its topmost known parent, or the session that this one shows.
    fn session_of(&self, run: RunId) -> RunId {
        let mut at = run;
        for _ in 0..PARENTS_MAX {
            match self.usage.runs.get(&at).and_then(|run| run.parent) {
                Some(parent) if parent != at && self.known.contains(&parent) => at = parent,
                Some(_) | None => break,
            }
        }
        self.agent_of(at)
    }
}

impl ResponseEntry {
    fn used(&self) -> TokenUsage {
        let is_lower_bound = !self.is_final || self.is_lower_bound;
        TokenUsage { responses: 1, tokens: self.amount.tokens, is_lower_bound }
    }
}
