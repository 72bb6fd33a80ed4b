//! What usage costs at list prices, in dollars.
//!
//! [`Prices`] knows the price of a model, [`Cost`] is what usage costs by it. A model without a price is named, and its part of
//! the cost is unknown, not zero. `docs/cost.md` has the rules.

mod names;
mod prices;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use steno_session::usage::{Dollars, ModelUsage, Tokens};

pub use prices::{Price, PriceOverride, Prices};

/// What usage costs, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// The part that is known.
    pub dollars: Dollars,
    /// Whether it may be more: counts that are not final, long and short requests in one sum, models without a price.
    pub is_lower_bound: bool,
    /// The models that used tokens and have no price. A response without a model is the empty name.
    pub unpriced: BTreeSet<String>,
    /// Whether the cost of any usage is known.
    is_any_known: bool,
}

impl Cost {
    /// Returns the cost of usage by model. A lower bound of tokens gives a lower bound of dollars.
    #[must_use]
    pub fn of<'a>(prices: &Prices, used: impl IntoIterator<Item = &'a ModelUsage>) -> Self {
        let mut cost = Self::default();
        for used in used {
            cost.add_usage(prices, used);
        }
        cost
    }

    /// Adds the usage of a model.
    pub fn add_usage(&mut self, prices: &Prices, used: &ModelUsage) {
        self.is_lower_bound |= used.is_lower_bound;
        // An agent's own message names a model that does not exist, and uses nothing.
        if used.tokens == Tokens::default() {
            return;
        }
        let Some((dollars, is_lower_bound)) = prices.of(used) else {
            self.unpriced.insert(used.model.clone());
            self.is_lower_bound = true;
            return;
        };
        self.dollars = self.dollars.plus(dollars);
        self.is_lower_bound |= is_lower_bound;
        self.is_any_known = true;
    }

    /// Adds another cost.
    pub fn add(&mut self, other: Self) {
        self.dollars = self.dollars.plus(other.dollars);
        self.is_lower_bound |= other.is_lower_bound;
        self.unpriced.extend(other.unpriced);
        self.is_any_known |= other.is_any_known;
    }

    /// Returns the known part; `None` if no model that used tokens has a price.
    #[must_use]
    pub fn known(&self) -> Option<Dollars> {
        (self.is_any_known || self.unpriced.is_empty()).then_some(self.dollars)
    }

    /// Returns it for people: `$0.49`, `≥ $0.49` or `?`.
    #[must_use]
    pub fn text(&self) -> String {
        match self.known() {
            None => "?".to_owned(),
            Some(dollars) if self.is_lower_bound => format!("≥ {}", dollars.rounded_down()),
            Some(dollars) => dollars.to_string(),
        }
    }
}
