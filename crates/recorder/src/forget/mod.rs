//! Forgets sessions: their files in the vault, their runs, the spines of their threads, and their messages on
//! connections.
//!
//! The tombstones are written first. From then on everything counts as forgotten, even after a crash: the next process
//! that opens the store for recording, or forgets anything, deletes what is left. Spines are deleted here, because the
//! vault does not know them.

mod connections;
mod plan;
mod session_files;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use steno_adapters::codex::session_run;
use steno_disk::{LockGuard, StorePath};
use steno_journal::{Error as JournalError, Reader, RunFile, SpineLock, SpineReader, Store};
use steno_library::{Error as LibraryError, connection_of as connection_id, is_thread_file};
use steno_model::{Evidence, RunId, SpineSource, ThreadId};
use steno_vault::{
    Error as VaultError, ForgetReport, ForgetRequest, Manifest, NameHash, Reason, SourceId, SpineTombstone,
    Vault,
};
use uuid::Uuid;

use crate::connection::RecordedConnection;
use crate::sources;
use crate::spines::{self, SourceName};

pub use connections::{ConnectionRecords, ConnectionSelection, SharedConnection, connections_of};
pub use plan::{ForgetPlan, ForgetSelection};
pub use session_files::{PieceFilter, SessionFiles, SharedFile, belongings, files_of_project, shared_files};

/// Why something could not be forgotten.
#[derive(Debug, thiserror::Error)]
pub enum ForgetError {
    /// A spine is being written. Nothing was forgotten.
    #[error("the spine of thread {thread} is being written")]
    SpineHeld {
        /// The thread.
        thread: ThreadId,
    },
    /// A connection is being recorded. Nothing was forgotten.
    #[error("connection {id} is being recorded")]
    ConnectionHeld {
        /// The connection.
        id: Uuid,
    },
    /// The file of a connection cannot be removed.
    #[error("cannot delete connection {id}")]
    Connection {
        /// The connection.
        id: Uuid,
        /// An I/O error.
        #[source]
        source: Box<spines::Error>,
    },
    /// An error of the library.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// An error of the journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An error of the vault.
    #[error(transparent)]
    Vault(#[from] VaultError),
}

impl ForgetError {
    /// Tells whether another process holds something that has to be deleted.
    #[must_use]
    pub fn is_held(&self) -> bool {
        matches!(
            self,
            Self::SpineHeld { .. }
                | Self::ConnectionHeld { .. }
                | Self::Journal(JournalError::Locked { .. })
                | Self::Vault(VaultError::Locked { .. } | VaultError::Busy { .. })
                | Self::Library(LibraryError::Vault(VaultError::Locked { .. } | VaultError::Busy { .. }))
        )
    }
}

/// Everything that has to be deleted.
#[derive(Clone, Debug, Default)]
pub struct ForgetTargets {
    /// Files in the vault.
    pub sources: Vec<SourceId>,
    /// Runs.
    pub runs: Vec<RunId>,
    /// Threads whose spines are deleted.
    pub threads: Vec<ThreadId>,
    /// Connections whose files may not be imported yet.
    pub connections: Vec<RecordedConnection>,
    /// The hashes of what is not recorded again: sessions, and pieces of shared files.
    pub names: Vec<NameHash>,
    /// Shared files that lose pieces.
    pub shared: Vec<SharedFile>,
    /// Which pieces they lose.
    pub pieces: PieceFilter,
    /// Connections that lose the messages of forgotten threads.
    pub shared_connections: Vec<SharedConnection>,
}

impl ForgetTargets {
    /// Tells whether files that stay lose pieces.
    #[must_use]
    pub fn pieces_go(&self) -> bool {
        !self.shared.is_empty() || !self.shared_connections.is_empty()
    }
}

/// The spines that are deleted with files of the vault, and those that stay although they have records of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpineSelection {
    /// The threads whose spines are deleted.
    pub going: Vec<ThreadId>,
    /// Threads whose spines have records of a forgotten connection and of others that stay.
    pub staying: Vec<ThreadId>,
}

/// Returns the runs that were withdrawn when their source was derived again, each with its source.
///
/// # Errors
/// An I/O error.
pub fn withdrawn_runs(store: &Store) -> Result<Vec<(RunId, SourceId)>, ForgetError> {
    let mut runs = Vec::new();
    for run in store.withdrawn_runs()? {
        for path in store.superseded(run)? {
            let opened = store.disk().open_read(&path).map_err(|source| JournalError::Io {
                doing: "open",
                path: path.clone(),
                source: Arc::new(source),
            })?;
            let Some(file) = opened else { continue };
            let first = Reader::of_file(file, path, Some(run)).read_next().ok().flatten();
            let evidence = first.as_ref().and_then(|first| first.event.extra.get("evidence"));
            let source =
                evidence.and_then(Evidence::read).map(|evidence| evidence.source.to_text().into_owned());
            runs.extend(source.and_then(|source| SourceId::parse(&source)).map(|source| (run, source)));
        }
    }
    Ok(runs)
}

/// Finds the spines that are deleted with files of the vault: the spines of threads whose session files these are, and
/// spines that were made only from connections that are among these files or were forgotten before.
///
/// # Errors
/// An I/O error.
pub fn spines_to_forget(
    store: &Store,
    vault: &Vault,
    manifests: &[Manifest],
) -> Result<SpineSelection, ForgetError> {
    let connections = ForgottenConnections::among(vault, manifests);
    let mut selection = SpineSelection::default();
    for thread in store.spines()? {
        if manifests.iter().any(|manifest| is_session_of(manifest, &thread)) {
            selection.going.push(thread);
        } else if let Some(connections) = &connections {
            let made_from = sources_of(store, &thread)?;
            let has_some = made_from.iter().any(|source| connections.is_going(source));
            let mut is_whole = true;
            for source in made_from.iter().filter(|source| has_some && !connections.is_going(source)) {
                is_whole &= connections.is_gone(source)?;
            }
            match (has_some, is_whole) {
                (true, true) => selection.going.push(thread),
                (true, false) => selection.staying.push(thread),
                (false, _) => {}
            }
        }
    }
    Ok(selection)
}

/// Connections to forget, and the directory of connections' files.
struct ForgottenConnections<'a> {
    vault: &'a Vault,
    dir: &'a Path,
    going: BTreeSet<String>,
}

impl<'a> ForgottenConnections<'a> {
    /// Finds the connections among files of the vault; `None` if there are none.
    fn among(vault: &'a Vault, manifests: &'a [Manifest]) -> Option<Self> {
        let is_connection = |manifest: &&Manifest| connection_of(manifest).is_some();
        let dir = manifests.iter().find(is_connection)?.info.path.0.parent()?;
        let going = manifests.iter().filter_map(connection_of).map(|spooled| spooled.id.to_string());
        Some(Self { vault, dir, going: going.collect() })
    }

    fn is_going(&self, source: &str) -> bool {
        connection_in(source).is_some_and(|id| self.going.contains(id))
    }

    fn is_gone(&self, source: &str) -> Result<bool, ForgetError> {
        let Some(id) = connection_in(source) else { return Ok(false) };
        Ok(self.vault.is_forgotten(sources::first_id_at(&self.dir.join(format!("{id}.jsonl"))))?)
    }
}

/// Returns the id of the connection that a source name in `evidence` refers to.
fn connection_in(source: &str) -> Option<&str> {
    let (kind, id) = SourceName::parse(source)?;
    (kind == SpineSource::AppServer.name()).then_some(id)
}

/// Tells whether a file of the vault is a thread's session file.
fn is_session_of(manifest: &Manifest, thread: &ThreadId) -> bool {
    session_in(manifest) == Some(thread.as_str())
}

/// Returns the thread whose session file a file of the vault is. For a Codex stream outside of a home it is the id of
/// its run, which is not a thread.
fn thread_of(manifest: &Manifest) -> Option<ThreadId> {
    ThreadId::parse(session_in(manifest)?).ok()
}

/// Returns the thread id of a Codex session file: from its name if it is in a home, else from its first run. The run of
/// a session file has the id of its thread; other recordings have an id that is not a thread.
fn session_in(manifest: &Manifest) -> Option<&str> {
    let info = &manifest.info;
    if !is_thread_file(info) {
        return None;
    }
    let runs = manifest.adapted.iter().flat_map(|adapted| &adapted.runs);
    match &info.session {
        // A connection outside of a home names its first thread, and has other runs.
        Some(session) => session.rsplit('/').next().filter(|session| {
            let run = session_run(session).to_string();
            info.home.is_some() || runs.clone().any(|own| *own == run)
        }),
        None => manifest.adapted.as_ref()?.runs.first().map(String::as_str),
    }
}

/// Returns the connection whose file a file of the vault is.
#[must_use]
pub fn connection_of(manifest: &Manifest) -> Option<RecordedConnection> {
    connection_id(manifest).map(|id| RecordedConnection { id })
}

/// Returns the names of all sources of a spine, as far as it can be read.
fn sources_of(store: &Store, thread: &ThreadId) -> Result<BTreeSet<String>, ForgetError> {
    let mut reader = SpineReader::new(Arc::clone(store.disk()), StorePath::spine_of(thread));
    let mut sources = BTreeSet::new();
    loop {
        match reader.read_next() {
            Ok(Some(record)) => {
                let evidence = record.extra.get("evidence").and_then(Evidence::read);
                // Records of other programs have no evidence, and are not deleted with any source.
                sources.insert(
                    evidence.map_or_else(String::new, |position| position.source.to_text().into_owned()),
                );
            }
            Ok(None) | Err(JournalError::Damaged { .. } | JournalError::NotRegular { .. }) => {
                return Ok(sources);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Forgets everything or nothing: once the tombstones are written it counts as forgotten, even if deleting is
/// interrupted.
///
/// # Errors
/// If any of it is held ([`ForgetError::is_held`]) or a source does not exist, nothing is forgotten. After any other
/// error everything with a tombstone is forgotten, and the next process deletes the rest.
pub fn forget(
    store: &Store,
    vault: &Arc<Vault>,
    doomed: &ForgetTargets,
    why: Reason,
    now: jiff::Timestamp,
) -> Result<ForgetReport, ForgetError> {
    let mut spines = Vec::new();
    for thread in &doomed.threads {
        spines.push(hold(store, thread, now)?);
    }
    for run in &doomed.runs {
        if store.is_locked(*run)? {
            return Err(JournalError::Locked { path: RunFile::Lock(*run).path() }.into());
        }
    }
    let connections = doomed.connections.iter().map(|spooled| hold_connection(store, *spooled));
    let _connections = connections.collect::<Result<Vec<_>, _>>()?;
    let time = steno_model::Timestamp::from_instant(now).to_string();
    // Before sources have tombstones: if this is interrupted, the session is not forgotten, its lines are recorded
    // again, and a second attempt completes it.
    session_files::rewrite_shared(vault, &doomed.shared, &doomed.pieces, (why, &time))?;
    connections::blank_connections(store, vault, &doomed.shared_connections, &time)?;
    let runs: Vec<NameHash> = doomed.runs.iter().map(|run| NameHash::of_session(&run.to_string())).collect();
    let what = ForgetRequest {
        sources: &doomed.sources,
        spines: &doomed.threads,
        names: &doomed.names,
        runs: &runs,
    };
    let forgotten = vault.forget_all(what, why, &time)?;
    spines.iter_mut().try_for_each(SpineLock::remove)?;
    if !doomed.threads.is_empty() {
        let threads = doomed.threads.iter().map(|thread| NameHash::of_session(thread.as_str()));
        vault.spines_swept(&threads.collect::<Vec<_>>())?;
    }
    // Not earlier: a spine must not begin again while it counts as not yet deleted.
    drop(spines);
    for spooled in &doomed.connections {
        let failed = |source| ForgetError::Connection { id: spooled.id, source: Box::new(source) };
        spooled.remove(store).map_err(failed)?;
    }
    for run in &doomed.runs {
        store.remove_run(*run, now)?;
    }
    if !runs.is_empty() {
        vault.runs_gone(&runs)?;
    }
    Ok(forgotten)
}

fn hold(store: &Store, thread: &ThreadId, now: jiff::Timestamp) -> Result<SpineLock, ForgetError> {
    store.lock_spine(thread, now).map_err(|error| {
        let is_held = matches!(error, JournalError::Locked { .. });
        if is_held { ForgetError::SpineHeld { thread: thread.clone() } } else { error.into() }
    })
}

fn hold_connection(store: &Store, spooled: RecordedConnection) -> Result<Box<dyn LockGuard>, ForgetError> {
    let id = spooled.id;
    let guard =
        spooled.lock(store).map_err(|source| ForgetError::Connection { id, source: Box::new(source) })?;
    guard.ok_or(ForgetError::ConnectionHeld { id })
}

/// Deletes what is left of forgotten runs and spines; returns the threads of the spines. Spines that another process is
/// deleting are not included.
///
/// # Errors
/// An I/O error.
pub fn finish(store: &Store, vault: &Vault, now: jiff::Timestamp) -> Result<Vec<ThreadId>, ForgetError> {
    finish_runs(store, vault, now)?;
    finish_with(store, vault, None, now)
}

/// Deletes forgotten runs that still exist. A run that is being written is left for the next time.
fn finish_runs(store: &Store, vault: &Vault, now: jiff::Timestamp) -> Result<(), ForgetError> {
    let due = match vault.runs_due() {
        Err(VaultError::Damaged { .. }) => return Ok(()),
        due => due?,
    };
    if due.is_empty() {
        return Ok(());
    }
    let mut left = Vec::new();
    for run in store.runs()?.into_iter().chain(store.withdrawn_runs()?) {
        let name = NameHash::of_session(&run.to_string());
        if due.contains(&name) {
            match store.remove_run(run, now) {
                Err(JournalError::Locked { .. }) => left.push(name),
                removed => {
                    removed?;
                }
            }
        }
    }
    let gone: Vec<NameHash> = due.into_iter().filter(|run| !left.contains(run)).collect();
    Ok(vault.runs_gone(&gone)?)
}

/// Deletes what is left of one thread's spine, if it was forgotten.
///
/// # Errors
/// As [`finish`].
pub(crate) fn finish_one(
    store: &Store,
    vault: &Vault,
    thread: &ThreadId,
    now: jiff::Timestamp,
) -> Result<(), ForgetError> {
    if !unswept(vault)?.iter().any(|tombstone| tombstone.is_of(thread)) {
        return Ok(());
    }
    let finished = finish_with(store, vault, Some(thread), now)?;
    if finished.contains(thread) { Ok(()) } else { Err(ForgetError::SpineHeld { thread: thread.clone() }) }
}

/// Deletes what is left of forgotten spines. A tombstone has only the hash of its thread: threads are known by their
/// directories, and `named` is known to the caller.
fn finish_with(
    store: &Store,
    vault: &Vault,
    named: Option<&ThreadId>,
    now: jiff::Timestamp,
) -> Result<Vec<ThreadId>, ForgetError> {
    let left = unswept(vault)?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let mut threads = store.spines()?;
    threads.extend(named.filter(|named| !threads.contains(named)).cloned());
    let mut locks = Vec::new();
    for thread in threads.iter().filter(|thread| left.iter().any(|tombstone| tombstone.is_of(thread))) {
        match hold(store, thread, now) {
            Err(ForgetError::SpineHeld { .. }) => {}
            spine => locks.push(spine?),
        }
    }
    // Read again: the previous holder may have deleted a spine, and it may have begun again.
    let left = unswept(vault)?;
    locks.retain(|spine| left.iter().any(|tombstone| tombstone.is_of(spine.thread())));
    let is_gone = |tombstone: &&SpineTombstone| !threads.iter().any(|thread| tombstone.is_of(thread));
    let mut swept: Vec<NameHash> = left.iter().filter(is_gone).map(|tombstone| tombstone.thread).collect();
    if locks.is_empty() && swept.is_empty() {
        return Ok(Vec::new());
    }
    vault.make_tombstones_safe()?;
    locks.iter_mut().try_for_each(SpineLock::remove)?;
    let threads: Vec<ThreadId> = locks.iter().map(|spine| spine.thread().clone()).collect();
    swept.extend(threads.iter().map(|thread| NameHash::of_session(thread.as_str())));
    vault.spines_swept(&swept)?;
    Ok(threads)
}

/// Lists the tombstones of spines that may not be fully deleted.
fn unswept(vault: &Vault) -> Result<Vec<SpineTombstone>, ForgetError> {
    let mut tombstones = match vault.spine_tombstones() {
        // A damaged line must not stop recording. `steno verify` reports it.
        Err(VaultError::Damaged { .. }) => return Ok(Vec::new()),
        read => read?,
    };
    tombstones.retain(|tombstone| !tombstone.is_swept);
    Ok(tombstones)
}

/// Tells whether a thread was forgotten: its session, or its spine unless its session file was recorded again.
pub(crate) fn is_forgotten(vault: &Vault, thread: &ThreadId) -> Result<bool, ForgetError> {
    let is_spine = vault.spine_tombstones()?.iter().any(|tombstone| tombstone.is_of(thread));
    Ok(is_session_forgotten(vault, thread)? || is_spine && !is_archived(vault, thread)?)
}

/// Tells whether the session of a thread was forgotten.
pub(crate) fn is_session_forgotten(vault: &Vault, thread: &ThreadId) -> Result<bool, ForgetError> {
    Ok(vault.leaves_out(NameHash::of_session(thread.as_str()))?)
}

fn is_archived(vault: &Vault, thread: &ThreadId) -> Result<bool, ForgetError> {
    for id in vault.sources()? {
        // A crash may have left the manifest of a forgotten source.
        if vault.is_forgotten(id)? {
            continue;
        }
        match vault.manifest(id) {
            Ok(Some(manifest)) if is_session_of(&manifest, thread) => return Ok(true),
            Ok(_) | Err(VaultError::Damaged { .. } | VaultError::TooNew { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(false)
}

/// Tells whether a connection was forgotten. `store_dir` is the path of the store as recorded in the vault.
///
/// # Errors
/// An error of the vault.
pub fn is_connection_forgotten(
    vault: &Vault,
    store_dir: &Path,
    spooled: RecordedConnection,
) -> Result<bool, ForgetError> {
    is_file_forgotten(vault, &store_dir.join(spooled.path().as_str()))
}

/// Tells whether the file that was first seen at a path was forgotten.
///
/// # Errors
/// An error of the vault.
pub fn is_file_forgotten(vault: &Vault, path: &Path) -> Result<bool, ForgetError> {
    Ok(vault.is_forgotten(sources::first_id_at(path))?)
}
