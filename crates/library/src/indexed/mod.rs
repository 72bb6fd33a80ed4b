//! The index of a store, brought up to date by whoever asks.
//!
//! A transcript whose file looks as it did when it was read is not read again. When one changed, its session is folded again
//! from all its runs, because another run may change any of its facts.

mod fold;
mod project;
mod stale;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::sync_channel;

use steno_disk::StorePath;
use steno_index::{Error as IndexError, Index, RunRow, Update};
use steno_journal::Store;
use steno_model::{RunId, with_causes};
use steno_views::{Lines, visible};

use self::fold::FoldedSession;
use self::project::Projects;
use self::stale::{Stale, head_of};
use crate::{Error, Library, Relations};

/// How many folded sessions may wait for the writer.
const QUEUE_LEN_MAX: usize = 4;
const THREADS_MAX: usize = 8;

impl Library {
    /// Returns the index, up to date.
    ///
    /// If the store cannot be written to, the index is made in memory.
    ///
    /// # Errors
    /// [`Error::NoStore`] without a store, and what SQLite or the system says.
    pub fn indexed(&self) -> Result<&Index, Error> {
        if let Some(index) = self.indexed.get() {
            return Ok(index);
        }
        let index = self.open_index()?;
        Ok(self.indexed.get_or_init(|| index))
    }

    /// Returns where the index is; `None` where the store is not on the host's file system.
    fn index_path(&self) -> Result<Option<PathBuf>, Error> {
        let dir = self.store()?.disk().host_path(&StorePath::root());
        Ok(dir.map(|dir| dir.join("index.db")))
    }

    /// Deletes the files of the index, if there are any. The next search makes it again.
    ///
    /// # Errors
    /// What the system says.
    pub fn drop_index(&self) -> Result<(), Error> {
        if let Some(path) = self.index_path()? {
            Index::remove(&path)?;
        }
        Ok(())
    }

    /// Removes every trace of what the store does not have any more from the files of the index, if there are any.
    ///
    /// # Errors
    /// What SQLite or the system says.
    pub fn purge_index(&self) -> Result<(), Error> {
        let Some(path) = self.index_path()?.filter(|path| path.exists()) else { return Ok(()) };
        let purge = || -> Result<(), Error> {
            let index = Index::open(&path)?;
            self.bring_up_to_date(&index)?;
            Ok(index.purge()?)
        };
        // It is derived: the next search makes it again.
        purge().or_else(|_| Ok(Index::remove(&path)?))
    }

    fn open_index(&self) -> Result<Index, Error> {
        if let Some(path) = self.index_path()? {
            // A second time with a new database, if the first one turns out to be damaged.
            for is_last in [false, true] {
                let updated = Index::open(&path).map_err(Error::from).and_then(|index| {
                    self.bring_up_to_date(&index)?;
                    Ok(index)
                });
                match updated {
                    Ok(index) => return Ok(index),
                    Err(Error::Index(error)) if error.is_damage() && !is_last => Index::remove(&path)?,
                    Err(Error::Index(error)) => {
                        let why = with_causes(&error);
                        tracing::warn!("{}; it is made in memory", visible(&why, Lines::Escape));
                        break;
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        let index = Index::in_memory()?;
        self.bring_up_to_date(&index)?;
        Ok(index)
    }

    fn bring_up_to_date(&self, index: &Index) -> Result<(), Error> {
        let store = self.store()?;
        if Stale::find(store, &index.known_runs()?)?.is_empty() {
            return Ok(());
        }
        let update = index.update()?;
        // Another process may have done it while we waited.
        let known = index.known_runs()?;
        let stale = Stale::find(store, &known)?;
        if stale.is_empty() {
            return Ok(());
        }
        apply(store, &known, &stale, &update)?;
        update.commit()?;
        if !stale.gone.is_empty() {
            // Deleted rows leave terms behind, and a run that is gone may have been forgotten.
            index.purge()?;
        }
        Ok(())
    }
}

/// Puts the changed runs and the sessions that they belong to into the index.
fn apply(store: &Store, known: &[RunRow], stale: &Stale, update: &Update<'_>) -> Result<(), Error> {
    let mut rows: BTreeMap<RunId, RunRow> = known.iter().map(|row| (row.run, row.clone())).collect();
    let relations_of =
        |rows: &BTreeMap<RunId, RunRow>| Relations::of(&rows.values().map(head_of).collect::<Vec<_>>());
    let before = relations_of(&rows);
    for run in &stale.gone {
        rows.remove(run);
        update.remove_run(*run)?;
    }
    for row in stale.read_heads(store)? {
        rows.insert(row.run, row);
    }
    let after = relations_of(&rows);
    let runs = stale.gone.iter().chain(stale.changed.keys());
    let sessions: BTreeSet<RunId> = runs.flat_map(|run| [before.owner(*run), after.owner(*run)]).collect();
    let jobs: Vec<(RunId, Vec<RunRow>)> = sessions
        .into_iter()
        .map(|session| {
            // A run that shows another session is not a session any more.
            let runs = if after.owner(session) == session { after.runs_of(session) } else { Vec::new() };
            (session, runs.into_iter().filter_map(|run| rows.get(&run).cloned()).collect())
        })
        .collect();
    fold_all(store, &after, jobs, |folded| put(update, folded))?;
    update.set_roots(|session| after.root(session))?;
    Ok(())
}

/// Puts a folded session into the index. One without runs is taken out.
fn put(update: &Update<'_>, (id, folded): (RunId, Option<FoldedSession>)) -> Result<(), IndexError> {
    let Some(FoldedSession { runs, session }) = folded else { return update.remove_session(id) };
    for run in &runs {
        update.put_run(run)?;
    }
    match session {
        Some(session) => update.put_session(&session),
        None => update.remove_session(id),
    }
}

/// Folds sessions on several threads, and passes each to `put` on this one.
fn fold_all(
    store: &Store,
    relations: &Relations,
    jobs: Vec<(RunId, Vec<RunRow>)>,
    mut put: impl FnMut((RunId, Option<FoldedSession>)) -> Result<(), IndexError>,
) -> Result<(), Error> {
    let threads =
        std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX).min(jobs.len());
    let jobs = std::sync::Mutex::new(jobs.into_iter());
    let projects = Projects::default();
    std::thread::scope(|scope| {
        let (sender, receiver) = sync_channel(QUEUE_LEN_MAX);
        for _ in 0..threads {
            let (sender, jobs, projects) = (sender.clone(), &jobs, &projects);
            scope.spawn(move || {
                loop {
                    let next = jobs.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                    let Some((id, runs)) = next else { return };
                    let folded = fold::session(store, (id, relations), runs, projects);
                    // The receiver is gone after an error.
                    if sender.send(folded.map(|folded| (id, folded))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for folded in receiver {
            put(folded?)?;
        }
        Ok(())
    })
}
