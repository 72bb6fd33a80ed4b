//! How much of agents' files the archive has, without changing anything.

use steno_vault::Vault;

use super::catalog::Catalog;
use super::{Error, ToArchive, is_unchanged};

/// Whether the archive has a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// It has nothing of it.
    New,
    /// The file has changed since, or is being recorded.
    Behind,
    /// It has all of it.
    Current,
}

/// Tells of each file whether the archive has it.
///
/// # Errors
/// What the vault says.
pub fn coverage(vault: &Vault, files: &[ToArchive]) -> Result<Vec<Coverage>, Error> {
    let catalog = Catalog::load(vault)?;
    let of = |file: &ToArchive| match catalog.at(file.path()) {
        None => Coverage::New,
        Some(known) if is_unchanged(known, file) => Coverage::Current,
        Some(_) => Coverage::Behind,
    };
    Ok(files.iter().map(of).collect())
}
