//! The plan of what is deleted with sessions to forget. Making it changes nothing, so it can be shown first.

use std::collections::BTreeSet;

use jiff::Timestamp;
use steno_journal::Reader;
use steno_library::{Error as LibraryError, Library, RunHead, SourceTarget};
use steno_model::{BlockContent, EventType, Payload, RunId, ThreadId, Word};
use steno_vault::{Manifest, NameHash, Reason, Role, SourceId};

use super::{
    ConnectionSelection, ForgetError, ForgetTargets, PieceFilter, SessionFiles, SharedConnection, SharedFile,
    SpineSelection, belongings, connection_of, connections_of, files_of_project, shared_files,
    spines_to_forget, thread_of,
};
use crate::sources::{is_in_project, last_written};

/// What the user wants to forget.
#[derive(Clone, Debug)]
pub struct ForgetSelection {
    /// Files of the named sessions.
    seeds: Vec<Manifest>,
    /// A run without a source file, or whose file was forgotten before.
    run: Option<RunId>,
    /// Threads without a session file in the store.
    threads: Vec<ThreadId>,
    why: Reason,
    /// Pieces of shared files that are selected directly.
    pieces: PieceFilter,
}

impl ForgetSelection {
    fn of(seeds: Vec<Manifest>, why: Reason) -> Self {
        Self { seeds, run: None, threads: Vec::new(), why, pieces: PieceFilter::default() }
    }

    /// Selects the session that a text names.
    ///
    /// # Errors
    /// If it names nothing, or several things.
    pub fn session(library: &Library, text: &str) -> Result<Self, LibraryError> {
        let none = Self::of(Vec::new(), Reason::Session);
        Ok(match library.resolve_sources(text)? {
            SourceTarget::Files(seeds) => Self { seeds, ..none },
            SourceTarget::Run(run) => Self { run: Some(run), ..none },
            SourceTarget::Thread(thread) => Self { threads: vec![thread], ..none },
        })
    }

    /// Selects the sessions of a project, by its directory or by the agent's name for it.
    ///
    /// # Errors
    /// An I/O error.
    pub fn project(library: &Library, project: &str) -> Result<Self, ForgetError> {
        let seeds = files_of_project(library.vault()?, library.manifests()?, project)?;
        let in_project = library
            .heads()?
            .iter()
            .filter(|head| head.project.as_deref().is_some_and(|dir| is_in_project(project, dir)));
        // What was said over connections is found by its threads.
        let sessions = in_project.filter_map(RunHead::shows);
        let threads = sessions.filter_map(|session| ThreadId::parse(&session.to_string()).ok()).collect();
        let pieces = PieceFilter { project: Some(project.to_owned()), ..PieceFilter::default() };
        Ok(Self { threads, pieces, ..Self::of(seeds, Reason::Project) })
    }

    /// Selects the sessions none of whose files was written to since a time.
    ///
    /// # Errors
    /// An I/O error.
    pub fn older_than(library: &Library, before: Timestamp) -> Result<Self, ForgetError> {
        let pieces = PieceFilter { before_ms: Some(millis(before)), ..PieceFilter::default() };
        Ok(Self { pieces, ..Self::of(older_than(library.manifests()?, before), Reason::Age) })
    }
}

/// What is deleted, and what stays although it has records of it.
#[derive(Clone, Debug)]
pub struct ForgetPlan {
    /// Files in the vault, in the order of their paths.
    pub manifests: Vec<Manifest>,
    /// Runs.
    pub runs: Vec<RunId>,
    /// Spines that are deleted, and those that stay.
    pub spines: SpineSelection,
    /// Connections that lose the messages of forgotten threads.
    pub connections: Vec<SharedConnection>,
    /// Shared files that lose pieces.
    pub shared: Vec<SharedFile>,
    /// The reason for the tombstones.
    pub why: Reason,
    /// The hashes of what is not recorded again.
    names: Vec<NameHash>,
    /// Which pieces of shared files are forgotten.
    pieces: PieceFilter,
}

impl ForgetPlan {
    /// Finds everything that belongs to the selection.
    ///
    /// # Errors
    /// An I/O error.
    pub fn make(library: &Library, wanted: ForgetSelection) -> Result<Self, ForgetError> {
        let (vault, all) = (library.vault()?, library.manifests()?);
        let ForgetSelection { seeds, run, threads: named_threads, why, mut pieces } = wanted;
        let on_several = library.connections()?;
        let SessionFiles { mut manifests, mut names } = belongings(vault, all, &seeds, &on_several)?;
        let mut spines = spines_going(&manifests, (run, &named_threads), library)?;
        let mut threads: BTreeSet<ThreadId> =
            spines.going.iter().cloned().chain(named_threads.clone()).collect();
        threads.extend(manifests.iter().filter_map(thread_of));
        let of_one = manifests.iter().filter(|manifest| !on_several.contains(&manifest.id));
        threads.extend(sessions_of(library, of_one, run)?);
        let ConnectionSelection { going: connections, shared: mut on_shared } =
            connections_of(library, &on_several, &threads)?;
        let is_new = |manifest: &Manifest| manifests.iter().all(|known| known.id != manifest.id);
        let connections: Vec<Manifest> = connections.into_iter().filter(is_new).collect();
        if !connections.is_empty() {
            manifests.extend(connections);
            spines = spines_going(&manifests, (run, &named_threads), library)?;
        }
        manifests.sort_by(|one, other| one.info.path.0.cmp(&other.info.path.0));
        let going: BTreeSet<SourceId> = manifests.iter().map(|manifest| manifest.id).collect();
        on_shared.retain(|connection| !going.contains(&connection.manifest.id));
        let runs = runs_going(library, run, &going, &on_shared)?;
        names.extend(threads.iter().map(|thread| NameHash::of_session(thread.as_str())));
        names.extend(run.map(|run| NameHash::of_session(&run.to_string())));
        // A file that the user named still has all of it. It is not archived again.
        let named =
            on_shared.iter().map(|shared| &shared.manifest).filter(|file| connection_of(file).is_none());
        names.extend(named.map(|file| NameHash::of_path(&file.info.path.0)));
        pieces.names = names.iter().copied().collect();
        find_typed(library, &runs, &mut pieces)?;
        let mut shared = shared_files(vault, all, &pieces)?;
        shared.retain(|file| !going.contains(&file.manifest.id));
        names.extend(shared.iter().flat_map(|file| &file.names));
        Ok(Self { manifests, runs, spines, connections: on_shared, shared, why, names, pieces })
    }

    /// Tells whether there is nothing to delete.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.manifests.is_empty()
            && self.runs.is_empty()
            && self.spines.going.is_empty()
            && self.shared.is_empty()
    }

    /// Returns the plan as input for `forget`.
    #[must_use]
    pub fn doomed(&self) -> ForgetTargets {
        ForgetTargets {
            connections: self.manifests.iter().filter_map(connection_of).collect(),
            runs: self.runs.clone(),
            threads: self.spines.going.clone(),
            sources: self.manifests.iter().map(|manifest| manifest.id).collect(),
            names: self.names.clone(),
            shared: self.shared.clone(),
            shared_connections: self.connections.clone(),
            pieces: self.pieces.clone(),
        }
    }
}

/// Returns the sessions of files that are deleted, and of a run, by the names that they have on connections. A
/// connection that is forgotten by itself is not among the files: it leaves what others recorded of its threads.
fn sessions_of<'a>(
    library: &Library,
    files: impl Iterator<Item = &'a Manifest>,
    run: Option<RunId>,
) -> Result<Vec<ThreadId>, ForgetError> {
    let going: BTreeSet<SourceId> = files.map(|manifest| manifest.id).collect();
    let is_going = |source: Option<SourceId>| source.is_some_and(|source| going.contains(&source));
    let made = library.heads()?.iter().filter(|head| is_going(head.source));
    let sessions = made.map(|head| head.shows().unwrap_or(head.run)).chain(run);
    Ok(sessions.filter_map(|session| ThreadId::parse(&session.to_string()).ok()).collect())
}

/// Returns the runs of files that are deleted, and of forgotten threads on connections that stay.
fn runs_going(
    library: &Library,
    run: Option<RunId>,
    going: &BTreeSet<SourceId>,
    on_shared: &[SharedConnection],
) -> Result<Vec<RunId>, ForgetError> {
    let mut runs: Vec<RunId> = run.into_iter().collect();
    let made = library.heads()?.iter().filter_map(|head| Some((head.run, head.source?)));
    // Withdrawn runs are still stored.
    for (run, source) in made.chain(super::withdrawn_runs(library.store()?)?) {
        if (going.contains(&source) || library.vault()?.is_forgotten(source)?) && !runs.contains(&run) {
            runs.push(run);
        }
    }
    for run in on_shared.iter().flat_map(|connection| &connection.runs) {
        if !runs.contains(run) {
            runs.push(*run);
        }
    }
    // Runs of these sessions without a source file are deleted too.
    let relations = library.relations()?;
    let sessions: BTreeSet<RunId> = runs.iter().map(|run| relations.owner(*run)).collect();
    let is_of_them =
        |run: RunId| sessions.contains(&relations.owner(run)) || sessions.contains(&relations.root(run));
    for head in library.heads()?.iter().filter(|head| head.source.is_none()) {
        if is_of_them(head.run) && !runs.contains(&head.run) {
            runs.push(head.run);
        }
    }
    Ok(runs)
}

/// Selects lines of old histories, which do not name a session: by text and directory, or by directory and time.
fn find_typed(library: &Library, runs: &[RunId], pieces: &mut PieceFilter) -> Result<(), ForgetError> {
    const SLACK_MS: f64 = 5_000.0;
    for run in runs.iter().filter(|run| library.has(**run).unwrap_or(false)) {
        let mut reader = Reader::open(library.store()?, *run)?.until_now()?;
        let (mut dir, mut span) = (None, None::<(f64, f64)>);
        // A damaged transcript is read up to the damage.
        while let Ok(Some(recorded)) = reader.read_next() {
            let event = recorded.event;
            dir = dir.or_else(|| dir_of(event.payload.as_str()));
            if let Some(time) = event.timestamp.instant() {
                let time = millis(time);
                let (from, to) = span.unwrap_or((time, time));
                span = Some((from.min(time), to.max(time)));
            }
            let (Word::Known(EventType::MessageUser), Payload::Message(message)) =
                (event.event_type, Payload::read(&event.payload))
            else {
                continue;
            };
            for block in message.blocks {
                if let BlockContent::Text(Some(text)) = block.content {
                    let dir = dir.clone().unwrap_or_default();
                    pieces.prompts.insert((dir, text.to_text().trim().to_owned()));
                }
            }
        }
        if let Some((dir, (from, to))) = dir.zip(span) {
            pieces.spans.push((dir, from - SLACK_MS, to + SLACK_MS));
        }
    }
    Ok(())
}

/// Returns the directory that an event names.
fn dir_of(payload: &str) -> Option<String> {
    let payload: serde_json::Value = serde_json::from_str(payload).ok()?;
    payload.get("cwd").and_then(|dir| dir.as_str()).map(str::to_owned)
}

#[expect(clippy::cast_precision_loss, reason = "a millisecond more or less does not matter")]
fn millis(time: Timestamp) -> f64 {
    time.as_millisecond() as f64
}

fn spines_going(
    manifests: &[Manifest],
    (run, threads): (Option<RunId>, &[ThreadId]),
    library: &Library,
) -> Result<SpineSelection, ForgetError> {
    let mut spines = spines_to_forget(library.store()?, library.vault()?, manifests)?;
    // A Codex run has the id of its thread.
    let is_its =
        |of: &ThreadId| run.is_some_and(|run| run.to_string() == of.as_str()) || threads.contains(of);
    spines.going.extend(library.spines()?.into_iter().filter(is_its));
    spines.going.sort();
    spines.going.dedup();
    spines.staying.retain(|of| !spines.going.contains(of));
    Ok(spines)
}

/// Returns the files of sessions none of which was written to since a time.
fn older_than(manifests: &[Manifest], before: Timestamp) -> Vec<Manifest> {
    let key = |manifest: &Manifest| {
        let session = manifest.info.session.as_deref();
        NameHash::of_session(session.unwrap_or(&manifest.id.to_string()))
    };
    let is_young = |manifest: &&Manifest| last_written(manifest).is_none_or(|written| written >= before);
    let young: BTreeSet<_> = manifests.iter().filter(is_young).map(key).collect();
    // Files without a session are not selected by age.
    let is_old = |manifest: &&Manifest| {
        let is_of_a_session = manifest.info.role != Role::Shared || manifest.info.session.is_some();
        is_of_a_session && !young.contains(&key(manifest))
    };
    manifests.iter().filter(is_old).cloned().collect()
}
