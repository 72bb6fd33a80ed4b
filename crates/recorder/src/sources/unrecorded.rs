//! Which transcripts are not recorded, or not to their end. Changes nothing.

use std::collections::HashSet;
use std::path::PathBuf;

use steno_capture::tail::{Tail, TailRead};
use steno_vault::{SourceId, Vault};

use super::catalog::{Catalog, KnownSource, first_id_at};
use super::{SourceError, SourceLocations, is_left_out, is_unchanged};

/// A transcript that is not fully recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrecordedFile {
    /// Its path.
    pub path: PathBuf,
    /// Its source in the store, if there is one.
    pub source: Option<SourceId>,
}

/// Finds the transcripts that are not fully recorded, in the given locations and at the paths of recorded files.
///
/// Forgotten, skipped and excluded ones are not included.
///
/// # Errors
/// An error of the vault.
pub fn unrecorded_files(vault: &Vault, places: &SourceLocations) -> Result<Vec<UnrecordedFile>, SourceError> {
    let catalog = Catalog::of(&vault.outlines().map_err(SourceError::Catalog)?);
    let forgotten = vault.tombstones().map_err(SourceError::Catalog)?;
    let forgotten: HashSet<SourceId> = forgotten.iter().map(|tombstone| tombstone.source).collect();
    let mut files = places.list().files;
    let listed: HashSet<PathBuf> = files.iter().map(|file| file.path().to_owned()).collect();
    // A file that the user named before may be outside all homes.
    let given = catalog.paths().filter(|path| !listed.contains(*path) && path.is_file());
    let elsewhere = SourceLocations { homes: Vec::new(), given: given.cloned().collect(), ..places.clone() };
    files.extend(elsewhere.list().files);
    let mut unrecorded = Vec::new();
    for file in files.iter().filter(|file| file.is_wanted()) {
        let known = catalog.at(file.path());
        let has_all = known.is_some_and(|known| is_unchanged(known, file) || is_read(known));
        let is_forgotten = || known.is_none() && forgotten.contains(&first_id_at(file.path()));
        if !has_all && !is_forgotten() && !is_left_out(vault, file)? {
            unrecorded
                .push(UnrecordedFile { path: file.path().to_owned(), source: known.map(|known| known.id) });
        }
    }
    Ok(unrecorded)
}

/// Tells by content whether a source's file was read to its end. Times are not enough for a file that was written just
/// before it was read, or touched since.
fn is_read(known: &KnownSource) -> bool {
    let look = |cursor| Tail::resume(&known.path, cursor).read_next(&mut Vec::new(), 1);
    known.is_done && known.cursor.is_some_and(|cursor| matches!(look(cursor), Ok(TailRead::AtEnd)))
}
