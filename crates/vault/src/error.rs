//! What can go wrong with evidence: one variant per thing that happened.

use std::io;

use steno_disk::{NotRegular, StorePath};

use crate::ids::{ChunkHash, SourceId};

/// Why the vault did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process or thread writes to this source.
    #[error("source {source_id} is held by another writer")]
    Held {
        /// The source.
        source_id: SourceId,
    },
    /// The source was forgotten, and is not to be recorded again.
    #[error("source {source_id} was forgotten")]
    Forgotten {
        /// The source.
        source_id: SourceId,
    },
    /// A writer has failed before: what it holds is not safe, and it takes nothing more until it is opened again.
    #[error("the writer of source {source_id} has failed and has to be opened again")]
    Poisoned {
        /// The source.
        source_id: SourceId,
    },
    /// The file was deleted or replaced under its writer.
    #[error("`{path}` was deleted or replaced while it was being written")]
    Vanished {
        /// The file.
        path: StorePath,
    },
    /// Somebody else is at it, and did not come to an end in time.
    #[error("somebody else holds `{path}`")]
    Busy {
        /// The lock.
        path: StorePath,
    },
    /// The vault has no such source.
    #[error("no source {source_id} in the vault")]
    NoSuchSource {
        /// The source.
        source_id: SourceId,
    },
    /// There was no room. Nothing was changed, and the same may succeed later.
    #[error("no room in `{path}`")]
    NoRoom {
        /// The file.
        path: StorePath,
        /// What the disk said.
        #[source]
        source: io::Error,
    },
    /// A sync failed: what was written since the last one may be lost, and has to be written again elsewhere.
    #[error("`{path}` could not be synced")]
    NotSynced {
        /// The file.
        path: StorePath,
        /// What the disk said.
        #[source]
        source: io::Error,
    },
    /// No pack has a chunk that a manifest names.
    #[error("chunk {hash} is in no pack")]
    MissingChunk {
        /// The chunk.
        hash: ChunkHash,
    },
    /// A chunk is not what it was.
    #[error("chunk {hash} in `{path}` at byte {offset} is damaged: {why}")]
    DamagedChunk {
        /// The chunk.
        hash: ChunkHash,
        /// The pack.
        path: StorePath,
        /// Where its frame begins.
        offset: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// A file cannot be read as what it should be.
    #[error("`{path}` is damaged at byte {offset}: {why}")]
    Damaged {
        /// The file.
        path: StorePath,
        /// Where.
        offset: u64,
        /// What is wrong there.
        why: &'static str,
    },
    /// A file was written by a newer version.
    #[error("`{path}` has format version {found}; this program knows up to {known}")]
    TooNew {
        /// The file.
        path: StorePath,
        /// Its version.
        found: u64,
        /// The newest that we know.
        known: u64,
    },
    /// The bytes that were asked for are not there.
    #[error("generation {generation} of source {source_id} has no bytes at {offset}")]
    NoSuchBytes {
        /// The source.
        source_id: SourceId,
        /// Which generation of it.
        generation: u32,
        /// From where on they were asked for.
        offset: u64,
    },
    /// There is something else where a file of ours should be.
    #[error("`{path}` is {found}, not a regular file of ours")]
    NotRegular {
        /// Its path.
        path: StorePath,
        /// What it is.
        found: &'static str,
    },
    /// The operating system refused.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// On what.
        path: StorePath,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Tells whether evidence is not what it was, or not there, which trying again does not change.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::MissingChunk { .. } | Self::DamagedChunk { .. } | Self::Damaged { .. })
    }

    /// Returns a function that names what was being done to a path.
    pub(crate) fn io(doing: &'static str, path: &StorePath) -> impl FnOnce(io::Error) -> Self {
        let path = path.clone();
        move |source| match NotRegular::inside(&source) {
            Some(NotRegular { found }) => Self::NotRegular { path, found },
            None if is_no_room(&source) => Self::NoRoom { path, source },
            None => Self::Io { doing, path, source },
        }
    }

    /// Tells whether nothing was changed, so that whoever asked may go on.
    pub(crate) fn changed_nothing(&self) -> bool {
        matches!(self, Self::NoRoom { .. } | Self::NoSuchBytes { .. })
    }

    pub(crate) fn not_synced(path: &StorePath) -> impl FnOnce(io::Error) -> Self {
        let path = path.clone();
        move |source| Self::NotSynced { path, source }
    }
}

fn is_no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}
