//! Usage from running totals: what each report adds, without repetitions.
//!
//! If the usage of each response is recorded too, only the growth of the total beyond it counts: another version may
//! have continued the thread without recording it.
//!
//! Codex reports the total of the thread and the usage of the last response with every report, and repeats both: a
//! sum over the last ones counted 257,584 tokens where 234,772 were used. So only growth of the total counts.

use std::collections::BTreeMap;

use steno_model::Usage;
use steno_model::json::{Extra, JsonString, RawJson};

use crate::emit::{push, string};
use crate::wire::{Raw, RawField as _};

/// The usage that a report adds.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// Nothing: it repeats the last report, or is the baseline of a fork.
    None,
    /// The exact usage.
    Exact(RawJson),
    /// A lower bound; earlier usage is not in the source.
    AtLeast(RawJson),
}

/// Where the count of a thread begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// With the thread.
    Zero,
    /// With a history that is not in the source: the first total includes it.
    Unknown,
}

/// The running total of a thread.
pub(super) struct Totals {
    start: Start,
    last_total: Option<BTreeMap<String, u64>>,
    /// Exact usage recorded since the last total, by plain name.
    exact: BTreeMap<String, u64>,
}

impl Totals {
    pub(super) fn new(start: Start) -> Self {
        Self { start, last_total: None, exact: BTreeMap::new() }
    }

    /// Takes a total as the baseline, without usage.
    pub(super) fn take_baseline(&mut self, total: Raw<'_>) {
        self.last_total = total.and_then(counts).or(self.last_total.take());
        self.exact.clear();
    }

    /// Notes the usage of a response, which the next total includes.
    pub(super) fn use_exactly(&mut self, usage: &RawJson) {
        for (name, count) in Usage::read(usage).iter().flat_map(Usage::counts) {
            let exact = self.exact.entry(plain(&name.to_text())).or_default();
            *exact = exact.saturating_add(count);
        }
    }

    /// Returns true if there was a total.
    pub(super) fn is_known(&self) -> bool {
        self.last_total.is_some()
    }

    /// Returns all tokens of the thread, from the last total.
    fn tokens(&self) -> Option<u64> {
        let total = self.last_total.as_ref()?;
        ["total_tokens", "totalTokens"].iter().find_map(|name| total.get(*name)).copied()
    }

    /// Takes a report; returns what it adds.
    pub(super) fn take(&mut self, total: Raw<'_>, last: Raw<'_>) -> Growth {
        let Some(counted) = total.and_then(counts) else { return Growth::None };
        let before = self.last_total.replace(counted.clone());
        let exact = std::mem::take(&mut self.exact);
        let last = last.filter(|last| is_used(last) && exact.is_empty()).and_then(|last| Some(last).json());
        match before {
            None if self.start == Start::Zero => self.beyond(counted, exact),
            None => last.map_or(Growth::None, Growth::AtLeast),
            // A smaller total has begun again: earlier usage is counted, and usage since the new start is unknown.
            Some(before) if is_smaller(&counted, &before) => last.map_or(Growth::None, Growth::AtLeast),
            Some(before) => {
                let grown = counted.into_iter().map(|(name, count)| {
                    let before = before.get(&name).copied().unwrap_or(0);
                    (name, count.saturating_sub(before))
                });
                self.beyond(grown.collect(), exact)
            }
        }
    }

    /// Returns the growth of a total beyond the exact usage; the next total includes the rest. Names without exact
    /// usage do not show growth.
    fn beyond(&mut self, mut grown: BTreeMap<String, u64>, mut exact: BTreeMap<String, u64>) -> Growth {
        let has_none = exact.values().all(|count| *count == 0);
        let mut is_beyond = false;
        for (name, count) in &mut grown {
            let exact = exact.get_mut(&plain(name));
            let recorded = exact.as_deref().copied().unwrap_or(0).min(*count);
            is_beyond |= *count > recorded && (has_none || exact.is_some());
            *count -= recorded;
            if let Some(exact) = exact {
                *exact -= recorded;
            }
        }
        self.exact = exact;
        if is_beyond { Growth::Exact(to_json(&grown)) } else { Growth::None }
    }
}

/// Returns the common name of a count: `inputTokens` and `input_tokens` are the same.
fn plain(name: &str) -> String {
    name.chars().filter(|one| *one != '_').collect::<String>().to_ascii_lowercase()
}

/// The name of a response.
pub(super) enum ResponseName<'a> {
    /// The provider's id.
    Id(RawJson),
    /// Our own number. The total of the thread after it identifies it in other recordings.
    Number(u32, &'a Totals),
}

/// Returns the fields of a message with the usage of a response.
pub(super) fn fields(growth: Growth, named: ResponseName<'_>, model: Option<RawJson>) -> Option<Extra> {
    let (usage, is_exact) = match growth {
        Growth::None => return None,
        Growth::Exact(usage) => (usage, true),
        Growth::AtLeast(usage) => (usage, false),
    };
    let mut extra = Extra::default();
    match named {
        ResponseName::Id(id) => extra.push("response", id),
        ResponseName::Number(number, totals) => {
            extra.push("response", RawJson::from(number));
            push(&mut extra, "thread_tokens", totals.tokens().map(RawJson::from));
        }
    }
    if let Some(model) = model {
        extra.push("model", model);
    }
    extra.push("usage", usage);
    extra.push("usage_scope", string("response"));
    extra.push("final", RawJson::from(true));
    if !is_exact {
        extra.push("lower_bound", RawJson::from(true));
    }
    Some(extra)
}

fn counts(raw: &serde_json::value::RawValue) -> Option<BTreeMap<String, u64>> {
    let usage = Usage::read(&RawJson::from_raw(raw))?;
    Some(usage.counts().map(|(name, count)| (name.to_text().into_owned(), count)).collect())
}

/// Returns true if there are input or output tokens; after a compaction a report only estimates the context size.
fn is_used(last: &serde_json::value::RawValue) -> bool {
    let used = |name: &str| name.contains("nput") || name.contains("utput");
    counts(last).is_some_and(|counts| counts.iter().any(|(name, count)| used(name) && *count > 0))
}

fn is_smaller(now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>) -> bool {
    now.iter().any(|(name, count)| before.get(name).is_some_and(|before| before > count))
}

/// Returns the counts in a report, without other fields.
pub(super) fn only_counts(report: Raw<'_>) -> Option<RawJson> {
    report.and_then(counts).filter(|counts| !counts.is_empty()).map(|counts| to_json(&counts))
}

/// Writes counts with the provider's names, which our own writer does not accept.
fn to_json(counts: &BTreeMap<String, u64>) -> RawJson {
    let pairs =
        counts.iter().map(|(name, count)| format!("{}:{count}", JsonString::from(name.as_str()).as_raw()));
    let text = format!("{{{}}}", pairs.collect::<Vec<_>>().join(","));
    RawJson::parse(&text).unwrap_or_else(|_| RawJson::null())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::*;

    fn usage(input: u64, output: u64) -> String {
        format!(r#"{{"input_tokens":{input},"output_tokens":{output}}}"#)
    }

    fn raw(text: &str) -> Raw<'_> {
        serde_json::from_str::<&RawValue>(text).ok()
    }

    /// Input tokens and output tokens.
    type Tokens = (u64, u64);

    /// Takes reports of (total, last) and compares what each added.
    #[track_caller]
    fn check(start: Start, reports: &[(Tokens, Tokens)], want: &[Growth]) {
        let mut totals = Totals::new(start);
        let got: Vec<Growth> = reports
            .iter()
            .map(|((input, output), last)| {
                totals.take(raw(&usage(*input, *output)), raw(&usage(last.0, last.1)))
            })
            .collect();
        assert_eq!(got, want);
    }

    fn json(input: u64, output: u64) -> RawJson {
        RawJson::parse(&usage(input, output)).unwrap()
    }

    #[test]
    fn repeated_totals_add_nothing() {
        check(
            Start::Zero,
            &[((10, 1), (10, 1)), ((10, 1), (10, 1)), ((30, 3), (20, 2)), ((30, 3), (0, 0))],
            &[Growth::Exact(json(10, 1)), Growth::None, Growth::Exact(json(20, 2)), Growth::None],
        );
    }

    #[test]
    fn first_total_of_a_fork_adds_only_its_last_response() {
        check(
            Start::Unknown,
            &[((500, 50), (10, 1)), ((520, 52), (20, 2))],
            &[Growth::AtLeast(json(10, 1)), Growth::Exact(json(20, 2))],
        );
        check(Start::Unknown, &[((500, 50), (0, 0))], &[Growth::None]);
    }

    #[test]
    fn smaller_total_is_a_lower_bound() {
        check(
            Start::Zero,
            &[((100, 10), (100, 10)), ((7, 1), (7, 1))],
            &[Growth::Exact(json(100, 10)), Growth::AtLeast(json(7, 1))],
        );
    }

    #[test]
    fn total_adds_only_growth_beyond_exact_usage() {
        let mut totals = Totals::new(Start::Zero);
        totals.use_exactly(&json(100, 10));
        assert_eq!(totals.take(raw(&usage(100, 10)), raw(&usage(100, 10))), Growth::None);
        assert_eq!(totals.take(raw(&usage(300, 30)), raw(&usage(200, 20))), Growth::Exact(json(200, 20)));
        totals.use_exactly(&RawJson::parse(r#"{"inputTokens":40}"#).unwrap());
        assert_eq!(totals.take(raw(&usage(350, 35)), None), Growth::Exact(json(10, 5)));
        totals.use_exactly(&json(1, 1));
        assert_eq!(totals.take(raw(&usage(350, 35)), None), Growth::None, "it comes with the next");
        assert_eq!(totals.take(raw(&usage(351, 36)), None), Growth::None);
        totals.use_exactly(&json(1, 1));
        // A total that began again includes the exact usage.
        assert_eq!(totals.take(raw(&usage(7, 1)), raw(&usage(7, 1))), Growth::None);
        let mut fork = Totals::new(Start::Unknown);
        fork.use_exactly(&json(9, 1));
        assert_eq!(fork.take(raw(&usage(500, 50)), raw(&usage(9, 1))), Growth::None);
        assert_eq!(fork.take(raw(&usage(520, 52)), raw(&usage(20, 2))), Growth::Exact(json(20, 2)));
    }

    #[test]
    fn only_counts_keeps_names_as_they_are() {
        let report = raw(r#"{"type":"token_count","inputTokens":3,"a \"b\"":1}"#);
        let counts = only_counts(report).map(|counts| counts.to_string());
        assert_eq!(counts.as_deref(), Some(r#"{"a \"b\"":1,"inputTokens":3}"#));
        assert_eq!(only_counts(raw(r#"{"type":"token_count"}"#)), None);
    }

    #[test]
    fn report_without_counts_adds_nothing() {
        assert_eq!(Totals::new(Start::Zero).take(raw("null"), None), Growth::None);
    }
}
