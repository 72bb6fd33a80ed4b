//! What a session is: the types that every view, export and route is made from.
//!
//! Things of one kind lie in one list and name each other by number, so that no depth can overflow a stack. Every fact has
//! the place it was read at ([`At`]): which of the session's runs, and which of its events.

use std::collections::BTreeMap;

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Seq, Timestamp};

use crate::state::State;
use crate::usage::{Tokens, Used};

/// Declares the number of a thing in its list.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident,)*) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub usize);
    )*};
}

numbers! {
    /// A run, in [`Session::runs`].
    RunNumber,
    /// A step, in [`Session::steps`]: steps are numbered in the order in which they appear.
    StepId,
    /// A turn, in [`Session::turns`].
    TurnId,
    /// A message, in [`Session::messages`].
    MessageId,
    /// A response, in [`Session::responses`].
    ResponseId,
    /// A call, in [`Session::calls`].
    CallNumber,
    /// An approval, in [`Session::approvals`].
    ApprovalId,
    /// A link to a child run, in [`Session::children`].
    ChildId,
    /// A fact, in [`Session::facts`].
    FactId,
}

impl RunNumber {
    /// The run whose order the session has.
    pub const MAIN: Self = Self(0);
}

/// Where a fact was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct At {
    /// The run.
    pub run: RunNumber,
    /// The event.
    pub seq: Seq,
}

/// A session: one or more runs that show the same work, as one.
#[derive(Clone, Debug)]
pub struct Session {
    /// The agent's own id of it.
    pub id: RunId,
    /// The runs that it was read from; the first one gives the order.
    pub runs: Vec<RunHead>,
    /// All steps, in the order in which they appear.
    pub steps: Vec<Step>,
    /// The steps in no other step.
    pub roots: Vec<StepId>,
    /// The turns, in the order in which they began.
    pub turns: Vec<Turn>,
    /// What was said, record by record.
    pub messages: Vec<Message>,
    /// The model's responses, each put together from its records.
    pub responses: Vec<Response>,
    /// The calls, each once, in the order of their first report.
    pub calls: Vec<Call>,
    /// Who was asked, and what the answer was.
    pub approvals: Vec<Approval>,
    /// The runs that it began.
    pub children: Vec<ChildLink>,
    /// The runs that events name as children, with the step that does, in order.
    pub links: Vec<(RunId, Option<StepId>)>,
    /// Every other step that says something: compactions, errors, retries, system events.
    pub facts: Vec<Fact>,
    /// What happened, in order. What a call or response holds is not listed again.
    pub items: Vec<Item>,
    /// Records that their adapter did not understand, by name.
    pub unknown_records: BTreeMap<String, u64>,
    /// Events whose type is none of the ten, by type.
    pub unknown_types: BTreeMap<JsonString, u64>,
    /// Blocks whose type is none of the six, by type.
    pub unknown_blocks: BTreeMap<JsonString, u64>,
    /// How many events named another run; they are left out.
    pub foreign_events: u64,
    /// What copies of the session say otherwise from some point on.
    pub branches: Vec<Branch>,
    /// What its responses used that were not copied from another session; `None` where no record says it.
    pub used: Option<Used>,
    /// What the agent says that the session used in all, its subagents perhaps included.
    pub told_total: Option<RawJson>,
}

impl Session {
    /// Returns the run that a fact was read from.
    #[must_use]
    pub fn run_of(&self, at: At) -> RunId {
        self.runs.get(at.run.0).map_or(self.id, |run| run.id)
    }

    /// Returns the calls without a result, in the order of their first report.
    pub fn dangling(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.is_answered)
    }
}

impl TurnStatus {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
        }
    }
}

impl EndedBy {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Interrupt => "interrupt",
            Self::Prompt => "prompt",
            Self::StopReason => "stop_reason",
        }
    }
}

/// What is known of one of a session's runs.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// The run.
    pub id: RunId,
    /// The run that called it.
    pub parent: Option<RunId>,
    /// The session that it shows, where that has another id.
    pub session: Option<RunId>,
    /// The run that it is a fork of.
    pub forked_from: Option<RunId>,
    /// Its name, from `run.started`.
    pub name: Option<JsonString>,
    /// Its kind, from `run.started`.
    pub kind: Option<JsonString>,
    /// Where its records come from: `disk`, `stream`, `app-server`, ….
    pub channel: Option<String>,
    /// The adapter that made it, like `claude/2`.
    pub adapter: Option<String>,
    /// What is known of its end; a `run.started` after a `run.completed` opens it again.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The time of its first event.
    pub started_at: Option<Timestamp>,
    /// The time of `run.completed`.
    pub ended_at: Option<Timestamp>,
    /// The time of its last event.
    pub last_at: Option<Timestamp>,
    /// The number of its last event.
    pub seq_last: Option<Seq>,
    /// How many events were folded.
    pub events: u64,
    /// Where the run began, again and again perhaps, and what its source could tell of from then on; `None` where it does
    /// not say.
    pub beginnings: Vec<(Seq, Option<Vec<String>>)>,
    /// The payload of its first `run.started`.
    pub head: Option<RawJson>,
    /// How many of its facts another run tells too, as ids or bytes show.
    pub matched: u64,
    /// How many of its facts only look like those of another run.
    pub alike: u64,
    /// How many of its facts nothing ties to the other runs, on a channel without ids; they are not counted.
    pub unmatched: u64,
}

/// One execution of a step. Every iteration and every attempt is a step of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step around it; `None` at run level.
    pub parent: Option<StepId>,
    /// The steps in it, in the order in which they appear.
    pub children: Vec<StepId>,
    /// The turn that it is, if it is one.
    pub turn: Option<TurnId>,
    /// Its path as recorded; [`StepPath`](crate::StepPath) splits it.
    pub path: JsonString,
    /// Its name; `None` where the payload gives none.
    pub name: Option<JsonString>,
    /// Its kind; `None` where the payload gives none.
    pub kind: Option<JsonString>,
    /// How often the innermost loop or retry has come round before.
    pub iteration: u64,
    /// The indices of the loops around it, outermost first; `None` where the record has no `loop`.
    pub loop_indices: Option<Vec<u64>>,
    /// Which attempt it is; `None` where the record has no `attempt`.
    pub attempt: Option<u64>,
    /// The call that it belongs to.
    pub tool_call_id: Option<JsonString>,
    /// How an approval was decided: `allowed`, `denied`, or what the provider says.
    pub decision: Option<JsonString>,
    /// The event that began it; `None` for an instant step, which has only an end.
    pub started: Option<At>,
    /// The event that ended it.
    pub completed: Option<At>,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// What is known of its end.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The run that it calls.
    pub child_run_id: Option<RunId>,
}

/// How a turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStatus {
    /// It goes on, or nobody has said that it has ended.
    InProgress,
    /// It has ended well.
    Completed,
    /// It was stopped.
    Interrupted,
    /// It has ended otherwise.
    Failed,
}

/// What ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// A record of its end.
    Record,
    /// Somebody interrupted it.
    Interrupt,
    /// The next prompt began another one.
    Prompt,
    /// The model's last response said that it was the last, and no call waits.
    StopReason,
}

/// A turn: from a prompt to the end of what it set off.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its step.
    pub step: StepId,
    /// What it is called in the session: its path, with the place of its beginning where a path is used again.
    pub name: String,
    /// Its place in the order of the session: items before it have a smaller one.
    pub order: usize,
    /// The provider's id of it.
    pub turn_id: Option<JsonString>,
    /// Its first event.
    pub at: At,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How it stands.
    pub status: TurnStatus,
    /// What ended it.
    pub ended_by: Option<EndedBy>,
    /// Why it failed, or that it was interrupted.
    pub error: Option<JsonString>,
    /// What was in force when it began.
    pub settings: Option<RawJson>,
    /// The model that spoke in it first.
    pub model: Option<JsonString>,
    /// The place of its end in the order of the session, if it has one.
    pub order_end: Option<usize>,
    /// What it cost, in the provider's words.
    pub usage: Option<TurnCost>,
    /// The events in it, of whichever run, in order.
    pub events: Vec<At>,
    /// The runs that tell of its beginning.
    pub runs: Vec<RunNumber>,
    /// Events outside of it that its facts are made of: results of its calls that came elsewhere, and calls of others
    /// whose results came in it.
    pub others: Vec<At>,
}

/// What a turn cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnCost {
    /// The counts, by the provider's names.
    pub report: RawJson,
    /// Whether it may have cost more.
    pub is_lower_bound: bool,
    /// The run that tells it.
    pub run: RunNumber,
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user's side.
    User,
    /// Whoever tells the model what it is.
    System,
    /// The model.
    Model,
}

/// One record of what was said.
#[derive(Clone, Debug)]
pub struct Message {
    /// Its event.
    pub at: At,
    /// When.
    pub time: Timestamp,
    /// Who said it.
    pub speaker: Speaker,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// The step that it is in.
    pub step: Option<StepId>,
    /// Its path.
    pub path: JsonString,
    /// The provider's id of the record.
    pub id: Option<JsonString>,
    /// Whose record it is copied from: a run, or a session.
    pub copied_from: Option<JsonString>,
    /// What was said, in order.
    pub blocks: Vec<Block>,
    /// What else the record says.
    pub extra: Vec<(JsonString, RawJson)>,
    /// The bytes that it was made from, where it has only marks of pictures.
    pub evidence: Option<RawJson>,
}

/// A block of a message.
#[derive(Clone, Debug)]
pub enum Block {
    /// A block as it was recorded.
    Recorded(RawJson),
    /// A call that the model asks for.
    Call(CallNumber),
    /// What stands elsewhere: a result with its call, a call with its first report.
    Elsewhere,
}

/// How the records of a response are known to be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResponseOrigin {
    /// They are words that no record ties to one response.
    #[default]
    Words,
    /// By an id, or by usage that is told once for all of them.
    Response,
}

/// One response of the model.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its first event.
    pub at: At,
    /// When it began.
    pub time: Timestamp,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// The step that it is in.
    pub step: Option<StepId>,
    /// Its path.
    pub path: JsonString,
    /// Whose record it is copied from.
    pub copied_from: Option<JsonString>,
    /// Its records, in order; none where only its usage is told.
    pub messages: Vec<MessageId>,
    /// The calls that it asks for.
    pub calls: Vec<CallNumber>,
    /// The provider's id of it, or its number where the provider gives none.
    pub id: Option<RawJson>,
    /// The model.
    pub model: Option<JsonString>,
    /// How hard the model was told to think.
    pub effort: Option<RawJson>,
    /// Why the model stopped.
    pub stop_reason: Option<JsonString>,
    /// What it is for, where the provider says.
    pub phase: Option<RawJson>,
    /// What it used.
    pub usage: Option<ResponseUsage>,
    /// How its records are known to be one.
    pub origin: ResponseOrigin,
    /// Whether it is the summary that a compaction asked for.
    pub is_compaction: bool,
}

/// What one response used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseUsage {
    /// The largest counts of its records.
    pub tokens: Tokens,
    /// The provider's own report.
    pub report: RawJson,
    /// Whether these are the last counts.
    pub is_final: bool,
    /// Whether they are known to be only at least so much.
    pub is_lower_bound: bool,
}

/// A call, from whichever records tell of it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The first event that tells of it.
    pub at: At,
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
    pub called: Option<At>,
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
    pub at: Option<At>,
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
    /// Why it failed.
    pub error: Option<JsonString>,
    /// The exit code, where the provider gives one as a number.
    pub exit_code: Option<RawJson>,
    /// Who saw it.
    pub fidelity: Option<JsonString>,
    /// What else its record says.
    pub extra: Vec<(JsonString, RawJson)>,
    /// The last event that told more of it later.
    pub amended: Option<At>,
}

/// A question whether something may be done.
#[derive(Clone, Debug)]
pub struct Approval {
    /// Its first event.
    pub at: At,
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
    pub at: At,
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

/// A step that is none of the above.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its first event.
    pub at: At,
    /// When.
    pub time: Timestamp,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// Its path.
    pub path: JsonString,
    /// Whose record it is copied from.
    pub copied_from: Option<JsonString>,
    /// Its kind.
    pub kind: Option<JsonString>,
    /// Its name.
    pub name: Option<JsonString>,
    /// Whether its beginning is recorded; else it is an instant.
    pub is_begun: bool,
    /// What is known of its end.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// What it gave; the summary of a compaction.
    pub result: Option<RawJson>,
    /// What else its records say.
    pub extra: Vec<(JsonString, RawJson)>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its place in the order of the session; turns have one too.
    pub order: usize,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// What it is.
    pub kind: ItemKind,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// What the user said.
    Prompt(MessageId),
    /// What the model was told to be.
    SystemPrompt(MessageId),
    /// What the model said in one response.
    Response(ResponseId),
    /// A call that no response holds.
    Call(CallNumber),
    /// A question about something that is no call of this session.
    Approval(ApprovalId),
    /// A child run that no call of this session began.
    Child(ChildId),
    /// Any other step.
    Fact(FactId),
}

/// How a copy of the session goes on otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The run that has it.
    pub run: RunNumber,
    /// Its first event there.
    pub first: Seq,
    /// How many events it has.
    pub events: u64,
}
