//! Sums of processes. A process is an agent with its subagents, and with requests that it shows nobody, so its sum is more
//! than the responses of the session. What the responses of the session and of the sessions below it do not explain is
//! added to the session.

use std::collections::{BTreeMap, HashSet};

use steno_model::{ExchangeEvent, RunId};

use super::{Amount, TokenUsage, Tokens};
use crate::session::Session;

/// What a process says that it used.
#[derive(Clone)]
pub(super) struct ProcessSum {
    pub(super) run: RunId,
    /// When it said so, if recorded: two processes of a session may use the same.
    time: Option<String>,
    pub(super) amount: Amount,
}

impl ProcessSum {
    pub(super) fn new(event: &ExchangeEvent, amount: Amount) -> Self {
        let is_inferred = event.extra.get("ts_inferred").is_some_and(|flag| flag.as_str() == "true");
        let time = (!is_inferred).then(|| event.timestamp.to_string());
        Self { run: event.run_id, time, amount }
    }

    /// Returns the sums of one agent in a fixed order, without those of copies.
    pub(super) fn each_once<'a>(sums: impl Iterator<Item = &'a Self>) -> Vec<&'a Self> {
        let mut seen = HashSet::new();
        let key = |sum: &Self| {
            let Tokens { input, output, cache_read, cache_write, reasoning } = sum.amount.tokens;
            (sum.time.clone(), [input, output, cache_read, cache_write, reasoning])
        };
        let mut sums: Vec<&Self> = sums.collect();
        sums.sort_by_key(|sum| (key(sum), sum.amount.day.clone(), sum.amount.model.clone(), sum.run));
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

/// Adds to the usage of responses what the sums of processes have beyond it.
pub(crate) fn with_processes(own: Option<TokenUsage>, sums: &[Tokens], below: Tokens) -> Option<TokenUsage> {
    let known = own.unwrap_or_default().tokens.plus(below);
    let rest = beyond(sums.iter().copied(), known).into_iter().filter(|rest| *rest != Tokens::default());
    let responses = u64::from(own.is_none());
    let rest = rest.map(|tokens| TokenUsage { responses, tokens, is_lower_bound: true });
    let rest = rest.reduce(|mut sum, rest| {
        sum.add(rest);
        sum
    });
    match (own, rest) {
        (Some(mut own), Some(rest)) => {
            own.add(rest);
            Some(own)
        }
        (own, rest) => own.or(rest).or_else(|| (!sums.is_empty()).then(TokenUsage::default)),
    }
}

/// Sets the usage of sessions of a family whose processes gave sums: what the sessions below them used counts there.
pub fn count_processes_once(sessions: &mut BTreeMap<RunId, Session>, parents: &BTreeMap<RunId, RunId>) {
    let mut below = BTreeMap::<RunId, Tokens>::new();
    for (id, session) in &*sessions {
        let tokens = session.used_by_responses.unwrap_or_default().tokens;
        let mut at = *id;
        while let Some(parent) = parents.get(&at) {
            let sum = below.entry(*parent).or_default();
            *sum = sum.plus(tokens);
            at = *parent;
        }
    }
    for (id, session) in sessions.iter_mut().filter(|(_, session)| !session.process_sums.is_empty()) {
        let below = below.get(id).copied().unwrap_or_default();
        session.used = with_processes(session.used_by_responses, &session.process_sums, below);
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
            let sums: Vec<Tokens> = sums.iter().map(|output| of(0, *output, 0)).collect();
            let found = with_processes(own.map(used), &sums, of(0, below, 0));
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
