//! The state of a run or a step, with the same words in every view.

use steno_model::json::JsonString;

/// The state of a run or a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No end is recorded: it is running, can be resumed, or was cut off.
    Open,
    /// It ended without an error.
    Completed,
    /// It ended with an error.
    Failed,
}

impl State {
    /// Returns the state of something that has ended.
    #[must_use]
    pub fn of_end(has_failed: bool) -> Self {
        if has_failed { Self::Failed } else { Self::Completed }
    }
}

/// How a run ended as reported by its parent, for a run without a recorded end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentReport {
    /// `Completed` or `Failed`.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
}
