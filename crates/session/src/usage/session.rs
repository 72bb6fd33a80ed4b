//! The usage of one session.

use steno_model::json::RawJson;
use steno_model::{EventType, ExchangeEvent, Word};

use super::family::UsageParts;
use super::processes::ProcessSum;
use super::{Dollars, ModelUsage, TokenUsage, Tokens, UsageBuilder, add_by_model};
use crate::builder::copied_from;
use crate::fields::PayloadFields;

/// Adds up what a session used. What was copied counts elsewhere. The agent's own total counts only if there is nothing
/// else, because it may include what subagents used.
pub(crate) struct SessionUsage {
    usage: UsageBuilder,
    /// The last event with the agent's total of the session.
    total: Option<ExchangeEvent>,
    head: Option<ExchangeEvent>,
    /// Whether responses were copied from another session.
    has_copies: bool,
}

/// The usage of a session.
pub(crate) struct FoundUsage {
    /// Where it comes from.
    pub(crate) parts: UsageParts,
    /// The agent's total.
    pub(crate) reported_total: Option<RawJson>,
    /// What it costs according to the agent.
    pub(crate) agent_cost: Option<Dollars>,
}

impl Default for SessionUsage {
    fn default() -> Self {
        Self { usage: UsageBuilder::of_session(), total: None, head: None, has_copies: false }
    }
}

impl SessionUsage {
    pub(crate) fn push(&mut self, event: &ExchangeEvent, fields: &PayloadFields<'_>) {
        let Word::Known(event_type) = event.event_type else { return };
        if !UsageBuilder::may_tell(event_type) {
            return;
        }
        if event_type == EventType::MessageAssistant && copied_from(event).is_some() {
            self.has_copies = true;
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
        let process_sums: Vec<ModelUsage> = processes.into_iter().map(ProcessSum::model_usage).collect();
        let reported_total = self.total.as_ref().and_then(|event| PayloadFields::of(event).json("usage"));
        let responses = sum(self.usage).or_else(|| {
            if !process_sums.is_empty() {
                return None;
            }
            let mut usage = UsageBuilder::new();
            self.head.iter().for_each(|head| usage.push(head));
            usage.push(self.total.as_ref()?);
            sum(usage)
        });
        let by_responses = responses.as_ref().map(|sum| sum.used);
        let (responses_by_model, cost_of_responses) =
            responses.map(|sum| (sum.by_model, sum.cost)).unwrap_or_default();
        let total_cost = reported_total.as_ref().and_then(|total| Dollars::of_total(total.as_str()));
        let agent_cost = total_cost.or(cost_of_responses);
        // The total of a fork continues that of the other session.
        let total = reported_total.as_ref().filter(|_| !self.has_copies).map(Tokens::reported_sum);
        let parts = UsageParts { by_responses, responses_by_model, process_sums, total };
        FoundUsage { parts, reported_total, agent_cost }
    }
}

/// The usage of responses.
struct UsageSum {
    used: TokenUsage,
    by_model: Vec<ModelUsage>,
    /// What they cost according to the agent.
    cost: Option<Dollars>,
}

/// Sums everything; `None` if no record has usage, which is not zero.
fn sum(usage: UsageBuilder) -> Option<UsageSum> {
    let records = usage.records();
    let is_any = !records.is_empty();
    let mut sum = UsageSum { used: TokenUsage::default(), by_model: Vec::new(), cost: None };
    for record in records {
        sum.used.add(record.used);
        add_by_model(&mut sum.by_model, record.model);
        let cost = record.agent_cost.map(|cost| cost.plus(sum.cost.unwrap_or_default()));
        sum.cost = cost.or(sum.cost);
    }
    is_any.then_some(sum)
}
