//! A call, who was asked about it, what came back, and what it began.

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Timestamp};

use super::{ApprovalId, CallNumber, ChildId, EventPosition, ResponseId, StepId, TurnId};
use crate::state::State;

/// A call, from whichever records tell of it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The first event that tells of it.
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
    /// Whether somebody has recorded it, and not its result alone.
    pub is_recorded: bool,
    /// The tool.
    pub name: Option<JsonString>,
    /// Its arguments, as they came.
    pub input: Option<RawJson>,
    /// Who saw it.
    pub fidelity: Option<JsonString>,
    /// What sort of tool it is: `command`, `file_change`, `mcp`, `agent`, `other`.
    pub class: Option<JsonString>,
    /// What else its `tool.call` says.
    pub extra: Vec<(JsonString, RawJson)>,
    /// What came back; what became known later is part of it.
    pub result: Option<CallResult>,
    /// Whether a result was recorded, and not only something that became known later.
    pub is_answered: bool,
    /// What became known later, in order.
    pub amendments: Vec<RawJson>,
    /// Who was asked about it.
    pub approvals: Vec<ApprovalId>,
    /// The runs that it began.
    pub children: Vec<ChildId>,
    /// The response that asks for it.
    pub response: Option<ResponseId>,
}

/// What came back of a call.
#[derive(Clone, Debug, Default)]
pub struct CallResult {
    /// Its `tool.result`; `None` where it stood in a message.
    pub at: Option<EventPosition>,
    /// When.
    pub time: Option<Timestamp>,
    /// The step that it came in.
    pub step: Option<StepId>,
    /// The output, as it came.
    pub output: Option<RawJson>,
    /// The output that the model was given, where another one became known later.
    pub given: Option<RawJson>,
    /// How the call ended: `ok`, `failed`, `denied`, `interrupted`, `unknown`.
    pub outcome: Option<JsonString>,
    /// Who said how the call ended, where that is not who saw the rest.
    pub(crate) outcome_fidelity: Option<JsonString>,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The exit code, where the provider gives one as a number.
    pub exit_code: Option<RawJson>,
    /// Who saw it.
    pub fidelity: Option<JsonString>,
    /// What else its record says.
    pub extra: Vec<(JsonString, RawJson)>,
    /// The last event that told more of it later.
    pub amended: Option<EventPosition>,
}

/// A question whether something may be done.
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
    /// Whether somebody asked, and not only answered.
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
}

/// A link to a child run, whose session is its own.
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
    /// What it is called here.
    pub name: Option<JsonString>,
    /// The id of the call that began it.
    pub tool_call_id: Option<JsonString>,
    /// That call.
    pub call: Option<CallNumber>,
    /// What its parent says of its end.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
}
