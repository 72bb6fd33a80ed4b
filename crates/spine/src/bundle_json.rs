//! `bundle.json`: what a bundle says of itself (R119).

use serde::{Deserialize, Deserializer, Serialize};
use steno_model::Timestamp;

use super::finding::{FindingLocation, Findings, Rule};

/// The version of bundles.
pub(super) const BUNDLE_VERSION: &str = "rollout_plus_v0";

/// How long the file may be.
pub(super) const BUNDLE_JSON_BYTES_MAX: usize = 1024 * 1024;

/// The file's name.
pub(super) const BUNDLE_JSON: &str = "bundle.json";

/// What a bundle says of itself. Fields that we don't know are passed over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleJson {
    /// `rollout_plus_v0`
    pub bundle_version: String,
    /// The thread.
    pub thread_id: String,
    /// The time of the newest sealed record: the same spine gives the same bundle.
    pub created_at: String,
    /// The spine's schema version.
    pub spine_schema_version: String,
    /// Where the agent's own record of the thread lay; null when nobody knows.
    #[serde(deserialize_with = "string_or_null")]
    pub rollout_path: Option<String>,
    /// The agent's own records of the thread that are in the bundle; bundles by others need not have this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_files: Option<Vec<RolloutFile>>,
    /// What belongs to the thread and is not in the bundle.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// What is in the bundle and is not as it was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ChangedFile>,
}

/// A file of the agent's own record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RolloutFile {
    /// Its path in the bundle: `rollout/…`.
    pub file: String,
    /// Where it lay.
    pub path: String,
    /// The thread that it is the record of, if that is another than the bundle's, which goes on from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_id: Option<String>,
    /// How many bytes it has.
    pub bytes: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: String,
}

/// An artifact that is in the bundle with other bytes than the record that names it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Its path in the bundle.
    pub file: String,
    /// What was done to it, and why.
    pub reason: String,
    /// How many values were masked.
    pub masked: u64,
    /// How many bytes it has now.
    pub bytes: u64,
    /// Their SHA-256 in lower-case hex.
    pub sha256: String,
}

/// Something that is not in the bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path in the bundle, if it were there.
    pub file: String,
    /// Why it is not.
    pub reason: String,
}

/// A field that has to be there, and may be null.
fn string_or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(from)
}

/// Reads `bundle.json`, and says what is wrong with it by itself.
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
