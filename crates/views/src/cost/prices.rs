//! The list of prices: that of the program, and the user's own prices over it.

use std::collections::HashMap;
use std::sync::LazyLock;

use steno_session::usage::{Dollars, ModelUsage, Tokens};

use super::names::names_of;

/// Written by `scripts/prices.py`.
const LIST: &str = include_str!("prices.txt");

static BUNDLED: LazyLock<PriceList> = LazyLock::new(|| PriceList::parse(LIST));

/// Prices in dollars per million tokens. A kind without a price of its own costs as much as input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Price {
    /// Of input that is in no cache.
    pub input: Dollars,
    /// Of output, reasoning included.
    pub output: Dollars,
    /// Of input from a cache.
    pub cache_read: Option<Dollars>,
    /// Of input that is written to a cache.
    pub cache_write: Option<Dollars>,
    /// Of input that is written to a cache for an hour; otherwise as for five minutes.
    pub cache_write_1h: Option<Dollars>,
}

impl Price {
    /// Returns what some tokens cost.
    fn of(&self, tokens: Tokens) -> Dollars {
        let Tokens { input, output, cache_read, cache_write, cache_write_1h, reasoning: _ } = tokens;
        let write = self.cache_write.unwrap_or(self.input);
        let parts = [
            self.input.of_tokens(input),
            self.output.of_tokens(output),
            self.cache_read.unwrap_or(self.input).of_tokens(cache_read),
            write.of_tokens(cache_write.saturating_sub(cache_write_1h)),
            self.cache_write_1h.unwrap_or(write).of_tokens(cache_write_1h.min(cache_write)),
        ];
        parts.into_iter().fold(Dollars::default(), Dollars::plus)
    }
}

/// The prices of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ModelPrices {
    /// Of requests of usual length.
    usual: Price,
    /// Of requests with more than this many tokens of input, the longest last.
    long: Vec<(u64, Price)>,
}

impl ModelPrices {
    /// Returns what the tokens of some requests cost, and whether that is a lower bound.
    fn of(&self, used: &ModelUsage) -> (Dollars, bool) {
        let long = self.long.iter().rev().find(|(length, _)| used.length.is_above(*length));
        match long {
            // One of several requests may be short or long. Both prices are known, the lower one is certain.
            Some(_) if used.length.is_sum => (self.usual.of(used.tokens), true),
            Some((_, price)) => (price.of(used.tokens), false),
            None => (self.usual.of(used.tokens), false),
        }
    }
}

#[derive(Clone, Debug, Default)]
struct PriceList {
    date: String,
    models: HashMap<String, ModelPrices>,
}

impl PriceList {
    /// Reads the list; lines in another form are skipped.
    fn parse(text: &str) -> Self {
        let mut list = Self::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split(' ').collect::<Vec<_>>().as_slice() {
                ["date", date] => (*date).clone_into(&mut list.date),
                [model, length, prices @ ..] if length.starts_with('>') => {
                    let length = length.trim_start_matches('>').parse().ok();
                    if let Some((length, price)) = length.zip(price_of(prices)) {
                        list.models.entry((*model).to_owned()).or_default().long.push((length, price));
                    }
                }
                [model, prices @ ..] => {
                    if let Some(price) = price_of(prices) {
                        list.models.entry((*model).to_owned()).or_default().usual = price;
                    }
                }
                [] => {}
            }
        }
        list
    }
}

/// Reads the columns of a line.
fn price_of(columns: &[&str]) -> Option<Price> {
    let &[input, output, cache_read, cache_write, cache_write_1h] = columns else { return None };
    Some(Price {
        input: Dollars::parse(input)?,
        output: Dollars::parse(output)?,
        cache_read: Dollars::parse(cache_read),
        cache_write: Dollars::parse(cache_write),
        cache_write_1h: Dollars::parse(cache_write_1h),
    })
}

/// A price that the user sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PriceOverride {
    /// This one, for requests of any length.
    Price(Price),
    /// That of another model.
    SameAs(String),
}

/// The prices of models.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    overrides: HashMap<String, PriceOverride>,
}

impl Prices {
    /// Returns the program's prices, with the user's over them, by the name of the model.
    #[must_use]
    pub fn new(overrides: impl IntoIterator<Item = (String, PriceOverride)>) -> Self {
        Self { overrides: overrides.into_iter().collect() }
    }

    /// Tells whether the user has set prices.
    #[must_use]
    pub fn has_overrides(&self) -> bool {
        !self.overrides.is_empty()
    }

    /// Returns the date of the program's prices, like `2026-11-16`.
    #[must_use]
    pub fn date() -> &'static str {
        &BUNDLED.date
    }

    /// Tells whether a model has a price.
    #[must_use]
    pub fn has(&self, model: &str) -> bool {
        self.find(model).is_some()
    }

    /// Returns what the tokens of a model cost, and whether that is a lower bound; `None` if it has no price.
    pub(super) fn of(&self, used: &ModelUsage) -> Option<(Dollars, bool)> {
        match self.find(&used.model)? {
            PriceMatch::Own(price) => Some((price.of(used.tokens), false)),
            PriceMatch::Listed(prices) => Some(prices.of(used)),
        }
    }

    fn find(&self, model: &str) -> Option<PriceMatch<'_>> {
        if self.overrides.is_empty()
            && let Some(prices) = BUNDLED.models.get(model)
        {
            return Some(PriceMatch::Listed(prices));
        }
        let names = names_of(model);
        let own = names.iter().find_map(|name| self.overrides.get(name));
        match own {
            Some(PriceOverride::Price(price)) => Some(PriceMatch::Own(price)),
            Some(PriceOverride::SameAs(other)) => {
                let own = names_of(other).iter().find_map(|name| match self.overrides.get(name)? {
                    PriceOverride::Price(price) => Some(PriceMatch::Own(price)),
                    // One step is followed, so that two names cannot point at each other.
                    PriceOverride::SameAs(_) => None,
                });
                own.or_else(|| listed(&names_of(other)))
            }
            None => listed(&names),
        }
    }
}

enum PriceMatch<'a> {
    Own(&'a Price),
    Listed(&'static ModelPrices),
}

fn listed<'a>(names: &[String]) -> Option<PriceMatch<'a>> {
    names.iter().find_map(|name| BUNDLED.models.get(name)).map(PriceMatch::Listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_list_is_read() {
        let lines = || LIST.lines().filter(|line| !line.starts_with('#') && !line.starts_with("date "));
        let list = PriceList::parse(LIST);
        let read: usize = list.models.values().map(|prices| 1 + prices.long.len()).sum();
        assert_eq!(read, lines().count());
        assert!(list.models.len() > 100, "{}", list.models.len());
        for (model, prices) in &list.models {
            assert!(prices.usual.output > Dollars::default(), "{model}");
            for (length, _) in &prices.long {
                assert!(
                    steno_session::usage::RequestLength::THRESHOLDS.contains(length),
                    "{model}: {length}"
                );
            }
        }
        assert_eq!(list.date.len(), 10);
    }
}
