//! Checks, repairs, bundles and reads trace spines.
//!
//! The journal writes the segments of a spine and reads its records. This crate checks spines: [`validate_spine`]
//! checks one of a store, [`validate_directory`] one in a directory, [`validate_tar`] a bundle in a tar file.
//! [`repair_spine`] seals what a crash left open. [`write_bundle`] writes a bundle, whose files [`plan_bundle`] lists,
//! and [`read_tar`] reads one without unpacking it.
//!
//! ```
//! use steno_spine::{Rule, validate_tar};
//!
//! let report = validate_tar(&b"not a tar file"[..]);
//! assert!(!report.is_valid());
//! assert_eq!(report.findings[0].rule, Rule::BundleTar);
//! ```
//!
//! # Where to look
//! `validator` is fed file by file, by `directory` or by `tar_bundle`. It gives the lines of a segment to
//! `segment_check`, and `agreement` compares the files with each other when all were read. `finding` has the rules.
//!
//! # Promises
//! - Checking is one pass and changes nothing. Memory has a limit, also for hostile tar files.
//! - A bundle of the same spine has the same bytes.
//! - Only [`repair_spine`] and [`repair_directory`] change a spine, and only if there is no error in it.
//! - [`write_bundle`] replaces nothing, and leaves nothing behind if it fails.

mod agreement;
mod artifact_refs;
mod bundle;
mod bundle_error;
mod bundle_json;
mod bundle_output;
mod contents;
mod directory;
mod finding;
mod hash;
mod masking;
mod repair;
mod segment_check;
mod session_meta;
mod splitter;
mod tar;
mod tar_bundle;
mod validator;
mod write_bundle;

pub use bundle::{BundleContent, BundleEntry, BundlePlan, BundleWish, MaskedFile, Snapshots, plan_bundle};
pub use bundle_error::BundleError;
pub use bundle_json::{BundleJson, ChangedFile, LeftOut, RolloutFile};
pub use bundle_output::check_bundle_path;
pub use contents::{
    Artifacts, OnPiece, read_directory, read_directory_rollout, read_spine, read_tar, read_tar_rollout,
};
pub use directory::{validate_directory, validate_spine};
pub use finding::{Finding, FindingLocation, Rule, Severity};
pub use masking::mask_exports;
pub use repair::{Repair, repair_directory, repair_spine};
pub use session_meta::{recorded_base, recorded_rollout_path};
pub use tar::TarWriter;
pub use tar_bundle::validate_tar;
pub use validator::Report;
pub use write_bundle::{BundleRequest, SnapshotForm, WrittenBundle, write_bundle};
