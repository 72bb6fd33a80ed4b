//! A session that is being recorded: all its runs, read as they grow.

use std::time::Duration;

use steno_journal::{Error as JournalError, Reader, Store, TranscriptWatch};
use steno_model::{EventType, RunId, Seq};
use steno_session::{Content, RunEvents, Session, SessionBuilder, merge_borrowed};

use crate::{Error, Library, RunHead};

/// How many events of a run are read at once.
const EVENTS_PER_READ_MAX: usize = 50_000;

/// What of a session is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveScope {
    /// All its runs, and those that join it.
    Session,
    /// One run.
    Run,
}

/// A session that grows: its runs, with all events that were read.
pub struct LiveSession {
    store: Store,
    /// A run of it, or its id.
    name: RunId,
    scope: LiveScope,
    id: RunId,
    library: Library,
    /// The runs of the store that the library knows.
    known: Vec<RunId>,
    readers: Vec<LiveRun>,
    /// Their events, in the same order.
    runs: Vec<RunEvents>,
    watch: TranscriptWatch,
    /// Whether a run has more than was read at once.
    is_behind: bool,
    /// Whether the store has new runs, which may be subagents.
    has_new_runs: bool,
}

/// A run that is read as it grows.
struct LiveRun {
    reader: Reader,
    /// Whether the last event completes the run.
    is_completed: bool,
}

impl LiveSession {
    /// Opens the session of a run, or one by its id; with [`LiveScope::Run`] only that run. Nothing is read yet.
    ///
    /// # Errors
    /// [`JournalError::NoSuchRun`], or an error of the system.
    pub fn open(store: &Store, name: RunId, scope: LiveScope) -> Result<Self, Error> {
        // The watch starts before the first read, so that no change is missed.
        let watch = TranscriptWatch::start(store);
        let mut live = Self {
            store: store.clone(),
            name,
            scope,
            id: name,
            library: Library::new(Some(store.clone())),
            known: Vec::new(),
            readers: Vec::new(),
            runs: Vec::new(),
            watch,
            is_behind: false,
            has_new_runs: false,
        };
        if scope == LiveScope::Run {
            live.add(name)?;
            return Ok(live);
        }
        live.find_runs()?;
        if live.runs.is_empty() {
            return Err(JournalError::NoSuchRun { run: name }.into());
        }
        Ok(live)
    }

    /// Returns the runs that it has so far.
    pub fn runs(&self) -> impl Iterator<Item = RunId> + '_ {
        self.runs.iter().map(|run| run.id)
    }

    /// Returns the number of the last event of a run that was read.
    #[must_use]
    pub fn seq_last(&self, run: RunId) -> Option<Seq> {
        let place = self.runs.iter().position(|known| known.id == run)?;
        self.readers[place].reader.seq_last()
    }

    /// Finds runs that have joined the session, and returns them. If the store has new runs, the beginning of every run is
    /// read.
    ///
    /// # Errors
    /// An error of the system.
    pub fn find_runs(&mut self) -> Result<Vec<RunId>, Error> {
        let mut runs = self.store.runs()?;
        runs.sort_unstable();
        if runs == self.known && !self.has_unsettled_runs()? {
            return Ok(Vec::new());
        }
        self.known = runs;
        self.has_new_runs = true;
        self.library = Library::new(Some(self.store.clone()));
        self.library.heads()?;
        if self.scope == LiveScope::Run {
            return Ok(Vec::new());
        }
        let relations = self.library.relations()?;
        self.id = relations.owner(self.name);
        let found = relations.runs_of(self.id);
        let new: Vec<RunId> =
            found.into_iter().filter(|run| !self.runs().any(|known| known == *run)).collect();
        for run in &new {
            self.add(*run)?;
        }
        Ok(new)
    }

    /// Tells whether a run that is being recorded may still name its session: it has no event yet, or its requests to a model
    /// do not name one, and the ids in them will.
    fn has_unsettled_runs(&self) -> Result<bool, Error> {
        let may_join = |head: &&RunHead| {
            head.started.is_none() || (head.lacks_session() && head.session_by_ids.is_none())
        };
        for head in self.library.heads()?.iter().filter(may_join) {
            if self.store.is_locked(head.run)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn add(&mut self, run: RunId) -> Result<(), Error> {
        self.readers.push(LiveRun { reader: Reader::open(&self.store, run)?, is_completed: false });
        self.runs.push(RunEvents { id: run, events: Vec::new() });
        Ok(())
    }

    /// Reads what its runs have more than before; returns whether there is anything, or the store has new runs.
    ///
    /// # Errors
    /// When a file was deleted, replaced or shortened, or is damaged.
    pub fn read(&mut self) -> Result<bool, Error> {
        let mut is_any = std::mem::take(&mut self.has_new_runs);
        self.is_behind = false;
        for (live, run) in self.readers.iter_mut().zip(&mut self.runs) {
            live.reader.check(&self.store)?;
            let first = run.events.len();
            while run.events.len() - first < EVENTS_PER_READ_MAX
                && let Some(event) = live.reader.read_with(|_, event| event)?
            {
                run.events.push(event);
            }
            let new = &mut run.events[first..];
            self.is_behind |= new.len() == EVENTS_PER_READ_MAX;
            if let Some(last) = new.last() {
                is_any = true;
                live.is_completed = last.event_type.known() == Some(EventType::RunCompleted);
                if self.scope == LiveScope::Session {
                    self.library.relations()?.name_session(run.id, new);
                }
            }
        }
        Ok(is_any)
    }

    /// Tells whether there is more to read now.
    #[must_use]
    pub fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// Returns the session as it is now, merged from its runs.
    ///
    /// # Errors
    /// An error of the system.
    pub fn session(&self) -> Result<Session, Error> {
        let session = match &self.runs[..] {
            [run] => Session { id: self.id, ..fold(run, None) },
            runs => merge_borrowed(self.id, runs, Content::Whole),
        };
        self.with_names(session)
    }

    /// Returns what a run has before an event.
    ///
    /// # Errors
    /// An error of the system.
    pub fn session_before(&self, run: RunId, seq: Seq) -> Result<Session, Error> {
        let run = self.runs.iter().find(|known| known.id == run).ok_or(JournalError::NoSuchRun { run })?;
        self.with_names(fold(run, Some(seq)))
    }

    fn with_names(&self, mut session: Session) -> Result<Session, Error> {
        let relations = self.library.relations()?;
        session.rename_children(|run| relations.owner(run));
        Ok(session)
    }

    /// Reads a subagent so far; `None` if the store has nothing of it, or it cannot be read.
    #[must_use]
    pub fn child(&self, child: RunId) -> Option<Session> {
        let is_known = self.library.is_known(child).ok()?;
        is_known.then(|| self.library.session(child, Content::Whole).ok()).flatten()
    }

    /// Tells whether every run is complete, and no process has one open. A run that is not complete may be continued.
    ///
    /// # Errors
    /// An error of the system.
    pub fn has_ended(&self) -> Result<bool, Error> {
        if self.readers.iter().any(|live| !live.is_completed) {
            return Ok(false);
        }
        for run in self.runs() {
            if self.store.is_locked(run)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until a run may have grown, or the time is over.
    pub fn wait(&self, at_most: Duration) {
        // Everything is read again in both cases.
        let _ = self.watch.wait(at_most);
    }

    /// Returns a run whose file was deleted, replaced or shortened.
    #[must_use]
    pub fn gone_run(&self) -> Option<RunId> {
        let gone = self.readers.iter().position(|live| live.reader.check(&self.store).is_err())?;
        Some(self.runs[gone].id)
    }
}

/// Folds the events of one run, or those before an event.
fn fold(run: &RunEvents, before: Option<Seq>) -> Session {
    let mut builder = SessionBuilder::new(run.id, Content::Whole);
    let is_wanted = |seq: Seq| before.is_none_or(|before| seq < before);
    run.events.iter().filter(|event| is_wanted(event.seq)).for_each(|event| builder.push(event));
    builder.finish()
}
