//! Which sources of the vault are to be derived anew: a newer adapter reads them, or their runs are not there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use steno_adapters::{AdapterAge, Sink, Source};
use steno_journal::{Error as JournalError, Store};
use steno_model::{Draft, RunId};
use steno_vault::{Manifest, Role, SourceId, Vault};

use super::Error;
use super::catalog::{is_older, plain_name};
use super::cursors::CursorOf;
use super::derived::Derived;
use super::feed::Feed;
use super::run_head::RunHead;

/// A source that is to be derived anew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitingSource {
    /// The source.
    pub id: SourceId,
    /// Where its file was last.
    pub path: PathBuf,
    /// How many bytes of it the vault has, all generations together.
    pub bytes: u64,
    /// The runs that await it: those of an older adapter, and those that are not there.
    pub runs: Vec<RunId>,
    /// Whether this program has tried before, and found the evidence or a transcript damaged.
    pub is_left: bool,
    /// The runs of the source that are there and that an older adapter has derived.
    pub(super) older: Vec<RunId>,
}

/// What is to be derived anew in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Awaiting {
    /// The sources, in the order of their paths.
    pub sources: Vec<AwaitingSource>,
    /// How many runs of an older adapter stay as they are, because the vault does not have what they were derived from.
    pub runs_without_evidence: u64,
}

impl Awaiting {
    /// Returns how many runs await it. A source without a run counts as one.
    #[must_use]
    pub fn runs(&self) -> u64 {
        let waiting = self.sources.iter().filter(|source| !source.is_left);
        waiting.map(|source| source.runs.len().max(1) as u64).sum()
    }

    /// Leaves out the sources that this program has tried in vain.
    pub fn skip_left(&mut self) {
        self.sources.retain(|source| !source.is_left);
    }

    /// Keeps the sources of some runs.
    pub fn retain_runs(&mut self, runs: &[RunId]) {
        self.sources.retain(|source| source.runs.iter().any(|run| runs.contains(run)));
    }
}

/// Finds what is to be derived anew, without changing anything. The first event of every run is read.
///
/// # Errors
/// What journal and vault say.
pub fn awaiting(store: &Store, vault: &Vault) -> Result<Awaiting, Error> {
    let mut heads: BTreeMap<SourceId, Vec<(RunId, AdapterAge)>> = BTreeMap::new();
    for run in store.runs().map_err(Error::Runs)? {
        let head = match RunHead::read(store, run) {
            // Somebody has it forgotten just now.
            Err(JournalError::NoSuchRun { .. }) => None,
            head => head.map_err(Error::Runs)?,
        };
        if let Some(RunHead { source: Some(source), .. }) = head {
            heads.entry(source).or_default().push((run, head.map_or(AdapterAge::Unknown, |head| head.age())));
        }
    }
    let derived = Derived::read(&**store.disk());
    let manifests = read_manifests(vault)?;
    let mut found = Awaiting::default();
    for manifest in manifests.iter().filter(|manifest| manifest.info.role == Role::Transcript) {
        let runs = heads.remove(&manifest.id).unwrap_or_default();
        let source = judge(store, vault, &manifests, (manifest, &runs))?;
        found
            .sources
            .extend(source.map(|source| AwaitingSource { is_left: derived.is_left(source.id), ..source }));
    }
    found.sources.sort_by(|one, other| one.path.cmp(&other.path));
    let left = heads.into_values().flatten().filter(|(_, age)| *age == AdapterAge::Older);
    found.runs_without_evidence = left.count() as u64;
    Ok(found)
}

/// Reads the manifests of all sources that were not forgotten. One that cannot be read takes nothing from the others.
fn read_manifests(vault: &Vault) -> Result<Vec<Manifest>, Error> {
    let mut manifests = Vec::new();
    for id in vault.sources().map_err(Error::Catalog)? {
        if !vault.is_forgotten(id).map_err(Error::Catalog)? {
            manifests.extend(vault.manifest(id).ok().flatten());
        }
    }
    Ok(manifests)
}

/// Tells whether a source is to be derived anew, given the runs of it that are there.
fn judge(
    store: &Store,
    vault: &Vault,
    all: &[Manifest],
    (manifest, runs): (&Manifest, &[(RunId, AdapterAge)]),
) -> Result<Option<AwaitingSource>, Error> {
    let older: Vec<RunId> =
        runs.iter().filter(|(_, age)| *age == AdapterAge::Older).map(|(run, _)| *run).collect();
    let missing = missing_runs(store, manifest)?;
    let is_unread = runs.is_empty() && missing.is_empty() && manifest.adapted.is_none();
    let is_due = is_older(manifest)
        || !older.is_empty()
        || !missing.is_empty()
        || is_unread && has_adapter(vault, manifest)? && !is_copy(vault, all, manifest)?;
    Ok(is_due.then(|| AwaitingSource {
        id: manifest.id,
        path: manifest.info.path.0.clone(),
        bytes: manifest.generations.iter().map(|generation| generation.len).sum(),
        runs: older.iter().copied().chain(missing).collect(),
        is_left: false,
        older,
    }))
}

/// Returns the runs that a source was made into and that are not there. What was taken out of a source on purpose is not
/// missed.
fn missing_runs(store: &Store, manifest: &Manifest) -> Result<BTreeSet<RunId>, Error> {
    let mut missing = BTreeSet::new();
    let named = manifest.adapted.iter().filter(|_| !manifest.info.is_filtered);
    for run in named.flat_map(|adapted| &adapted.runs).filter_map(|run| RunId::parse(run).ok()) {
        if !store.has(run).map_err(Error::Runs)? {
            missing.insert(run);
        }
    }
    Ok(missing)
}

/// Takes nothing.
struct Nowhere;

impl Sink for Nowhere {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}
}

/// Tells whether an adapter reads a source, by the beginning of its generations.
fn has_adapter(vault: &Vault, manifest: &Manifest) -> Result<bool, Error> {
    let name = manifest.info.path.0.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut feed = Feed::new(Source { id: manifest.id.to_string().as_str().into(), file_name: name }, true);
    for generation in 0..u32::try_from(manifest.generations.len()).unwrap_or(u32::MAX) {
        let read = vault.read(manifest, generation, 0, |_, bytes| {
            feed.take(generation, bytes, None, &mut Nowhere);
            feed.is_waiting()
        });
        match read {
            Err(error) if !error.is_damage() => return Err(Error::Catalog(error)),
            Ok(()) | Err(_) => feed.pause(None, &mut Nowhere),
        }
        if feed.adapter().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether a source is a copy of another that has runs: as evidence it is kept too, but everything in it happened
/// once.
fn is_copy(vault: &Vault, all: &[Manifest], manifest: &Manifest) -> Result<bool, Error> {
    let name = |manifest: &Manifest| plain_name(&manifest.info.path.0).file_name().map(ToOwned::to_owned);
    let is_namesake = |other: &&Manifest| {
        other.id != manifest.id && other.adapted.is_some() && name(other) == name(manifest)
    };
    let mut own = None;
    for other in all.iter().filter(is_namesake) {
        if own.is_none() {
            own = Some(last_content(vault, manifest)?);
        }
        if own == Some(last_content(vault, other)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the length and hash of the last generation; `None` when it cannot be read.
fn last_content(vault: &Vault, manifest: &Manifest) -> Result<Option<steno_capture::tail::Mark>, Error> {
    let mut content = CursorOf::new(0);
    let Some(last) = manifest.generation_last() else { return Ok(None) };
    let read = vault.read(manifest, last, 0, |_, bytes| {
        content.take(bytes);
        true
    });
    match read {
        Err(error) if !error.is_damage() => Err(Error::Catalog(error)),
        Ok(()) => Ok(Some(content.finish().whole)),
        Err(_) => Ok(None),
    }
}
