//! Sessions that were forgotten or skipped, which are not recorded again from any of their files.

use steno_capture::discovery::has_short_ids;
use steno_vault::{NameHash, SourceInfo, Vault};

use super::catalog::first_id_at;
use super::identity::{SessionIdentity, head_of, parents_in, plan_slug, session_file, sessions_in};
use super::shared_file::SharedFileFormat;
use super::{SourceError, SourceFile, SourceRecorder};

/// Returns the hashes of a session's names from one of its files: the id in the file's path, else the id in its
/// records. `head` is the beginning of the records. Where file names have only the beginning of the id, it is both.
#[must_use]
pub fn session_hashes(info: &SourceInfo, head: &[u8]) -> Vec<NameHash> {
    let is_told_by_records = info.session.is_none() || info.known_provider().is_some_and(has_short_ids);
    let by_records = SessionIdentity::of_head(head).session.filter(|_| is_told_by_records);
    info.session.iter().chain(&by_records).map(|session| NameHash::of_session(session)).collect()
}

/// Returns the hashes of the sessions that a file belongs to: those of [`session_hashes`], those in its records if they
/// differ, and the parents of a subagent. A fork is a separate session.
#[must_use]
pub fn all_session_hashes(info: &SourceInfo, head: &[u8]) -> Vec<NameHash> {
    let mut names = session_hashes(info, head);
    let by_records: Vec<NameHash> =
        sessions_in(head).iter().map(|session| NameHash::of_session(session)).collect();
    if !by_records.iter().any(|name| names.contains(name)) {
        names.extend(by_records);
    }
    names.extend(parents_in(head).iter().map(|session| NameHash::of_session(session)));
    names.extend(plan_slug(info).map(|slug| plan_hash(&slug)));
    names
}

/// Returns the hash of a plan's slug.
#[must_use]
pub fn plan_hash(slug: &str) -> NameHash {
    NameHash::of_session(&format!("plan/{slug}"))
}

/// Tells whether a file is not recorded because it or its session was forgotten or skipped.
///
/// # Errors
/// An error of the vault.
pub fn is_left_out(vault: &Vault, file: &SourceFile) -> Result<bool, SourceError> {
    is_info_left_out(vault, &file.whole_info())
}

fn is_info_left_out(vault: &Vault, info: &SourceInfo) -> Result<bool, SourceError> {
    if !vault.leaves_out_anything().map_err(SourceError::Catalog)? {
        return Ok(false);
    }
    let session = session_file(info).filter(|_| SharedFileFormat::of(info).is_none());
    let head = session.and_then(|session| head_of(&session)).unwrap_or_default();
    for name in all_session_hashes(info, &head).into_iter().chain([NameHash::of_path(&info.path.0)]) {
        if vault.leaves_out(name).map_err(SourceError::Catalog)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl SourceRecorder {
    /// Refuses a file that was forgotten or skipped. With the option `again` it is allowed from now on instead.
    pub(super) fn check_left_out(&self, file: &SourceFile, info: &SourceInfo) -> Result<(), SourceError> {
        // Damaged tombstones must not stop all recording; `steno verify` reports them.
        let leaves_out = match is_info_left_out(&self.vault, info) {
            Err(SourceError::Catalog(error)) if error.is_damage() => false,
            other => other?,
        };
        if !leaves_out {
            return Ok(());
        }
        if self.options.again {
            let head = head_of(file.path()).unwrap_or_default();
            for name in all_session_hashes(info, &head).into_iter().chain([NameHash::of_path(file.path())]) {
                self.vault.take_in(name).map_err(SourceError::Catalog)?;
            }
            return Ok(());
        }
        let source_id = first_id_at(file.path());
        Err(SourceError::vault(file.path())(steno_vault::Error::Forgotten { source_id }))
    }
}
