//! Amounts of money in whole units, so that sums are exact in any order.

use std::fmt;

use serde_json::value::RawValue;
use steno_model::json::Fields;

/// How many units a dollar has.
const UNITS: u128 = 1_000_000_000_000;
/// How many units a cent has.
const CENT: u128 = UNITS / 100;
/// How many decimals a unit is.
const DECIMALS: usize = 12;

/// An amount of US dollars, in units of a millionth of a millionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dollars(u128);

impl Dollars {
    /// Reads a decimal number of dollars, like `0.1089` or `1.5e-3`. Decimals beyond the twelfth are rounded: agents add
    /// their costs as floating-point numbers.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, exponent) = match text.split_once(['e', 'E']) {
            Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(decimals) {
            return None;
        }
        let digits = format!("{whole}{decimals}");
        // The position of the decimal point from the left, in units.
        let point = i32::try_from(whole.len() + DECIMALS).ok()?.checked_add(exponent)?;
        let Ok(point) = usize::try_from(point) else { return Some(Self(0)) };
        let zeros = point.saturating_sub(digits.len());
        if zeros > DECIMALS * 3 {
            return None;
        }
        let units = format!("{}{}", digits.get(..point).unwrap_or(&digits), "0".repeat(zeros));
        let is_up = digits.as_bytes().get(point).is_some_and(|digit| *digit >= b'5');
        let units: u128 = if units.is_empty() { 0 } else { units.parse().ok()? };
        Some(Self(units + u128::from(is_up)))
    }

    /// Reads the cost of the session from an agent's total, as the sum over its models. `None` if the total has no
    /// cost.
    pub(super) fn of_total(report: &str) -> Option<Self> {
        Self::by_model(report).into_iter().map(|(_, cost)| cost).reduce(Self::plus)
    }

    /// Reads the cost of the session from an agent's total, by model.
    pub(super) fn by_model(report: &str) -> Vec<(String, Self)> {
        let Ok(fields) = Fields::parse(report) else { return Vec::new() };
        let cost = |value: &RawValue| Self::parse(Fields::parse(value.get()).ok()?.last("costUSD")?.get());
        fields.iter().filter_map(|(name, value)| Some((name.text().into_owned(), cost(value)?))).collect()
    }

    /// Returns the price of some tokens at a price in dollars per million.
    #[must_use]
    pub fn of_tokens(self, tokens: u64) -> Self {
        Self((self.0 / 1_000_000).saturating_mul(u128::from(tokens)))
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns it in its units, to compare amounts.
    #[must_use]
    pub fn units(self) -> u128 {
        self.0
    }

    /// Returns it in whole cents, rounded.
    fn cents(self) -> u128 {
        self.0.saturating_add(CENT / 2) / CENT
    }

    /// Returns its whole cents, rounded down, for a lower bound.
    #[must_use]
    pub fn rounded_down(self) -> Self {
        Self(self.0 - self.0 % CENT)
    }

    /// Returns it as a decimal number without rounding, as JSON has it.
    #[must_use]
    pub fn decimal(self) -> String {
        let decimals = format!("{:0DECIMALS$}", self.0 % UNITS);
        let decimals = decimals.trim_end_matches('0');
        let point = if decimals.is_empty() { "" } else { "." };
        format!("{}{point}{decimals}", self.0 / UNITS)
    }
}

/// Writes dollars and cents: `$1,234.50`. Less than half a cent is `<$0.01`.
impl fmt::Display for Dollars {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = self.cents();
        if cents == 0 && self.0 > 0 {
            return out.pad("<$0.01");
        }
        let dollars = (cents / 100).to_string();
        let mut text = "$".to_owned();
        for (place, digit) in dollars.chars().enumerate() {
            if place > 0 && (dollars.len() - place).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        out.pad(&format!("{text}.{:02}", cents % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<(&str, &str)>) {
        let read = Dollars::parse(text).map(|dollars| (dollars.decimal(), dollars.to_string()));
        let read = read.as_ref().map(|(decimal, shown)| (decimal.as_str(), shown.as_str()));
        assert_eq!(read, want, "{text}");
    }

    #[test]
    fn decimal_numbers_are_read_exactly() {
        check("0", Some(("0", "$0.00")));
        check("12", Some(("12", "$12.00")));
        check("0.10895059999999998", Some(("0.1089506", "$0.11")));
        check("1234567.495", Some(("1234567.495", "$1,234,567.50")));
        check("0.004", Some(("0.004", "<$0.01")));
        check("0.005", Some(("0.005", "$0.01")));
        check("1.5e-3", Some(("0.0015", "<$0.01")));
        check("2E2", Some(("200", "$200.00")));
        check("1e-30", Some(("0", "$0.00")));
        for wrong in ["", "-1", ".5", "1.2.3", "x", "1e", "1e99999", "NaN", "1_000"] {
            check(wrong, None);
        }
    }

    #[test]
    fn lower_bounds_are_rounded_down() {
        for (text, want) in [("0.009", "$0.00"), ("0.489", "$0.48"), ("0.49", "$0.49"), ("0", "$0.00")] {
            assert_eq!(Dollars::parse(text).unwrap().rounded_down().to_string(), want, "{text}");
        }
    }

    #[test]
    fn total_of_an_agent_is_summed_over_its_models() {
        let total = r#"{"a":{"costUSD":0.25,"inputTokens":1},"b":{"costUSD":1.5e-1},"c":{}}"#;
        assert_eq!(Dollars::of_total(total).map(Dollars::decimal).as_deref(), Some("0.4"));
        for none in [r#"{"a":{"inputTokens":1}}"#, r#"{"costUSD":1}"#, "[]"] {
            assert_eq!(Dollars::of_total(none), None, "{none}");
        }
    }

    #[test]
    fn tokens_cost_a_millionth_of_the_price_each() {
        let price = Dollars::parse("0.125").unwrap();
        assert_eq!(price.of_tokens(3).decimal(), "0.000000375");
        assert_eq!(price.of_tokens(8_000_000).to_string(), "$1.00");
        assert_eq!(Dollars(u128::MAX).plus(price), Dollars(u128::MAX));
    }
}
