//! Reads the sessions that an argument names, with those below them, for `show` and `tree`.

use std::collections::{BTreeMap, BTreeSet};

use steno_library::{Error as LibraryError, IdIndex, Library, Tally, TargetKind};
use steno_model::RunId;
use steno_session::{Content, Session};
use steno_views::tree::{Forest, RunTree, join, join_all};
use steno_views::{Lines, visible};

use crate::failure::Failure;
use crate::output::Output;
use crate::runs;
use crate::settings::Settings;

/// Sessions, and how they are related.
pub struct RelatedSessions {
    pub joined: Forest,
    pub sessions: BTreeMap<RunId, Session>,
    /// The ids of the sessions, and of the store that they are from.
    pub ids: IdIndex<RunId>,
    /// Whether they are from agents' files. Then a run that is not among them was not read.
    is_of_agents: bool,
    /// The library that they were read with.
    pub library: Library,
    tally: Tally,
    /// The runs that a process is writing.
    recording: BTreeSet<RunId>,
}

impl RelatedSessions {
    /// Returns what is said of a child run that is not among the sessions.
    pub fn absent_child(&self) -> &'static str {
        if self.is_of_agents { "not read" } else { "not in the store" }
    }

    /// Reads what an argument names.
    pub fn read(text: &str, library: Library, settings: &Settings) -> Result<Self, Failure> {
        let named = runs::resolve(text, TargetKind::Session, &library, settings)?;
        let families = library.open(&named, Content::Whole)?.until(Output::is_abandoned);
        let (is_of_agents, is_one) = (families.is_of_files(), families.len() == 1);
        let (mut sessions, mut roots, mut tally) = (BTreeMap::new(), Vec::new(), Tally::default());
        for family in families {
            match family {
                Ok(family) => {
                    roots.extend(family.roots);
                    sessions.extend(family.sessions);
                    tally.add(family.tally);
                }
                // One unreadable file of several is a warning.
                Err(LibraryError::File(error)) if !is_one => {
                    tracing::warn!("{}", visible(&error.to_string(), Lines::Escape));
                    tally.add(Tally { unread: 1, total: 1, ..Tally::default() });
                }
                Err(error) => return Err(error.into()),
            }
        }
        if sessions.is_empty() && !tally.is_enough {
            tally.check_known(text)?;
            return Err(Failure::nothing(format!("no events in `{text}`")));
        }
        let trees = sessions.iter().map(|(id, session)| (*id, RunTree::of(session))).collect();
        let joined = match roots[..] {
            [root] if !is_of_agents => join(root, trees),
            _ => join_all(trees),
        };
        let ids = ids(&sessions, &library, is_of_agents)?;
        let recording = if is_of_agents { BTreeSet::new() } else { recording(&sessions, &library) };
        Ok(Self { joined, sessions, ids, is_of_agents, library, tally, recording })
    }

    /// Tells whether a process is writing a run.
    pub fn is_recording(&self, run: RunId) -> bool {
        self.recording.contains(&run)
    }

    /// Fails if something could not be read; the rest was shown.
    pub fn check(&self) -> Result<(), Failure> {
        Ok(self.tally.check()?)
    }
}

/// Returns the runs of sessions that a process is writing.
fn recording(sessions: &BTreeMap<RunId, Session>, library: &Library) -> BTreeSet<RunId> {
    let Ok(store) = library.store() else { return BTreeSet::new() };
    let runs = sessions.values().flat_map(|session| session.runs.iter().map(steno_session::SessionRun::id));
    runs.filter(|run| store.is_locked(*run).unwrap_or(false)).collect()
}

/// Returns an index of the ids that are shown, and of the store that they are from.
fn ids(
    sessions: &BTreeMap<RunId, Session>,
    library: &Library,
    is_of_agents: bool,
) -> Result<IdIndex<RunId>, Failure> {
    let mut ids: BTreeSet<RunId> = sessions.keys().copied().collect();
    if !is_of_agents {
        ids.extend(library.relations()?.ids().map(|(id, _)| id));
    }
    Ok(IdIndex::new(ids.into_iter().map(|run| (run.to_string(), run))))
}
