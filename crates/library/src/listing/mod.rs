//! The list of sessions: what the index knows of each, and what is true of it now.
//!
//! Whether a session is live, and whether its agent still has its file, is looked up for every list.

mod calls;
mod json;
mod loss;
mod state;

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use steno_index::{RunRow, SessionFilter, SessionRow, SourceRow};
use steno_model::RunId;
use steno_vault::Vault;

pub use self::calls::{CallList, CallOutput};
use self::loss::{LookAt, loss_now};
pub use self::loss::{Loss, LossKind};
pub use self::state::ListState;
use crate::indexed::KnownFiles;
use crate::{Error, Library, SessionRuns};

/// Which sessions a list shows. An empty filter shows all.
#[derive(Clone, Debug, Default)]
pub struct ListFilter {
    /// What the index knows.
    pub sessions: SessionFilter,
    /// Only live sessions.
    pub is_live: bool,
    /// Only sessions of which the agent's disk lacks something.
    pub is_gone: bool,
}

impl ListFilter {
    /// Tells whether every session passes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && !self.is_live && !self.is_gone
    }
}

/// A session in a list.
#[derive(Clone, Debug)]
pub struct ListedSession {
    /// What the index knows. `None` if no event of it could be read.
    pub row: Option<SessionRow>,
    /// The session.
    pub id: RunId,
    /// Its state.
    pub state: ListState,
    /// Whether it is recorded at the moment, or grew within a minute.
    pub is_live: bool,
    /// What the agent's disk lacks of it.
    pub loss: Option<Loss>,
    /// What is wrong with its runs.
    pub damage: Vec<(RunId, String)>,
}

impl Library {
    /// Lists the top-level sessions that pass a filter, the one with the latest event first.
    ///
    /// # Errors
    /// An error of the index or the system.
    pub fn list(&self, filter: &ListFilter, now: Timestamp) -> Result<Vec<ListedSession>, Error> {
        let store = self.store()?;
        // The locks are looked at while the database is read.
        let (locked, read) = std::thread::scope(|scope| {
            let locked = scope.spawn(|| store.locked_runs());
            let read = self.indexed_with(|index, known| {
                let rows = index.sessions(&filter.sessions)?;
                Ok((rows, known.relations().sessions(), self.ids_of(known.relations())))
            });
            (locked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), read)
        });
        let (locked, (index, (rows, sessions, ids))) = (locked?, read?);
        if let Ok(ids) = ids {
            self.index.get_or_init(|| ids);
        }
        let known = self.known_files()?;
        let facts = Facts {
            runs: known.runs.iter().map(|run| (run.run, run)).collect(),
            sources: known.sources.iter().map(|row| (row.source.as_str(), row)).collect(),
            deleted: deleted_files(known),
            vault: self.vault().ok().map(std::sync::Arc::as_ref),
            look: if filter.is_gone { LookAt::EveryFile } else { LookAt::KnownLosses },
            locked,
            now,
        };
        let mut families: HashMap<RunId, SessionRuns> =
            sessions.into_iter().map(|session| (session.id, session)).collect();
        let mut listed = Vec::new();
        for row in rows {
            let id = row.digest.id;
            let runs =
                families.remove(&id).unwrap_or_else(|| SessionRuns { id, runs: vec![id], below: Vec::new() });
            listed.extend(listed_session(&runs, Some(row), &facts, filter));
        }
        if filter.sessions.is_empty() {
            // Sessions without a readable event are not in the index.
            let has_row = index.session_ids()?;
            let mut others: Vec<SessionRuns> =
                families.into_values().filter(|session| !has_row.contains(&session.id)).collect();
            others.sort_by_key(|session| session.id);
            for session in others {
                listed.extend(listed_session(&session, None, &facts, filter));
            }
        }
        Ok(listed)
    }

    /// Returns a filter that the index can apply: live and lost sessions are looked up.
    ///
    /// # Errors
    /// An error of the index or the system.
    pub fn resolve_filter(&self, filter: &ListFilter, now: Timestamp) -> Result<SessionFilter, Error> {
        if !filter.is_live && !filter.is_gone {
            return Ok(filter.sessions.clone());
        }
        let ids: HashSet<RunId> = self.list(filter, now)?.iter().map(|session| session.id).collect();
        Ok(SessionFilter { sessions: Some(ids), ..filter.sessions.clone() })
    }
}

/// Adds what has to be looked up now; `None` if the session does not pass the filter.
fn listed_session(
    session: &SessionRuns,
    row: Option<SessionRow>,
    facts: &Facts<'_>,
    filter: &ListFilter,
) -> Option<ListedSession> {
    let loss = facts.loss(session);
    if filter.is_gone && loss.is_none() {
        return None;
    }
    let all = || session.runs.iter().chain(&session.below);
    let runs: Vec<&RunRow> = facts.rows(&session.runs).collect();
    let is_live = all().any(|run| facts.locked.contains(run))
        || row.as_ref().is_some_and(|row| state::is_growing(row, &runs, facts.now));
    if filter.is_live && !is_live {
        return None;
    }
    let damage = all().filter_map(|run| Some((*run, facts.runs.get(run)?.damage.clone()?))).collect();
    let state = ListState::of(row.as_ref(), &runs, is_live);
    Some(ListedSession { row, id: session.id, state, is_live, loss, damage })
}

/// Facts that are looked up once for all sessions of a list.
struct Facts<'a> {
    runs: HashMap<RunId, &'a RunRow>,
    sources: HashMap<&'a str, &'a SourceRow>,
    /// The sources whose files are gone.
    deleted: HashSet<&'a str>,
    vault: Option<&'a Vault>,
    look: LookAt,
    /// The runs with a writer.
    locked: BTreeSet<RunId>,
    now: Timestamp,
}

impl<'a> Facts<'a> {
    fn rows(&self, runs: &[RunId]) -> impl Iterator<Item = &'a RunRow> {
        runs.iter().filter_map(|run| self.runs.get(run).copied())
    }

    /// Returns what the agent's disk lacks of a session: of its own file, else of a file of its subagents.
    fn loss(&self, session: &SessionRuns) -> Option<Loss> {
        let all = session.runs.iter().chain(&session.below).copied().collect::<Vec<_>>();
        let on_disk = self.rows(&all).filter(|run| run.channel.as_deref() == Some("disk"));
        on_disk.filter_map(|run| self.sources.get(run.source.as_deref()?)).find_map(|source| {
            let is_deleted = self.deleted.contains(source.source.as_str());
            match self.vault {
                Some(vault) => loss_now(source, is_deleted, vault, self.look),
                None => Loss::of(source, is_deleted),
            }
        })
    }
}

/// Returns the sources of runs whose files are gone. Each takes a call to the system, so two threads share them.
fn deleted_files(known: &KnownFiles) -> HashSet<&str> {
    let of_runs: HashSet<&str> = known.runs.iter().filter_map(|run| run.source.as_deref()).collect();
    let sources: Vec<&SourceRow> =
        known.sources.iter().filter(|row| of_runs.contains(row.source.as_str())).collect();
    let deleted = |sources: &[&'_ SourceRow]| -> Vec<usize> {
        let gone = sources.iter().enumerate().filter(|(_, source)| loss::is_source_deleted(source));
        gone.map(|(number, _)| number).collect()
    };
    let (first, second) = sources.split_at(sources.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| deleted(second));
        let mut gone = deleted(first);
        let others = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        gone.extend(others.iter().map(|number| number + first.len()));
        gone.into_iter().map(|number| sources[number].source.as_str()).collect()
    })
}
