//! The messages of threads to forget on connections.
//!
//! A connection is deleted with a thread if it has no other threads, except the thread's subagents. Otherwise it stays,
//! without the thread's messages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steno_adapters::codex::session_run;
use steno_adapters::{Surface, sniff};
use steno_capture::packing::Unpacker;
use steno_journal::{Error as JournalError, Reader, Store};
use steno_library::{Library, RunHead};
use steno_model::{Evidence, Position, RunId, ThreadId};
use steno_vault::{Manifest, SourceId, SourceInfo, Vault};

use super::{ForgetError, connection_in, connection_of, sources_of};
use crate::connection::{ConnectionRules, blank, blank_exchanges};

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
    /// The records that only these runs were made from.
    pub records: ConnectionRecords,
}

/// Records of a connection: generation and offset of each, with its length.
pub type ConnectionRecords = BTreeMap<(u32, u64), u64>;

/// Finds the connections of threads among the files that may have several sessions.
///
/// # Errors
/// An I/O error.
pub fn connections_of(
    library: &Library,
    connections: &BTreeSet<SourceId>,
    threads: &BTreeSet<ThreadId>,
) -> Result<ConnectionSelection, ForgetError> {
    let sessions: BTreeSet<RunId> = threads.iter().map(|thread| session_run(thread.as_str())).collect();
    let mut selection = ConnectionSelection::default();
    if sessions.is_empty() || connections.is_empty() {
        return Ok(selection);
    }
    let (store, all) = (library.store()?, library.heads()?);
    for manifest in library.manifests()?.iter().filter(|manifest| connections.contains(&manifest.id)) {
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
            let own: Vec<RunId> = own.iter().map(|head| head.run).collect();
            let others = heads.iter().map(|head| head.run).filter(|run| !own.contains(run));
            let mut records = records_of(store, manifest.id, own.iter().copied())?;
            for record in records_of(store, manifest.id, others)?.keys() {
                records.remove(record);
            }
            selection.shared.push(SharedConnection {
                manifest: manifest.clone(),
                runs: own,
                threads,
                records,
            });
        }
    }
    Ok(selection)
}

/// Finds the records of a source that runs were made from. A damaged transcript is read up to the damage.
fn records_of(
    store: &Store,
    source: SourceId,
    runs: impl Iterator<Item = RunId>,
) -> Result<ConnectionRecords, ForgetError> {
    let source = source.to_string();
    let mut records = ConnectionRecords::new();
    for run in runs {
        let mut reader = match Reader::open(store, run) {
            Err(JournalError::NoSuchRun { .. }) => continue,
            opened => opened?.until_now()?,
        };
        while let Ok(Some(recorded)) = reader.read_next() {
            let evidence = recorded.event.extra.get("evidence").and_then(Evidence::read);
            if let Some(evidence) = evidence.filter(|evidence| evidence.source.to_text() == source.as_str()) {
                let Position { generation, offset, .. } = evidence.position;
                records.insert((generation, offset), evidence.length);
            }
        }
    }
    Ok(records)
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

/// Removes the messages of threads from connections that have other threads too.
pub(super) fn blank_connections(
    store: &Store,
    vault: &Arc<Vault>,
    connections: &[SharedConnection],
    now: &str,
) -> Result<(), ForgetError> {
    for SharedConnection { manifest, threads, runs, records } in connections {
        vault.sweep_later(now)?;
        let info = SourceInfo { is_filtered: true, ..manifest.info.clone() };
        let mut rules = ConnectionRules::of_threads(store, threads.iter().cloned().collect());
        let source = manifest.id.to_string();
        let mut blanked = |generation: u32, bytes: &[u8]| {
            let in_it = records.range((generation, 0)..=(generation, u64::MAX));
            let records = in_it.map(|((_, offset), length)| (*offset, *length)).collect();
            match sniff(bytes).map(|sniffed| sniffed.surface) {
                Some(Surface::Http) => blank_exchanges(bytes, &source, runs, &records),
                Some(_) | None => blank(bytes, &mut rules, &records),
            }
        };
        let rewritten =
            |generation: u32, bytes: Vec<u8>| change_unpacked(&bytes, |bytes| blanked(generation, bytes));
        vault.write(manifest.id, &info, now)?.rewrite(rewritten)?;
    }
    Ok(())
}

/// Changes the content of a file that may be compressed. Of compressed bytes that are damaged, what can be read stays.
fn change_unpacked(bytes: &[u8], change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut unpacker = Unpacker::default();
    if unpacker.packing(bytes).is_none() {
        return change(bytes);
    }
    let mut plain = Vec::new();
    unpacker.unpack(bytes, &mut |piece| plain.extend_from_slice(piece)).ok();
    zstd::encode_all(&*change(&plain), zstd::DEFAULT_COMPRESSION_LEVEL).expect("memory takes all bytes")
}
