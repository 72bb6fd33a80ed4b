//! The files that records of a spine refer to, and which names they may have.

use std::collections::BTreeMap;

use steno_journal::ARTIFACTS_DIR;
use steno_model::{ArtifactKind, ArtifactRef};

use crate::finding::{FindingLocation, Findings, Rule};

/// How many files records may refer to.
const REFS_MAX: usize = 100_000;
const NAME_BYTES_MAX: usize = 255;

/// Returns the name of the file in `artifacts/` that a record's path means.
///
/// # Errors
/// Words, when it means anything else: a place outside, a directory, a name that no file may have.
pub(super) fn check_path(path: &str) -> Result<&str, String> {
    let name = path.strip_prefix(ARTIFACTS_DIR).and_then(|rest| rest.strip_prefix('/'));
    name.filter(|name| is_plain_name(name))
        .ok_or_else(|| format!("`{path}` is not a file in `{ARTIFACTS_DIR}/`"))
}

/// Tells whether a name is one file's, on every system that it may be unpacked on.
pub(super) fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name != "."
        && name != ".."
        && !name.chars().any(|letter| matches!(letter, '/' | '\\') || letter.is_control())
}

/// The files that records refer to, each name and hash with where it first stood.
#[derive(Default)]
pub(super) struct Refs {
    pub(super) all: BTreeMap<(String, String), (ArtifactKind, FindingLocation)>,
    /// Those of kinds that we don't know, by name: kind, and where.
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

    /// Adds one of a kind that we don't know. Nothing is checked of it, so what is too much is just not kept.
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
