//! Makes trace spines (004) of Codex's session files, traces and connections.
//!
//! Every record of a source becomes exactly one record of the spine, in the same order. Derived records (an artifact, a
//! compaction boundary, a bridge) come directly after it.

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
    Around, CapturedMessage, CompactionNotice, ConnectionFold, LinePlace, MessageFacts, Missing,
    SecretFilter, WhyMissing,
};
pub use history::History;
pub use rollout::{Base, RolloutFold};
pub use rollout_index::{RolloutIndex, RolloutSection, SectionReader, SectionState};
pub use trace::{Payloads, TraceFold};
pub use unfold::SpineUnfolder;

/// A record of a spine that has no `seq` yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpineMade {
    /// Its type.
    pub record_type: SpineType,
    /// The time in the source. If the source has none, the time of the previous record.
    pub timestamp: Timestamp,
    /// Its payload.
    pub payload: RawJson,
    /// The record of the source that it was made from, and its number among the records made from that one.
    pub position: Position,
    /// The length of the source's record in bytes.
    pub length: u64,
}
