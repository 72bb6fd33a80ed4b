//! A provider's token counts in one common form.

use serde_json::value::RawValue;
use steno_model::json::{Fields, RawJson};

/// Tokens of kinds that do not overlap, except `reasoning`, which is part of `output`, and `cache_write_1h`, which is part of
/// `cache_write`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read by the model for the first time.
    pub input: u64,
    /// Written by it.
    pub output: u64,
    /// Read again from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
    /// The part of it that is kept for an hour.
    pub cache_write_1h: u64,
    /// The part of the output that is reasoning.
    pub reasoning: u64,
}

/// What a report counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The tokens; a count that the report does not name is zero.
    pub tokens: Tokens,
    /// Whether every count that it names is a whole number.
    pub is_whole: bool,
}

impl Counts {
    /// Reads a report, which is JSON.
    ///
    /// Providers disagree on whether a cached token is an input token. Claude's counts are separate; those of Codex, Copilot
    /// and other OpenAI-style reports include each other. Gemini's input includes cached tokens, and its output no
    /// reasoning. `OpenCode`'s counts are all separate. The field names show which it is.
    #[must_use]
    pub fn read(report: &str) -> Option<Self> {
        let fields = Fields::parse(report).ok()?;
        if let Some(counts) = Self::of_api(&fields).or_else(|| Self::of_opencode(&fields)) {
            return Some(counts);
        }
        let mut is_whole = true;
        let mut find = |names: [&str; 2]| {
            let named = |name: &str| fields.iter().filter(|(key, _)| key.is(name)).last();
            let (_, value) = names.into_iter().find_map(named).filter(|(_, value)| value.get() != "null")?;
            let count: Option<u64> = value.get().parse().ok();
            is_whole &= count.is_some();
            count
        };
        let mut tokens = Tokens {
            input: find(["input_tokens", "inputTokens"]).unwrap_or(0),
            output: find(["output_tokens", "outputTokens"]).unwrap_or(0),
            cache_read: find(["cache_read_input_tokens", "cacheReadInputTokens"]).unwrap_or(0),
            cache_write: find(["cache_creation_input_tokens", "cacheCreationInputTokens"]).unwrap_or(0),
            cache_write_1h: find(["cacheCreationEphemeral1hInputTokens"; 2]).unwrap_or(0),
            reasoning: find(["reasoning_output_tokens", "reasoningOutputTokens"]).unwrap_or(0),
        };
        // Claude's report divides cache writes by their lifetime.
        if let Some(written) = fields.last("cache_creation").and_then(|value| Fields::parse(value.get()).ok())
        {
            let for_an_hour = written.last("ephemeral_1h_input_tokens");
            tokens.cache_write_1h = for_an_hour.and_then(|count| count.get().parse().ok()).unwrap_or(0);
        }
        let cached = find(["cached_input_tokens", "cachedInputTokens"]);
        if let Some(cached) = cached.or_else(|| find(["cacheReadTokens", "cache_read_tokens"])) {
            tokens.cache_read = cached;
            let written = find(["cache_write_input_tokens", "cacheWriteInputTokens"]);
            let written = written.or_else(|| find(["cacheWriteTokens", "cache_write_tokens"]));
            tokens.cache_write = written.unwrap_or(0);
            tokens.input = tokens.input.saturating_sub(cached).saturating_sub(tokens.cache_write);
        }
        if let Some(reasoning) = find(["reasoningTokens", "reasoning_tokens"]) {
            tokens.reasoning = reasoning;
        }
        let has = |name: &str| fields.has(name);
        if has("cached") || has("tool_calls") || (has("input") && has("output")) {
            // Messages of Gemini count `input`, sums by model `prompt`, and streams `input_tokens`.
            let names = match () {
                () if has("prompt") => ["prompt", "candidates"],
                () if has("input_tokens") => ["input_tokens", "output_tokens"],
                () => ["input", "output"],
            };
            let [input, output] = names.map(|name| find([name; 2]).unwrap_or(0));
            let cached = find(["cached"; 2]).unwrap_or(0);
            // A stream has reasoning only in its total.
            let others =
                find(["total_tokens"; 2]).map(|total| total.saturating_sub(input).saturating_sub(output));
            let reasoning = find(["thoughts"; 2]).or(others).unwrap_or(0);
            tokens = Tokens {
                input: input.saturating_sub(cached),
                output: output.saturating_add(reasoning),
                cache_read: cached,
                reasoning,
                ..Tokens::default()
            };
        }
        Some(Self { tokens, is_whole })
    }

    /// Reads a report of `OpenCode`, whose counts are all separate.
    fn of_opencode(fields: &Fields<'_>) -> Option<Self> {
        let cache = Fields::parse(fields.last("cache")?.get()).ok()?;
        let mut is_whole = true;
        let mut find = |object: &Fields<'_>, name: &str| {
            let value = object.last(name).filter(|value| value.get() != "null");
            let count = value.map(|value| value.get().parse::<u64>().ok());
            is_whole &= count != Some(None);
            count.flatten().unwrap_or(0)
        };
        let reasoning = find(fields, "reasoning");
        let tokens = Tokens {
            input: find(fields, "input"),
            output: find(fields, "output").saturating_add(reasoning),
            cache_read: find(&cache, "read"),
            cache_write: find(&cache, "write"),
            cache_write_1h: 0,
            reasoning,
        };
        Some(Self { tokens, is_whole })
    }

    /// Reads a report in the form of the APIs of `OpenAI` or Gemini, where counts include each other.
    fn of_api(fields: &Fields<'_>) -> Option<Self> {
        let mut is_whole = true;
        let mut find = |object: &Fields<'_>, name: &str| {
            let value = object.last(name).filter(|value| value.get() != "null")?;
            let count: Option<u64> = value.get().parse().ok();
            is_whole &= count.is_some();
            count
        };
        let inside = |name: &str| fields.last(name).and_then(|value| Fields::parse(value.get()).ok());
        let tokens = if fields.has("promptTokenCount") {
            let cached = find(fields, "cachedContentTokenCount").unwrap_or(0);
            let read = find(fields, "promptTokenCount").unwrap_or(0)
                + find(fields, "toolUsePromptTokenCount").unwrap_or(0);
            let reasoning = find(fields, "thoughtsTokenCount").unwrap_or(0);
            let output = find(fields, "candidatesTokenCount").unwrap_or(0).saturating_add(reasoning);
            Tokens {
                input: read.saturating_sub(cached),
                output,
                cache_read: cached,
                reasoning,
                ..Tokens::default()
            }
        } else {
            let names = [
                ("prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details"),
                ("input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details"),
            ];
            let is_its = |(input, details, _, _): &(&str, &str, &str, &str)| {
                fields.has(input) && (fields.has(details) || *input == "prompt_tokens")
            };
            let (input, details, output, output_details) = names.into_iter().find(is_its)?;
            let (of_input, of_output) = (inside(details), inside(output_details));
            let mut detail = |object: &Option<Fields<'_>>, name: &str| {
                object.as_ref().and_then(|object| find(object, name)).unwrap_or(0)
            };
            let cache_read = detail(&of_input, "cached_tokens");
            let cache_write = detail(&of_input, "cache_write_tokens");
            let reasoning = detail(&of_output, "reasoning_tokens");
            let input =
                find(fields, input).unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write);
            let output = find(fields, output).unwrap_or(0);
            Tokens { input, output, cache_read, cache_write, cache_write_1h: 0, reasoning }
        };
        Some(Self { tokens, is_whole })
    }
}

impl Tokens {
    /// Sums an agent's total, over its models if it has them.
    #[must_use]
    pub fn reported_sum(report: &RawJson) -> Self {
        let by_model = Self::read_by_model(report.as_str());
        if by_model.is_empty() {
            return Counts::read(report.as_str()).unwrap_or_default().tokens;
        }
        by_model.into_iter().fold(Self::default(), |sum, (_, of)| sum.plus(of))
    }

    /// Reads a report by model; empty if it is a plain report.
    #[must_use]
    pub fn read_by_model(report: &str) -> Vec<(String, Self)> {
        let Ok(fields) = Fields::parse(report) else { return Vec::new() };
        let is_object = |value: &RawValue| value.get().starts_with('{');
        let is_plain = fields.iter().any(|(_, value)| !is_object(value));
        let models = fields.iter().filter(|_| !is_plain);
        let read = models
            .filter_map(|(name, value)| Some((name.text().into_owned(), Counts::read(value.get())?.tokens)));
        read.collect()
    }

    /// Returns the larger count of each kind: records of one response repeat and refine its usage.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, u64::max)
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// Returns the difference of each kind, at least zero.
    pub(super) fn minus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// Tells whether one of the counts is larger. Not every total lists one-hour cache writes and reasoning separately.
    pub(super) fn has_more_than(self, known: Self) -> bool {
        let Self { cache_write_1h, reasoning, .. } = known;
        known.max(Self { cache_write_1h, reasoning, ..self }) != known
    }

    /// Returns what these counts have beyond known ones, in all at most the difference of both totals: reports divide
    /// input and cached tokens differently.
    pub(super) fn beyond(self, known: Self) -> Self {
        let mut left = self.total().saturating_sub(known.total());
        let more = self.minus(known);
        let mut take = |count: u64| {
            let taken = count.min(left);
            left -= taken;
            taken
        };
        let (output, input) = (take(more.output), take(more.input));
        let (cache_read, cache_write) = (take(more.cache_read), take(more.cache_write));
        let cache_write_1h = more.cache_write_1h.min(cache_write);
        Self { input, output, cache_read, cache_write, cache_write_1h, reasoning: more.reasoning.min(output) }
    }

    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            input: with(self.input, other.input),
            output: with(self.output, other.output),
            cache_read: with(self.cache_read, other.cache_read),
            cache_write: with(self.cache_write, other.cache_write),
            cache_write_1h: with(self.cache_write_1h, other.cache_write_1h),
            reasoning: with(self.reasoning, other.reasoning),
        }
    }

    /// Returns the sum of all tokens.
    #[must_use]
    pub fn total(self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_write].into_iter().fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(report: &str, want: Option<Tokens>) {
        assert_eq!(Counts::read(report).map(|counts| counts.tokens), want, "{report}");
    }

    #[test]
    fn separate_counts_stay_separate() {
        let want =
            Tokens { input: 3, output: 5, cache_read: 70, cache_write: 11, cache_write_1h: 0, reasoning: 0 };
        check(
            r#"{"input_tokens":3,"cache_creation_input_tokens":11,"cache_read_input_tokens":70,"output_tokens":5}"#,
            Some(want),
        );
        check(
            r#"{"input_tokens":3,"cache_creation_input_tokens":11,"cache_read_input_tokens":70,"output_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":7}}"#,
            Some(Tokens { cache_write_1h: 7, ..want }),
        );
    }

    #[test]
    fn nested_counts_are_separated() {
        let want =
            Tokens { input: 20, output: 9, cache_read: 70, cache_write: 10, cache_write_1h: 0, reasoning: 4 };
        check(
            r#"{"input_tokens":100,"cached_input_tokens":70,"cache_write_input_tokens":10,"output_tokens":9,"reasoning_output_tokens":4}"#,
            Some(want),
        );
        check(
            r#"{"input_tokens":1,"cached_input_tokens":70}"#,
            Some(Tokens { cache_read: 70, ..Tokens::default() }),
        );
    }

    #[test]
    fn gemini_counts_cached_input_as_input_and_reasoning_apart() {
        check(
            r#"{"input":100,"output":9,"cached":70,"thoughts":4,"tool":0,"total":113}"#,
            Some(Tokens {
                input: 30,
                output: 13,
                cache_read: 70,
                cache_write: 0,
                cache_write_1h: 0,
                reasoning: 4,
            }),
        );
        check(
            r#"{"total_tokens":113,"input_tokens":100,"output_tokens":9,"cached":70,"input":30,"tool_calls":1}"#,
            Some(Tokens {
                input: 30,
                output: 13,
                cache_read: 70,
                cache_write: 0,
                cache_write_1h: 0,
                reasoning: 4,
            }),
        );
        check(
            r#"{"total_tokens":113,"input_tokens":100,"output_tokens":9,"duration_ms":9,"tool_calls":1}"#,
            Some(Tokens {
                input: 100,
                output: 13,
                cache_read: 0,
                cache_write: 0,
                cache_write_1h: 0,
                reasoning: 4,
            }),
        );
        check(
            r#"{"input":30,"prompt":100,"candidates":9,"total":113,"cached":70,"thoughts":4,"tool":0}"#,
            Some(Tokens {
                input: 30,
                output: 13,
                cache_read: 70,
                cache_write: 0,
                cache_write_1h: 0,
                reasoning: 4,
            }),
        );
    }

    #[test]
    fn opencode_counts_everything_apart() {
        check(
            r#"{"total":113,"input":30,"output":9,"reasoning":4,"cache":{"read":69,"write":1}}"#,
            Some(Tokens {
                input: 30,
                output: 13,
                cache_read: 69,
                cache_write: 1,
                cache_write_1h: 0,
                reasoning: 4,
            }),
        );
        assert!(
            !Counts::read(r#"{"input":1.5,"output":9,"cache":{}}"#).is_some_and(|counts| counts.is_whole)
        );
    }

    #[test]
    fn both_spellings_of_names_are_read() {
        let want =
            Tokens { input: 3, output: 9, cache_read: 6, cache_write: 1, cache_write_1h: 0, reasoning: 4 };
        check(
            r#"{"inputTokens":10,"cachedInputTokens":6,"cacheWriteInputTokens":1,"outputTokens":9,"reasoningOutputTokens":4}"#,
            Some(want),
        );
        check(
            r#"{"inputTokens":10,"outputTokens":9,"cacheReadTokens":6,"cacheWriteTokens":1,"reasoningTokens":4}"#,
            Some(want),
        );
        let want =
            Tokens { input: 3, output: 9, cache_read: 6, cache_write: 1, cache_write_1h: 0, reasoning: 0 };
        check(
            r#"{"inputTokens":3,"outputTokens":9,"cacheReadInputTokens":6,"cacheCreationInputTokens":1}"#,
            Some(want),
        );
    }

    #[test]
    fn reports_of_apis_are_separated() {
        let want =
            Tokens { input: 30, output: 9, cache_read: 60, cache_write: 10, cache_write_1h: 0, reasoning: 4 };
        check(
            r#"{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":10},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":109}"#,
            Some(want),
        );
        let want = Tokens { cache_write: 0, input: 40, ..want };
        check(
            r#"{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":4}}"#,
            Some(want),
        );
        check(
            r#"{"promptTokenCount":90,"toolUsePromptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":4,"cachedContentTokenCount":60,"totalTokenCount":109}"#,
            Some(want),
        );
        check(r#"{"prompt_tokens":3}"#, Some(Tokens { input: 3, ..Tokens::default() }));
    }

    #[test]
    fn other_json_is_not_a_report() {
        check("[]", None);
        check("{}", Some(Tokens::default()));
    }
}
