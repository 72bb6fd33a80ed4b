//! The state of the index, and rebuilding it.

use std::path::{Path, PathBuf};

use steno_index::Index;

use super::stale::Stale;
use crate::{Error, Library};

/// The state of the index of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexStatus {
    /// Its file; `None` if it is only in memory.
    pub path: Option<PathBuf>,
    /// How long its files are.
    pub bytes: u64,
    /// Whether there is one that can be used.
    pub is_usable: bool,
    /// How many top-level sessions it has.
    pub sessions: u64,
    /// How many texts it has.
    pub texts: u64,
    /// How many runs are new, changed or gone since it was brought up to date.
    pub runs_behind: u64,
}

impl Library {
    /// Returns the state of the index, without changing it.
    ///
    /// # Errors
    /// [`Error::NoStore`] without a store, or an error of SQLite or the system.
    pub fn index_status(&self) -> Result<IndexStatus, Error> {
        let path = self.index_path()?;
        let index = path.as_deref().map(Index::open_existing).transpose()?.flatten();
        let (sessions, texts) = index.as_ref().map_or(Ok((0, 0)), Index::sizes)?;
        let known = index.as_ref().map_or(Ok(Vec::new()), Index::known_runs)?;
        let stale = Stale::find(&self.store()?.run_files()?, &known);
        Ok(IndexStatus {
            bytes: path.as_deref().map_or(0, size_of),
            path,
            is_usable: index.is_some(),
            sessions,
            texts,
            runs_behind: stale.len() as u64,
        })
    }

    /// Deletes the index and makes it again from the transcripts.
    ///
    /// # Errors
    /// [`Error::NoStore`] without a store, or an error of SQLite or the system.
    pub fn rebuild_index(&self) -> Result<(), Error> {
        self.drop_index()?;
        self.update_index(&|| false)
    }
}

/// Returns the length of the database and its log.
fn size_of(path: &Path) -> u64 {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
    size(path) + size(Path::new(&log))
}
