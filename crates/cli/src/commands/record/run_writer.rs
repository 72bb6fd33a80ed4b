//! The writer of a run, opened when there is something to write.
//!
//! A run that is there already is opened at once. A new one is made with its first good line: lines that are all refused
//! leave no run behind.

use std::sync::{Arc, Mutex, PoisonError};

use steno_journal::{Error as JournalError, Journal, Recorder, RecordingGuard, RunFile, inspect};
use steno_model::RunId;

/// The writer of one run, shared by the thread that reads lines and the one that handles signals.
pub struct RunWriter {
    journal: Journal,
    run: RunId,
    state: Mutex<WriterState>,
}

enum WriterState {
    /// The run does not exist yet.
    NotOpened,
    Open(Arc<Recorder>),
    Closed,
}

impl RunWriter {
    /// Prepares to write, and opens the run if it is there.
    ///
    /// Fails now if it cannot be opened, before any event is sent.
    pub fn new(journal: Journal, run: RunId) -> Result<Self, JournalError> {
        let store = journal.store();
        let state = if store.has(run)? {
            WriterState::Open(Arc::new(journal.record(run)?))
        } else {
            inspect(&**store.disk(), run)?;
            if store.is_locked(run)? {
                return Err(JournalError::Locked { path: RunFile::Lock(run).path() });
            }
            WriterState::NotOpened
        };
        Ok(Self { journal, run, state: Mutex::new(state) })
    }

    /// Begins to record a line; fails while recording is paused.
    pub fn enter(&self) -> Result<RecordingGuard, JournalError> {
        self.journal.store().begin_recording(jiff::Timestamp::now())
    }

    pub fn run(&self) -> RunId {
        self.run
    }

    /// Returns the recorder, and opens it if needed.
    pub fn recorder(&self) -> Result<Arc<Recorder>, JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            WriterState::Open(recorder) => Ok(Arc::clone(recorder)),
            WriterState::Closed => Err(JournalError::Closed),
            WriterState::NotOpened => {
                let recorder = Arc::new(self.journal.record(self.run)?);
                *state = WriterState::Open(Arc::clone(&recorder));
                Ok(recorder)
            }
        }
    }

    /// Syncs and seals what was recorded; nothing can be recorded afterwards.
    pub fn close(&self) -> Result<(), JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &*state {
            // Closing twice does nothing; the second caller waits for the first.
            WriterState::Open(recorder) => recorder.close(),
            WriterState::NotOpened | WriterState::Closed => {
                *state = WriterState::Closed;
                Ok(())
            }
        }
    }
}
