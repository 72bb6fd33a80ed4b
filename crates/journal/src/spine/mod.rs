//! Spines beyond their writer: artifacts beside them, reading them back, checking and mending them, bundles of them.

mod again;
mod agreement;
mod archive;
pub(crate) mod artifact;
mod bundle;
mod bundle_json;
mod contents;
mod directory;
mod finding;
mod look;
mod reader;
mod repair;
mod segment_check;
mod splitter;
mod tar;
mod validator;

pub use archive::validate_archive;
pub use artifact::{ARTIFACT_BYTES_MAX, KeptArtifact};
pub use bundle::{BundleContent, BundleEntry, BundlePlan, BundleWish, Masked, Snapshots, plan_bundle};
pub use bundle_json::{BundleJson, ChangedFile, LeftOut, RolloutFile};
pub use contents::{Artifacts, read_archive, read_directory, read_spine};
pub use directory::{validate_directory, validate_spine};
pub use finding::{Finding, Place, Rule, Severity};
pub use look::{SpineLook, SpineState, look_at_spine};
pub use reader::SpineReader;
pub use repair::{Repair, repair_directory};
pub use tar::TarWriter;
pub use validator::Report;
