//! The calls of a run: every report of one brought together, with its result, who was asked, and what it began.

use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{Fidelity, RunId, Timestamp, Vocabulary as _};

use super::text::push_clean;
use crate::call_ids::{CallIds, Channel, Told};
use crate::fields::PayloadFields;

/// The place of a call among the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallNumber(pub(super) usize);

/// A call as far as it is known.
#[derive(Default)]
pub(super) struct Call {
    /// The provider's id of it.
    pub(super) id: Option<JsonString>,
    pub(super) name: Option<JsonString>,
    pub(super) input: Option<RawJson>,
    /// What else its `tool.call` says.
    pub(super) facts: Vec<(JsonString, RawJson)>,
    pub(super) result: Option<CallResult>,
    /// What became known later, in order.
    pub(super) amended: Vec<RawJson>,
    pub(super) approvals: Vec<Approval>,
    pub(super) children: Vec<Child>,
    /// Whether a response has it.
    pub(super) is_in_response: bool,
    is_routers: bool,
}

/// What came back of a call.
pub(super) struct CallResult {
    pub(super) at: Option<Timestamp>,
    pub(super) output: Option<RawJson>,
    pub(super) error: Option<JsonString>,
    /// What else its `tool.result` says: outcome, exit code, duration, ….
    pub(super) facts: Vec<(JsonString, RawJson)>,
    is_routers: bool,
}

/// A question whether a call may be made.
#[derive(Default)]
pub(super) struct Approval {
    pub(super) request: Option<JsonString>,
    /// The answer, as its event has it.
    pub(super) answer: Option<RawJson>,
    pub(super) is_answered: bool,
}

/// A run that a call began.
pub(super) struct Child {
    pub(super) run: RunId,
    pub(super) name: Option<JsonString>,
}

/// All calls of a run, in the order of their first report.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    ids: CallIds,
}

impl Calls {
    /// Takes the block of a call in a response.
    pub(super) fn used(&mut self, block: &PayloadFields<'_>) -> CallNumber {
        let is_routers = is_routers(block);
        let number = match block.string("tool_id") {
            Some(id) => self.reported(&id, Told::Use, is_routers).0,
            None => self.add(None),
        };
        let call = &mut self.calls[number.0];
        call.is_in_response = true;
        call.fill(is_routers, block.string("tool_name"), || block.json("tool_input"));
        number
    }

    /// Takes a `tool.call`; returns its number, and whether this is the first report of it.
    pub(super) fn called(&mut self, fields: &PayloadFields<'_>) -> (CallNumber, bool) {
        let is_routers = is_routers(fields);
        let (number, is_new) = match fields.string("call_id") {
            Some(id) => self.reported(&id, Told::Call, is_routers),
            None => (self.add(None), true),
        };
        let call = &mut self.calls[number.0];
        call.fill(is_routers, fields.string("name"), || fields.json("input"));
        call.facts = fields.others(&["name", "call_id", "input", "output", "fidelity"]);
        (number, is_new)
    }

    /// Takes a `tool.result`; a result without a call gets one.
    pub(super) fn answered(&mut self, at: &Timestamp, fields: &PayloadFields<'_>) -> (CallNumber, bool) {
        let is_routers = is_routers(fields);
        let (number, is_new) = match fields.string("call_id") {
            Some(id) => self.reported(&id, Told::Result, is_routers),
            None => (self.add(None), true),
        };
        let call = &mut self.calls[number.0];
        call.name = call.name.take().or_else(|| fields.string("name"));
        if is_routers || !call.result.as_ref().is_some_and(|known| known.is_routers) {
            call.result = Some(CallResult {
                at: Some(at.clone()),
                output: fields.json("output"),
                error: fields.error(),
                facts: fields.others(&["name", "call_id", "input", "output", "error", "fidelity", "class"]),
                is_routers,
            });
        }
        (number, is_new)
    }

    /// Takes the block of a result in a message; false when no call waits for one.
    pub(super) fn answered_in_message(&mut self, block: &PayloadFields<'_>) -> bool {
        let call = block.string("tool_id").and_then(|id| self.last(&id));
        let Some(call) = call.map(|number| &mut self.calls[number.0]) else { return false };
        if call.result.is_some() {
            return false;
        }
        call.result = Some(CallResult {
            at: None,
            output: block.json("tool_content"),
            error: None,
            facts: Vec::new(),
            is_routers: is_routers(block),
        });
        true
    }

    /// Takes what became known of a call later; false when there is no such call.
    pub(super) fn amended(&mut self, id: &JsonString, facts: &RawJson) -> bool {
        let Some(number) = self.last(id) else { return false };
        self.calls[number.0].amended.push(facts.clone());
        true
    }

    /// Returns the last call with this id.
    pub(super) fn last(&self, id: &JsonString) -> Option<CallNumber> {
        self.ids.last(id).map(CallNumber)
    }

    pub(super) fn get(&self, number: CallNumber) -> &Call {
        &self.calls[number.0]
    }

    pub(super) fn get_mut(&mut self, number: CallNumber) -> &mut Call {
        &mut self.calls[number.0]
    }

    /// Iterates over all calls.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns the call that a report is about, and whether this is the first report of it.
    fn reported(&mut self, id: &JsonString, told: Told, is_routers: bool) -> (CallNumber, bool) {
        let channel = if is_routers { Channel::Router } else { Channel::Agent };
        if let Some(number) = self.ids.report(id, told, channel) {
            return (CallNumber(number), false);
        }
        let number = self.add(Some(id.clone()));
        self.ids.add(id, number.0);
        (number, true)
    }

    fn add(&mut self, id: Option<JsonString>) -> CallNumber {
        self.calls.push(Call { id, ..Call::default() });
        CallNumber(self.calls.len() - 1)
    }
}

impl Call {
    /// Takes name and input of a report, unless they are known, or from the router, who knows best.
    fn fill(&mut self, is_routers: bool, name: Option<JsonString>, input: impl FnOnce() -> Option<RawJson>) {
        let is_better = is_routers && !self.is_routers;
        if is_better || self.name.is_none() {
            self.name = name.or(self.name.take());
        }
        if is_better || self.input.as_ref().is_none_or(RawJson::is_null) {
            self.input = input().or(self.input.take());
        }
        self.is_routers |= is_routers;
    }

    /// Returns the last word on a fact of the result: what became known later counts more.
    pub(super) fn fact(&self, name: &str) -> Option<RawJson> {
        let later =
            self.amended.iter().rev().find_map(|facts| PayloadFields::parse(facts.as_str()).json(name));
        let at_first = || {
            let facts = &self.result.as_ref()?.facts;
            facts.iter().rev().find(|(key, _)| key.is(name)).map(|(_, value)| value.clone())
        };
        later.or_else(at_first)
    }

    /// Tells whether there is anything to say of what came of it.
    pub(super) fn has_outcome(&self) -> bool {
        self.result.is_some()
            || !self.amended.is_empty()
            || !self.approvals.is_empty()
            || !self.children.is_empty()
    }
}

impl Approval {
    /// Reads a question, or the answer to one.
    pub(super) fn read(fields: &PayloadFields<'_>, is_answered: bool) -> Self {
        let answer = fields.json("result").filter(|answer| !answer.is_null());
        Self { request: fields.string("name"), answer, is_answered }
    }

    pub(super) fn write(&self, out: &mut String) {
        let mut object = ObjectWriter::begin(out);
        object.optional("request", self.request.as_ref(), |object, name, request| {
            object.nested(name, |out| push_clean(out, request.as_raw()));
        });
        object.json("answered", &RawJson::from(self.is_answered));
        object.optional("answer", self.answer.as_ref(), |object, name, answer| {
            object.nested(name, |out| push_clean(out, answer.as_str()));
        });
        object.end();
    }
}

fn is_routers(fields: &PayloadFields<'_>) -> bool {
    fields.text("fidelity").is_some_and(|word| word == Fidelity::Router.as_str())
}
