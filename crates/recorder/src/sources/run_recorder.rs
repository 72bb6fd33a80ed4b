//! Writes one run: event by event while its source is followed, many events at a time otherwise.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Mutex, PoisonError};

use steno_disk::SyncSet;
use steno_journal::{BulkRecorder, Error as JournalError, Journal, Level, Recorder};
use steno_model::json::{JsonString, RawJson};
use steno_model::{Draft, EventType, RunId, Seq};
use steno_vault::SourceId;
use uuid::Uuid;

/// The writer of a run.
pub(crate) enum RunRecorder {
    /// Each event is written at once.
    Live(Recorder),
    /// Events are written many at a time.
    Bulk(Box<BulkRecorder>),
}

impl RunRecorder {
    /// Opens a run. Events that need no sync of their own are written many at a time.
    pub(crate) fn open(journal: &Journal, run: RunId, level: Level) -> Result<Self, JournalError> {
        match level {
            Level::Synced => journal.record(run).map(Self::Live),
            Level::Written => journal.record_bulk(run).map(|bulk| Self::Bulk(Box::new(bulk))),
        }
    }

    pub(crate) fn seq_last(&self) -> Option<Seq> {
        match self {
            Self::Live(recorder) => recorder.seq_last(),
            Self::Bulk(bulk) => bulk.seq_last(),
        }
    }

    pub(crate) fn append(&mut self, draft: Draft) -> Result<(), JournalError> {
        match self {
            Self::Live(recorder) => recorder.append(draft, Level::Synced).map(|_| ()),
            Self::Bulk(bulk) => bulk.append(draft).map(|_| ()),
        }
    }

    pub(crate) fn note_dropped(&mut self, count: u64, cause: &str) -> Result<(), JournalError> {
        match self {
            Self::Live(recorder) => recorder.note_dropped(count, cause),
            Self::Bulk(bulk) => bulk.note_dropped(count, cause),
        }
    }

    /// Writes all events, and adds the files that have to be synced.
    pub(crate) fn write_out(&mut self, set: &mut SyncSet) -> Result<(), JournalError> {
        match self {
            Self::Live(_) => Ok(()),
            Self::Bulk(bulk) => bulk.write_out(set),
        }
    }

    /// Seals what was written and synced, and adds the files that have to be synced.
    pub(crate) fn seal(&mut self, set: &mut SyncSet) -> Result<(), JournalError> {
        match self {
            Self::Live(recorder) => recorder.seal().map(|_| ()),
            Self::Bulk(bulk) => bulk.seal(set),
        }
    }

    /// Refuses everything after a sync that failed.
    pub(crate) fn sync_failed(&mut self, error: io::Error) {
        if let Self::Bulk(bulk) = self {
            bulk.sync_failed(error);
        }
    }

    /// Syncs, seals and closes the run.
    pub(crate) fn close(self) -> Result<(), JournalError> {
        match self {
            Self::Live(recorder) => recorder.close(),
            Self::Bulk(bulk) => bulk.close(),
        }
    }
}

/// Which source writes which run, among sources that are recorded at the same time. What one of them has not written
/// yet is not in the store.
#[derive(Default)]
pub(crate) struct RunClaims(Mutex<HashMap<RunId, SourceId>>);

impl RunClaims {
    /// Claims a run for a source; false if another source has it.
    pub(crate) fn claim(&self, run: RunId, source: SourceId) -> bool {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(run) {
            Entry::Occupied(claim) => *claim.get() == source,
            Entry::Vacant(place) => {
                place.insert(source);
                true
            }
        }
    }
}

/// Returns the run id for a second source with the same session.
pub(crate) fn other_run(source: SourceId, run: RunId) -> RunId {
    RunId::from_uuid(Uuid::new_v5(&run.uuid(), source.to_string().as_bytes()))
}

/// Adds the session's run id to the start of a run that has another id.
pub(crate) fn named_after(draft: Draft, session: Option<RunId>) -> Draft {
    let Some(session) = session.filter(|_| draft.event_type() == EventType::RunStarted) else { return draft };
    let name = JsonString::from(session.to_string().as_str());
    match RawJson::parse(name.as_raw()) {
        Ok(name) => draft.clone().with_field("session_run_id", name).unwrap_or(draft),
        Err(_) => draft,
    }
}
