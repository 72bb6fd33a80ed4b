//! `bundle.json`: the description of a bundle (R119).

use serde::{Deserialize, Deserializer, Serialize};
use steno_model::Timestamp;

use super::finding::{FindingLocation, Findings, Rule};

/// The version of bundles.
pub(super) const BUNDLE_VERSION: &str = "rollout_plus_v0";

/// The maximum length of the file.
pub(super) const BUNDLE_JSON_BYTES_MAX: usize = 1024 * 1024;

/// The name of the file.
pub(super) const BUNDLE_JSON: &str = "bundle.json";

/// The description of a bundle. Unknown fields are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleJson {
    /// `rollout_plus_v0`
    pub bundle_version: String,
    /// The thread.
    pub thread_id: String,
    /// The time of the newest sealed record, so that the same spine gives the same bundle.
    pub created_at: String,
    /// The spine's schema version.
    pub spine_schema_version: String,
    /// The original path of the rollout; null if it is unknown.
    #[serde(deserialize_with = "string_or_null")]
    pub rollout_path: Option<String>,
    /// The rollouts in the bundle. Bundles of other programs may lack this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_files: Option<Vec<RolloutFile>>,
    /// What belongs to the thread and is not in the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// The artifacts in the bundle that were changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFile>,
}

/// A rollout in a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutFile {
    /// Its path in the bundle: `rollout/…`.
    pub file: String,
    /// Its original path.
    pub path: String,
    /// Its thread, if the thread of the bundle continues that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// Its length.
    pub bytes: u64,
    /// The SHA-256 of its bytes in lower-case hex.
    pub sha256: String,
}

/// An artifact whose bytes differ from those of the record that names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its path in the bundle.
    pub file: String,
    /// The change and its reason.
    pub reason: String,
    /// The number of masked values.
    pub masked: u64,
    /// The length of the file in the bundle.
    pub bytes: u64,
    /// The SHA-256 of the file in the bundle, in lower-case hex.
    pub sha256: String,
}

/// A file that is not in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The path that it would have in the bundle.
    pub file: String,
    /// The reason.
    pub reason: String,
}

/// Reads a field that must exist and may be null.
fn string_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

/// Reads `bundle.json`, and reports the faults that it has by itself.
pub(super) fn read(bytes: &[u8], file: &str, findings: &mut Findings) -> Option<BundleJson> {
    let place = || FindingLocation::file(file);
    if bytes.len() > BUNDLE_JSON_BYTES_MAX {
        findings.add(Rule::BundleJson, place(), format!("it has more than {BUNDLE_JSON_BYTES_MAX} bytes"));
        return None;
    }
    let bundle: BundleJson = match serde_json::from_slice(bytes) {
        Ok(bundle) => bundle,
        Err(error) => {
            let rule = if error.is_data() { Rule::BundleField } else { Rule::BundleJson };
            findings.add(rule, place(), error.to_string());
            return None;
        }
    };
    if bundle.bundle_version != BUNDLE_VERSION {
        let words = format!("the version is `{}`; supported is `{BUNDLE_VERSION}`", bundle.bundle_version);
        findings.add(Rule::BundleVersion, place(), words);
    }
    if bundle.spine_schema_version != steno_model::SPINE_SCHEMA_VERSION {
        let words = format!("the spine's schema version is `{}`", bundle.spine_schema_version);
        findings.add(Rule::BundleSchema, place(), words);
    }
    if !Timestamp::is_utc(&bundle.created_at) {
        let words = format!("`created_at` is `{}`, not an RFC 3339 time in UTC", bundle.created_at);
        findings.add(Rule::BundleField, place(), words);
    }
    Some(bundle)
}
