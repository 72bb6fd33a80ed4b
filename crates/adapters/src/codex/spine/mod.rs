//! The trace spine (004), folded from what an agent's own files and connections hold.
//!
//! Every record of a source gives exactly one record of the spine, in its order; what is derived from it (an artifact, a
//! boundary of a compaction, a bridge) follows right behind.

mod app_server;
mod fields;
mod history;
mod payload;
mod rollout;
mod rollout_index;
mod trace;
mod turns;
mod unfold;
mod wire;

use steno_model::json::RawJson;
use steno_model::{Position, SpineType, Timestamp};

pub use app_server::{
    Around, Captured, Compacted, ConnectionFold, LinePlace, MessageFacts, Missing, WhyMissing, Withholding,
};
pub use history::History;
pub use rollout::{Base, RolloutFold};
pub use rollout_index::{RolloutIndex, RolloutSection, SectionReader, SectionState};
pub use trace::{Payloads, TraceFold};
pub use unfold::Unfolding;

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
