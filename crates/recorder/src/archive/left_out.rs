//! What is not recorded again: sessions that were forgotten or skipped, wherever a file of theirs lies.

use steno_vault::{NameHash, SourceInfo, Vault};

use super::catalog::first_id_at;
use super::identity::Identity;
use super::{Archive, Error, ToArchive};

/// Returns the hashes that files of a session are known by: what the file's path, and what its records call it. `head` is
/// the beginning of the records.
#[must_use]
pub fn names_of(info: &SourceInfo, head: &[u8]) -> Vec<NameHash> {
    let by_records = Identity::of_head(head).session;
    let names = info.session.iter().chain(&by_records).map(|session| NameHash::of_session(session));
    let mut names: Vec<NameHash> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Tells whether a file is not recorded, because it, or its session, was forgotten or skipped.
///
/// # Errors
/// What the vault says.
pub fn is_left_out(vault: &Vault, file: &ToArchive) -> Result<bool, Error> {
    is_info_left_out(vault, &file.whole_info())
}

fn is_info_left_out(vault: &Vault, info: &SourceInfo) -> Result<bool, Error> {
    let mut names = vec![NameHash::of_path(&info.path.0)];
    names.extend(info.session.iter().map(|session| NameHash::of_session(session)));
    for name in names {
        if vault.leaves_out(name).map_err(Error::Catalog)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Archive {
    /// Refuses a file that is left out, unless files are to be archived that were: then it is not left out any longer.
    pub(super) fn check_left_out(&self, file: &ToArchive, info: &SourceInfo) -> Result<(), Error> {
        // A damaged file of tombstones must not keep everything from being recorded; `steno verify` tells of it.
        let leaves_out = match is_info_left_out(&self.vault, info) {
            Err(Error::Catalog(error)) if error.is_damage() => false,
            told => told?,
        };
        if !leaves_out {
            return Ok(());
        }
        if self.options.again {
            let names = info.session.iter().map(|session| NameHash::of_session(session));
            for name in names.chain([NameHash::of_path(file.path())]) {
                self.vault.take_in(name).map_err(Error::Catalog)?;
            }
            return Ok(());
        }
        let source_id = first_id_at(file.path());
        Err(Error::vault(file.path())(steno_vault::Error::Forgotten { source_id }))
    }
}
