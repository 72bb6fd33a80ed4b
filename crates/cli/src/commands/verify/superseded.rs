//! Superseded transcripts in `steno verify`: expected seals may belong to them.

use std::sync::Arc;

use steno_disk::{DiskFile, StorePath};
use steno_journal::{CheckReport, Error as JournalError, RunFile, Seal, Store, check_file};
use steno_model::RunId;

use crate::failure::Failure;

/// Expected seals, by the transcript that they belong to.
pub struct SealsByTranscript {
    /// Seals that the current transcript must match.
    pub current: Vec<Seal>,
    /// How many seals match a superseded transcript.
    pub superseded: u64,
    /// The check of the last of these.
    pub last: Option<CheckReport>,
}

/// Sorts the seals that are expected of a run.
pub fn sort_seals(store: &Store, run: RunId, seals: Vec<Seal>) -> Result<SealsByTranscript, Failure> {
    let mut sorted = SealsByTranscript { current: Vec::new(), superseded: 0, last: None };
    let paths = if seals.is_empty() { Vec::new() } else { store.superseded(run)? };
    for seal in seals {
        let mut check = None;
        for path in &paths {
            if let Some(file) = open(store, path)? {
                check = check_file(file, path, Some(run), vec![seal.clone()]).ok().or(check);
            }
        }
        match check {
            Some(checked) => (sorted.superseded, sorted.last) = (sorted.superseded + 1, Some(checked)),
            None => sorted.current.push(seal),
        }
    }
    Ok(sorted)
}

/// Checks the superseded transcripts of a run against their seals; returns those that do not match. A transcript that
/// was already damaged when it was superseded is not checked.
pub fn damaged_superseded(store: &Store, run: RunId) -> Result<Vec<(StorePath, JournalError)>, Failure> {
    let mut damaged = Vec::new();
    let known = store.superseded_damaged(run)?;
    let known: Vec<StorePath> = known.into_iter().map(|number| superseded_path(run, number)).collect();
    for path in store.superseded(run)?.into_iter().filter(|path| !known.contains(path)) {
        let Some(file) = open(store, &path)? else { continue };
        let checked = store
            .beside_superseded(run, &path)
            .and_then(|(seals, _)| check_file(file, &path, Some(run), seals));
        if let Err(error) = checked {
            damaged.push((path, error));
        }
    }
    Ok(damaged)
}

fn superseded_path(run: RunId, number: u32) -> StorePath {
    RunFile::Transcript(run).path().superseded(number)
}

fn open(store: &Store, path: &StorePath) -> Result<Option<Arc<dyn DiskFile>>, Failure> {
    let failed = |source| JournalError::Io { doing: "open", path: path.clone(), source: Arc::new(source) };
    Ok(store.disk().open_read(path).map_err(failed)?)
}
