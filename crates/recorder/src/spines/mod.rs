//! Trace spines, written from what Codex leaves or says: each thread's is gone on with where it was left.
//!
//! Each record says which bytes of its source it was made from. After a crash the source is fed again from its beginning, and
//! what a spine has already is dropped: each record is written once.

mod beside;
mod error;
mod known;
mod rollout;
mod trace;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use steno_journal::{ArtifactFile, Journal, KeptArtifact, Level, Rotation, SpineWriter};
use steno_model::{Evidence, Position, SpineDraft, ThreadId};
use steno_views::spine::{SpineMade, SpineSource};

pub use beside::Beside;
pub use error::Error;
pub use rollout::{Bases, record_rollout};
pub(crate) use rollout::{each_line, fold_rollout};
pub use trace::record_trace;

/// What a source is called in `evidence`, whose it is and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceName {
    kind: SpineSource,
    text: String,
    /// Whether a thread goes on in it that others of its kind have begun.
    is_further: bool,
}

impl SourceName {
    /// Names a source of a kind.
    #[must_use]
    pub fn new(kind: SpineSource, id: &str) -> Self {
        // Connections come one after the other.
        let is_further = kind == SpineSource::AppServer;
        Self { kind, text: format!("{}:{id}", kind.name()), is_further }
    }

    /// Names a session file of a thread. Where turns are taken back, the thread goes on in another file, which has a name
    /// of its own behind the thread's.
    fn of_rollout(name: &str, thread: &ThreadId) -> Self {
        let is_further = name.contains(&format!("-{thread}_"));
        Self { is_further, ..Self::new(SpineSource::Rollout, name) }
    }

    /// Tells whether it may go on with a spine that another source has begun.
    fn goes_on_from(&self, other: &str) -> bool {
        let kind_of_other = other.split(':').next().unwrap_or_default();
        self.text == other || self.is_further && kind_of_other == self.kind.name()
    }
}

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Records that were written.
    pub records: u64,
    /// Records that were there already.
    pub known: u64,
    /// Records that are too long or nest too deep for a line. Their source has them.
    pub refused: u64,
}

/// Writes the spines of one source.
pub struct SpineRecorder {
    journal: Journal,
    source: SourceName,
    level: Level,
    spines: HashMap<ThreadId, Spine>,
    written: Written,
}

struct Spine {
    writer: SpineWriter,
    /// The last that it has of this source.
    last: Option<Position>,
}

impl SpineRecorder {
    /// Begins with a source.
    #[must_use]
    pub fn new(journal: Journal, source: SourceName, level: Level) -> Self {
        Self { journal, source, level, spines: HashMap::new(), written: Written::default() }
    }

    /// Writes a record, unless the thread's spine has it.
    ///
    /// # Errors
    /// [`Error::OtherSource`] when the spine was made from something else, or what the journal says.
    pub fn write(&mut self, thread: &ThreadId, made: SpineMade) -> Result<(), Error> {
        let failed = |source| Error::Journal { thread: thread.clone(), source };
        let spine = match self.spines.entry(thread.clone()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let writer = self.journal.spine_to_make_again(thread, Rotation::default()).map_err(failed)?;
                let last = known::last_position(self.journal.store(), thread, &self.source)?;
                entry.insert(Spine { writer, last })
            }
        };
        if spine.last.is_some_and(|last| made.position <= last) {
            self.written.known += 1;
            return Ok(());
        }
        let evidence = Evidence {
            source: self.source.text.as_str().into(),
            position: made.position,
            length: made.length,
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

    /// Keeps a file beside a thread's spine, which has been written to before, and returns where and its hash.
    ///
    /// # Errors
    /// What the journal says.
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

    /// Returns the threads that have been written to, and how much.
    #[must_use]
    pub fn written(&self) -> (Vec<ThreadId>, Written) {
        let mut threads: Vec<ThreadId> = self.spines.keys().cloned().collect();
        threads.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        (threads, self.written)
    }

    /// Closes the spines; all that was written is safe then, and sealed.
    ///
    /// # Errors
    /// What the journal says of the first that fails; the others are closed too.
    pub fn close(self) -> Result<(Vec<ThreadId>, Written), Error> {
        let written = self.written();
        let mut first = Ok(());
        for (thread, spine) in self.spines {
            let closed = spine.writer.close().map_err(|source| Error::Journal { thread, source });
            first = first.and(closed);
        }
        first.map(|()| written)
    }
}
