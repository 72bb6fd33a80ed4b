//! Which files of agents belong to a session: those it was made from, those of its child runs, and what lies beside them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use steno_adapters::codex::session_run;
use steno_model::{RunId, ThreadId};
use steno_vault::{Manifest, Role, SourceId};
use uuid::Uuid;

use crate::ids::{PART_LEN_MIN, parse_id};
use crate::{Error, Library, Named, Want};

/// What a text names of the archive.
#[derive(Clone, Debug)]
pub enum Archived {
    /// The files of a session.
    Files(Vec<Manifest>),
    /// A run that was not made from a file, or whose file is gone.
    Run(RunId),
    /// A thread of which there is a spine, or what was said over a connection, and no file of its own.
    Thread(ThreadId),
}

/// A source that a session is in.
#[derive(Clone, Debug)]
pub struct SessionSource {
    /// Which it is.
    pub manifest: Manifest,
    /// The session's runs on it, where it has those of other sessions too.
    pub runs: Option<BTreeSet<RunId>>,
}

impl Library {
    /// Finds the files that a text names: those of a session, of a run, or at a path. Files whose records are not made into
    /// events belong to no run, and are known by what their agent calls the session.
    ///
    /// # Errors
    /// When it names nothing, or several.
    pub fn archived(&self, text: &str) -> Result<Archived, Error> {
        let failure = match self.stored_run(text) {
            Ok(Some(run)) => {
                return Ok(match self.sources_of(run)? {
                    files if files.is_empty() => Archived::Run(run),
                    files => Archived::Files(files),
                });
            }
            Ok(None) => None,
            Err(error @ Error::Ambiguous { .. }) => return Err(error),
            Err(error) => Some(error),
        };
        let files = self.files_named(text)?;
        if !files.is_empty() {
            return Ok(Archived::Files(files));
        }
        match self.thread_named(text)? {
            Some(thread) => Ok(Archived::Thread(thread)),
            None => {
                Err(failure.unwrap_or_else(|| Error::NotFound { text: text.to_owned(), want: Want::Session }))
            }
        }
    }

    /// Returns the run of the store that a text names, be it as the id of its session; `None` where the session has no file of
    /// its own here.
    fn stored_run(&self, text: &str) -> Result<Option<RunId>, Error> {
        let run = match self.resolve(text, Want::Run) {
            Ok(Named::Run(run) | Named::Session(run)) => run,
            Ok(Named::Path(_)) => return Err(Error::NoName { text: text.to_owned(), want: Want::Run }),
            // Several connections show one session, which has no file of its own.
            Err(Error::Ambiguous { .. }) if parse_id(text).is_ok() => return Ok(None),
            Err(Error::Ambiguous { .. }) => match self.resolve(text, Want::Session)? {
                Named::Session(_) | Named::Run(_) | Named::Path(_) => return Ok(None),
            },
            Err(error) => return Err(error),
        };
        if !self.has(run)? {
            return Err(steno_journal::Error::NoSuchRun { run }.into());
        }
        // What a connection shows of a session is no file of it: other threads may have been on it too.
        let is_meant = self.relations()?.owner(run) == run || names_itself(text, run);
        Ok(Some(run).filter(|_| is_meant))
    }

    /// Returns the files that a run was made from, its own first; none where it was not made from any.
    ///
    /// # Errors
    /// What the system says.
    pub fn sources_of(&self, run: RunId) -> Result<Vec<Manifest>, Error> {
        let runs = self.with_children(run)?;
        let made_from = self.made_from(&runs.iter().map(|(run, _)| *run).collect())?;
        let manifests = self.manifests()?;
        let own: BTreeSet<SourceId> = made_from.iter().map(|manifest| manifest.id).collect();
        let is_own = |manifest: &&Manifest| own.contains(&manifest.id);
        let keys: BTreeSet<Key> = manifests.iter().filter(is_own).filter_map(Key::of).collect();
        let first = runs.first().and_then(|(_, source)| *source);
        let belongs = |manifest: &&Manifest| {
            is_own(manifest) || Key::of(manifest).is_some_and(|key| keys.iter().any(|own| own.has(&key)))
        };
        let mut found: Vec<Manifest> = manifests.iter().filter(belongs).cloned().collect();
        found.sort_by_key(|manifest| (Some(manifest.id) != first, manifest.info.path.0.clone()));
        Ok(found)
    }

    /// Returns the sources of the session that a run belongs to, the session's own file first: those of its subagents and
    /// the connections that it was on too. What lies beside them is no source of records.
    ///
    /// # Errors
    /// What the system says.
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
        let (mut found, mut seen, mut waiting) = (Vec::new(), BTreeSet::from([run]), vec![run]);
        while let Some(next) = waiting.pop() {
            found.push((next, sources.get(&next).copied().flatten()));
            let below = children.get(&next).into_iter().flatten().copied();
            waiting.extend(below.filter(|child| seen.insert(*child)));
        }
        Ok(found)
    }

    /// Finds files at a path, or of a session as its agent calls it.
    fn files_named(&self, text: &str) -> Result<Vec<Manifest>, Error> {
        let manifests = self.manifests()?;
        let path = std::path::absolute(text).ok();
        let is_meant = |manifest: &&Manifest| {
            let session = manifest.info.session.as_deref().unwrap_or_default();
            Some(&manifest.info.path.0) == path.as_ref() || session == text || is_part_of(manifest, text)
        };
        let is_exact = |manifest: &&Manifest| {
            let is_at = Some(&manifest.info.path.0) == path.as_ref();
            is_at || manifest.info.session.as_deref() == Some(text) || session_id(manifest) == Some(text)
        };
        let exact: Vec<&Manifest> = manifests.iter().filter(is_exact).collect();
        let meant = if exact.is_empty() { manifests.iter().filter(is_meant).collect() } else { exact };
        let keys: BTreeSet<Key> = meant.iter().filter_map(|manifest| Key::of(manifest)).collect();
        if keys.len() > 1 {
            let sessions: BTreeSet<&str> = keys.iter().map(|key| key.session.as_str()).collect();
            let candidates = sessions.into_iter().map(archived_candidate).collect();
            return Err(Error::Ambiguous { text: text.to_owned(), want: Want::Session, candidates });
        }
        let ids: BTreeSet<SourceId> = meant.iter().map(|manifest| manifest.id).collect();
        let belongs = |manifest: &&Manifest| {
            ids.contains(&manifest.id)
                || Key::of(manifest).is_some_and(|key| keys.iter().any(|own| own.has(&key)))
        };
        Ok(manifests.iter().filter(belongs).cloned().collect())
    }

    /// Returns the session that a text is a part of, if the archive has it without events.
    pub(crate) fn without_events(&self, text: &str) -> Result<Option<String>, Error> {
        let mut named = self.manifests()?.iter().filter(|manifest| is_part_of(manifest, text));
        Ok(named.find_map(|manifest| manifest.info.session.clone()))
    }

    /// Finds a thread that has a spine, or that was on a connection.
    fn thread_named(&self, text: &str) -> Result<Option<ThreadId>, Error> {
        match self.resolve_thread(text, &self.spines()?) {
            Ok(thread) => return Ok(Some(thread)),
            Err(error @ Error::Ambiguous { .. }) => return Err(error),
            Err(_) => {}
        }
        let session = match self.resolve(text, Want::Session) {
            Ok(Named::Session(session)) if !self.relations()?.runs_of(session).is_empty() => session,
            Ok(_) | Err(_) => return Ok(None),
        };
        // A thread that is no UUID has to be given whole.
        let name = if session_run(text) == session { text.to_owned() } else { session.to_string() };
        Ok(ThreadId::parse(&name).ok())
    }

    /// Returns how many sessions of each agent have evidence and no events: what is being recorded is in no manifest yet, and
    /// known by its run.
    ///
    /// # Errors
    /// What the system says.
    pub fn sessions_without_events(&self) -> Result<BTreeMap<String, u64>, Error> {
        let of_runs: BTreeSet<SourceId> = self.heads()?.iter().filter_map(|head| head.source).collect();
        let (mut with, mut all) = (BTreeSet::new(), BTreeSet::new());
        for manifest in self.manifests()? {
            let info = &manifest.info;
            let (Some(provider), Role::Transcript) = (&info.provider, &info.role) else { continue };
            // By its id alone, as a copy in another project has no events of its own.
            let id = session_id(manifest).map_or_else(|| manifest.id.to_string(), str::to_owned);
            let session = (provider.clone(), id);
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
}

/// Tells whether a text names a run itself, and not a session that the run shows.
fn names_itself(text: &str, run: RunId) -> bool {
    let (id, text) = (run.to_string(), text.to_ascii_lowercase());
    let plain = id.replace('-', "");
    [id, plain].iter().any(|id| id.starts_with(&text) || id.ends_with(&text))
}

fn archived_candidate(session: &str) -> crate::Candidate {
    let part = crate::ShortestPart::Beginning(session.len());
    crate::Candidate { id: session.to_owned(), part, started: None, project: None, title: None }
}

/// Returns what an agent calls the session of a file, without the project.
fn session_id(manifest: &Manifest) -> Option<&str> {
    manifest.info.session.as_deref()?.rsplit('/').next()
}

/// Tells whether the id of a file's session begins or ends with a text.
fn is_part_of(manifest: &Manifest, text: &str) -> bool {
    let Some(id) = session_id(manifest).filter(|id| !id.is_empty() && text.len() >= PART_LEN_MIN) else {
        return false;
    };
    // Gemini's files have the beginning of the id in their names.
    let is_cut = manifest.info.provider.as_deref() == Some("gemini") && text.starts_with(id);
    is_cut || id.starts_with(text) || id.ends_with(text)
}

/// What files of one session share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    provider: Option<String>,
    home: Option<PathBuf>,
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

/// Returns the connection that a file of the vault is.
#[must_use]
pub fn connection_of(manifest: &Manifest) -> Option<Uuid> {
    let path: &Path = &manifest.info.path.0;
    let is_in_place = path.parent().and_then(Path::file_name).is_some_and(|dir| dir == "connections");
    let id = path.file_name()?.to_str()?.strip_suffix(".jsonl")?;
    Uuid::try_parse(id).ok().filter(|_| is_in_place)
}
