//! Finds the agents' files of a session: its own, those of its child runs, and related files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use steno_adapters::codex::session_run;
use steno_model::{Provider, RunId, ThreadId, Word, with_causes};
use steno_vault::{AdapterProgress, Manifest, Role, SourceId, SourceInfo};
use steno_views::{Lines, visible};
use uuid::Uuid;

use crate::{Error, Library, Target, TargetKind};

/// The stored sources that a text names.
#[derive(Clone, Debug)]
pub enum SourceTarget {
    /// The files of a session.
    Files(Vec<Manifest>),
    /// A run without a file, or whose file is gone.
    Run(RunId),
    /// A thread with a spine or a recorded connection, but without a file.
    Thread(ThreadId),
}

/// A source that a session is in.
#[derive(Clone, Debug)]
pub struct SessionSource {
    /// Its manifest.
    pub manifest: Manifest,
    /// The session's runs in it, if it also has runs of other sessions.
    pub runs: Option<BTreeSet<RunId>>,
}

impl Library {
    /// Finds the stored sources that a text names: the files of a session, or the file at a path. The text is resolved as in
    /// [`Library::resolve`]; it may also name a session that is stored as files without events.
    ///
    /// # Errors
    /// If it names nothing, or more than one thing.
    pub fn resolve_sources(&self, text: &str) -> Result<SourceTarget, Error> {
        let session = match self.resolve(text, TargetKind::Session) {
            Ok(Target::Session(session) | Target::Run(session)) => session,
            Ok(Target::Path(_)) => return self.sources_at(text),
            Err(error @ (Error::NoFile { .. } | Error::NotRegular { .. })) => {
                return self.sources_at(text).map_err(|_| error);
            }
            Err(Error::WithoutEvents { session }) => {
                return self.sources_at(&session);
            }
            Err(error) => return Err(error),
        };
        self.check_alone(text, session)?;
        let files = self.files_of(session)?;
        if !files.is_empty() {
            return Ok(SourceTarget::Files(files));
        }
        if self.has(session)? {
            return Ok(SourceTarget::Run(session));
        }
        let thread = self.thread_of(text, session)?;
        thread.map(SourceTarget::Thread).ok_or(steno_journal::Error::NoSuchRun { run: session }.into())
    }

    /// Returns the files of the session that has a file at a path, or that has this text as its agent's name for it.
    fn sources_at(&self, text: &str) -> Result<SourceTarget, Error> {
        let manifests = self.manifests()?;
        let path = std::path::absolute(text).ok();
        let connections = self.connections()?;
        let key_of = |manifest: &Manifest| SessionKey::of_file(manifest, &connections);
        let is_at = |manifest: &&Manifest| {
            Some(&manifest.info.path.0) == path.as_ref()
                || manifest.info.session.as_deref() == Some(text) && key_of(manifest).is_some()
        };
        let at: Vec<&Manifest> = manifests.iter().filter(is_at).collect();
        if at.is_empty() {
            return Err(Error::InvalidName { text: text.to_owned(), want: TargetKind::Session });
        }
        let keys: BTreeSet<SessionKey> = at.iter().filter_map(|manifest| key_of(manifest)).collect();
        let ids: BTreeSet<SourceId> = at.iter().map(|manifest| manifest.id).collect();
        let belongs = |manifest: &&Manifest| {
            ids.contains(&manifest.id)
                || key_of(manifest).is_some_and(|key| keys.iter().any(|own| own.has(&key)))
        };
        Ok(SourceTarget::Files(manifests.iter().filter(belongs).cloned().collect()))
    }

    /// Returns the files of a session, its own first: those of all its runs, except files that also show other sessions.
    fn files_of(&self, session: RunId) -> Result<Vec<Manifest>, Error> {
        let mut files = self.sources_of(session)?;
        let shown = self.relations()?.runs_of(session);
        let mut own = BTreeSet::from([session]);
        for run in &shown {
            own.extend(self.with_children(*run)?.into_iter().map(|(run, _)| run));
        }
        let is_own = |run: &String| RunId::parse(run).is_ok_and(|run| own.contains(&run));
        let connections = self.connections()?;
        for manifest in self.made_from(&shown.into_iter().collect())? {
            let mut runs = manifest.adapted.iter().flat_map(|adapted| &adapted.runs);
            // A connection may have other threads, and is found by its threads.
            let is_whole = !connections.contains(&manifest.id) && runs.all(is_own);
            if is_whole && files.iter().all(|known| known.id != manifest.id) {
                files.push(manifest.clone());
            }
        }
        files.retain(|manifest| !connections.contains(&manifest.id));
        Ok(files)
    }

    /// Returns the files that may have sessions that do not belong together: connections that were recorded here, and
    /// recordings of connections or of requests to models that the user named. What a command printed is not one.
    ///
    /// # Errors
    /// An error of the system.
    pub fn connections(&self) -> Result<BTreeSet<SourceId>, Error> {
        let heads = self.heads()?.iter().filter(|head| head.is_on_connection());
        let recorded: BTreeSet<SourceId> = heads.filter_map(|head| head.source).collect();
        let is_printed =
            |manifest: &Manifest| manifest.info.path.0.extension().is_some_and(|end| end == "wrap");
        let is_one = |manifest: &&Manifest| {
            connection_of(manifest).is_some() || recorded.contains(&manifest.id) && !is_printed(manifest)
        };
        Ok(self.manifests()?.iter().filter(is_one).map(|manifest| manifest.id).collect())
    }

    /// Returns the thread of a session, if it has a spine or a recorded connection.
    fn thread_of(&self, text: &str, session: RunId) -> Result<Option<ThreadId>, Error> {
        let spine = self.spines()?.into_iter().find(|thread| session_run(thread.as_str()) == session);
        if spine.is_some() || self.relations()?.runs_of(session).is_empty() {
            return Ok(spine);
        }
        // A thread that is not a UUID has to be given completely.
        let name = if session_run(text) == session { text.to_owned() } else { session.to_string() };
        Ok(ThreadId::parse(&name).ok())
    }

    /// Returns the files that a run was made from, its own first.
    ///
    /// # Errors
    /// An error of the system.
    pub fn sources_of(&self, run: RunId) -> Result<Vec<Manifest>, Error> {
        let runs = self.with_children(run)?;
        let made_from = self.made_from(&runs.iter().map(|(run, _)| *run).collect())?;
        let manifests = self.manifests()?;
        let own: BTreeSet<SourceId> = made_from.iter().map(|manifest| manifest.id).collect();
        let is_own = |manifest: &&Manifest| own.contains(&manifest.id);
        let connections = self.connections()?;
        let key_of = |manifest: &Manifest| SessionKey::of_file(manifest, &connections);
        let keys: BTreeSet<SessionKey> = manifests.iter().filter(is_own).filter_map(key_of).collect();
        let first = runs.first().and_then(|(_, source)| *source);
        let belongs = |manifest: &&Manifest| {
            is_own(manifest) || key_of(manifest).is_some_and(|key| keys.iter().any(|own| own.has(&key)))
        };
        let mut sources: Vec<Manifest> = manifests.iter().filter(belongs).cloned().collect();
        sources.sort_by_key(|manifest| (Some(manifest.id) != first, manifest.info.path.0.clone()));
        Ok(sources)
    }

    /// Returns the sources of the session of a run, the session's own file first, with those of its subagents and its
    /// connections. Related files are not sources of records.
    ///
    /// # Errors
    /// An error of the system.
    pub fn session_sources(&self, run: RunId) -> Result<Vec<SessionSource>, Error> {
        let relations = self.relations()?;
        let root = relations.root(run);
        let Some(session) = relations.sessions().into_iter().find(|session| session.id == root) else {
            return Ok(Vec::new());
        };
        let runs: BTreeSet<RunId> = session.runs.iter().chain(&session.below).copied().collect();
        let is_of_others = |run: &String| RunId::parse(run).is_ok_and(|run| !runs.contains(&run));
        let first = self.heads()?.iter().find(|head| head.run == root).and_then(|head| head.source);
        let mut manifests = self.made_from(&runs)?;
        manifests.sort_by_key(|manifest| (Some(manifest.id) != first, manifest.info.path.0.clone()));
        let with_runs = |manifest: &Manifest| {
            let has_others = manifest.adapted.iter().flat_map(|adapted| &adapted.runs).any(is_of_others);
            SessionSource { manifest: manifest.clone(), runs: has_others.then(|| runs.clone()) }
        };
        Ok(manifests.into_iter().map(with_runs).collect())
    }

    /// Returns the manifests of the sources that runs were made from.
    fn made_from(&self, runs: &BTreeSet<RunId>) -> Result<Vec<&Manifest>, Error> {
        let names: BTreeSet<String> = runs.iter().map(ToString::to_string).collect();
        let heads = self.heads()?.iter().filter(|head| runs.contains(&head.run));
        let sources: BTreeSet<SourceId> = heads.filter_map(|head| head.source).collect();
        let is_made_from = |manifest: &&Manifest| {
            sources.contains(&manifest.id)
                || manifest.adapted.iter().flat_map(|adapted| &adapted.runs).any(|run| names.contains(run))
        };
        Ok(self.manifests()?.iter().filter(is_made_from).collect())
    }

    /// Returns a run and those below it, each with the source that it was made from.
    fn with_children(&self, run: RunId) -> Result<Vec<(RunId, Option<SourceId>)>, Error> {
        let sources: BTreeMap<RunId, Option<SourceId>> =
            self.heads()?.iter().map(|head| (head.run, head.source)).collect();
        let children = self.relations()?.children();
        let (mut runs, mut seen, mut waiting) = (Vec::new(), BTreeSet::from([run]), vec![run]);
        while let Some(next) = waiting.pop() {
            runs.push((next, sources.get(&next).copied().flatten()));
            let below = children.get(&next).into_iter().flatten().copied();
            waiting.extend(below.filter(|child| seen.insert(*child)));
        }
        Ok(runs)
    }

    /// Returns how many sessions of each agent are stored without events. A session that is being recorded is not in a
    /// manifest yet, but has a run.
    ///
    /// # Errors
    /// An error of the system.
    pub fn sessions_without_events(&self) -> Result<BTreeMap<String, u64>, Error> {
        if self.indexed.get().is_some() {
            return self.indexed_sessions_without_events();
        }
        let manifests = self.manifests()?.iter();
        self.sources_without_events(
            manifests.map(|manifest| (manifest.id, &manifest.info, manifest.adapted.as_ref())),
        )
    }

    /// Returns how many sessions of each agent these sources have that have no events.
    pub(crate) fn sources_without_events<'a>(
        &self,
        sources: impl Iterator<Item = (SourceId, &'a SourceInfo, Option<&'a AdapterProgress>)>,
    ) -> Result<BTreeMap<String, u64>, Error> {
        let of_runs: BTreeSet<SourceId> = self.heads()?.iter().filter_map(|head| head.source).collect();
        let (mut with, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (source, info, adapted) in sources {
            let (Some(provider), Role::Transcript) = (&info.provider, &info.role) else { continue };
            // Sessions are compared by id alone, because a copy in another project has no events.
            let id = session_id(info).map_or_else(|| source.to_string(), str::to_owned);
            let session = (provider.to_string(), id);
            if adapted.is_some_and(|adapted| !adapted.runs.is_empty()) || of_runs.contains(&source) {
                with.insert(session.clone());
            }
            all.insert(session);
        }
        Ok(counts_by_provider(&all, &with))
    }

    /// Does the same without reading the manifests.
    fn indexed_sessions_without_events(&self) -> Result<BTreeMap<String, u64>, Error> {
        let known = self.known_files()?;
        let of_runs: BTreeSet<&str> = known.runs.iter().filter_map(|run| run.source.as_deref()).collect();
        let (mut with, mut all) = (BTreeSet::new(), BTreeSet::new());
        for source in &known.sources {
            if source.path.is_empty()
                && let Some(id) = SourceId::parse(&source.source)
                && let Err(error) = self.vault()?.manifest(id)
            {
                tracing::warn!("{}", visible(&with_causes(&error), Lines::Escape));
            }
            let Some(provider) = &source.provider else { continue };
            if source.role.as_deref() != Some(Role::Transcript.as_str()) {
                continue;
            }
            let id = source.session.as_ref().unwrap_or(&source.source);
            let session = (provider.clone(), id.clone());
            if source.runs > 0 || of_runs.contains(source.source.as_str()) {
                with.insert(session.clone());
            }
            all.insert(session);
        }
        Ok(counts_by_provider(&all, &with))
    }
}

/// Counts the sessions of each provider that are in one set only.
fn counts_by_provider(
    all: &BTreeSet<(String, String)>,
    with: &BTreeSet<(String, String)>,
) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for (provider, _) in all.difference(with) {
        *counts.entry(provider.clone()).or_default() += 1;
    }
    counts
}

/// Returns the agent's session id of a file, without the project.
pub(crate) fn session_id(info: &SourceInfo) -> Option<&str> {
    info.session.as_deref()?.rsplit('/').next().filter(|id| !id.is_empty())
}

/// Tells whether a file is the record of a thread, which spines are made of.
#[must_use]
pub fn is_thread_file(info: &SourceInfo) -> bool {
    match info.known_provider() {
        Some(Provider::Codex) => info.role == Role::Transcript,
        Some(Provider::Claude | Provider::Gemini | Provider::Copilot | Provider::OpenCode) | None => false,
    }
}

/// What files of one session share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SessionKey {
    provider: Option<Word<Provider>>,
    home: Option<PathBuf>,
    session: String,
}

impl SessionKey {
    /// Returns the key of a file that belongs to one session. A connection names only its first one.
    fn of_file(manifest: &Manifest, connections: &BTreeSet<SourceId>) -> Option<Self> {
        if connections.contains(&manifest.id) {
            return None;
        }
        let info = &manifest.info;
        let home = info.home.as_ref().map(|home| home.0.clone());
        Some(Self { provider: info.provider.clone(), home, session: info.session.clone()? })
    }

    /// Tells whether another file belongs to this session. Files outside of the project have only the session's id.
    fn has(&self, other: &Self) -> bool {
        let id = self.session.rsplit('/').next().unwrap_or_default();
        (&self.provider, &self.home) == (&other.provider, &other.home)
            && (other.session == self.session || other.session == id)
    }
}

/// Returns the connection that a stored file recorded.
#[must_use]
pub fn connection_of(manifest: &Manifest) -> Option<Uuid> {
    let path: &Path = &manifest.info.path.0;
    let is_in_place = path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "connections");
    let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    Uuid::try_parse(id).ok().filter(|_| is_in_place)
}
