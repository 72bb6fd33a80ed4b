//! A turn: from a prompt to the end of what it set off.

use steno_model::Timestamp;
use steno_model::json::{JsonString, RawJson};

use super::{EventPosition, RunNumber, StepId};

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
    pub at: EventPosition,
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
    pub events: Vec<EventPosition>,
    /// The runs that tell of its beginning.
    pub runs: Vec<RunNumber>,
    /// The runs that tell of its end.
    pub ended_in: Vec<RunNumber>,
    /// Events of other runs in it that no id ties to it; a session that is merged by ids leaves them out.
    pub left_out: Vec<EventPosition>,
    /// Events outside of it that its facts are made of: what tells elsewhere of its calls, and of calls that it tells of.
    pub others: Vec<EventPosition>,
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
