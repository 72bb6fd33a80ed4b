//! Costs of usage made by hand, with prices that the list has or a user sets.

use steno_session::usage::{RequestLength, Tokens};

use super::*;

fn used(model: &str, tokens: Tokens) -> ModelUsage {
    ModelUsage { model: model.to_owned(), tokens, ..ModelUsage::default() }
}

fn dollars(text: &str) -> Dollars {
    Dollars::parse(text).unwrap()
}

#[track_caller]
fn check(prices: &Prices, used: &[ModelUsage], want: (&str, &str)) {
    let cost = Cost::of(prices, used);
    assert_eq!((cost.dollars.decimal().as_str(), cost.text().as_str()), want, "{used:?}");
}

#[test]
fn every_kind_of_token_has_its_price() {
    // Input 4, output 20, from the cache 0.2, to it 5, to it for an hour 8 dollars a million.
    let tokens = Tokens {
        input: 1_000_000,
        output: 100_000,
        cache_read: 10_000_000,
        cache_write: 300_000,
        cache_write_1h: 100_000,
        reasoning: 50_000,
    };
    check(&Prices::default(), &[used("claude-opus-5-5", tokens)], ("9.8", "$9.80"));
}

#[test]
fn kind_without_a_price_costs_as_input() {
    // The list has no price of cached input for it: input 30, output 180.
    let tokens = Tokens { cache_read: 1_000_000, cache_write: 1_000_000, output: 10, ..Tokens::default() };
    check(&Prices::default(), &[used("gpt-5.4-pro", tokens)], ("60.0018", "$60.00"));
}

#[test]
fn long_request_has_its_own_price() {
    // 2.5 and 15 dollars a million, above 272,000 tokens of input 5 and 22.5.
    let tokens = Tokens { input: 300_000, output: 1_000, ..Tokens::default() };
    let at =
        |above, is_sum| ModelUsage { length: RequestLength { above, is_sum }, ..used("gpt-5.4", tokens) };
    let prices = Prices::default();
    check(&prices, &[at(200_000, false)], ("0.765", "$0.77"));
    check(&prices, &[at(272_000, false)], ("1.5225", "$1.52"));
    // Several short requests, or one long one: at least the lower price.
    check(&prices, &[at(272_000, true)], ("0.765", "≥ $0.76"));
}

#[test]
fn model_without_a_price_is_unknown_and_named() {
    let tokens = Tokens { output: 1_000_000, ..Tokens::default() };
    let (known, other) = (used("gpt-5.4", tokens), used("house-model", tokens));
    let prices = Prices::default();
    check(&prices, &[], ("0", "$0.00"));
    check(&prices, std::slice::from_ref(&other), ("0", "?"));
    check(&prices, &[known.clone(), other.clone()], ("15", "≥ $15.00"));
    check(&prices, &[used("<synthetic>", Tokens::default())], ("0", "$0.00"));
    let mut cost = Cost::of(&prices, [&other]);
    assert_eq!(cost.known(), None);
    cost.add(Cost::of(&prices, [&known]));
    assert_eq!(
        (cost.known(), cost.unpriced),
        (Some(dollars("15")), BTreeSet::from(["house-model".to_owned()]))
    );
    assert!(prices.has("openai/gpt-5.4") && !prices.has("house-model") && !prices.has(""));
}

#[test]
fn lower_bound_of_tokens_is_one_of_dollars() {
    let at_least =
        ModelUsage { is_lower_bound: true, ..used("gpt-5.4", Tokens { output: 100, ..Tokens::default() }) };
    check(&Prices::default(), &[at_least], ("0.0015", "≥ $0.00"));
}

#[test]
fn price_of_the_user_wins() {
    let price = Price { input: dollars("1"), output: dollars("2"), ..Price::default() };
    let prices = Prices::new([
        ("gpt-5.4".to_owned(), PriceOverride::Price(price)),
        ("house-model".to_owned(), PriceOverride::SameAs("claude-opus-5-5".to_owned())),
        ("one".to_owned(), PriceOverride::SameAs("two".to_owned())),
        ("two".to_owned(), PriceOverride::SameAs("one".to_owned())),
        ("three".to_owned(), PriceOverride::SameAs("gpt-5.4".to_owned())),
    ]);
    let tokens = Tokens { output: 1_000_000, ..Tokens::default() };
    check(&prices, &[used("gpt-5.4-2026-03-05", tokens)], ("2", "$2.00"));
    check(&prices, &[used("azure/house-model", tokens)], ("20", "$20.00"));
    check(&prices, &[used("three", tokens)], ("2", "$2.00"));
    check(&prices, &[used("one", tokens)], ("0", "?"));
    check(&prices, &[used("gpt-5.5", tokens)], ("30", "$30.00"));
}
