//! Runs as ATIF trajectories (Harbor's Agent Trajectory Interchange Format, version 1.8), and a validator for them.
//!
//! [`Run::of`] makes the steps of one session, [`Family`] groups a session and its subagents, and
//! [`Family::trajectory()`] writes them as one document. `docs/atif.md` has the mapping. [`validate()`] checks a
//! document, more strictly than Harbor's own validator.

mod base64;
mod blocks;
mod build;
mod calls;
mod content;
mod family;
mod ids;
mod media;
mod metrics;
mod step;
mod steps;
#[cfg(test)]
mod tests;
mod text;
mod validate;
mod write;

pub use build::{NoRecords, Records, Run};
pub use family::Family;
pub use media::{MEDIA_DIR, MediaSink, NoMedia};
pub use validate::{DocumentFiles, FileLookup, Finding, NoFiles, Severity, validate};
pub use write::Trajectory;

/// The version of ATIF that is written.
pub const SCHEMA_VERSION: &str = "ATIF-v1.8";
/// The version of the mapping in `docs/atif.md`.
const MAPPING: &str = "steno/1";

/// The counts of a trajectory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrajectoryCounts {
    /// Trajectories, including embedded ones.
    pub trajectories: u64,
    /// Steps.
    pub steps: u64,
    /// Steps of the agent that are one response of the model.
    pub responses: u64,
    /// Calls.
    pub calls: u64,
    /// Results of calls.
    pub results: u64,
    /// References to media files.
    pub media: u64,
}
