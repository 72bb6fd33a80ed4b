//! Reads sessions of the store, each merged from its runs.

use steno_journal::{Error as JournalError, Reader, Store};
use steno_model::{RunId, with_causes};
use steno_session::{Content, RunEvents, Session, SessionBuilder, SessionRun, merge};
use steno_views::digest::SessionDigest;
use steno_views::{Lines, visible};

use crate::{Error, Library, Relations};

impl Library {
    /// Returns the runs of a session, that of its own file first. For an unknown id, returns the id itself.
    ///
    /// # Errors
    /// An error of the system.
    pub fn runs_of(&self, session: RunId) -> Result<Vec<RunId>, Error> {
        let runs = self.relations()?.runs_of(session);
        Ok(if runs.is_empty() { vec![session] } else { runs })
    }

    /// Tells whether the store has a run of a session.
    ///
    /// # Errors
    /// An error of the system.
    pub fn is_known(&self, session: RunId) -> Result<bool, Error> {
        Ok(!self.relations()?.runs_of(session).is_empty())
    }

    /// Reads a session, merged from its runs.
    ///
    /// # Errors
    /// If there is no such session, or one of its runs cannot be read.
    pub fn session(&self, id: RunId, content: Content) -> Result<Session, Error> {
        let store = self.store()?;
        let (runs, relations) = (self.runs_of(id)?, self.relations()?);
        let mut session = if let [run] = runs[..] {
            Session { id, ..read_one(store, run, content)? }
        } else {
            fold(id, read_all(store, runs, relations)?, content)
        };
        session.rename_children(|run| relations.owner(run));
        Ok(session)
    }

    /// Returns the title of a session, as lists show it: the agent's own, else the first line of the first prompt. The
    /// session is read if the index is not ready.
    #[must_use]
    pub fn title(&self, session: RunId) -> Option<String> {
        if let Ok(Some(index)) = self.ready_index()
            && let Ok(title) = index.title(session)
        {
            return title;
        }
        SessionDigest::of(&self.session(session, Content::Whole).ok()?).title
    }

    /// Returns the sessions that a session names as its children, and those that name one of its runs as their parent.
    ///
    /// # Errors
    /// An error of the system.
    pub fn children_of(&self, session: &Session) -> Result<Vec<RunId>, Error> {
        let relations = self.relations()?;
        let named = session.links.iter().map(|(run, _)| *run);
        let runs = session.runs.iter().map(SessionRun::id).chain([session.id]);
        let claimed = runs.filter_map(|run| relations.children().get(&run)).flatten();
        Ok(named.chain(claimed.map(|run| relations.owner(*run))).collect())
    }
}

/// Folds the events of a session's runs into one.
pub(crate) fn fold(id: RunId, runs: Vec<RunEvents>, content: Content) -> Session {
    let [run] = &runs[..] else { return merge(id, runs, content) };
    let mut builder = SessionBuilder::new(run.id, content);
    run.events.iter().for_each(|event| builder.push(event));
    Session { id, ..builder.finish() }
}

/// Folds the events of a run as they are read.
fn read_one(store: &Store, run: RunId, content: Content) -> Result<Session, Error> {
    let mut reader = Reader::open(store, run)?.until_now()?;
    let mut builder = SessionBuilder::new(run, content);
    while reader.read_with(|_, event| builder.push(&event))?.is_some() {}
    Ok(builder.finish())
}

/// Reads the runs of a session. A damaged one is logged and skipped.
pub(crate) fn read_all(
    store: &Store,
    runs: Vec<RunId>,
    relations: &Relations,
) -> Result<Vec<RunEvents>, Error> {
    let (mut read, mut first_error) = (Vec::new(), None);
    for run in runs {
        match read_events(store, run, relations) {
            Ok(events) => read.push(events),
            Err(Error::Journal(error @ JournalError::Damaged { .. })) => {
                let why = with_causes(&error);
                tracing::warn!("run {run} is left out: {}", visible(&why, Lines::Escape));
                first_error.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match first_error.filter(|_| read.is_empty()) {
        Some(error) => Err(error.into()),
        None => Ok(read),
    }
}

fn read_events(store: &Store, run: RunId, relations: &Relations) -> Result<RunEvents, Error> {
    let mut reader = Reader::open(store, run)?.until_now()?;
    let mut events = Vec::new();
    while reader.read_with(|_, event| events.push(event))?.is_some() {}
    relations.name_session(run, &mut events);
    Ok(RunEvents { id: run, events })
}
