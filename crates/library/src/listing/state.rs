//! The state of a session in a list.

use jiff::{SignedDuration, Timestamp};
use steno_index::{RunRow, SessionRow};
use steno_views::digest::DigestState;

/// A session that grew within this time is live.
const GROWTH: SignedDuration = SignedDuration::from_secs(60);

/// The state of a session in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListState {
    /// A request for approval is open.
    Waiting,
    /// It is being recorded, or grew within a minute.
    Live,
    /// Its last turn ended; without turns, its run ended.
    Done,
    /// Its last turn was stopped.
    Interrupted,
    /// Its last turn, or its run, failed.
    Failed,
    /// The end of its last turn is not recorded.
    Open,
    /// It has no events.
    Empty,
    /// A run of it is damaged.
    Damaged,
    /// A run of it cannot be read.
    Unreadable,
}

impl ListState {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Waiting,
        Self::Live,
        Self::Done,
        Self::Interrupted,
        Self::Failed,
        Self::Open,
        Self::Empty,
        Self::Damaged,
        Self::Unreadable,
    ];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Live => "live",
            Self::Done => "done",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Open => "open",
            Self::Empty => "empty",
            Self::Damaged => "damaged",
            Self::Unreadable => "unreadable",
        }
    }

    /// Decides on the state: damage first, then what is open now, then how it ended.
    pub(super) fn of(row: Option<&SessionRow>, runs: &[&RunRow], is_live: bool) -> Self {
        let is = |state: &str| runs.iter().any(|run| run.state == state);
        match row.map(|row| row.digest.state) {
            _ if is("unreadable") => Self::Unreadable,
            _ if is("damaged") => Self::Damaged,
            Some(DigestState::Waiting) => Self::Waiting,
            _ if is_live => Self::Live,
            Some(DigestState::Done) => Self::Done,
            Some(DigestState::Interrupted) => Self::Interrupted,
            Some(DigestState::Failed) => Self::Failed,
            Some(DigestState::Open) => Self::Open,
            None => Self::Empty,
        }
    }
}

/// Tells whether a session grew within a minute, and none of its runs has an end.
pub(super) fn is_growing(row: &SessionRow, runs: &[&RunRow], now: Timestamp) -> bool {
    let last = row.digest.last_at.as_ref().and_then(steno_model::Timestamp::instant);
    let has_end = |run: &&RunRow| matches!(run.state.as_str(), "completed" | "failed");
    last.is_some_and(|last| now.duration_since(last) < GROWTH) && !runs.iter().any(has_end)
}
