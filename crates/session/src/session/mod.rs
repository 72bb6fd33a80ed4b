//! The types of a session, which every view, export and route is made from.
//!
//! Each kind of thing has one list, and things refer to each other by number, so that no depth can overflow the stack. Every
//! fact has its [`EventPosition`]: the run and the event that it was read from.

mod call;
mod message;
mod run_summary;
mod session_run;
mod turn;

use std::collections::{BTreeMap, BTreeSet};

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Seq, Timestamp};

use crate::state::State;
use crate::usage::{Dollars, ModelUsage, TokenUsage, UsageParts};

pub use call::{Approval, Call, CallResult, ChildLink};
pub use message::{Block, Message, Response, ResponseOrigin, ResponseUsage, Speaker};
pub use run_summary::{RunSummary, provider_of};
pub use session_run::SessionRun;
pub(crate) use session_run::channel_rank;
pub use turn::{EndedBy, Turn, TurnCost, TurnStatus};

/// Declares index types.
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

/// A session: one or more runs of the same work, merged.
#[derive(Clone, Debug)]
pub struct Session {
    /// The agent's own id of it.
    pub id: RunId,
    /// The runs that it was read from; the first one gives the order.
    pub runs: Vec<SessionRun>,
    /// All steps, in the order in which they appear.
    pub steps: Vec<Step>,
    /// The steps in no other step.
    pub roots: Vec<StepId>,
    /// The turns, in the order in which they began.
    pub turns: Vec<Turn>,
    /// The messages, one for each record.
    pub messages: Vec<Message>,
    /// The model's responses, each combined from its records.
    pub responses: Vec<Response>,
    /// The calls, each once, in the order of their first report.
    pub calls: Vec<Call>,
    /// The approvals.
    pub approvals: Vec<Approval>,
    /// The child runs.
    pub children: Vec<ChildLink>,
    /// The runs that events name as children, each with the step that names it, in order.
    pub links: Vec<(RunId, Option<StepId>)>,
    /// Other steps: compactions, errors, retries, system events.
    pub facts: Vec<Fact>,
    /// What happened, in order. Parts of a call or a response are not listed again.
    pub items: Vec<Item>,
    /// Records that their adapter did not understand, by name.
    pub unknown_records: BTreeMap<String, u64>,
    /// Events whose type is none of the ten, by type.
    pub unknown_types: BTreeMap<JsonString, u64>,
    /// Blocks whose type is none of the six, by type.
    pub unknown_blocks: BTreeMap<JsonString, u64>,
    /// How many events named another run; they are left out.
    pub foreign_events: u64,
    /// The ends of copies that continue differently.
    pub branches: Vec<Branch>,
    /// Its usage, without responses copied from another session; `None` if no record has it.
    pub used: Option<TokenUsage>,
    /// Its usage by model and length of request, which give its cost.
    pub used_by_model: Vec<ModelUsage>,
    /// Where its usage comes from.
    pub usage_parts: UsageParts,
    /// The total usage that the agent reports, which may include subagents.
    pub reported_total: Option<RawJson>,
    /// What it costs according to the agent, which may include subagents.
    pub agent_cost: Option<Dollars>,
}

impl Session {
    /// Returns the run that a fact was read from.
    #[must_use]
    pub fn run_of(&self, at: EventPosition) -> RunId {
        self.runs.get(at.run.0).map_or(self.id, SessionRun::id)
    }

    /// Renames its children: a run of another channel has another id.
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

    /// Returns the sessions that it started, each once.
    #[must_use]
    pub fn linked_sessions(&self) -> Vec<RunId> {
        let links: BTreeSet<RunId> = self.links.iter().map(|(run, _)| *run).collect();
        links.into_iter().collect()
    }

    /// Returns the calls without a result, in the order of their first report.
    pub fn dangling(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(|call| !call.is_answered)
    }
}

/// One execution of a step. Every iteration and every attempt is a separate step.
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
    /// How many iterations of the innermost loop or retry came before.
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
    /// The run or session that it is copied from.
    pub copied_from: Option<JsonString>,
    /// Its kind.
    pub kind: Option<JsonString>,
    /// Its name.
    pub name: Option<JsonString>,
    /// Whether its start is recorded; else it is an instant.
    pub is_begun: bool,
    /// What is known of its end.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
    /// Its result; the summary of a compaction.
    pub result: Option<RawJson>,
    /// Other fields of its records.
    pub extra: Vec<(JsonString, RawJson)>,
}

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its position in the order of the session, which turns share.
    pub order: usize,
    /// The turn that it is in.
    pub turn: Option<TurnId>,
    /// What it is.
    pub kind: ItemKind,
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// A message of the user.
    Prompt(MessageId),
    /// A system prompt.
    SystemPrompt(MessageId),
    /// A response of the model.
    Response(ResponseId),
    /// A call without a response.
    Call(CallNumber),
    /// An approval of something that is not a call of this session.
    Approval(ApprovalId),
    /// A child run that no call of this session started.
    Child(ChildId),
    /// Any other step.
    Fact(FactId),
}

/// The end of a copy that continues differently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branch {
    /// The run that has it.
    pub run: RunNumber,
    /// Its first event there.
    pub first: Seq,
    /// How many events it has.
    pub events: u64,
}
