//! A call with its result, approvals and child runs.

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Timestamp};

use super::{ApprovalId, CallNumber, ChildId, EventPosition, ResponseId, RunNumber, StepId, TurnId};
use crate::state::State;

/// A call, from all records about it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The first event about it.
    pub at: EventPosition,
    /// When that was.
    pub time: Timestamp,
    /// The turn that it was made in.
    pub turn: Option<TurnId>,
    /// The step that it was made in.
    pub step: Option<StepId>,
    /// Its path.
    pub path: JsonString,
    /// The id that pairs it with its result.
    pub id: Option<JsonString>,
    /// Its `tool.call`.
    pub called: Option<EventPosition>,
    /// Whether the call itself is recorded, and not only its result.
    pub is_recorded: bool,
    /// The tool.
    pub name: Option<JsonString>,
    /// Its arguments, as they came.
    pub input: Option<RawJson>,
    /// Who reports it: the router or the agent.
    pub fidelity: Option<JsonString>,
    /// The class of the tool: `command`, `file_change`, `mcp`, `agent`, `other`.
    pub class: Option<JsonString>,
    /// Other fields of its `tool.call`.
    pub extra: Vec<(JsonString, RawJson)>,
    /// Its result, including amendments.
    pub result: Option<CallResult>,
    /// Whether a result was recorded, and not only an amendment.
    pub is_answered: bool,
    /// Its amendments, in order.
    pub amendments: Vec<RawJson>,
    /// Its approvals.
    pub approvals: Vec<ApprovalId>,
    /// The runs that it started.
    pub children: Vec<ChildId>,
    /// The response that made it.
    pub response: Option<ResponseId>,
    /// The runs that report it or its result, in order.
    pub runs: Vec<RunNumber>,
    /// The events about it in all runs, in order. A fold of more events has them in one call, too.
    pub events: Vec<EventPosition>,
    /// Whether it was denied, and never allowed.
    pub is_declined: bool,
}

/// The result of a call.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// Its `tool.result`; `None` if it was part of a message.
    pub at: Option<EventPosition>,
    /// When.
    pub time: Option<Timestamp>,
    /// The step that it came in.
    pub step: Option<StepId>,
    /// The output, as it came.
    pub output: Option<RawJson>,
    /// The output that the model got, if an amendment changed it.
    pub given: Option<RawJson>,
    /// How the call ended: `ok`, `failed`, `denied`, `interrupted`, `unknown`.
    pub outcome: Option<JsonString>,
    /// Who reported the outcome, if another one reported the rest.
    pub(crate) outcome_fidelity: Option<JsonString>,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The exit code, where the provider gives one as a number.
    pub exit_code: Option<RawJson>,
    /// The exit code that the agent wrote around the output of a command.
    pub(crate) printed_code: Option<i64>,
    /// Who reports it: the router or the agent.
    pub fidelity: Option<JsonString>,
    /// Other fields of its record.
    pub extra: Vec<(JsonString, RawJson)>,
    /// The last event that amended it.
    pub amended: Option<EventPosition>,
}

/// An approval: the request and its answer.
#[derive(Clone, Debug)]
pub struct Approval {
    /// Its first event.
    pub at: EventPosition,
    /// When.
    pub time: Timestamp,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// Its path.
    pub path: JsonString,
    /// The request's id.
    pub request: Option<JsonString>,
    /// The id of the call that it is about.
    pub tool_call_id: Option<JsonString>,
    /// That call.
    pub call: Option<CallNumber>,
    /// Whether the request is recorded, and not only the answer.
    pub is_asked: bool,
    /// Whether it was answered.
    pub state: State,
    /// `allowed`, `denied`, or what the provider says.
    pub decision: Option<JsonString>,
    /// Who decided.
    pub by: Option<JsonString>,
    /// For how long.
    pub scope: Option<JsonString>,
    /// The answer, as its event has it.
    pub answer: Option<RawJson>,
    /// The runs that report it, in order.
    pub runs: Vec<RunNumber>,
}

/// A link to a child run, which has its own session.
#[derive(Clone, Debug)]
pub struct ChildLink {
    /// The event that names it first.
    pub at: EventPosition,
    /// When.
    pub time: Timestamp,
    /// The turn that it was named in.
    pub turn: Option<TurnId>,
    /// The step that names it.
    pub step: Option<StepId>,
    /// Its path.
    pub path: JsonString,
    /// The run.
    pub run_id: RunId,
    /// Its name here.
    pub name: Option<JsonString>,
    /// The id of the call that began it.
    pub tool_call_id: Option<JsonString>,
    /// That call.
    pub call: Option<CallNumber>,
    /// How it ended, as reported by its parent.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
}
