//! The usage of a run: once for each response, and in total as the view of usage computes it.

use steno_model::json::{ObjectWriter, RawJson};

use super::build::Run;
use super::family::Family;
use super::steps::Role;
use super::text::push_clean;
use steno_session::ResponseUsage;
use steno_session::usage::{TokenUsage, Tokens};

/// Returns true if the usage of a run is the sum of its steps.
pub(super) fn is_sum_of_steps(used: TokenUsage, run: &Run) -> bool {
    sum_of_steps(run) == used.tokens
}

/// Adds up the usage of the steps of a run. Copied steps have none.
fn sum_of_steps(run: &Run) -> Tokens {
    run.steps.iter().filter(|step| step.copied_from.is_none()).fold(Tokens::default(), |sum, step| {
        let Role::Agent(response) = &step.role else { return sum };
        response.usage.as_ref().map_or(sum, |usage| sum.plus(usage.tokens))
    })
}

impl Family {
    /// Returns the usage of a run. It is also a lower bound if the agent has counted more than the run and its
    /// subagents have recorded: the agent makes requests that it does not show, like the summary of a compaction.
    pub(super) fn used(&self, run: &Run) -> Option<TokenUsage> {
        let sum = sum_of_steps(run);
        let nothing = TokenUsage { responses: 0, tokens: Tokens::default(), is_lower_bound: true };
        let used = run.used.or_else(|| (sum != Tokens::default()).then_some(nothing))?;
        // An agent may report less for a turn than for its responses. A total is never less than the sum of its parts.
        let used = TokenUsage { tokens: used.tokens.max(sum), ..used };
        let is_more = run.total.zip(self.tokens_below(run)).is_some_and(|(total, below)| {
            let total = Tokens { reasoning: below.reasoning, ..total };
            below.max(total) != below
        });
        Some(TokenUsage { is_lower_bound: used.is_lower_bound || is_more, ..used })
    }

    /// Adds up the usage of a run and all runs below it; `None` if it is not completely known; then it is not compared
    /// with a total.
    fn tokens_below(&self, run: &Run) -> Option<Tokens> {
        // The total of a fork includes that of the run that it was copied from.
        if run.steps.iter().any(|step| step.copied_from.is_some()) {
            return None;
        }
        let mut tokens = run.used?.tokens;
        let mut waiting = vec![run];
        while let Some(run) = waiting.pop() {
            let children = self.children(run);
            if run.links.iter().any(|link| !children.iter().any(|child| child.id == *link)) {
                return None;
            }
            for child in children {
                tokens = tokens.plus(child.used.filter(|used| !used.is_lower_bound)?.tokens);
                waiting.push(child);
            }
        }
        Some(tokens)
    }
}

/// Returns all input tokens: ATIF includes cached tokens.
fn prompt(tokens: Tokens) -> u64 {
    [tokens.input, tokens.cache_read, tokens.cache_write].into_iter().fold(0, u64::saturating_add)
}

/// Writes the usage of a response.
pub(super) fn step_metrics(out: &mut String, usage: &ResponseUsage) {
    let mut object = ObjectWriter::begin(out);
    object.number("prompt_tokens", prompt(usage.tokens));
    object.number("completion_tokens", usage.tokens.output);
    object.number("cached_tokens", usage.tokens.cache_read);
    object.nested("extra", |out| {
        let mut object = ObjectWriter::begin(out);
        object.nested("usage", |out| push_clean(out, usage.report.as_str()));
        if usage.may_be_more() {
            object.json("lower_bound", &RawJson::from(true));
        }
        object.end();
    });
    object.end();
}

/// Writes the usage of all responses.
pub(super) fn final_metrics(out: &mut String, steps: u64, used: Option<TokenUsage>) {
    let mut object = ObjectWriter::begin(out);
    if let Some(used) = used {
        object.number("total_prompt_tokens", prompt(used.tokens));
        object.number("total_completion_tokens", used.tokens.output);
        object.number("total_cached_tokens", used.tokens.cache_read);
    }
    object.number("total_steps", steps);
    if let Some(used) = used {
        object.nested("extra", |out| {
            let mut object = ObjectWriter::begin(out);
            object.number("responses", used.responses);
            object.number("input_tokens", used.tokens.input);
            object.number("cache_write_tokens", used.tokens.cache_write);
            object.number("reasoning_tokens", used.tokens.reasoning);
            object.json("exact", &RawJson::from(!used.is_lower_bound));
            object.end();
        });
    }
    object.end();
}
