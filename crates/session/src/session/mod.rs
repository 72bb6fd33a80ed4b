//! What a session is: the types that every view, export and route is made from.
//!
//! Things of one kind lie in one list and name each other by number, so that no depth can overflow a stack. Every fact has
//! the place it was read at ([`EventPosition`]): which of the session's runs, and which of its events.

mod call;
mod message;
mod run_head;
mod turn;

use std::collections::BTreeMap;

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Seq, Timestamp};

use crate::state::State;
use crate::usage::TokenUsage;

pub use call::{Approval, Call, CallResult, ChildLink};
pub use message::{Block, Message, Response, ResponseOrigin, ResponseUsage, Speaker};
pub use run_head::RunHead;
pub(crate) use run_head::channel_rank;
pub use turn::{EndedBy, Turn, TurnCost, TurnStatus};

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
pub struct EventPosition {
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
    pub used: Option<TokenUsage>,
    /// What the agent says that the session used in all, its subagents perhaps included.
    pub reported_total: Option<RawJson>,
}

impl Session {
    /// Returns the run that a fact was read from.
    #[must_use]
    pub fn run_of(&self, at: EventPosition) -> RunId {
        self.runs.get(at.run.0).map_or(self.id, |run| run.id)
    }

    /// Names its children anew: a run that was recorded on another channel has an id of its own.
    pub fn rename_children(&mut self, name: impl Fn(RunId) -> RunId) {
        for child in &mut self.children {
            child.run_id = name(child.run_id);
        }
        for (run, _) in &mut self.links {
            *run = name(*run);
        }
        for step in &mut self.steps {
            step.child_run_id = step.child_run_id.map(&name);
        }
    }

    /// Returns the calls without a result, in the order of their first report.
    pub fn dangling(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.is_answered)
    }
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
    pub started: Option<EventPosition>,
    /// The event that ended it.
    pub completed: Option<EventPosition>,
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

/// A step that is none of the above.
#[derive(Clone, Debug)]
pub struct Fact {
    /// Its first event.
    pub at: EventPosition,
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
