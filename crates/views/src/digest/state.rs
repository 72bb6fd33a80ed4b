//! What a list says of the end of a session.

use steno_session::{Outcome, Session, State, TurnStatus};

/// What is known of the end of a session from its record alone. Whether it is live depends on the present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DigestState {
    /// Its last turn ended; without turns, its run ended.
    Done,
    /// A request for approval has no answer.
    Waiting,
    /// Its last turn was stopped.
    Interrupted,
    /// Its last turn, or the run itself, failed.
    Failed,
    /// The end of its last turn is not recorded.
    Open,
}

impl DigestState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Done, Self::Waiting, Self::Interrupted, Self::Failed, Self::Open];

    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Waiting => "waiting",
            Self::Interrupted => "interrupted",
            Self::Failed => "failed",
            Self::Open => "open",
        }
    }

    /// Returns the state with a name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Reads the state of a session: a failure of its run, else the end of its last turn, else that of its run. A run
    /// can end in the middle of a turn, so it does not end one.
    pub(crate) fn of(session: &Session) -> Self {
        let end = session.runs.first().map_or(State::Open, |main| main.summary.state);
        if has_failed_command(session) {
            return Self::Failed;
        }
        match (end, session.turns.last().map(|last| last.status)) {
            (State::Failed, _) | (_, Some(TurnStatus::Failed)) => Self::Failed,
            (_, Some(TurnStatus::Completed)) | (State::Completed, None) => Self::Done,
            (_, Some(TurnStatus::Interrupted)) => Self::Interrupted,
            (_, Some(TurnStatus::InProgress)) if is_waiting(session) => Self::Waiting,
            (_, Some(TurnStatus::InProgress)) | (State::Open, None) => Self::Open,
        }
    }
}

/// Tells whether a command of `steno run` failed: a plain one, or an agent in the middle of a turn. Servers are often ended
/// by a signal, and an agent may end with a code after it has done its work.
fn has_failed_command(session: &Session) -> bool {
    let run = match session.turns.last() {
        None => session.runs.first(),
        Some(last) if last.status == TurnStatus::InProgress => session.runs.get(last.at.run.0),
        Some(_) => None,
    };
    run.is_some_and(|run| run.channel.as_deref() == Some("wrap") && run.summary.has_failed_exit)
}

/// Tells whether a request of the last turn is open: it was asked, and neither answered nor overtaken by its result.
fn is_waiting(session: &Session) -> bool {
    let last = session.turns.len().checked_sub(1);
    session.approvals.iter().any(|approval| {
        let is_answered = approval.call.is_some_and(|call| session.calls[call.0].outcome() != Outcome::Open);
        approval.is_asked
            && approval.state == State::Open
            && approval.turn.map(|turn| turn.0) == last
            && !is_answered
    })
}
