//! Usage that was counted: records, sessions and sums.

use std::collections::BTreeMap;

use steno_model::RunId;
use steno_model::json::{ObjectWriter, RawJson};

use super::{Dollars, ModelUsage, Tokens};

/// The key of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The day in UTC, like `2026-11-15`.
    pub day: String,
    /// The provider of the agent.
    pub provider: String,
    /// The model; empty where the record does not say.
    pub model: String,
    /// The session; a subagent's tokens count for its parent.
    pub session: RunId,
}

/// Usage that counts: that of a response, or of several that the records do not separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageRecord {
    /// When, in milliseconds since 1970; `None` if no record says it.
    pub at_ms: Option<i64>,
    /// The provider of the agent.
    pub provider: String,
    /// The session; a subagent's tokens count for its parent.
    pub session: RunId,
    /// How much.
    pub used: TokenUsage,
    /// The model and the length of the request.
    pub model: ModelUsage,
    /// What it costs according to the agent.
    pub agent_cost: Option<Dollars>,
}

/// All usage that counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CountedUsage {
    /// Each response, or the sum of several.
    pub records: Vec<UsageRecord>,
    /// The sessions that have usage.
    pub sessions: BTreeMap<RunId, UsedSession>,
}

/// What is known of a session with usage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedSession {
    /// The directory that the agent worked in.
    pub directory: Option<String>,
    /// The branch of the repository when it began.
    pub branch: Option<String>,
    /// What it costs according to the agent's total, by model. A total may include requests that no record has.
    pub agent_costs: BTreeMap<String, Dollars>,
}

/// A sum of token usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// How many responses, or turns where a channel counts only those.
    pub responses: u64,
    /// The tokens.
    pub tokens: Tokens,
    /// Whether it is a lower bound.
    pub is_lower_bound: bool,
}

impl TokenUsage {
    /// Adds another sum.
    pub fn add(&mut self, other: Self) {
        self.responses += other.responses;
        self.tokens = self.tokens.plus(other.tokens);
        self.is_lower_bound |= other.is_lower_bound;
    }

    /// Writes it as fields of an object.
    pub fn write(&self, object: &mut ObjectWriter<'_>) {
        let tokens = self.tokens;
        for (name, count) in [
            ("responses", self.responses),
            ("input_tokens", tokens.input),
            ("output_tokens", tokens.output),
            ("cache_read_tokens", tokens.cache_read),
            ("cache_write_tokens", tokens.cache_write),
            ("cache_write_1h_tokens", tokens.cache_write_1h),
            ("reasoning_tokens", tokens.reasoning),
            ("total_tokens", tokens.total()),
        ] {
            object.number(name, count);
        }
        object.json("exact", &RawJson::from(!self.is_lower_bound));
    }
}
