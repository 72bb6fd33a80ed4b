//! What is known about the end of a run or a step: one word for one thing in every view.

use steno_model::json::JsonString;

/// What is known about the end of a run or a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No end has been recorded: it goes on, can be taken up again, or was cut off.
    Open,
    /// It ended, and no error was given.
    Completed,
    /// It ended with an error.
    Failed,
}

impl State {
    /// Returns the state of what has ended.
    #[must_use]
    pub fn of_end(has_failed: bool) -> Self {
        if has_failed { Self::Failed } else { Self::Completed }
    }
}

/// What a run's parent reports of its end, for a run that has none in its own record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentReport {
    /// `Completed` or `Failed`.
    pub state: State,
    /// Why it failed.
    pub error: Option<JsonString>,
}
