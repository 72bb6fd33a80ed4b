//! The files that records of a spine refer to, and the names that are allowed for them.

use std::collections::BTreeMap;

use steno_journal::ARTIFACTS_DIR;
use steno_model::{ArtifactKind, ArtifactRef};

use crate::finding::{FindingLocation, Findings, Rule};

/// The maximum number of files that records may refer to.
const REFS_MAX: usize = 100_000;
const NAME_BYTES_MAX: usize = 255;

/// Returns the name of the file in `artifacts/` that a record's path means.
///
/// # Errors
///
/// A text, if the path leads outside, is a directory, or has a name that no file may have.
pub(super) fn check_path(path: &str) -> Result<&str, String> {
    let name = path.strip_prefix(ARTIFACTS_DIR).and_then(|rest| rest.strip_prefix('/'));
    name.filter(|name| is_plain_name(name))
        .ok_or_else(|| format!("`{path}` is not a file in `{ARTIFACTS_DIR}/`"))
}

/// Returns true if a name is one file name on every system on which a bundle may be unpacked.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name != "."
        && name != ".."
        && !name.chars().any(|letter| matches!(letter, '/' | '\\') || letter.is_control())
}

/// The files that records refer to: each name and hash, with the place of its first record.
#[derive(Default)]
pub(super) struct Refs {
    pub(super) all: BTreeMap<(String, String), (ArtifactKind, FindingLocation)>,
    /// Artifacts of unknown kinds by name: kind and place.
    pub(super) unknown: BTreeMap<String, (String, FindingLocation)>,
    is_full: bool,
}

impl Refs {
    pub(super) fn add(
        &mut self,
        name: &str,
        artifact: &ArtifactRef<'_>,
        place: FindingLocation,
        findings: &mut Findings,
    ) {
        let key = (name.to_owned(), artifact.sha256.to_string());
        if self.all.len() < REFS_MAX || self.all.contains_key(&key) {
            self.all.entry(key).or_insert((artifact.kind, place));
        } else if !self.is_full {
            self.is_full = true;
            findings.add(Rule::Limit, place, format!("records refer to more than {REFS_MAX} files"));
        }
    }

    /// Adds an artifact of an unknown kind. Nothing is checked for it, so those beyond the limit are dropped.
    pub(super) fn add_unknown(&mut self, name: &str, kind: &str, place: FindingLocation) {
        if self.unknown.len() < REFS_MAX {
            self.unknown.entry(name.to_owned()).or_insert_with(|| (kind.to_owned(), place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_path_accepts_only_names_in_artifacts() {
        assert_eq!(check_path("artifacts/git_diff.patch"), Ok("git_diff.patch"));
        for bad in [
            "",
            "artifacts",
            "artifacts/",
            "artifacts/..",
            "artifacts/.",
            "artifacts/../spine/segment-000.jsonl",
            "artifacts/a/b",
            "artifacts//a",
            "/etc/passwd",
            "../artifacts/a",
            "artifacts\\a",
            "artifacts/a\\b",
            "artifacts/a\0",
            "artifacts/a\nb",
            "artifactsa/b",
            &format!("artifacts/{}", "x".repeat(256)),
        ] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
    }
}
