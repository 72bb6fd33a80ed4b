//! Sums of processes. A process is an agent with its subagents and with requests that no record shows, so its sum is
//! more than the responses of the session. What the responses of the session and of the sessions below it do not
//! explain is added to the session.

use std::collections::{BTreeMap, HashSet};

use steno_model::{ExchangeEvent, RunId};

use super::by_model::RequestCount;
use super::{Amount, ModelUsage, RequestLength, TokenUsage, Tokens, add_by_model};
use crate::session::Session;

/// The usage that a process reports.
#[derive(Clone)]
pub(super) struct ProcessSum {
    pub(super) run: RunId,
    /// The time of the report, if recorded: two processes of a session may report the same counts.
    time: Option<String>,
    pub(super) amount: Amount,
}

impl ProcessSum {
    pub(super) fn new(event: &ExchangeEvent, amount: Amount) -> Self {
        let is_inferred = event.extra.get("ts_inferred").is_some_and(|flag| flag.as_str() == "true");
        let time = (!is_inferred).then(|| event.timestamp.to_string());
        Self { run: event.run_id, time, amount }
    }

    /// Returns its tokens by model.
    pub(super) fn model_usage(&self) -> ModelUsage {
        let tokens = self.amount.tokens;
        self.amount.model_usage(TokenUsage { responses: 0, tokens, is_lower_bound: true })
    }

    /// Returns the sums of one agent in a fixed order, without those of copies.
    pub(super) fn each_once<'a>(sums: impl Iterator<Item = &'a Self>) -> Vec<&'a Self> {
        let mut seen = HashSet::new();
        let key = |sum: &Self| {
            let Tokens { input, output, cache_read, cache_write, cache_write_1h, reasoning } =
                sum.amount.tokens;
            (sum.time.clone(), [input, output, cache_read, cache_write, cache_write_1h, reasoning])
        };
        let mut sums: Vec<&Self> = sums.collect();
        sums.sort_by_key(|sum| (key(sum), sum.amount.at_ms, sum.amount.model.clone(), sum.run));
        sums.retain(|sum| seen.insert(key(sum)));
        sums
    }
}

/// Returns what each of these sums has beyond what is known.
pub(super) fn beyond(sums: impl Iterator<Item = Tokens>, mut known: Tokens) -> Vec<Tokens> {
    let rest = |sum: Tokens| {
        let rest = sum.beyond(known);
        known = known.minus(sum);
        rest
    };
    sums.map(rest).collect()
}

/// Where the usage of a session comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageParts {
    /// What its responses and turns used; `None` if no record says it.
    pub by_responses: Option<TokenUsage>,
    /// The same by model.
    pub responses_by_model: Vec<ModelUsage>,
    /// The sums of its processes, which include subagents, each once.
    pub process_sums: Vec<ModelUsage>,
}

impl UsageParts {
    /// Returns the usage of the responses, and what the sums of processes have beyond it and beyond what is known of the
    /// sessions below: together, and by model.
    pub(crate) fn sum(&self, below: Tokens) -> (Option<TokenUsage>, Vec<ModelUsage>) {
        let own = self.by_responses;
        let mut by_model = self.responses_by_model.clone();
        let known = own.unwrap_or_default().tokens.plus(below);
        let rest = beyond(self.process_sums.iter().map(|sum| sum.tokens), known);
        let responses = u64::from(own.is_none());
        let mut used = own;
        for (sum, tokens) in self.process_sums.iter().zip(rest) {
            if tokens != Tokens::default() {
                let rest = TokenUsage { responses, tokens, is_lower_bound: true };
                used.get_or_insert_default().add(rest);
                let length = RequestLength::of(tokens, RequestCount::Several);
                add_by_model(
                    &mut by_model,
                    ModelUsage { length, tokens, is_lower_bound: true, ..sum.clone() },
                );
            }
        }
        (used.or_else(|| (!self.process_sums.is_empty()).then(TokenUsage::default)), by_model)
    }
}

/// Sets the usage of sessions whose processes reported sums: what the responses of a session and of the sessions below
/// it do not explain is added to the session.
pub fn count_processes_once(sessions: &mut BTreeMap<RunId, Session>, parents: &BTreeMap<RunId, RunId>) {
    let mut below = BTreeMap::<RunId, Tokens>::new();
    for (id, session) in &*sessions {
        let tokens = session.usage_parts.by_responses.unwrap_or_default().tokens;
        let mut at = *id;
        while let Some(parent) = parents.get(&at) {
            let sum = below.entry(*parent).or_default();
            *sum = sum.plus(tokens);
            at = *parent;
        }
    }
    let has_sums = |session: &Session| !session.usage_parts.process_sums.is_empty();
    for (id, session) in sessions.iter_mut().filter(|(_, session)| has_sums(session)) {
        let below = below.get(id).copied().unwrap_or_default();
        (session.used, session.used_by_model) = session.usage_parts.sum(below);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(output: u64) -> TokenUsage {
        TokenUsage { responses: 2, tokens: of(0, output, 0), is_lower_bound: false }
    }

    fn of(input: u64, output: u64, cache_read: u64) -> Tokens {
        Tokens { input, output, cache_read, ..Tokens::default() }
    }

    #[test]
    fn sums_add_what_responses_do_not_have() {
        let check = |own: Option<u64>, sums: &[u64], below: u64, want: Option<(u64, u64, bool)>| {
            let sum = |output: &u64| ModelUsage { tokens: of(0, *output, 0), ..ModelUsage::default() };
            let responses = own.map(|output| sum(&output));
            let parts = UsageParts {
                by_responses: own.map(used),
                responses_by_model: responses.into_iter().collect(),
                process_sums: sums.iter().map(sum).collect(),
            };
            let (found, by_model) = parts.sum(of(0, below, 0));
            let tokens = by_model.iter().fold(Tokens::default(), |sum, one| sum.plus(one.tokens));
            assert_eq!(found.unwrap_or_default().tokens, tokens);
            let found = found.map(|used| (used.responses, used.tokens.output, used.is_lower_bound));
            assert_eq!(found, want);
        };
        check(None, &[], 0, None);
        check(Some(5), &[], 0, Some((2, 5, false)));
        check(None, &[12], 0, Some((1, 12, true)));
        check(Some(5), &[12], 0, Some((2, 12, true)));
        check(Some(5), &[12], 7, Some((2, 5, false)));
        check(None, &[12], 7, Some((1, 5, true)));
        check(None, &[12], 12, Some((0, 0, false)));
        check(Some(5), &[2, 4], 0, Some((2, 6, true)));
        check(Some(5), &[8, 4], 3, Some((2, 9, true)));
    }

    #[test]
    fn input_that_a_sum_does_not_divide_counts_once() {
        // The sum counts cached tokens as input.
        let (sum, known) = (of(4_000, 200, 0), of(500, 150, 3_500));
        assert_eq!(sum.beyond(known), of(0, 50, 0));
        assert_eq!(known.beyond(sum), Tokens::default());
        assert_eq!(of(10, 20, 30).beyond(of(4, 5, 6)), of(6, 15, 24));
    }
}
