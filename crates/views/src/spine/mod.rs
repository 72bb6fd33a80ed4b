//! The trace spine (004), folded from what an agent's own files and connections hold.
//!
//! Every record of a source gives exactly one record of the spine, in its order; what is derived from it (an artifact, a
//! boundary of a compaction, a bridge) follows right behind.

mod app_server;
mod history;
mod payload;
mod rollout;
mod trace;
mod turns;
mod unfold;

use steno_model::json::RawJson;
use steno_model::{Position, SpineType, Timestamp};

pub use app_server::{
    Around, Captured, Compacted, ConnectionFold, LinePlace, Missing, Passed, WhyMissing, Withholding,
};
pub use history::History;
pub use rollout::{Base, RolloutFold};
pub use trace::{Payloads, TraceFold};
pub use unfold::Unfolding;

/// What a spine is made from, as its `session_meta` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpineSource {
    /// A session file.
    Rollout,
    /// A rollout trace: what Codex writes below `CODEX_ROLLOUT_TRACE_ROOT`.
    RolloutTrace,
    /// A connection to `codex app-server`, both directions of it.
    AppServer,
}

impl SpineSource {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::RolloutTrace => "rollout_trace",
            Self::AppServer => "app_server",
        }
    }

    /// Finds the one of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Rollout, Self::RolloutTrace, Self::AppServer].into_iter().find(|source| source.name() == name)
    }

    /// Returns what such a source cannot carry: what is not in the spine was not seen, and may have happened.
    #[must_use]
    pub fn cannot_carry(self) -> &'static [&'static str] {
        match self {
            Self::Rollout => &[
                "submissions and their answers",
                "approval requests and answers",
                "who answered",
                "user input requests",
                "elicitations",
                "output deltas and the beginnings of items",
                "failed and repeated requests to the model",
                "steering that no request took up",
                "notices of the program",
                "the prompt and the request of a compaction",
                "changes in the working tree",
                "the shell's environment",
                "the settings of turns in which the model is not asked",
            ],
            Self::RolloutTrace => &[
                "submissions and their answers",
                "approval requests and answers",
                "who answered",
                "user input requests",
                "elicitations",
                "output deltas",
                "compactions by the agent itself",
                "the settings of a turn",
                "token counts of turns",
                "git's identity, and changes in the working tree",
                "the shell's environment",
            ],
            Self::AppServer => &[
                "what the model was asked and answered, word for word",
                "calls of tools that the agent refused by itself",
                "the work of a review inside of a turn",
                "how commands end that outlive their turn",
                "the settings of a child's turns",
                "the names of children",
                "what a patch has printed",
                "which response has used which tokens",
                "what the agent notes for itself",
                "secrets of the account, which are withheld",
            ],
        }
    }
}

/// A record of a spine that has no number yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpineMade {
    /// What it is.
    pub record_type: SpineType,
    /// When it was written, as the source says; the time of the record before it where the source says none.
    pub timestamp: Timestamp,
    /// What it carries.
    pub payload: RawJson,
    /// Which record of the source it is made from, and which of what was made from that.
    pub position: Position,
    /// How many bytes that record has.
    pub length: u64,
}
