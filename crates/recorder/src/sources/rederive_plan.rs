//! Which sources of the vault have to be derived again: a newer adapter reads them, or their runs are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use steno_adapters::{AdapterAge, Sink};
use steno_journal::{Error as JournalError, Flaw, Store};
use steno_library::source_of;
use steno_model::{Draft, ExchangeEvent, RunId};
use steno_vault::{Manifest, NameHash, Role, SourceId, Vault};

use super::SourceError;
use super::adapter_source::adapter_source;
use super::catalog::{self, plain_name, runs_expected};
use super::cursors::CursorBuilder;
use super::derivation_state::DerivationState;
use super::feed::Feed;
use super::run_head::{age_of, lacks_directory, read_head};
use super::source::runs_named;

/// A source that has to be derived again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceToRederive {
    /// The source.
    pub id: SourceId,
    /// Where its file was last.
    pub path: PathBuf,
    /// How many bytes of it the vault has, all generations together.
    pub bytes: u64,
    /// The runs concerned: those of an older adapter, and missing ones.
    pub runs: Vec<RunId>,
    /// Whether an earlier attempt of this version found the evidence or a transcript damaged.
    pub is_given_up: bool,
    /// The existing runs of the source that an older adapter derived, or that lack a directory that is known now.
    pub(super) older: Vec<RunId>,
    /// The runs whose transcripts are missing, or damaged and named by the user.
    pub(super) flawed: Vec<RunId>,
}

/// A run of a source, as its first event shows it.
struct KnownRun {
    run: RunId,
    age: AdapterAge,
    /// Whether it was derived before the directory of its project was known.
    lacks_directory: bool,
}

/// What has to be derived again in a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RederivePlan {
    /// The sources, in the order of their paths.
    pub sources: Vec<SourceToRederive>,
    /// How many runs of an older adapter stay as they are, because the vault does not have their source.
    pub runs_without_evidence: u64,
}

impl RederivePlan {
    /// Returns how many runs have to be derived again. A source without a run counts as one.
    #[must_use]
    pub fn runs(&self) -> u64 {
        let waiting = self.sources.iter().filter(|source| !source.is_given_up);
        waiting.map(|source| source.runs.len().max(1) as u64).sum()
    }

    /// Removes the sources that an earlier attempt gave up.
    pub fn skip_given_up(&mut self) {
        self.sources.retain(|source| !source.is_given_up);
    }

    /// Keeps only the sources of these runs.
    fn retain_runs(&mut self, runs: &[RunId]) {
        self.sources.retain(|source| source.runs.iter().any(|run| runs.contains(run)));
        self.runs_without_evidence = 0;
    }

    /// Adds a run whose transcript is damaged, and its source.
    fn add_damaged(&mut self, run: RunId, manifest: &Manifest) {
        let index = self.sources.iter().position(|source| source.id == manifest.id).unwrap_or_else(|| {
            self.sources.push(SourceToRederive::of(manifest));
            self.sources.len() - 1
        });
        let source = &mut self.sources[index];
        source.runs.push(run);
        source.flawed.push(run);
    }
}

impl SourceToRederive {
    /// Takes a source, with no runs yet.
    fn of(manifest: &Manifest) -> Self {
        Self {
            id: manifest.id,
            path: manifest.info.path.0.clone(),
            bytes: manifest.generations.iter().map(|generation| generation.len).sum(),
            runs: Vec::new(),
            is_given_up: false,
            older: Vec::new(),
            flawed: Vec::new(),
        }
    }
}

/// Finds what has to be derived again for runs that the user named. Damaged transcripts are included only here:
/// replacing one without being asked would hide the damage.
///
/// # Errors
/// [`SourceError::NoEvidence`] for a damaged run whose source is not in the vault; errors of the journal and the vault.
pub fn plan_rederive_runs(store: &Store, vault: &Vault, runs: &[RunId]) -> Result<RederivePlan, SourceError> {
    let mut plan = plan_rederive(store, vault)?;
    plan.retain_runs(runs);
    for run in runs {
        if let Some(Flaw::Damaged(why)) = store.flaw(*run).map_err(SourceError::Runs)? {
            let manifest = source_of_damaged(store, vault, *run)?;
            let manifest = manifest.ok_or(SourceError::NoEvidence { run: *run, why })?;
            plan.add_damaged(*run, &manifest);
        }
    }
    Ok(plan)
}

/// Tells whether the vault has the source of a damaged or missing run, so that the run can be derived again.
///
/// # Errors
/// An error of the journal or the vault.
pub fn has_evidence(store: &Store, vault: &Vault, run: RunId) -> Result<bool, SourceError> {
    Ok(source_of_damaged(store, vault, run)?.is_some())
}

/// Finds the source of a damaged run: the one whose manifest names the run, else the one that its events name.
fn source_of_damaged(store: &Store, vault: &Vault, run: RunId) -> Result<Option<Manifest>, SourceError> {
    let manifests = read_manifests(vault)?;
    if let Some(manifest) =
        manifests.iter().find(|manifest| runs_named(manifest.adapted.as_ref()).contains(&run))
    {
        return Ok(Some(manifest.clone()));
    }
    let mut source = None;
    let mut take = |event: ExchangeEvent| source = source.or(source_of(&event));
    store.salvage(run, &mut take).map_err(SourceError::Runs)?;
    Ok(manifests.into_iter().find(|manifest| Some(manifest.id) == source))
}

/// Returns the runs that can be derived again from the vault. Forgotten runs, and the runs of sources that were
/// filtered, are not included.
///
/// # Errors
/// An error of the vault.
pub fn runs_with_evidence(vault: &Vault) -> Result<BTreeSet<RunId>, SourceError> {
    let mut runs = BTreeSet::new();
    for manifest in read_manifests(vault)?.iter().filter(|manifest| !manifest.info.is_filtered) {
        for run in runs_named(manifest.adapted.as_ref()) {
            let name = NameHash::of_session(&run.to_string());
            if !vault.leaves_out(name).map_err(SourceError::Catalog)? {
                runs.insert(run);
            }
        }
    }
    Ok(runs)
}

/// Finds what has to be derived again, without changing anything. Reads the first event of every run.
///
/// # Errors
/// An error of the journal or the vault.
pub fn plan_rederive(store: &Store, vault: &Vault) -> Result<RederivePlan, SourceError> {
    let mut heads: BTreeMap<SourceId, Vec<KnownRun>> = BTreeMap::new();
    for run in store.runs().map_err(SourceError::Runs)? {
        let head = match read_head(store, run) {
            // It is being forgotten.
            Err(JournalError::NoSuchRun { .. }) => None,
            head => head.map_err(SourceError::Runs)?,
        };
        if let Some(head) = head
            && let Some(source) = head.source
        {
            let known = KnownRun { run, age: age_of(&head), lacks_directory: lacks_directory(&head) };
            heads.entry(source).or_default().push(known);
        }
    }
    let derived = DerivationState::read(&**store.disk());
    let manifests = read_manifests(vault)?;
    let mut plan = RederivePlan::default();
    for manifest in manifests.iter().filter(|manifest| manifest.info.role == Role::Transcript) {
        let runs = heads.remove(&manifest.id).unwrap_or_default();
        let source = judge(store, vault, &manifests, (manifest, &runs))?;
        plan.sources.extend(
            source.map(|source| SourceToRederive { is_given_up: derived.is_given_up(source.id), ..source }),
        );
    }
    plan.sources.sort_by(|one, other| one.path.cmp(&other.path));
    let left = heads.into_values().flatten().filter(|known| known.age == AdapterAge::Older);
    plan.runs_without_evidence = left.count() as u64;
    Ok(plan)
}

/// Reads the manifests of all sources that were not forgotten. Unreadable ones are skipped.
fn read_manifests(vault: &Vault) -> Result<Vec<Manifest>, SourceError> {
    let mut manifests = Vec::new();
    for id in vault.sources().map_err(SourceError::Catalog)? {
        if !vault.is_forgotten(id).map_err(SourceError::Catalog)? {
            manifests.extend(vault.manifest(id).ok().flatten());
        }
    }
    Ok(manifests)
}

/// Decides whether a source has to be derived again, given its existing runs.
fn judge(
    store: &Store,
    vault: &Vault,
    all: &[Manifest],
    (manifest, runs): (&Manifest, &[KnownRun]),
) -> Result<Option<SourceToRederive>, SourceError> {
    // The directory may have been archived after the session.
    let has_directory = || adapter_source(vault, manifest.id, &manifest.info).working_dir.is_some();
    let gains_directory = runs.iter().any(|known| known.lacks_directory) && has_directory();
    let is_older =
        |known: &&KnownRun| known.age == AdapterAge::Older || gains_directory && known.lacks_directory;
    let older: Vec<RunId> = runs.iter().filter(is_older).map(|known| known.run).collect();
    let missing = missing_runs(store, vault, manifest)?;
    let is_unread = runs.is_empty() && missing.is_empty() && manifest.adapted.is_none();
    let is_due = catalog::is_older(manifest.adapted.as_ref())
        || !older.is_empty()
        || !missing.is_empty()
        || is_unread && has_adapter(vault, manifest)? && !is_copy(vault, all, manifest)?;
    Ok(is_due.then(|| SourceToRederive {
        runs: older.iter().chain(&missing).copied().collect(),
        older,
        flawed: missing,
        ..SourceToRederive::of(manifest)
    }))
}

/// Returns the missing runs of a source. What was filtered out of the source or forgotten does not count as missing.
pub(super) fn missing_runs(
    store: &Store,
    vault: &Vault,
    manifest: &Manifest,
) -> Result<Vec<RunId>, SourceError> {
    let mut missing = Vec::new();
    for run in runs_expected(&manifest.info, manifest.adapted.as_ref()) {
        let name = NameHash::of_session(&run.to_string());
        if !store.has(run).map_err(SourceError::Runs)?
            && !vault.leaves_out(name).map_err(SourceError::Catalog)?
        {
            missing.push(run);
        }
    }
    Ok(missing)
}

/// A sink that drops everything.
struct Nowhere;

impl Sink for Nowhere {
    fn draft(&mut self, _run: RunId, _draft: Draft) {}
}

/// Tells whether an adapter recognises a source by the beginning of one of its generations.
fn has_adapter(vault: &Vault, manifest: &Manifest) -> Result<bool, SourceError> {
    let mut feed = Feed::new(adapter_source(vault, manifest.id, &manifest.info), true);
    for generation in 0..u32::try_from(manifest.generations.len()).unwrap_or(u32::MAX) {
        let read = vault.read(manifest, generation, 0, |_, bytes| {
            feed.take(generation, bytes, None, &mut Nowhere);
            feed.is_waiting()
        });
        match read {
            Err(error) if !error.is_damage() => return Err(SourceError::Catalog(error)),
            Ok(()) | Err(_) => feed.pause(None, &mut Nowhere),
        }
        if feed.adapter().is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Tells whether a source is a copy of another that has runs. Copies are kept as evidence but give no events.
fn is_copy(vault: &Vault, all: &[Manifest], manifest: &Manifest) -> Result<bool, SourceError> {
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

/// Returns length and hash of the last generation; `None` if it cannot be read.
fn last_content(
    vault: &Vault,
    manifest: &Manifest,
) -> Result<Option<steno_capture::tail::Mark>, SourceError> {
    let mut content = CursorBuilder::new(0);
    let Some(last) = manifest.generation_last() else { return Ok(None) };
    let read = vault.read(manifest, last, 0, |_, bytes| {
        content.take(bytes);
        true
    });
    match read {
        Err(error) if !error.is_damage() => Err(SourceError::Catalog(error)),
        Ok(()) => Ok(Some(content.finish().whole)),
        Err(_) => Ok(None),
    }
}
