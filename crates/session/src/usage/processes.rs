//! Sums of processes. A process is an agent with its subagents and with requests that no record shows, so its sum is
//! more than the responses of the session. What the responses of the session and of the sessions below it do not
//! explain is added to the session.

use std::collections::HashSet;

use steno_model::{ExchangeEvent, RunId};

use super::{Amount, ModelUsage, TokenUsage, Tokens};

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

#[cfg(test)]
mod tests {
    use super::*;

    fn of(input: u64, output: u64, cache_read: u64) -> Tokens {
        Tokens { input, output, cache_read, ..Tokens::default() }
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
