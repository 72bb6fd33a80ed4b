//! A turn: a prompt and the work that follows it.

use steno_model::Timestamp;
use steno_model::json::{JsonString, RawJson};

use super::{EventPosition, RunNumber, StepId};

/// The status of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnStatus {
    /// It is running, or its end is not recorded.
    InProgress,
    /// It ended without an error.
    Completed,
    /// It was stopped.
    Interrupted,
    /// It ended with an error.
    Failed,
}

/// What ended a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    /// A record of its end.
    Record,
    /// It was interrupted.
    Interrupt,
    /// The next prompt began another one.
    Prompt,
    /// The model's last response was final, and no call waits for a result.
    StopReason,
}

/// A turn: a prompt and the work that follows it.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Its step.
    pub step: StepId,
    /// Its name in the session: its path, and the number of its first event if the path is reused.
    pub name: String,
    /// Its position in the order of the session: items before it have a smaller one.
    pub order: usize,
    /// The provider's id of it.
    pub turn_id: Option<JsonString>,
    /// Its first event.
    pub at: EventPosition,
    /// When it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Its status.
    pub status: TurnStatus,
    /// What ended it.
    pub ended_by: Option<EndedBy>,
    /// Why it failed, or that it was interrupted.
    pub error: Option<JsonString>,
    /// The settings when it began.
    pub settings: Option<RawJson>,
    /// The model of its first response.
    pub model: Option<JsonString>,
    /// The position of its end in the order of the session, if it has one.
    pub order_end: Option<usize>,
    /// Its usage, as the provider reports it.
    pub usage: Option<TurnCost>,
    /// Its events in all runs, in order.
    pub events: Vec<EventPosition>,
    /// The runs that have its start.
    pub runs: Vec<RunNumber>,
    /// The runs that have its end.
    pub ended_in: Vec<RunNumber>,
    /// Events of other runs in it that no id links to it; a session that is merged by ids leaves them out.
    pub left_out: Vec<EventPosition>,
    /// Events outside of it that its facts depend on: other events about its calls and about calls that its events mention.
    pub others: Vec<EventPosition>,
}

/// The usage of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnCost {
    /// The counts, with the provider's names.
    pub report: RawJson,
    /// Whether it is a lower bound.
    pub is_lower_bound: bool,
    /// The run that reports it.
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
