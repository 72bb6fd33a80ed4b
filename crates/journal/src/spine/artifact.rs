//! Files kept beside a spine: named by what they hold, so that keeping one again overwrites nothing.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use steno_disk::{self as disk, Disk, StorePath, read_full, sync_dir};
use steno_model::{ArtifactKind, ArtifactRef};

use super::finding::{Findings, Place, Rule};
use crate::error::Error;
use crate::names::{ArtifactFile, ArtifactName};
use crate::seal::hex;

/// How many bytes an artifact may have.
pub const ARTIFACT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The directory of artifacts, below a spine's or a bundle's.
pub(crate) const DIR: &str = "artifacts";

/// How many files records may refer to.
const REFS_MAX: usize = 100_000;

const NAME_BYTES_MAX: usize = 255;

/// An artifact that is on the disk, as an `artifact_ref` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptArtifact {
    /// Its path below the spine's directory: `artifacts/…`.
    pub artifact_path: String,
    /// Its SHA-256, 64 lower-case hex digits.
    pub sha256: String,
}

/// Puts an artifact in place, whole and synced, unless it is there.
pub(crate) fn keep(
    disk: &dyn Disk,
    spine: &StorePath,
    what: ArtifactFile,
    bytes: &[u8],
) -> Result<KeptArtifact, Error> {
    if bytes.len() > ARTIFACT_BYTES_MAX {
        return Err(Error::TooLong { bytes: bytes.len() as u64 });
    }
    let dir = spine.below(DIR);
    let sha256 = hex(&Sha256::new_with_prefix(bytes));
    let name = ArtifactName { what, sha256: sha256.clone() };
    let path = dir.below(&name);
    disk.make_dir(&dir).map_err(|source| Error::io("make", &dir, source))?;
    if is_there(disk, &path, bytes)? {
        // Whoever put it there may have died before its name was safe.
        sync_dir(disk, &dir).map_err(|source| Error::io("sync the directory of", &path, source))?;
    } else {
        disk::replace_file(disk, &path, bytes).map_err(|source| Error::io("write", &path, source))?;
    }
    Ok(KeptArtifact { artifact_path: format!("{DIR}/{name}"), sha256 })
}

/// Tells whether the file is there; one with other bytes than its name says is left alone.
fn is_there(disk: &dyn Disk, path: &StorePath, bytes: &[u8]) -> Result<bool, Error> {
    let failed = |source| Error::io("read", path, source);
    let Some(file) = disk.open_read(path).map_err(failed)? else { return Ok(false) };
    let mut found = vec![0; bytes.len() + 1];
    let read = read_full(&*file, &mut found, 0).map_err(failed)?;
    if found[..read] == *bytes {
        return Ok(true);
    }
    let bytes = bytes.len() as u64;
    Err(Error::SealBroken { path: path.clone(), differs: None, bytes, why: "it is not what its name says" })
}

/// Returns the name of the file in `artifacts/` that a record's path means.
///
/// # Errors
/// Words, when it means anything else: a place outside, a directory, a name that no file may have.
pub(super) fn check_path(path: &str) -> Result<&str, String> {
    let name = path.strip_prefix(DIR).and_then(|rest| rest.strip_prefix('/'));
    name.filter(|name| is_plain_name(name)).ok_or_else(|| format!("`{path}` is not a file in `{DIR}/`"))
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
    pub(super) all: BTreeMap<(String, String), (ArtifactKind, Place)>,
    /// Those of kinds that we don't know, by name: kind, and where.
    pub(super) unknown: BTreeMap<String, (String, Place)>,
    is_full: bool,
}

impl Refs {
    pub(super) fn add(
        &mut self,
        name: &str,
        artifact: &ArtifactRef<'_>,
        place: Place,
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
    pub(super) fn add_unknown(&mut self, name: &str, kind: &str, place: Place) {
        if self.unknown.len() < REFS_MAX {
            self.unknown.entry(name.to_owned()).or_insert_with(|| (kind.to_owned(), place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_lies_in_its_directory_and_nowhere_else() {
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
