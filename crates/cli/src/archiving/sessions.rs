//! Which sources belong to a run: the file that it was made from, those of its child runs, and what lies beside them.

use std::collections::{BTreeMap, BTreeSet};

use steno_adapters::codex::session_run;
use steno_journal::{Error as JournalError, Store, run_ends};
use steno_model::{Evidence, ExchangeEvent, RunId};
use steno_vault::{Manifest, SourceId, Vault};
use steno_views::{session_run_id, with_causes};

use super::warn;
use crate::failure::Failure;
use crate::runs;
use crate::settings::Settings;

/// How much of a session's name is the least to know it by.
const PREFIX_LEN_MIN: usize = 4;

/// Finds the sources that somebody means: those of a run, of a session as its agent names it, or at a path.
///
/// Files whose records are not made into events yet belong to no run.
pub fn find_sources(
    text: &str,
    store: &Store,
    vault: &Vault,
    settings: &Settings,
) -> Result<Vec<Manifest>, Failure> {
    let failure = match runs::find_run(text, settings) {
        Ok(run) if store.has(run)? => return sources_of(store, vault, run),
        Ok(run) => Failure::from(JournalError::NoSuchRun { run }),
        Err(failure) => failure,
    };
    let manifests = all_manifests(vault)?;
    let path = std::path::absolute(text).ok();
    let is_meant = |manifest: &Manifest| {
        let session = manifest.info.session.as_deref().unwrap_or_default();
        let id = session.rsplit('/').next().unwrap_or_default();
        // Gemini's files have the beginning of the id in their names.
        let is_cut =
            manifest.info.provider.as_deref() == Some("gemini") && !id.is_empty() && text.starts_with(id);
        let is_begun = text.len() >= PREFIX_LEN_MIN && id.starts_with(text) || is_cut;
        Some(&manifest.info.path.0) == path.as_ref() || session == text || is_begun
    };
    let keys: BTreeSet<Key> =
        manifests.iter().filter(|manifest| is_meant(manifest)).filter_map(Key::of).collect();
    if keys.len() > 1 {
        let message = format!("`{text}` begins {} sessions; give more of it", keys.len());
        return Err(Failure::usage(message).with_hint("`steno du --by session --all` lists them"));
    }
    let belongs = |manifest: &Manifest| {
        is_meant(manifest) || Key::of(manifest).is_some_and(|key| keys.iter().any(|own| own.has(&key)))
    };
    let found: Vec<Manifest> = manifests.into_iter().filter(belongs).collect();
    if found.is_empty() { Err(failure) } else { Ok(found) }
}

/// The sources of a run, the one it was made from first.
pub fn sources_of(store: &Store, vault: &Vault, run: RunId) -> Result<Vec<Manifest>, Failure> {
    let manifests = all_manifests(vault)?;
    let runs = with_children(store, run)?;
    let names: BTreeSet<String> = runs.iter().map(|(run, _)| run.to_string()).collect();
    let theirs: BTreeSet<SourceId> = runs.iter().filter_map(|(_, source)| *source).collect();
    let is_made_from = |manifest: &Manifest| {
        theirs.contains(&manifest.id)
            || manifest.adapted.iter().flat_map(|adapted| &adapted.runs).any(|run| names.contains(run))
    };
    let own: BTreeSet<SourceId> =
        manifests.iter().filter(|manifest| is_made_from(manifest)).map(|manifest| manifest.id).collect();
    let keys: BTreeSet<Key> =
        manifests.iter().filter(|manifest| own.contains(&manifest.id)).filter_map(Key::of).collect();
    let first = runs.first().and_then(|(_, source)| *source);
    let belongs = |manifest: &Manifest| {
        own.contains(&manifest.id)
            || Key::of(manifest).is_some_and(|key| keys.iter().any(|own| own.has(&key)))
    };
    let mut found: Vec<Manifest> = manifests.into_iter().filter(belongs).collect();
    found.sort_by_key(|manifest| (Some(manifest.id) != first, manifest.info.path.0.clone()));
    if found.is_empty() {
        return Err(Failure::nothing(format!("run {run} was not made from a file of an agent")).with_hint(
            "only sessions that `steno up`, `import` or `watch` has archived have files to give back",
        ));
    }
    Ok(found)
}

/// Reads all manifests. One that is damaged is told, and takes nothing from the others.
pub fn all_manifests(vault: &Vault) -> Result<Vec<Manifest>, Failure> {
    let mut manifests = Vec::new();
    for id in vault.sources()? {
        match vault.manifest(id) {
            Ok(manifest) => manifests.extend(manifest),
            Err(error) => warn(&with_causes(&error)),
        }
    }
    Ok(manifests)
}

/// Returns how many sessions of each agent have evidence and no events, given the sources that runs were made from: what
/// is being recorded is in no manifest yet.
pub fn without_events(vault: &Vault, of_runs: &BTreeSet<SourceId>) -> Result<BTreeMap<String, u64>, Failure> {
    let (mut with, mut all) = (BTreeSet::new(), BTreeSet::new());
    for manifest in all_manifests(vault)? {
        let info = &manifest.info;
        let (Some(provider), "transcript") = (&info.provider, info.role.as_str()) else { continue };
        // By its id alone, as a copy in another project has no events of its own.
        let id = info.session.as_deref().and_then(|session| session.rsplit('/').next());
        let session = (provider.clone(), id.map_or_else(|| manifest.id.to_string(), str::to_owned));
        let has_runs = manifest.adapted.as_ref().is_some_and(|adapted| !adapted.runs.is_empty());
        if has_runs || of_runs.contains(&manifest.id) {
            with.insert(session.clone());
        }
        all.insert(session);
    }
    let mut counts = BTreeMap::new();
    for (provider, _) in all.difference(&with) {
        *counts.entry(provider.clone()).or_default() += 1;
    }
    Ok(counts)
}

/// Returns the source that an event was made from, if any.
pub fn source_of(event: &ExchangeEvent) -> Option<SourceId> {
    let evidence = event.extra.get("evidence").and_then(Evidence::read)?;
    SourceId::parse(&evidence.source.to_text())
}

/// What files of one session share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    provider: Option<String>,
    home: Option<std::path::PathBuf>,
    session: String,
}

impl Key {
    fn of(manifest: &Manifest) -> Option<Self> {
        let info = &manifest.info;
        let home = info.home.as_ref().map(|home| home.0.clone());
        Some(Self { provider: info.provider.clone(), home, session: info.session.clone()? })
    }

    /// Tells whether another file belongs to this session. What lies apart from the project has the session's id alone.
    fn has(&self, other: &Self) -> bool {
        let id = self.session.rsplit('/').next().unwrap_or_default();
        (&self.provider, &self.home) == (&other.provider, &other.home)
            && (other.session == self.session || other.session == id)
    }
}

/// Returns every run of the store with the source that it was made from, if any.
pub fn sources_of_runs(store: &Store) -> Result<Vec<(RunId, Option<SourceId>)>, Failure> {
    Ok(first_words(store)?.into_iter().map(|words| (words.run, words.source)).collect())
}

/// A run that shows a session which has its name from elsewhere: what was said over a connection, or a second file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    pub run: RunId,
    pub session: RunId,
}

/// Finds the runs that show a session, by the session's name or the beginning of it.
pub fn shown(text: &str, store: &Store) -> Result<Vec<Shown>, Failure> {
    let named = runs::parse_id(text).unwrap_or_else(|_| session_run(text));
    let prefix = text.to_ascii_lowercase();
    let is_meant = |session: RunId| {
        let id = session.to_string();
        let is_begun = id.starts_with(&prefix) || id.replace('-', "").starts_with(&prefix);
        session == named || (text.len() >= PREFIX_LEN_MIN && is_begun)
    };
    let all = first_words(store)?.into_iter();
    let shown = all.filter_map(|words| Some(Shown { run: words.run, session: words.session? }));
    Ok(shown.filter(|shown| is_meant(shown.session)).collect())
}

/// What the first event of a run says of it.
struct FirstWords {
    run: RunId,
    parent: Option<RunId>,
    /// The session that the run shows and has not its name from.
    session: Option<RunId>,
    /// What it was made from.
    source: Option<SourceId>,
}

/// Returns of every run what its first event says.
fn first_words(store: &Store) -> Result<Vec<FirstWords>, Failure> {
    let mut all = Vec::new();
    for other in store.runs()? {
        match run_ends(store, other) {
            Ok(ends) => {
                let Some((first, _)) = ends.events else { continue };
                let (parent, session, source) =
                    (first.parent_run_id, session_run_id(&first), source_of(&first));
                all.push(FirstWords { run: other, parent, session, source });
            }
            Err(JournalError::Damaged { .. } | JournalError::Shrunk { .. }) => {
                all.push(FirstWords { run: other, parent: None, session: None, source: None });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(all)
}

/// Returns a run and those below it, each with the source that it was made from.
fn with_children(store: &Store, run: RunId) -> Result<Vec<(RunId, Option<SourceId>)>, Failure> {
    let all = first_words(store)?;
    let mut found: Vec<(RunId, Option<SourceId>)> = Vec::new();
    let mut waiting = vec![run];
    while let Some(next) = waiting.pop() {
        let source = all.iter().find(|words| words.run == next).and_then(|words| words.source);
        found.push((next, source));
        let is_new = |child: &RunId| !found.iter().any(|(known, _)| known == child);
        let children = all.iter().filter(|words| words.parent == Some(next)).map(|words| words.run);
        waiting.extend(children.filter(is_new));
    }
    Ok(found)
}
