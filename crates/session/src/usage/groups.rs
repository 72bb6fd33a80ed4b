//! Groups rows of usage by day, provider, model or session.

use std::collections::BTreeMap;

use steno_model::json::{ObjectWriter, RawJson};

use super::{RowKey, TokenUsage, Tokens};

/// A column to group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A day in UTC.
    Day,
    /// The provider of the agent.
    Provider,
    /// A model.
    Model,
    /// A session.
    Session,
}

impl Column {
    const ALL: [Self; 4] = [Self::Day, Self::Provider, Self::Model, Self::Session];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Provider => "provider",
            Self::Model => "model",
            Self::Session => "session",
        }
    }

    /// Returns the column with a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name)
    }

    fn of(self, key: &RowKey) -> String {
        match self {
            Self::Day => key.day.clone(),
            Self::Provider => key.provider.clone(),
            Self::Model => key.model.clone(),
            Self::Session => key.session.to_string(),
        }
    }
}

/// The values of a group, for the selected columns.
pub type UsageGroup = Vec<(&'static str, String)>;

/// Groups and sums rows. A column that is named twice counts once.
#[must_use]
pub fn grouped(rows: &BTreeMap<RowKey, TokenUsage>, by: &[Column]) -> BTreeMap<UsageGroup, TokenUsage> {
    let by = each_once(by);
    let mut groups = BTreeMap::<UsageGroup, TokenUsage>::new();
    for (key, used) in rows {
        let group = by.iter().map(|column| (column.name(), column.of(key))).collect();
        groups.entry(group).or_default().add(*used);
    }
    groups
}

/// Returns columns without repetitions.
#[must_use]
pub fn each_once(by: &[Column]) -> Vec<Column> {
    let mut seen = Vec::new();
    for column in by {
        if !seen.contains(column) {
            seen.push(*column);
        }
    }
    seen
}

/// Returns a row as JSON.
#[must_use]
pub fn row(group: &UsageGroup, used: &TokenUsage) -> RawJson {
    RawJson::object(|object: &mut ObjectWriter<'_>| {
        for (name, value) in group {
            object.string(name, &value.as_str().into());
        }
        object.number("responses", used.responses);
        for (name, value) in columns(used.tokens) {
            object.number(name, value);
        }
        object.json("exact", &RawJson::from(!used.is_lower_bound));
    })
}

fn columns(tokens: Tokens) -> [(&'static str, u64); 6] {
    [
        ("input_tokens", tokens.input),
        ("output_tokens", tokens.output),
        ("cache_read_tokens", tokens.cache_read),
        ("cache_write_tokens", tokens.cache_write),
        ("reasoning_tokens", tokens.reasoning),
        ("total_tokens", tokens.total()),
    ]
}
