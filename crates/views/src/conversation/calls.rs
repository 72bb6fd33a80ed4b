//! The calls of a conversation: every report of one call brought together, whoever made it (R46, R50).

use steno_model::json::{JsonString, RawJson};
use steno_model::{Fidelity, Seq, Vocabulary as _};

use super::{Block, ToolResult, ToolUse};
use crate::call_ids::{CallIds, Channel, Told};
use crate::fields::PayloadFields;

/// The place of a call among the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallNumber(usize);

/// Which call a report is about, and whether it is the first report of it.
pub(super) struct Reported {
    pub(super) number: CallNumber,
    pub(super) is_new: bool,
}

/// A call as far as it is known.
pub(super) struct Call {
    pub(super) tool_use: ToolUse,
    pub(super) result: Option<ToolResult>,
    /// Whether a message has a block of it.
    pub(super) is_in_message: bool,
}

/// All calls of a run, in the order of their first report.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    ids: CallIds,
}

impl Calls {
    /// Takes the block of a call in a message.
    pub(super) fn used(&mut self, block: &PayloadFields<'_>) -> Option<CallNumber> {
        let id = block.string("tool_id")?;
        let fidelity = block.string("fidelity");
        let number = self.reported(&id, Told::Use, fidelity.as_ref()).number;
        let call = &mut self.calls[number.0];
        call.is_in_message = true;
        call.fill(fidelity, block.string("tool_name"), block.json("tool_input"));
        Some(number)
    }

    /// Takes a `tool.call`; one without an id is a call of its own.
    pub(super) fn called(&mut self, seq: Seq, fields: &PayloadFields<'_>) -> Reported {
        let fidelity = fields.string("fidelity");
        let reported = match fields.string("call_id") {
            Some(id) => self.reported(&id, Told::Call, fidelity.as_ref()),
            None => self.add(None),
        };
        let call = &mut self.calls[reported.number.0];
        call.fill(fidelity, fields.string("name"), fields.json("input"));
        let known = &mut call.tool_use;
        known.class = fields.string("class").or(known.class.take());
        known.seq_call = known.seq_call.or(Some(seq));
        reported
    }

    /// Takes a `tool.result`.
    pub(super) fn answered(&mut self, seq: Seq, fields: &PayloadFields<'_>) -> Reported {
        let (id, fidelity) = (fields.string("call_id"), fields.string("fidelity"));
        let reported = match &id {
            Some(id) => self.reported(id, Told::Result, fidelity.as_ref()),
            None => self.add(None),
        };
        let call = &mut self.calls[reported.number.0];
        let known = &mut call.tool_use;
        known.tool_name = known.tool_name.take().or_else(|| fields.string("name"));
        known.class = known.class.take().or_else(|| fields.string("class"));
        let is_better =
            is_router(fidelity.as_ref()) || !call.result.as_ref().is_some_and(ToolResult::is_routers);
        if is_better {
            call.result = Some(ToolResult {
                fidelity,
                tool_id: id,
                tool_content: fields.json("output"),
                outcome: fields.string("outcome"),
                error: fields.error(),
                exit_code: fields.json("exit_code"),
                seq_result: Some(seq),
                is_amended: false,
            });
        }
        call.tool_use.is_dangling = false;
        reported
    }

    /// Takes the block of a result in a message, as writers without `tool.result` have it; false when no call waits
    /// for one.
    pub(super) fn answered_in_message(&mut self, block: &PayloadFields<'_>) -> bool {
        let Some(call) = block.string("tool_id").and_then(|id| self.last_mut(&id)) else { return false };
        if call.result.is_some() {
            return false;
        }
        call.result = Some(ToolResult {
            fidelity: block.string("fidelity"),
            tool_content: block.json("tool_content"),
            ..call.empty_result()
        });
        call.tool_use.is_dangling = false;
        true
    }

    /// Folds in what became known of a call later; false when there is no such call.
    pub(super) fn amended(&mut self, id: &JsonString, facts: &PayloadFields<'_>) -> bool {
        let Some(call) = self.last_mut(id) else { return false };
        let mut result = call.result.take().unwrap_or_else(|| call.empty_result());
        result.tool_content = facts.json("output").or(result.tool_content);
        result.outcome = facts.string("outcome").or(result.outcome);
        result.exit_code = facts.json("exit_code").or(result.exit_code);
        result.error = facts.error().or(result.error);
        result.is_amended = true;
        call.result = Some(result);
        true
    }

    /// Returns the last call with this id.
    pub(super) fn last(&self, id: &JsonString) -> Option<CallNumber> {
        self.ids.last(id).map(CallNumber)
    }

    /// Returns a call.
    pub(super) fn get(&mut self, number: CallNumber) -> &mut Call {
        &mut self.calls[number.0]
    }

    /// Returns how many calls there are.
    pub(super) fn len(&self) -> u64 {
        self.calls.len() as u64
    }

    /// Returns the ids of calls without a result.
    pub(super) fn dangling(&self) -> Vec<JsonString> {
        let open = self.calls.iter().filter(|call| call.tool_use.is_dangling);
        open.filter_map(|call| call.tool_use.tool_id.clone()).collect()
    }

    fn last_mut(&mut self, id: &JsonString) -> Option<&mut Call> {
        let number = self.last(id)?;
        Some(&mut self.calls[number.0])
    }

    fn reported(&mut self, id: &JsonString, told: Told, fidelity: Option<&JsonString>) -> Reported {
        if let Some(number) = self.ids.report(id, told, channel(fidelity)) {
            return Reported { number: CallNumber(number), is_new: false };
        }
        let reported = self.add(Some(id.clone()));
        self.ids.add(id, reported.number.0);
        reported
    }

    fn add(&mut self, tool_id: Option<JsonString>) -> Reported {
        let number = CallNumber(self.calls.len());
        let tool_use = ToolUse {
            fidelity: None,
            tool_name: None,
            tool_id,
            tool_input: None,
            class: None,
            seq_call: None,
            is_dangling: true,
            approvals: Vec::new(),
            child_runs: Vec::new(),
        };
        self.calls.push(Call { tool_use, result: None, is_in_message: false });
        Reported { number, is_new: true }
    }
}

/// Tells who has reported something, by the word for it.
fn channel(fidelity: Option<&JsonString>) -> Channel {
    let is = |known: Fidelity| fidelity.is_some_and(|word| word.is(known.as_str()));
    match () {
        () if is(Fidelity::Router) => Channel::Router,
        () if is(Fidelity::AgentEmitted) => Channel::Agent,
        () => Channel::Other,
    }
}

impl Call {
    /// Keeps what a report says; a seam of ours knows better than the agent.
    fn fill(&mut self, fidelity: Option<JsonString>, name: Option<JsonString>, input: Option<RawJson>) {
        let known = &mut self.tool_use;
        if known.fidelity.is_none() || is_router(fidelity.as_ref()) {
            known.fidelity = fidelity;
            known.tool_name = name.or(known.tool_name.take());
            known.tool_input = input.or(known.tool_input.take());
        }
    }

    fn empty_result(&self) -> ToolResult {
        ToolResult {
            fidelity: None,
            tool_id: self.tool_use.tool_id.clone(),
            tool_content: None,
            outcome: None,
            error: None,
            exit_code: None,
            seq_result: None,
            is_amended: false,
        }
    }

    /// Returns the call as blocks: itself, and what came back.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Block> {
        let result = self.result.clone().map(|result| Block::ToolResult(Box::new(result)));
        [Block::ToolUse(Box::new(self.tool_use.clone()))].into_iter().chain(result)
    }
}

impl ToolResult {
    fn is_routers(&self) -> bool {
        is_router(self.fidelity.as_ref())
    }
}

fn is_router(fidelity: Option<&JsonString>) -> bool {
    fidelity.is_some_and(|word| word.is(Fidelity::Router.as_str()))
}
