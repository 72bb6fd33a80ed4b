//! Usage as Gemini CLI counts it: `tokens` of a message, and the sums of a process.

use serde_json::value::RawValue;
use steno_model::json::{Extra, Fields, RawJson};

use super::wire::ModelStats;
use crate::emit::string;
use crate::wire::{Raw, RawField as _, object};

/// What usage was spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Response,
    /// The turn of one agent.
    Turn,
    /// All that the process asked of models: also what its subagents used, and requests that no record shows.
    Process,
}

/// Adds usage to the fields of a message.
pub(super) fn push_usage(extra: &mut Extra, usage: RawJson, scope: Scope) {
    let scope = match scope {
        Scope::Response => "response",
        Scope::Turn => "turn",
        Scope::Process => "process",
    };
    extra.push("usage", usage);
    extra.push("usage_scope", string(scope));
    extra.push("final", RawJson::from(true));
}

/// The token counts in the sums of a process.
pub(super) struct ProcessTokens {
    /// The counts of the only model, or of each model by its name.
    pub(super) tokens: RawJson,
    /// The only model.
    pub(super) model: Option<RawJson>,
}

/// Returns the token counts in the sums of a process; `None` if there are none.
pub(super) fn process_tokens(models: Raw<'_>) -> Option<ProcessTokens> {
    tokens_by_model(models, |stats| stats.tokens.json())
}

/// Returns the token counts of the main agent alone, which versions since 0.61 tell; `None` if they are not there.
pub(super) fn main_tokens(models: Raw<'_>) -> Option<ProcessTokens> {
    tokens_by_model(models, |stats| stats.roles?.main?.tokens.json())
}

fn tokens_by_model(
    models: Raw<'_>,
    tokens: impl Fn(&ModelStats<'_>) -> Option<RawJson>,
) -> Option<ProcessTokens> {
    let fields = Fields::parse(models?.get()).ok()?;
    let tokens = |stats: &RawValue| object::<ModelStats<'_>>(stats).and_then(|stats| tokens(&stats));
    let mut counted: Vec<(&str, RawJson)> =
        fields.iter().filter_map(|(model, stats)| Some((model.as_raw(), tokens(stats)?))).collect();
    if counted.len() < 2 {
        let (model, tokens) = counted.pop()?;
        return Some(ProcessTokens { tokens, model: RawJson::parse(model).ok() });
    }
    // Names of models come from outside, and stay the strings that they are.
    let fields: Vec<String> = counted.iter().map(|(model, tokens)| format!("{model}:{tokens}")).collect();
    let tokens = RawJson::parse(&format!("{{{}}}", fields.join(","))).ok()?;
    Some(ProcessTokens { tokens, model: None })
}
