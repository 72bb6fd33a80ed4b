//! How much of agents' files the archive has, without changing anything.

use std::collections::HashSet;

use steno_vault::{SourceId, Vault};

use super::catalog::{Catalog, ids_at};
use super::{SourceError, SourceFile, is_left_out};

/// Whether the archive has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// It has nothing of it.
    New,
    /// The file has changed since, or is being recorded.
    Behind,
    /// It has all of it.
    Current,
    /// It was forgotten, and is left alone.
    Forgotten,
}

/// Tells of each file whether the archive has it.
///
/// # Errors
/// What the vault says.
pub fn coverage(vault: &Vault, files: &[SourceFile]) -> Result<Vec<Coverage>, SourceError> {
    let catalog = Catalog::load(vault)?;
    let forgotten = vault.tombstones().map_err(SourceError::Catalog)?;
    let forgotten: HashSet<SourceId> = forgotten.iter().map(|tombstone| tombstone.source).collect();
    let is_forgotten = |file: &SourceFile| {
        let is_source = ids_at(file.path()).next().is_some_and(|id| forgotten.contains(&id));
        is_source || is_left_out(vault, file).unwrap_or(false)
    };
    let of = |file: &SourceFile| match catalog.at(file.path()) {
        None if is_forgotten(file) => Coverage::Forgotten,
        None => Coverage::New,
        // By its length alone: a file that was touched or given back since is told apart when it is recorded.
        Some(known) if known.cursor.is_some_and(|cursor| cursor.offset() == file.size_bytes) => {
            Coverage::Current
        }
        Some(_) => Coverage::Behind,
    };
    Ok(files.iter().map(of).collect())
}
