//! The index of a store, brought up to date by the process that needs it.
//!
//! A transcript whose file looks as it did when it was read is not read again. When one changed, its session is folded again
//! from all its runs, because another run may change any of its facts.

mod fold;
mod project;
mod sources;
mod stale;
mod status;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;

use steno_disk::{Identity, StorePath};
use steno_index::{Error as IndexError, Index, RunRow, SourceRow, Update};
use steno_journal::{RunFiles, Store};
use steno_model::{RunId, with_causes};
use steno_vault::{SourceId, Vault};
use steno_views::{Lines, visible};

use self::fold::FoldedSession;
pub(crate) use self::project::Projects;
use self::sources::StaleSources;
pub(crate) use self::sources::source_row;
use self::stale::Stale;
pub(crate) use self::stale::head_of;
pub use self::status::IndexStatus;
use crate::session_match::match_sessions;
use crate::{Error, Library, Relations, RunHead};

/// How many folded sessions may wait for the writer.
const QUEUE_LEN_MAX: usize = 4;
const THREADS_MAX: usize = 8;
/// How many changed runs may have to be read before an answer that is possible without the index.
const READY_RUNS_MAX: usize = 16;

/// Receives the progress of an update of the index.
#[derive(Default)]
pub(crate) struct IndexProgress(Option<Box<dyn Fn(usize, usize) + Send>>);

impl IndexProgress {
    fn tell(&self, done: usize, total: usize) {
        if let Some(tell) = &self.0 {
            tell(done, total);
        }
    }
}

impl Library {
    /// Calls `tell` while the index is brought up to date: with the number of sessions that were read, and the number
    /// of all that have to be read.
    #[must_use]
    pub fn with_index_progress(mut self, tell: impl Fn(usize, usize) + Send + 'static) -> Self {
        self.progress = IndexProgress(Some(Box::new(tell)));
        self
    }

    /// Returns the index, up to date.
    ///
    /// If the store cannot be written to, the index is made in memory.
    ///
    /// # Errors
    /// [`Error::NoStore`] without a store, or an error of SQLite or the system.
    pub fn indexed(&self) -> Result<&Index, Error> {
        Ok(self.indexed_with(|_, _| Ok(()))?.0)
    }

    /// Returns the index, up to date, with what `read` returns for it.
    ///
    /// `read` is called while another thread looks at the files of the store, and once more if the index was not up to date.
    pub(crate) fn indexed_with<T>(&self, read: impl IndexReader<T>) -> Result<(&Index, T), Error> {
        if let Some(index) = self.indexed.get() {
            return Ok((index, read(index, self.known_files()?)?));
        }
        let (index, glance) = self.open_index(&read)?;
        let index = self.indexed.get_or_init(|| index);
        let (known, answer) = match glance {
            Some(Glance { known, answer }) => (known, Some(answer)),
            None => (KnownFiles::read(index)?, None),
        };
        let known = self.known.get_or_init(|| known);
        Ok((index, answer.map_or_else(|| read(index, known), Ok)?))
    }

    /// Returns the index if there is one that is up to date or nearly so. So a request for one session does not wait
    /// until all are read.
    pub(crate) fn ready_index(&self) -> Result<Option<&Index>, Error> {
        if let Some(index) = self.indexed.get() {
            return Ok(Some(index));
        }
        let Some(path) = self.index_path()?.filter(|path| is_ours(path)) else { return Ok(None) };
        let Ok(Some(index)) = Index::open_existing(&path) else { return Ok(None) };
        let (files, glance) =
            Files::list_beside(self.store()?, self.vault()?, || Glance::take(&index, &|_, _| Ok(())));
        let Ok(Glance { known, answer: () }) = glance else { return Ok(None) };
        let (stale, sources) = files?.stale(&known);
        match stale.len() {
            0 if sources.is_empty() => {
                self.known.get_or_init(|| known);
                Ok(Some(self.indexed.get_or_init(|| index)))
            }
            0..=READY_RUNS_MAX => {
                drop(index);
                Ok(self.indexed().ok())
            }
            _ => Ok(None),
        }
    }

    /// Returns the path of the index; `None` if the store is not on the host's file system.
    fn index_path(&self) -> Result<Option<PathBuf>, Error> {
        let dir = self.store()?.disk().host_path(&StorePath::root());
        Ok(dir.map(|dir| dir.join("index.db")))
    }

    /// Tells whether the store has an index. Asking for one makes it.
    #[must_use]
    pub fn has_index(&self) -> bool {
        self.index_path().is_ok_and(|path| path.is_some_and(|path| path.exists()))
    }

    /// Returns the size of the files of the index; 0 without one.
    #[must_use]
    pub fn index_bytes(&self) -> u64 {
        let Ok(Some(path)) = self.index_path() else { return 0 };
        let size = |ending: &str| {
            let path = PathBuf::from(format!("{}{ending}", path.display()));
            path.metadata().map_or(0, |about| about.len())
        };
        ["", "-wal", "-shm", "-sum"].into_iter().map(size).sum()
    }

    /// Deletes the files of the index, if there are any. The next search makes it again.
    ///
    /// # Errors
    /// An error of the system.
    pub fn drop_index(&self) -> Result<(), Error> {
        if let Some(path) = self.index_path()? {
            Index::remove(&path)?;
        }
        Ok(())
    }

    /// Removes every trace of content that the store no longer has from the files of the index, if there are any.
    ///
    /// # Errors
    /// An error of SQLite or the system.
    pub fn purge_index(&self) -> Result<(), Error> {
        let Some(path) = self.index_path()?.filter(|path| path.exists()) else { return Ok(()) };
        let purge = || -> Result<(), Error> {
            let index = Index::open(&path)?;
            self.bring_up_to_date(&index, &|| false, &|_, _| Ok(()))?;
            Ok(index.purge()?)
        };
        // It is derived: the next search makes it again.
        purge().or_else(|_| Ok(Index::remove(&path)?))
    }

    /// Brings the file of the index up to date, until `is_stopped`. What is unfinished by then is left out.
    ///
    /// # Errors
    /// [`Error::NoStore`] without a store, or an error of SQLite or the system.
    pub fn update_index(&self, is_stopped: &(dyn Fn() -> bool + Sync)) -> Result<(), Error> {
        match self.needed_path()? {
            Some(path) => self.open_up_to_date(&path, is_stopped, &|_, _| Ok(())).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Returns where the index should be. A store without runs needs no file, and nothing is left in the store of another
    /// user.
    fn needed_path(&self) -> Result<Option<PathBuf>, Error> {
        let path = self.index_path()?.filter(|path| is_ours(path));
        match path {
            Some(path) if path.exists() || !self.runs()?.is_empty() => Ok(Some(path)),
            Some(_) | None => Ok(None),
        }
    }

    fn open_index<T>(&self, read: &impl IndexReader<T>) -> Result<(Index, Option<Glance<T>>), Error> {
        if let Some(path) = self.needed_path()? {
            match self.open_up_to_date(&path, &|| false, read) {
                Ok(opened) => return Ok(opened),
                Err(Error::Index(error)) => {
                    let why = with_causes(&error);
                    tracing::warn!("{}; it is made in memory", visible(&why, Lines::Escape));
                }
                Err(error) => return Err(error),
            }
        }
        let index = Index::in_memory()?;
        let glance = self.bring_up_to_date(&index, &|| false, read)?;
        Ok((index, glance))
    }

    /// Opens the file of the index, and brings it up to date.
    fn open_up_to_date<T>(
        &self,
        path: &Path,
        is_stopped: &(dyn Fn() -> bool + Sync),
        read: &impl IndexReader<T>,
    ) -> Result<(Index, Option<Glance<T>>), Error> {
        // If the database turns out to be damaged, it is tried once more with a new one.
        for is_last in [false, true] {
            let updated = Index::open(path).map_err(Error::from).and_then(|index| {
                let glance = self.bring_up_to_date(&index, is_stopped, read)?;
                Ok((index, glance))
            });
            match updated {
                Ok(opened) => return Ok(opened),
                Err(Error::Index(error)) if error.is_damage() && !is_last => Index::remove(path)?,
                Err(error) => return Err(error),
            }
        }
        Err(Error::NoStore)
    }

    /// Returns what the index knows of all files, as of when it was brought up to date.
    pub(crate) fn known_files(&self) -> Result<&KnownFiles, Error> {
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let index = self.indexed()?;
        if let Some(known) = self.known.get() {
            return Ok(known);
        }
        let known = KnownFiles::read(index)?;
        Ok(self.known.get_or_init(|| known))
    }

    /// Returns what was read of the index, if there was nothing to do.
    fn bring_up_to_date<T>(
        &self,
        index: &Index,
        is_stopped: &(dyn Fn() -> bool + Sync),
        read: &impl IndexReader<T>,
    ) -> Result<Option<Glance<T>>, Error> {
        let (store, vault) = (self.store()?, self.vault()?);
        let (files, glance) = Files::list_beside(store, vault, || Glance::take(index, read));
        let (files, glance) = (files?, glance?);
        let (stale, sources) = files.stale(&glance.known);
        if stale.is_empty() && sources.is_empty() {
            return Ok(Some(glance));
        }
        let update = index.update()?;
        // Another process may have done it while we waited.
        let known = KnownFiles::read(index)?;
        let (stale, sources) = Files::list(store, vault)?.stale(&known);
        if stale.is_empty() && sources.is_empty() {
            return Ok(None);
        }
        for source in &sources.gone {
            update.remove_source(source)?;
        }
        for source in sources.rows(vault) {
            update.put_source(&source)?;
        }
        let reporter = Reporter { progress: &self.progress, is_stopped };
        if !apply(store, (&known.runs, &stale), &update, &reporter)? {
            return Ok(None);
        }
        update.commit()?;
        if !stale.gone.is_empty() || !sources.gone.is_empty() {
            // Deleted rows leave terms behind, and a run that is gone may have been forgotten.
            index.purge()?;
        }
        Ok(None)
    }
}

/// Reads something of an index, given what it knows of the files.
pub(crate) trait IndexReader<T>: Fn(&Index, &KnownFiles) -> Result<T, IndexError> {}

impl<T, F: Fn(&Index, &KnownFiles) -> Result<T, IndexError>> IndexReader<T> for F {}

/// What was read of an index at one moment.
struct Glance<T> {
    known: KnownFiles,
    answer: T,
}

impl<T> Glance<T> {
    fn take(index: &Index, read: &impl IndexReader<T>) -> Result<Self, IndexError> {
        let _snapshot = index.snapshot()?;
        let known = KnownFiles::read(index)?;
        let answer = read(index, &known)?;
        Ok(Self { known, answer })
    }
}

/// What the index knows of the files of a store.
pub(crate) struct KnownFiles {
    pub(crate) runs: Vec<RunRow>,
    pub(crate) sources: Vec<SourceRow>,
    relations: OnceCell<Relations>,
}

impl KnownFiles {
    fn read(index: &Index) -> Result<Self, IndexError> {
        Ok(Self { runs: index.known_runs()?, sources: index.known_sources()?, relations: OnceCell::new() })
    }

    /// Returns the relations of all runs.
    pub(crate) fn relations(&self) -> &Relations {
        self.relations.get_or_init(|| Relations::of(&self.runs.iter().map(head_of).collect::<Vec<_>>()))
    }
}

/// How the files of a store look now.
struct Files {
    runs: Vec<RunFiles>,
    manifests: Vec<(SourceId, Identity)>,
}

impl Files {
    fn list(store: &Store, vault: &Vault) -> Result<Self, Error> {
        Ok(Self { runs: store.run_files()?, manifests: vault.manifest_files()? })
    }

    /// Looks at the files while the database is read, on two threads. The one that is ready first looks at the manifests.
    fn list_beside<T>(store: &Store, vault: &Vault, read: impl FnOnce() -> T) -> (Result<Self, Error>, T) {
        let is_taken = AtomicBool::new(false);
        let manifests = || (!is_taken.swap(true, Ordering::Relaxed)).then(|| vault.manifest_files());
        std::thread::scope(|scope| {
            let other = scope.spawn(|| (store.run_files(), manifests()));
            let (read, own) = (read(), manifests());
            let (runs, others) = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            let manifests = own.or(others).unwrap_or_else(|| vault.manifest_files());
            let files = || -> Result<Self, Error> { Ok(Self { runs: runs?, manifests: manifests? }) };
            (files(), read)
        })
    }

    /// Returns the runs and sources that are missing or out of date in the index.
    fn stale(&self, known: &KnownFiles) -> (Stale, StaleSources) {
        (Stale::find(&self.runs, &known.runs), StaleSources::find(&self.manifests, &known.sources))
    }
}

/// Tells whether the directory of a file belongs to the user of this process.
fn is_ours(path: &Path) -> bool {
    let owner = path.parent().and_then(|dir| dir.metadata().ok()).map(|found| found.uid());
    owner == Some(rustix::process::geteuid().as_raw())
}

/// A session to fold, with its runs.
type FoldJob = (RunId, Vec<RunRow>);

/// Decides whether an update continues, and receives its progress.
struct Reporter<'a> {
    progress: &'a IndexProgress,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

/// Puts the changed runs and the sessions that they belong to into the index. False if it was stopped.
fn apply(
    store: &Store,
    (known, stale): (&[RunRow], &Stale),
    update: &Update<'_>,
    reporter: &Reporter<'_>,
) -> Result<bool, Error> {
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
    match_rows(store, &mut rows)?;
    let after = relations_of(&rows);
    // A run whose session was found by its ids moves there without a change of its own.
    let moved = rows.keys().filter(|run| before.owner(**run) != after.owner(**run));
    let runs = stale.gone.iter().chain(stale.changed.keys()).chain(moved);
    let sessions: BTreeSet<RunId> = runs.flat_map(|run| [before.owner(*run), after.owner(*run)]).collect();
    // Sessions that did not change may get another top-level session when one above them is gone.
    let owners = rows.keys().map(|run| after.owner(*run));
    let moved = owners.filter(|session| before.root(*session) != after.root(*session));
    let roots: BTreeSet<RunId> = sessions
        .iter()
        .flat_map(|session| [before.root(*session), after.root(*session)])
        .chain(moved.map(|session| after.root(session)))
        .collect();
    let jobs: Vec<FoldJob> = sessions
        .into_iter()
        .map(|session| {
            // A run that shows another session is no longer a session itself.
            let runs = if after.owner(session) == session { after.runs_of(session) } else { Vec::new() };
            (session, runs.into_iter().filter_map(|run| rows.get(&run).cloned()).collect())
        })
        .collect();
    let Reporter { progress, is_stopped } = *reporter;
    let (total, mut done) = (jobs.len(), 0);
    fold_all(store, &after, (jobs, is_stopped), |folded| {
        done += 1;
        progress.tell(done, total);
        put(update, folded)
    })?;
    update.set_roots(|session| after.root(session))?;
    for root in roots {
        update.count_family(root, |run| after.owner(run))?;
    }
    Ok(!is_stopped())
}

/// Finds the sessions of runs that name none.
fn match_rows(store: &Store, rows: &mut BTreeMap<RunId, RunRow>) -> Result<(), Error> {
    let mut heads: Vec<RunHead> = rows.values().map(head_of).collect();
    match_sessions(store, &mut heads)?;
    for (row, head) in rows.values_mut().zip(heads) {
        row.shows_by_ids = head.session_by_ids;
    }
    Ok(())
}

/// Puts a folded session into the index, or removes a session without runs.
fn put(update: &Update<'_>, (id, folded): (RunId, Option<FoldedSession>)) -> Result<(), IndexError> {
    let Some(FoldedSession { runs, session }) = folded else { return update.remove_session(id) };
    for run in &runs {
        update.put_run(run)?;
    }
    match session {
        Some(session) => update.put_session(&session, &runs),
        None => update.remove_session(id),
    }
}

/// Folds sessions on several threads, and passes each to `put` on this one.
fn fold_all(
    store: &Store,
    relations: &Relations,
    (jobs, is_stopped): (Vec<FoldJob>, &(dyn Fn() -> bool + Sync)),
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
                    let Some((id, runs)) = next.filter(|_| !is_stopped()) else { return };
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
