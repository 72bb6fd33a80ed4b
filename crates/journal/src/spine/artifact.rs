//! Files kept beside a spine: named by what they hold, so that keeping one again overwrites nothing.

use sha2::{Digest as _, Sha256};
use steno_disk::{self as disk, Disk, StorePath, read_full, sync_dir};

use crate::error::Error;
use crate::names::{ArtifactFile, ArtifactName};
use crate::seal::hex;

/// How many bytes an artifact may have.
pub const ARTIFACT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// The directory of artifacts, below a spine's or a bundle's.
pub const ARTIFACTS_DIR: &str = "artifacts";

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
    let dir = spine.below(ARTIFACTS_DIR);
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
    Ok(KeptArtifact { artifact_path: format!("{ARTIFACTS_DIR}/{name}"), sha256 })
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
    Err(Error::SealBroken {
        path: path.clone(),
        differs: None,
        bytes,
        why: "its content does not match the hash in its name",
    })
}
