//! The catalog of a store: its runs, sessions, threads and sources, each read once and on demand.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use steno_adapters::codex::session_run;
use steno_index::Index;
use steno_journal::Store;
use steno_model::{RunId, ThreadId, with_causes};
use steno_vault::{Manifest, Vault};
use steno_views::{Lines, visible};

use crate::indexed::{IndexProgress, KnownFiles};
use crate::read_each::read_each;
use crate::run_overview::RunOverview;
use crate::session_match::match_sessions;
use crate::{Error, IdIndex, Relations, RunHead, SessionOverview};

/// A store, with a cache of what was read. All answers of one library are consistent.
pub struct Library {
    pub(crate) store: Option<Store>,
    vault: OnceCell<Arc<Vault>>,
    heads: OnceCell<Vec<RunHead>>,
    overviews: OnceCell<BTreeMap<RunId, RunOverview>>,
    relations: OnceCell<Relations>,
    pub(crate) index: OnceCell<IdIndex<RunId>>,
    manifests: OnceCell<Vec<Manifest>>,
    pub(crate) indexed: OnceCell<Index>,
    pub(crate) known: OnceCell<KnownFiles>,
    pub(crate) progress: IndexProgress,
}

impl Library {
    /// Creates a library; without a store it is empty, and only paths can be resolved.
    #[must_use]
    pub fn new(store: Option<Store>) -> Self {
        Self {
            store,
            vault: OnceCell::new(),
            heads: OnceCell::new(),
            overviews: OnceCell::new(),
            relations: OnceCell::new(),
            index: OnceCell::new(),
            manifests: OnceCell::new(),
            indexed: OnceCell::new(),
            known: OnceCell::new(),
            progress: IndexProgress::default(),
        }
    }

    /// Returns the store.
    ///
    /// # Errors
    /// [`Error::NoStore`] when there is none.
    pub fn store(&self) -> Result<&Store, Error> {
        self.store.as_ref().ok_or(Error::NoStore)
    }

    /// Returns the evidence of the store.
    ///
    /// # Errors
    /// [`Error::NoStore`] when there is none.
    pub fn vault(&self) -> Result<&Arc<Vault>, Error> {
        let store = self.store()?;
        Ok(self.vault.get_or_init(|| Vault::open(Arc::clone(store.disk()))))
    }

    /// Tells whether the store has a run.
    ///
    /// # Errors
    /// An error of the system.
    pub fn has(&self, run: RunId) -> Result<bool, Error> {
        Ok(self.store.as_ref().map_or(Ok(false), |store| store.has(run))?)
    }

    /// Returns the heads of all runs, in the order of their ids.
    ///
    /// # Errors
    /// An error of the system.
    pub fn heads(&self) -> Result<&[RunHead], Error> {
        if let Some(heads) = self.heads.get() {
            return Ok(heads);
        }
        let mut heads: Vec<RunHead> = match self.overviews.get() {
            Some(overviews) => overviews.values().map(|overview| overview.head.clone()).collect(),
            None => self.each_run(RunHead::read)?,
        };
        if let Some(store) = &self.store {
            match_sessions(store, &mut heads)?;
        }
        Ok(self.heads.get_or_init(|| heads))
    }

    /// Returns the head of a run, without reading others. `None` if the store does not have it.
    ///
    /// # Errors
    /// An error of the system.
    pub fn head(&self, run: RunId) -> Result<Option<RunHead>, Error> {
        match (self.heads.get(), &self.store) {
            (Some(heads), _) => {
                let place = heads.binary_search_by_key(&run, |head| head.run).ok();
                Ok(place.map(|place| heads[place].clone()))
            }
            (None, Some(store)) => RunHead::read(store, run),
            (None, None) => Ok(None),
        }
    }

    /// Returns the ids of all runs, in order.
    ///
    /// # Errors
    /// An error of the system.
    pub fn runs(&self) -> Result<Vec<RunId>, Error> {
        let mut runs = self.store.as_ref().map_or(Ok(Vec::new()), Store::runs)?;
        runs.sort_unstable();
        Ok(runs)
    }

    /// Returns the overview of a run, without reading others. `None` if the store does not have it.
    ///
    /// # Errors
    /// An error of the system.
    pub fn overview(&self, run: RunId) -> Result<Option<RunOverview>, Error> {
        match (self.overviews.get(), &self.store) {
            (Some(overviews), _) => Ok(overviews.get(&run).cloned()),
            (None, Some(store)) => RunOverview::read(store, run),
            (None, None) => Ok(None),
        }
    }

    /// Returns the overviews of all runs.
    ///
    /// # Errors
    /// An error of the system.
    pub fn overviews(&self) -> Result<&BTreeMap<RunId, RunOverview>, Error> {
        if let Some(overviews) = self.overviews.get() {
            return Ok(overviews);
        }
        let overviews = self
            .each_run(RunOverview::read)?
            .into_iter()
            .map(|overview| (overview.head.run, overview))
            .collect();
        Ok(self.overviews.get_or_init(|| overviews))
    }

    /// Reads a part of every run, on several worker threads.
    fn each_run<T: Send>(
        &self,
        read: impl Fn(&Store, RunId) -> Result<Option<T>, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let Some(store) = &self.store else { return Ok(Vec::new()) };
        read_each(store, &self.runs()?, read)
    }

    /// Returns the relations of all runs.
    ///
    /// # Errors
    /// An error of the system.
    pub fn relations(&self) -> Result<&Relations, Error> {
        if let Some(relations) = self.relations.get() {
            return Ok(relations);
        }
        if self.indexed.get().is_some() {
            return Ok(self.known_files()?.relations());
        }
        let relations = if self.heads.get().is_some() || self.overviews.get().is_some() {
            Relations::of(self.heads()?)
        } else {
            let links = self.each_run(RunHead::read_links)?;
            // To find its session, more than links is needed.
            if links.iter().any(RunHead::lacks_session) {
                Relations::of(self.heads()?)
            } else {
                Relations::of(&links)
            }
        };
        Ok(self.relations.get_or_init(|| relations))
    }

    /// Returns the top-level sessions, the one with the latest start first.
    ///
    /// # Errors
    /// An error of the system.
    pub fn sessions(&self) -> Result<Vec<SessionOverview>, Error> {
        let overviews = self.overviews()?;
        let sessions = self.relations()?.sessions().into_iter();
        let mut sessions: Vec<SessionOverview> =
            sessions.map(|session| SessionOverview::of(session, overviews)).collect();
        // Times only sort the list, never events.
        sessions.sort_by_cached_key(|session| std::cmp::Reverse(session.started_instant()));
        Ok(sessions)
    }

    /// Returns the ids of all runs, sessions and threads, with their sessions.
    ///
    /// # Errors
    /// An error of the system.
    pub fn index(&self) -> Result<&IdIndex<RunId>, Error> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let index = self.ids_of(self.relations()?)?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Returns the ids of runs, sessions and threads, with their sessions.
    pub(crate) fn ids_of(&self, relations: &Relations) -> Result<IdIndex<RunId>, Error> {
        let ids = relations.ids().map(|(id, session)| (id.to_string(), session));
        let threads = self.spines()?.into_iter().map(|thread| {
            let session = session_run(thread.as_str());
            (thread.to_string(), session)
        });
        Ok(IdIndex::new(ids.chain(threads)))
    }

    /// Returns the threads that have a spine.
    ///
    /// # Errors
    /// An error of the system.
    pub fn spines(&self) -> Result<Vec<ThreadId>, Error> {
        Ok(self.store.as_ref().map_or(Ok(Vec::new()), Store::spines)?)
    }

    /// Returns the manifests of all sources. A damaged one is logged and skipped.
    ///
    /// # Errors
    /// An error of the system.
    pub fn manifests(&self) -> Result<&[Manifest], Error> {
        if let Some(manifests) = self.manifests.get() {
            return Ok(manifests);
        }
        let mut manifests = Vec::new();
        if self.store.is_some() {
            let vault = self.vault()?;
            for id in vault.sources()? {
                match vault.manifest(id) {
                    Ok(manifest) => manifests.extend(manifest),
                    Err(error) => tracing::warn!("{}", visible(&with_causes(&error), Lines::Escape)),
                }
            }
        }
        Ok(self.manifests.get_or_init(|| manifests))
    }
}
