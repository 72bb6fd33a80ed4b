//! The steps of a trajectory as they are collected from events, before they are written.

use steno_model::json::{JsonString, RawJson};
use steno_model::{RunId, Seq, Timestamp};
use steno_session::{ResponseUsage, RunNumber};

use super::calls::CallNumber;
use super::content::Part;

/// A step: a message of one side, or an event of the system.
pub(super) struct Step {
    /// Its run.
    pub(super) run: RunNumber,
    /// The number of its first event in that run.
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    /// Its turn.
    pub(super) path: JsonString,
    /// The run or session from whose record it was copied.
    pub(super) copied_from: Option<JsonString>,
    pub(super) parts: Vec<Part>,
    /// Other facts of its record.
    pub(super) facts: Vec<(JsonString, RawJson)>,
    pub(super) role: Role,
}

/// The position and time of a step in a session.
#[derive(Clone, Copy)]
pub(super) struct Stands<'a> {
    pub(super) run: RunNumber,
    pub(super) seq: Seq,
    pub(super) time: &'a Timestamp,
    pub(super) path: &'a JsonString,
    pub(super) copied_from: Option<&'a JsonString>,
}

/// The source of a step.
pub(super) enum Role {
    User,
    System(System),
    Agent(Box<Response>),
}

/// A step of the system.
#[derive(Default)]
pub(super) struct System {
    /// Its kind: `system_prompt`, `compaction`, `retry` and so on.
    pub(super) kind: Option<JsonString>,
    pub(super) name: Option<JsonString>,
    pub(super) error: Option<JsonString>,
    /// Its result, if that is more than text.
    pub(super) result: Option<RawJson>,
    pub(super) is_open: bool,
    /// The run that it started.
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
    /// The number of thoughts that the provider does not show.
    pub(super) hidden_thoughts: u64,
    pub(super) calls: Vec<CallNumber>,
    pub(super) usage: Option<ResponseUsage>,
    pub(super) origin: Origin,
    /// True if it is the summary of a compaction.
    pub(super) is_compaction: bool,
}

/// The origin of a step of the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Origin {
    /// Text that no record assigns to a response.
    #[default]
    Words,
    /// One response, by its id or by its usage.
    Response,
    /// A call without a response.
    CallAlone,
}

impl Step {
    /// Makes a step at a position.
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
