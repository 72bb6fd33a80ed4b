//! The steps of a trajectory as they are put together from events, before they are written.

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Seq, Timestamp};
use steno_session::{ResponseUsage, RunNumber};

use super::calls::CallNumber;
use super::content::Part;

/// A step: what one side said, or what happened.
pub(super) struct Step {
    /// The run that has it.
    pub(super) run: RunNumber,
    /// The number of its first event there.
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    /// Where it stands: its turn.
    pub(super) path: JsonString,
    /// The run or the session whose record it is copied from.
    pub(super) copied_from: Option<JsonString>,
    pub(super) parts: Vec<Part>,
    /// What else its record says.
    pub(super) facts: Vec<(JsonString, RawJson)>,
    pub(super) role: Role,
}

/// Where and when something stands in a session.
#[derive(Clone, Copy)]
pub(super) struct Stands<'a> {
    pub(super) run: RunNumber,
    pub(super) seq: Seq,
    pub(super) time: &'a Timestamp,
    pub(super) path: &'a JsonString,
    pub(super) copied_from: Option<&'a JsonString>,
}

/// Whose step it is.
pub(super) enum Role {
    User,
    System(System),
    Agent(Box<Response>),
}

/// A step that nobody said.
#[derive(Default)]
pub(super) struct System {
    /// What it is: `system_prompt`, `compaction`, `retry`, ….
    pub(super) kind: Option<JsonString>,
    pub(super) name: Option<JsonString>,
    pub(super) error: Option<JsonString>,
    /// What it gave, where that is more than a text.
    pub(super) result: Option<RawJson>,
    pub(super) is_open: bool,
    /// The run that it began.
    pub(super) child: Option<RunId>,
}

/// One response of the model.
#[derive(Default)]
pub(super) struct Response {
    pub(super) id: Option<RawJson>,
    pub(super) model: Option<JsonString>,
    pub(super) effort: Option<RawJson>,
    pub(super) stop_reason: Option<JsonString>,
    pub(super) thoughts: Vec<JsonString>,
    /// How many thoughts the provider keeps to itself.
    pub(super) hidden_thoughts: u64,
    pub(super) calls: Vec<CallNumber>,
    pub(super) usage: Option<ResponseUsage>,
    pub(super) origin: Origin,
    /// Whether it is the summary that a compaction asked for.
    pub(super) is_compaction: bool,
}

/// What is known of how a step of the agent came about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// Words that no record ties to one response.
    #[default]
    Words,
    /// One response, by its id or by its usage.
    Response,
    /// A call that is in no response.
    CallAlone,
}

impl Step {
    /// Makes a step of what stands at one place.
    pub(super) fn of(at: Stands<'_>, role: Role) -> Self {
        Self {
            run: at.run,
            seq: at.seq,
            at: at.time.clone(),
            path: at.path.clone(),
            copied_from: at.copied_from.cloned(),
            parts: Vec::new(),
            facts: Vec::new(),
            role,
        }
    }
}
