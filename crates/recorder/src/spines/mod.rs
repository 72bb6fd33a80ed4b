//! Writes trace spines from the files and messages of Codex. A spine is continued where it ended.
//!
//! Each record names the bytes of its source. After a crash the source is read again from its beginning, and records
//! that a spine already has are dropped: each record is written once.

mod error;
mod known;
mod rollout;
mod rollout_dirs;
mod stored;
mod trace;

use std::collections::HashMap;
use std::sync::Arc;

use steno_adapters::codex::spine::SpineMade;
use steno_journal::{ArtifactFile, Journal, KeptArtifact, Level, Rotation, SpineWriter};
use steno_model::{Evidence, Packing, Position, SpineDraft, SpineSource, ThreadId, Word};
use steno_vault::Vault;

use crate::forget;
pub use error::Error;
pub use rollout::{Bases, SessionFile, record_rollout};
pub(crate) use rollout::{SessionFileFold, each_line, read_line};
pub use rollout_dirs::RolloutDirs;
pub use stored::{record_file, record_thread};
pub use trace::record_trace;

/// The name of a source in `evidence`: its kind and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceName {
    kind: SpineSource,
    text: String,
    /// Whether it continues threads that other sources of its kind began.
    is_further: bool,
}

impl SourceName {
    /// Names a source of a kind.
    #[must_use]
    pub fn new(kind: SpineSource, id: &str) -> Self {
        // Each connection continues the previous one.
        let is_further = kind == SpineSource::AppServer;
        Self { kind, text: format!("{}:{id}", kind.name()), is_further }
    }

    /// Names a session file of a thread. If turns are taken back, the thread continues in another file, which has its
    /// own name after that of the thread.
    fn of_rollout(name: &str, thread: &ThreadId) -> Self {
        let is_further = name.contains(&format!("-{thread}_"));
        Self { is_further, ..Self::new(SpineSource::Rollout, name) }
    }

    /// Splits a name in `evidence` into kind and id.
    pub(crate) fn parse(text: &str) -> Option<(&str, &str)> {
        text.split_once(':')
    }

    /// Returns true if it may continue a spine that another source began.
    fn goes_on_from(&self, other: &str) -> bool {
        let kind_of_other = other.split(':').next().unwrap_or_default();
        self.text == other || self.is_further && kind_of_other == self.kind.name()
    }
}

/// The rule for threads that were forgotten and have no spine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForgottenRule {
    /// They are not recorded.
    #[default]
    Stays,
    /// They are recorded if only the spine was forgotten: the session file is in the vault.
    Archived,
    /// They are recorded as new: the user asked for it, or the thread continues.
    Again,
}

/// Counts of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpineWriteReport {
    /// Records that were written.
    pub records: u64,
    /// Records that the spine already had.
    pub known: u64,
    /// Records that are too long or nest too deep for a line. Their source has them.
    pub refused: u64,
}

impl std::ops::Add for SpineWriteReport {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            known: self.known + other.known,
            refused: self.refused + other.refused,
        }
    }
}

/// Writes the spines of one source.
pub struct SpineRecorder {
    journal: Journal,
    vault: Arc<Vault>,
    source: SourceName,
    /// The compression of the source.
    unpacked: Option<Packing>,
    forgotten: ForgottenRule,
    level: Level,
    spines: HashMap<ThreadId, Spine>,
    written: SpineWriteReport,
}

struct Spine {
    writer: SpineWriter,
    /// Its last position in this source.
    last: Option<Position>,
}

impl SpineRecorder {
    /// Begins a source. Threads that were forgotten are not recorded.
    #[must_use]
    pub fn new(journal: Journal, source: SourceName, level: Level) -> Self {
        let vault = Vault::open(Arc::clone(journal.store().disk()));
        let (spines, written) = (HashMap::new(), SpineWriteReport::default());
        Self {
            journal,
            vault,
            source,
            unpacked: None,
            forgotten: ForgottenRule::Stays,
            level,
            spines,
            written,
        }
    }

    /// Sets the rule for threads that were forgotten.
    #[must_use]
    pub fn with_forgotten(self, forgotten: ForgottenRule) -> Self {
        Self { forgotten, ..self }
    }

    /// Sets the compression that the source had.
    #[must_use]
    fn with_packing(self, unpacked: Option<Packing>) -> Self {
        Self { unpacked, ..self }
    }

    /// Writes a record, unless the thread's spine has it.
    ///
    /// # Errors
    ///
    /// [`Error::OtherSource`] if the spine was made from another source, [`Error::Forgotten`], or an error of the
    /// journal.
    pub fn write(&mut self, thread: &ThreadId, made: SpineMade) -> Result<(), Error> {
        let failed = |source| Error::Journal { thread: thread.clone(), source };
        if !self.spines.contains_key(thread) {
            let opened = self.open(thread)?;
            self.spines.insert(thread.clone(), opened);
        }
        let Some(spine) = self.spines.get_mut(thread) else { return Ok(()) };
        if spine.last.is_some_and(|last| made.position <= last) {
            self.written.known += 1;
            return Ok(());
        }
        let evidence = Evidence {
            source: self.source.text.as_str().into(),
            position: made.position,
            length: made.length,
            unpacked: self.unpacked.map(Word::Known),
        };
        let draft = SpineDraft::new(made.record_type, made.timestamp, made.payload)
            .and_then(|draft| draft.with_field("evidence", evidence.to_json()));
        match draft.map(|draft| spine.writer.append(&draft, self.level)) {
            Ok(Ok(_pending)) => self.written.records += 1,
            Err(_) | Ok(Err(steno_journal::Error::TooLong { .. })) => self.written.refused += 1,
            Ok(Err(error)) => return Err(failed(error)),
        }
        spine.last = Some(made.position);
        Ok(())
    }

    /// Opens the spine of a thread, and finds the last position of the source in it.
    fn open(&self, thread: &ThreadId) -> Result<Spine, Error> {
        let failed = |source| Error::Journal { thread: thread.clone(), source };
        let forgetting = |source| Error::Forgetting { thread: thread.clone(), source };
        let (store, now) = (self.journal.store(), jiff::Timestamp::now());
        // A crash may have left a forgotten spine. It is deleted, not continued.
        forget::finish_one(store, &self.vault, thread, now).map_err(forgetting)?;
        let writer = self.journal.spine_to_make_again(thread, Rotation::default()).map_err(failed)?;
        // The check needs the lock of the spine: a process that forgets it holds that lock too.
        if writer.seq_last().is_none() && self.is_forgotten(thread).map_err(forgetting)? {
            drop(writer);
            let mut lock = store.lock_spine(thread, now).map_err(failed)?;
            lock.remove().map_err(failed)?;
            return Err(Error::Forgotten { thread: thread.clone() });
        }
        let last = known::last_position(store, thread, &self.source)?;
        Ok(Spine { writer, last })
    }

    fn is_forgotten(&self, thread: &ThreadId) -> Result<bool, forget::ForgetError> {
        match self.forgotten {
            ForgottenRule::Stays => forget::is_forgotten(&self.vault, thread),
            ForgottenRule::Archived => forget::is_session_forgotten(&self.vault, thread),
            ForgottenRule::Again => Ok(false),
        }
    }

    /// Writes an artifact of a thread's spine, which has been written to before. Returns its path and its hash.
    ///
    /// # Errors
    ///
    /// An error of the journal.
    pub fn keep(
        &mut self,
        thread: &ThreadId,
        what: ArtifactFile,
        bytes: &[u8],
    ) -> Result<KeptArtifact, Error> {
        let failed = |source| Error::Journal { thread: thread.clone(), source };
        let spine = self.spines.get(thread).ok_or_else(|| failed(steno_journal::Error::Closed))?;
        spine.writer.keep_artifact(what, bytes).map_err(failed)
    }

    /// Returns the threads that were written, and the counts.
    #[must_use]
    pub fn written(&self) -> (Vec<ThreadId>, SpineWriteReport) {
        let mut threads: Vec<ThreadId> = self.spines.keys().cloned().collect();
        threads.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        (threads, self.written)
    }

    /// Closes the spines. Everything written is then synced and sealed.
    ///
    /// # Errors
    ///
    /// The first error of the journal. The other spines are closed too.
    pub fn close(self) -> Result<(Vec<ThreadId>, SpineWriteReport), Error> {
        let written = self.written();
        let mut first = Ok(());
        for (thread, spine) in self.spines {
            let closed = spine.writer.close().map_err(|source| Error::Journal { thread, source });
            first = first.and(closed);
        }
        first.map(|()| written)
    }
}
