//! The digest of a session: what lists, filters and the index need of it.
//!
//! [`SessionDigest`] has one value per question that a list answers. [`TextUnit`]s name the texts that a search looks at,
//! by the event they stand in: nothing is copied.

mod beside_calls;
mod calls;
mod failure_line;
mod state;
#[cfg(test)]
mod tests;
mod texts;
mod title;

use steno_model::json::JsonString;
use steno_model::{RunId, Timestamp};
use steno_session::usage::{Dollars, ModelUsage, TokenUsage, add_by_model};
use steno_session::{ItemKind, Outcome, PayloadFields, Session, Speaker};

use crate::cost::{Cost, Prices};

pub use beside_calls::{ListEntry, entries_beside_calls};
pub use calls::{CallDigest, paths_changed};
pub use failure_line::failure_line;
pub use state::DigestState;
pub use texts::{
    TextKind, TextUnit, arguments_text, each_text, error_output, output_text, tool_name, unit_text,
};

/// What lists say of a session. Counts are of the session itself, without its child sessions.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionDigest {
    /// The session.
    pub id: RunId,
    /// The session that started it.
    pub parent: Option<RunId>,
    /// The session that it is a fork of.
    pub forked_from: Option<RunId>,
    /// The provider of the agent.
    pub provider: Option<String>,
    /// The name of its run: the agent's, or the one that `steno run --name` gave.
    pub name: Option<String>,
    /// The agent's name of the session, if that is not the id. The index does not have it.
    pub own_name: Option<String>,
    /// The kind of its run.
    pub kind: Option<String>,
    /// The version of the agent.
    pub version: Option<String>,
    /// The models that answered, in the order of their first response.
    pub models: Vec<String>,
    /// The title: the agent's own, else the first line of the first prompt.
    pub title: Option<String>,
    /// Whether the agent gave the title.
    pub is_own_title: bool,
    /// The directory that the agent worked in.
    pub directory: Option<String>,
    /// The branch of the repository when the session began.
    pub branch: Option<String>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// What is known of its end.
    pub state: DigestState,
    /// How many prompts the user gave.
    pub prompts: u64,
    /// How many responses the model gave.
    pub responses: u64,
    /// How many calls there are, each counted once.
    pub calls: u64,
    /// How many calls, commands of `steno run` and turns failed; an error in a turn stands for the turn.
    pub failures: u64,
    /// How many calls were denied.
    pub denials: u64,
    /// What its responses used; `None` if no record says it.
    pub usage: Option<TokenUsage>,
    /// The same by model, which gives its cost.
    pub used_by_model: Vec<ModelUsage>,
    /// What it costs according to the agent, which may include its child sessions.
    pub agent_cost: Option<Dollars>,
    /// How many runs it was read from.
    pub runs: u64,
}

/// What a session adds to the session that it is below of.
#[derive(Clone, Debug, PartialEq)]
pub struct SumsBelow {
    /// How many calls there are.
    pub calls: u64,
    /// How many calls, commands of `steno run` and turns failed; an error in a turn stands for the turn.
    pub failures: u64,
    /// How many calls were denied.
    pub denials: u64,
    /// What its responses used.
    pub usage: Option<TokenUsage>,
    /// The same by model.
    pub used_by_model: Vec<ModelUsage>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
}

impl SessionDigest {
    /// Returns what this session adds to one that it is below of.
    #[must_use]
    pub fn sums(&self) -> SumsBelow {
        SumsBelow {
            calls: self.calls,
            failures: self.failures,
            denials: self.denials,
            usage: self.usage,
            used_by_model: self.used_by_model.clone(),
            last_at: self.last_at.clone(),
        }
    }

    /// Adds what a session below this one did and used. Prompts and responses stay those of this session.
    pub fn add_below(&mut self, other: &SumsBelow) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.denials += other.denials;
        if let Some(used) = other.usage {
            self.usage.get_or_insert_with(TokenUsage::default).add(used);
        }
        for used in &other.used_by_model {
            add_by_model(&mut self.used_by_model, used.clone());
        }
        let later = other.last_at.as_ref().and_then(Timestamp::instant);
        if later > self.last_at.as_ref().and_then(Timestamp::instant) {
            self.last_at.clone_from(&other.last_at);
        }
    }

    /// Returns the digest of a session.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        let main = session.runs.first();
        let summaries = || session.runs.iter().map(|run| &run.summary);
        let word = |word: &Option<JsonString>| word.as_ref().map(|word| word.to_text().into_owned());
        let heads: Vec<PayloadFields<'_>> = session
            .runs
            .iter()
            .filter_map(|run| run.head.as_ref())
            .map(|head| PayloadFields::parse(head.as_str()))
            .collect();
        let title = title::of(session);
        let count =
            |outcome: Outcome| session.calls.iter().filter(|call| call.outcome() == outcome).count() as u64;
        Self {
            id: session.id,
            parent: summaries().find_map(|summary| summary.parent_run_id),
            forked_from: session.runs.iter().find_map(|run| run.forked_from),
            provider: summaries().find_map(|summary| word(&summary.provider)),
            name: summaries().find_map(|summary| word(&summary.name)),
            own_name: heads.iter().find_map(|head| text_in(head, "session_id")),
            kind: summaries().find_map(|summary| word(&summary.kind)),
            version: heads.iter().find_map(|head| text_in(&head.object("source"), "version")),
            models: models(session),
            is_own_title: title.as_ref().is_some_and(|title| title.is_own),
            title: title.map(|title| title.text),
            directory: heads.iter().find_map(|head| text_in(head, "cwd")),
            branch: heads.iter().find_map(|head| text_in(&head.object("git"), "branch")),
            started_at: main.and_then(|main| main.summary.started_at.clone()),
            last_at: latest(summaries().filter_map(|summary| summary.last_at.as_ref())),
            state: DigestState::of(session),
            prompts: prompts(session),
            responses: session.responses.len() as u64,
            calls: session.calls.len() as u64,
            failures: count(Outcome::Failed) + failures_beside_calls(session),
            denials: count(Outcome::Denied),
            usage: session.used,
            used_by_model: session.used_by_model.clone(),
            agent_cost: session.agent_cost,
            runs: session.runs.len() as u64,
        }
    }

    /// Returns what it costs at list prices; `None` if no record has usage.
    #[must_use]
    pub fn cost(&self, prices: &Prices) -> Option<Cost> {
        let used = self.usage?;
        let mut cost = Cost::of(prices, &self.used_by_model);
        cost.is_lower_bound |= used.is_lower_bound;
        Some(cost)
    }
}

/// Counts the commands of `steno run` and the errors that are failures.
fn failures_beside_calls(session: &Session) -> u64 {
    let entries = entries_beside_calls(session);
    entries.iter().filter(|entry| entry.outcome == Outcome::Failed).count() as u64
}

/// Returns a text field, unless it is empty.
fn text_in(fields: &PayloadFields<'_>, name: &str) -> Option<String> {
    fields.text(name).filter(|text| !text.is_empty()).map(std::borrow::Cow::into_owned)
}

/// Returns the latest of some times.
fn latest<'a>(times: impl Iterator<Item = &'a Timestamp>) -> Option<Timestamp> {
    times.max_by_key(|time| time.instant()).cloned()
}

fn models(session: &Session) -> Vec<String> {
    let mut models = Vec::new();
    for model in session.responses.iter().filter_map(|response| response.model.as_ref()) {
        let model = model.to_text();
        // Claude Code names its own messages like this; no model wrote them.
        if &*model != "<synthetic>" && !models.iter().any(|known| *known == *model) {
            models.push(model.into_owned());
        }
    }
    models
}

fn prompts(session: &Session) -> u64 {
    let is_prompt = |kind: ItemKind| match kind {
        ItemKind::Prompt(message) => session.messages[message.0].speaker == Speaker::User,
        ItemKind::SystemPrompt(_)
        | ItemKind::Response(_)
        | ItemKind::Call(_)
        | ItemKind::Approval(_)
        | ItemKind::Child(_)
        | ItemKind::Fact(_) => false,
    };
    session.items.iter().filter(|item| is_prompt(item.kind)).count() as u64
}
