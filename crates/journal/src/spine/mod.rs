//! Spines beside their writer: artifacts, opening one again, reading it back, sealing what a crash left open.
//!
//! Whether a spine is whole, and bundles of it, is the work of the crate `spine`.

pub(crate) mod artifact;
mod overview;
mod reader;
mod reopen;
mod unsealed;

pub use artifact::{ARTIFACT_BYTES_MAX, ARTIFACTS_DIR, KeptArtifact};
pub use overview::{SpineOverview, SpineState, spine_overview};
pub use reader::SpineReader;
pub use unsealed::{UnsealedSegment, seal_segment};
