//! Usage: of each request where it is recorded, else of the session.

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::{Extra, Fields, JsonString, RawJson};

use super::agents::{Agent, provider_object};
use super::wire::{Data, ModelMetric, OldUsage, Usage};
use crate::emit::{Emit, push, string};
use crate::wire::{Raw, RawField as _, object};

/// The last request to the model whose usage is known. Its response comes after it.
#[derive(Default)]
pub(super) struct LastUsage {
    api_call_id: Option<JsonString>,
    stop_reason: Option<RawJson>,
}

impl LastUsage {
    /// Returns why the model stopped, if this is its response.
    pub(super) fn stop_reason(&self, api_call_id: Raw<'_>) -> Option<RawJson> {
        let id = api_call_id.string()?;
        self.stop_reason.clone().filter(|_| self.api_call_id.as_ref() == Some(&id))
    }
}

/// How many kinds of tokens are counted.
const KINDS: usize = 5;

/// Counts in the order of their names.
type Counts = [Option<u64>; KINDS];

/// The names of the counts in Copilot's records.
const NAMES: [&str; KINDS] =
    ["inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"];

/// The counts of a session: what was recorded request by request, and Copilot's own total.
#[derive(Default)]
pub(super) struct SessionTotals {
    /// What was recorded since the last total.
    recorded: [u64; KINDS],
    last: [u64; KINDS],
}

impl SessionTotals {
    fn add(&mut self, counts: Counts) {
        for (sum, count) in self.recorded.iter_mut().zip(counts) {
            *sum = sum.saturating_add(count.unwrap_or(0));
        }
    }

    /// Takes a total; returns what it has beyond all that was recorded.
    fn take(&mut self, total: [u64; KINDS]) -> Option<Counts> {
        let recorded = std::mem::take(&mut self.recorded);
        let last = std::mem::replace(&mut self.last, total);
        // A total that is smaller than the last one has begun anew.
        let is_anew = total.iter().zip(last).any(|(now, before)| *now < before);
        let before = if is_anew { [0; KINDS] } else { last };
        let mut beyond = total;
        for (kind, count) in beyond.iter_mut().enumerate() {
            *count = count.saturating_sub(before[kind]).saturating_sub(recorded[kind]);
        }
        beyond.iter().any(|count| *count > 0).then(|| beyond.map(Some))
    }
}

impl Agent {
    /// Writes the usage of a request to the model; false if the record has none.
    pub(super) fn request_usage(
        &mut self,
        usage: &Usage<'_>,
        totals: &mut SessionTotals,
        emit: &mut Emit<'_>,
    ) -> bool {
        let Some(counts) = counts(usage) else { return false };
        totals.add(counts);
        let of_account = usage.accounting.and_then(|account| account.usage_id);
        let mut extra = Extra::default();
        extra.push("response", self.response(&[usage.api_call_id, of_account]));
        push(&mut extra, "model", usage.model.json());
        push(&mut extra, "stop_reason", usage.finish_reason.json());
        push_usage(&mut extra, counts);
        self.last_usage =
            LastUsage { api_call_id: usage.api_call_id.string(), stop_reason: usage.finish_reason.json() };
        emit.assistant(&self.run, Vec::new(), extra);
        emit.entry(&self.run, EntryType::TokenUsage, None);
        true
    }

    /// Writes the total of the session, which Copilot adds up over all processes and subagents, and the part of
    /// it that no other record has: older versions record only the output of each response.
    pub(super) fn session_usage(
        &mut self,
        metrics: Raw<'_>,
        totals: &mut SessionTotals,
        emit: &mut Emit<'_>,
    ) {
        let models = by_model(metrics);
        if models.is_empty() {
            return;
        }
        let mut total = [0_u64; KINDS];
        for (sum, kind) in total.iter_mut().zip(0..) {
            *sum = models.iter().filter_map(|(_, counts)| counts.get(kind).copied().flatten()).sum();
        }
        if let Some(beyond) = totals.take(total) {
            let mut extra = Extra::default();
            extra.push("response", self.response(&[]));
            push(
                &mut extra,
                "model",
                models.first().filter(|_| models.len() == 1).map(|(name, _)| name.clone()),
            );
            push_usage(&mut extra, beyond);
            // It was spent on more than one turn.
            emit.usage(&self.run, &"".into(), extra);
        }
        let mut extra = Extra::default();
        push(&mut extra, "usage", model_object(&models));
        extra.push("usage_scope", string("session"));
        emit.usage(&self.run, &self.run.turns.path(), extra);
        emit.entry(&self.run, EntryType::TokenUsage, None);
    }
}

fn push_usage(extra: &mut Extra, counts: Counts) {
    push(extra, "usage", to_json(counts));
    extra.push("usage_scope", string("response"));
    extra.push("final", RawJson::from(true));
}

/// Returns the output tokens of a response. Some versions record no other usage.
pub(super) fn output_only(data: &Data<'_>, totals: &mut SessionTotals) -> Option<RawJson> {
    let counts = counts(&Usage { output: data.output_tokens, ..Usage::default() })?;
    totals.add(counts);
    to_json(counts)
}

/// Reads the counts of a report; some versions write whole numbers as `30000.0`.
fn counts(usage: &Usage<'_>) -> Option<Counts> {
    let fields = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning];
    let counts = fields.map(number);
    counts.iter().any(Option::is_some).then_some(counts)
}

fn to_json(counts: Counts) -> Option<RawJson> {
    let fields: Vec<_> = NAMES.into_iter().zip(counts.map(|count| count.map(RawJson::from))).collect();
    provider_object(&fields)
}

/// Returns the report of a compaction; the first versions have other names.
pub(super) fn compaction_usage(used: &RawValue) -> Usage<'_> {
    let usage = object::<Usage<'_>>(used).unwrap_or_default();
    let old = object::<OldUsage<'_>>(used).unwrap_or_default();
    Usage {
        input: usage.input.or(old.input),
        output: usage.output.or(old.output),
        cache_read: usage.cache_read.or(old.cached),
        ..usage
    }
}

fn number(raw: Raw<'_>) -> Option<u64> {
    let number = raw.number().or_else(|| raw.text()?.parse().ok());
    number.and_then(|number| u64::try_from(number).ok())
}

/// Returns the usage by model, with the names as they came.
fn by_model(metrics: Raw<'_>) -> Vec<(RawJson, Counts)> {
    let fields = metrics.and_then(|metrics| Fields::parse(metrics.get()).ok());
    let usage_of = |metric: &RawValue| {
        let usage = object::<ModelMetric<'_>>(metric)?.usage?;
        counts(&object::<Usage<'_>>(usage)?)
    };
    let models = fields.iter().flat_map(Fields::iter);
    let models =
        models.filter_map(|(model, metric)| Some((RawJson::parse(model.as_raw()).ok()?, usage_of(metric)?)));
    models.collect()
}

fn model_object(models: &[(RawJson, Counts)]) -> Option<RawJson> {
    let models = models.iter().filter_map(|(name, counts)| Some(format!("{name}:{}", to_json(*counts)?)));
    RawJson::parse(&format!("{{{}}}", models.collect::<Vec<_>>().join(","))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(totals: &mut SessionTotals, total: [u64; KINDS], want: Option<[u64; KINDS]>) {
        assert_eq!(totals.take(total), want.map(|counts| counts.map(Some)));
    }

    #[test]
    fn total_adds_only_what_no_other_record_has() {
        let mut totals = SessionTotals::default();
        totals.add([None, Some(30), None, None, None]);
        check(&mut totals, [100, 30, 50, 0, 5], Some([100, 0, 50, 0, 5]));
        check(&mut totals, [100, 30, 50, 0, 5], None);
        // The next process goes on from there.
        totals.add([Some(10), Some(1), Some(5), Some(0), None]);
        check(&mut totals, [110, 31, 55, 0, 5], None);
        // One that began anew counts from zero.
        totals.add([Some(7), Some(2), None, None, None]);
        check(&mut totals, [7, 2, 3, 0, 0], Some([0, 0, 3, 0, 0]));
    }

    #[test]
    fn numbers_are_read_however_they_are_written() {
        let read = |text: &str| number(serde_json::from_str::<&RawValue>(text).ok());
        assert_eq!(["7", "7.0", "\"7\""].map(read), [Some(7); 3]);
        assert_eq!(["-1", "null", "{}", "\"x\""].map(read), [None; 4]);
    }
}
