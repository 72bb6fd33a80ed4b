//! How much of agents' files is recorded. Changes nothing.

use std::collections::HashSet;

use steno_vault::{SourceId, Vault};

use super::catalog::{Catalog, ids_at};
use super::{SourceError, SourceFile, is_left_out};

/// Whether a file is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Nothing of it is recorded.
    New,
    /// The file has changed since it was recorded, or is being recorded.
    Behind,
    /// All of it is recorded.
    Current,
    /// It was forgotten, and is not recorded.
    Forgotten,
}

/// Returns for each file whether it is recorded.
///
/// # Errors
/// An error of the vault.
pub fn coverage(vault: &Vault, files: &[SourceFile]) -> Result<Vec<Coverage>, SourceError> {
    let catalog = Catalog::of(&vault.outlines().map_err(SourceError::Catalog)?);
    let forgotten = vault.tombstones().map_err(SourceError::Catalog)?;
    let forgotten: HashSet<SourceId> = forgotten.iter().map(|tombstone| tombstone.source).collect();
    let is_forgotten = |file: &SourceFile| {
        let is_source = ids_at(file.path()).next().is_some_and(|id| forgotten.contains(&id));
        is_source || is_left_out(vault, file).unwrap_or(false)
    };
    let of = |file: &SourceFile| match catalog.at(file.path()) {
        None if is_forgotten(file) => Coverage::Forgotten,
        None => Coverage::New,
        // Compares only the length. Recording also detects a file that was rewritten with the same length.
        Some(known) if known.cursor.is_some_and(|cursor| cursor.offset() == file.size_bytes) => {
            Coverage::Current
        }
        Some(_) => Coverage::Behind,
    };
    Ok(files.iter().map(of).collect())
}
