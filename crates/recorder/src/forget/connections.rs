//! The messages of threads to forget on connections.
//!
//! A connection is deleted with a thread if it has no other threads, except the thread's subagents. Otherwise it stays,
//! without the thread's messages.

use std::collections::BTreeSet;

use steno_adapters::codex::session_run;
use steno_journal::Store;
use steno_library::{Library, RunHead};
use steno_model::{RunId, ThreadId};
use steno_vault::Manifest;

use super::{ForgetError, connection_in, connection_of, sources_of};

/// The connections of some threads.
#[derive(Clone, Debug, Default)]
pub struct ConnectionSelection {
    /// The connections without other threads, as files of the vault.
    pub going: Vec<Manifest>,
    /// The connections with other threads.
    pub shared: Vec<SharedConnection>,
}

/// A connection that has other threads too.
#[derive(Clone, Debug)]
pub struct SharedConnection {
    /// The connection, as a file of the vault.
    pub manifest: Manifest,
    /// The runs of the forgotten threads.
    pub runs: Vec<RunId>,
    /// The names of these threads on it.
    pub threads: BTreeSet<String>,
}

/// Finds the connections of threads among files of the vault.
///
/// # Errors
/// An I/O error.
pub fn connections_of(
    library: &Library,
    manifests: &[Manifest],
    threads: &BTreeSet<ThreadId>,
) -> Result<ConnectionSelection, ForgetError> {
    let sessions: BTreeSet<RunId> = threads.iter().map(|thread| session_run(thread.as_str())).collect();
    let mut selection = ConnectionSelection::default();
    let may_have_several = |manifest: &&Manifest| connection_of(manifest).is_some() || has_requests(manifest);
    let connections: Vec<&Manifest> = manifests.iter().filter(may_have_several).collect();
    if sessions.is_empty() || connections.is_empty() {
        return Ok(selection);
    }
    let (store, all) = (library.store()?, library.heads()?);
    for manifest in connections {
        let heads: Vec<&RunHead> = all.iter().filter(|head| head.source == Some(manifest.id)).collect();
        let own = with_subagents(&heads, &sessions);
        if own.is_empty() {
            continue;
        }
        let is_there = |run: &&String| RunId::parse(run).is_ok_and(|run| store.has(run).unwrap_or(true));
        let adapted = manifest.adapted.iter().flat_map(|adapted| &adapted.runs).filter(is_there);
        // A run that cannot be read counts as another thread's.
        let runs: BTreeSet<String> =
            adapted.cloned().chain(heads.iter().map(|head| head.run.to_string())).collect();
        let shown = own.iter().filter_map(|head| head.shows()).collect();
        if runs.len() == own.len() && !has_other_spines(store, manifest, &shown)? {
            selection.going.push(manifest.clone());
        } else {
            let named = own.iter().map(|head| head.shows().unwrap_or(head.run).to_string());
            let threads = threads.iter().map(ToString::to_string).chain(named).collect();
            let own = own.iter().map(|head| head.run).collect();
            selection.shared.push(SharedConnection { manifest: manifest.clone(), runs: own, threads });
        }
    }
    Ok(selection)
}

/// Tells whether a file has requests to models, which may be of several sessions.
fn has_requests(manifest: &Manifest) -> bool {
    manifest.adapted.as_ref().is_some_and(|adapted| adapted.adapter.starts_with("http/"))
}

/// Returns the runs of a connection that belong to the sessions, and their subagents.
fn with_subagents<'a>(heads: &[&'a RunHead], sessions: &BTreeSet<RunId>) -> Vec<&'a RunHead> {
    let mut own: Vec<&RunHead> = Vec::new();
    let mut known = BTreeSet::new();
    loop {
        let is_own = |head: &&&RunHead| {
            !known.contains(&head.run)
                && (sessions.contains(&head.shows().unwrap_or(head.run))
                    || head.parent.is_some_and(|parent| known.contains(&parent)))
        };
        let Some(next) = heads.iter().find(is_own) else { return own };
        known.insert(next.run);
        own.push(next);
    }
}

/// Tells whether a connection has messages of a thread that has no run.
fn has_other_spines(
    store: &Store,
    manifest: &Manifest,
    shown: &BTreeSet<RunId>,
) -> Result<bool, ForgetError> {
    let Some(id) = connection_of(manifest).map(|spooled| spooled.id.to_string()) else { return Ok(false) };
    for thread in store.spines()? {
        let is_shown = shown.contains(&session_run(thread.as_str()));
        let is_its = |source: &String| connection_in(source) == Some(id.as_str());
        if !is_shown && sources_of(store, &thread)?.iter().any(is_its) {
            return Ok(true);
        }
    }
    Ok(false)
}
