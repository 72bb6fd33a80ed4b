//! Usage by model and by the length of requests: what a price depends on.

use super::Tokens;

/// What the requests to one model used, by their length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelUsage {
    /// The model; empty where the record does not say.
    pub model: String,
    /// How long the requests were.
    pub length: RequestLength,
    /// The tokens.
    pub tokens: Tokens,
    /// Whether the tokens are a lower bound.
    pub is_lower_bound: bool,
}

/// How much input a request has. Only the thresholds at which prices change are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestLength {
    /// The input is more than this many tokens, cached ones included, and at most the next threshold.
    pub above: u64,
    /// Whether the tokens belong to several requests, each of which may be shorter.
    pub is_sum: bool,
}

impl RequestLength {
    /// The thresholds.
    pub const THRESHOLDS: [u64; 4] = [100_000, 128_000, 200_000, 272_000];

    /// Returns the length of a request.
    pub(super) fn of(tokens: Tokens, count: RequestCount) -> Self {
        let input = Tokens { output: 0, ..tokens }.total();
        let above = Self::THRESHOLDS.into_iter().rev().find(|threshold| input > *threshold).unwrap_or(0);
        // If the sum of several requests is short, each of them is short.
        Self { above, is_sum: above > 0 && count == RequestCount::Several }
    }

    /// Tells whether the input exceeds a threshold.
    #[must_use]
    pub fn is_above(self, threshold: u64) -> bool {
        self.above >= threshold
    }
}

/// How many requests an amount of tokens belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestCount {
    One,
    /// Possibly one.
    Several,
}

/// Adds usage to a list that has each model and length once.
pub fn add_by_model(list: &mut Vec<ModelUsage>, used: ModelUsage) {
    let key = |one: &ModelUsage| (one.model.clone(), one.length);
    match list.binary_search_by_key(&key(&used), key) {
        Ok(place) => {
            let known = &mut list[place];
            known.tokens = known.tokens.plus(used.tokens);
            known.is_lower_bound |= used.is_lower_bound;
        }
        Err(place) => list.insert(place, used),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(model: &str, input: u64, count: RequestCount) -> ModelUsage {
        let tokens = Tokens { input, cache_read: 1, output: 500_000, ..Tokens::default() };
        let length = RequestLength::of(tokens, count);
        ModelUsage { model: model.to_owned(), length, tokens, is_lower_bound: false }
    }

    #[test]
    fn lengths_are_told_apart_at_the_steps() {
        let check = |input: u64, count: RequestCount, want: (u64, bool)| {
            let length = used("m", input, count).length;
            assert_eq!((length.above, length.is_sum), want, "{input}");
        };
        check(99_999, RequestCount::Several, (0, false));
        check(100_000, RequestCount::One, (100_000, false));
        check(200_000, RequestCount::Several, (200_000, true));
        check(9_999_999, RequestCount::One, (272_000, false));
        let long = used("m", 200_000, RequestCount::One).length;
        assert!(long.is_above(128_000) && long.is_above(200_000) && !long.is_above(272_000));
    }

    #[test]
    fn list_has_each_model_and_length_once() {
        let mut list = Vec::new();
        for (model, input) in [("b", 7), ("a", 5), ("b", 300_000), ("b", 2)] {
            add_by_model(&mut list, used(model, input, RequestCount::One));
        }
        let shown = list.iter().map(|used| (used.model.as_str(), used.length.above, used.tokens.input));
        assert_eq!(shown.collect::<Vec<_>>(), [("a", 0, 5), ("b", 0, 9), ("b", 272_000, 300_000)]);
    }
}
