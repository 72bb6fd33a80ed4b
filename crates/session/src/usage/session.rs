//! The usage of one session.

use steno_model::json::RawJson;
use steno_model::{EventType, ExchangeEvent, Word};

use super::processes::{ProcessSum, with_processes};
use super::{TokenUsage, Tokens, UsageBuilder};
use crate::builder::copied_from;
use crate::fields::PayloadFields;
use crate::session::Session;

impl Session {
    /// Returns the usage of its responses. It is a lower bound also if the agent's own total is larger: agents make hidden
    /// requests, like the summary of a compaction. The total is ignored if it may include subagents, or continues that of
    /// another session in a fork.
    #[must_use]
    pub fn own_usage(&self) -> Option<TokenUsage> {
        let used = self.used?;
        let is_alone = self.links.is_empty() && self.items_copied() == 0;
        let total = self.reported_total.as_ref().filter(|_| is_alone).map(Tokens::reported_sum);
        let is_more = total.is_some_and(|total| {
            let total = Tokens { reasoning: used.tokens.reasoning, ..total };
            used.tokens.max(total) != used.tokens
        });
        Some(TokenUsage { is_lower_bound: used.is_lower_bound || is_more, ..used })
    }

    fn items_copied(&self) -> usize {
        self.messages.iter().filter(|message| message.copied_from.is_some()).count()
    }
}

/// Adds up what a session used. What was copied was used elsewhere, and the agent's own total counts only where there is
/// nothing else: it may include what subagents used.
pub(crate) struct SessionUsage {
    usage: UsageBuilder,
    /// The last event that tells what the agent has added up for the session.
    total: Option<ExchangeEvent>,
    head: Option<ExchangeEvent>,
}

/// The usage of a session.
pub(crate) struct FoundUsage {
    /// All of it.
    pub(crate) used: Option<TokenUsage>,
    /// That of its responses and turns.
    pub(crate) by_responses: Option<TokenUsage>,
    /// The sums of its processes.
    pub(crate) process_sums: Vec<Tokens>,
    /// The agent's total.
    pub(crate) reported_total: Option<RawJson>,
}

impl Default for SessionUsage {
    fn default() -> Self {
        Self { usage: UsageBuilder::of_session(), total: None, head: None }
    }
}

impl SessionUsage {
    pub(crate) fn push(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let Word::Known(event_type) = event.event_type else { return };
        if !UsageBuilder::may_tell(event_type) {
            return;
        }
        if event_type == EventType::MessageAssistant && copied_from(event).is_some() {
            return;
        }
        if event_type == EventType::RunStarted {
            self.head.get_or_insert_with(|| event.clone());
        }
        if fields.text("usage_scope").is_some_and(|scope| scope == "session") {
            self.total = Some(event.clone());
        } else {
            self.usage.push_read(event, fields);
        }
    }

    pub(crate) fn finish(mut self) -> FoundUsage {
        let processes = std::mem::take(&mut self.usage.processes);
        let processes = ProcessSum::each_once(processes.iter());
        let process_sums: Vec<Tokens> = processes.into_iter().map(|sum| sum.amount.tokens).collect();
        let reported_total = self.total.as_ref().and_then(|event| PayloadFields::of(event).json("usage"));
        let by_responses = sum(self.usage).or_else(|| {
            if !process_sums.is_empty() {
                return None;
            }
            let mut usage = UsageBuilder::new();
            self.head.iter().for_each(|head| usage.push(head));
            usage.push(self.total.as_ref()?);
            sum(usage)
        });
        let used = with_processes(by_responses, &process_sums, Tokens::default());
        FoundUsage { used, by_responses, process_sums, reported_total }
    }
}

/// Sums all rows; `None` if no record has usage, which is not zero.
fn sum(usage: UsageBuilder) -> Option<TokenUsage> {
    let rows = usage.finish();
    let mut all = TokenUsage::default();
    for used in rows.values() {
        all.add(*used);
    }
    (!rows.is_empty()).then_some(all)
}
