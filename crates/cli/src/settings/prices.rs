//! The user's prices of models: `[prices."MODEL"]` in the config file.

use std::collections::BTreeMap;

use serde::Deserialize;
use steno_session::usage::Dollars;
use steno_views::cost::{Price, PriceOverride, Prices};

use super::Setting;
use super::file::Number;
use crate::failure::Failure;

/// Prices in the file, by model.
pub type PriceTables = BTreeMap<String, PriceTable>;

/// Prices of a model, in dollars per million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceTable {
    input: Option<Number>,
    output: Option<Number>,
    cache_read: Option<Number>,
    cache_write: Option<Number>,
    cache_write_1h: Option<Number>,
    /// Another model whose prices it has.
    same_as: Option<String>,
}

/// The prices of models.
#[derive(Debug)]
pub struct PriceSettings {
    pub prices: Prices,
    /// The models that the user has set prices of.
    pub models: Setting<Vec<String>>,
}

impl PriceSettings {
    /// Reads the tables of the file.
    pub fn load(tables: Setting<PriceTables>) -> Result<Self, Failure> {
        let models = tables.value.keys().cloned().collect();
        let mut prices = Vec::new();
        for (model, table) in tables.value {
            let price = table.price().map_err(|why| {
                Failure::usage(format!("`prices.\"{model}\"` {why} ({})", tables.origin)).with_hint(
                    "give dollars per million tokens: `input` and `output`, or `same_as = \"MODEL\"`",
                )
            })?;
            prices.push((model, price));
        }
        Ok(Self { prices: Prices::new(prices), models: Setting { value: models, origin: tables.origin } })
    }
}

impl PriceTable {
    fn price(self) -> Result<PriceOverride, String> {
        let Self { input, output, cache_read, cache_write, cache_write_1h, same_as } = self;
        let numbers = [&input, &output, &cache_read, &cache_write, &cache_write_1h];
        if let Some(model) = same_as {
            let is_alone = numbers.into_iter().all(Option::is_none);
            return if is_alone {
                Ok(PriceOverride::SameAs(model))
            } else {
                Err("has `same_as` and a price".to_owned())
            };
        }
        let read = |name: &str, number: Option<Number>| match number.map(|number| number.to_string()) {
            None => Ok(None),
            Some(text) => match Dollars::parse(&text) {
                Some(price) => Ok(Some(price)),
                None => Err(format!("has the price `{name} = {text}`")),
            },
        };
        let needed = |name: &str, price: Option<Dollars>| price.ok_or_else(|| format!("has no `{name}`"));
        Ok(PriceOverride::Price(Price {
            input: needed("input", read("input", input)?)?,
            output: needed("output", read("output", output)?)?,
            cache_read: read("cache_read", cache_read)?,
            cache_write: read("cache_write", cache_write)?,
            cache_write_1h: read("cache_write_1h", cache_write_1h)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use steno_session::usage::{ModelUsage, Tokens};
    use steno_views::cost::Cost;

    use super::*;
    use crate::settings::Origin;

    fn load(text: &str) -> Result<PriceSettings, Failure> {
        let tables = toml::from_str(text).map_err(|error| Failure::usage(error.message()))?;
        PriceSettings::load(Setting { value: tables, origin: Origin::Default })
    }

    #[test]
    fn prices_are_read_as_they_are_written() {
        let text = "[\"house-model\"]\ninput = 0.1\noutput = 3\n[other]\nsame_as = \"claude-opus-5-5\"\n";
        let settings = load(text).unwrap();
        assert_eq!(settings.models.value, ["house-model", "other"]);
        let tokens = Tokens { input: 3, output: 1_000_000, ..Tokens::default() };
        for (model, want) in [("house-model", "3.0000003"), ("other", "20.000012")] {
            let used = ModelUsage { model: model.to_owned(), tokens, ..ModelUsage::default() };
            assert_eq!(Cost::of(&settings.prices, [&used]).dollars.decimal(), want);
        }
    }

    #[test]
    fn wrong_price_is_refused() {
        for (text, words) in [
            ("[m]\ninput = 1\n", "has no `output`"),
            ("[m]\ninput = -1\noutput = 2\n", "has the price `input = -1`"),
            ("[m]\ninput = nan\noutput = 2\n", "has the price `input = NaN`"),
            ("[m]\ninput = 1\nsame_as = \"x\"\n", "has `same_as` and a price"),
            ("[m]\ninput = 1\noutput = 2\ncached = 3\n", "unknown field"),
            ("[m]\ninput = \"1\"\noutput = 2\n", "did not match"),
        ] {
            let failure = load(text).unwrap_err();
            assert!(failure.message.contains(words), "{text}: {}", failure.message);
        }
    }
}
