//! Errors of the vault: one variant per kind of failure.

use std::io;

use steno_disk::{NotRegular, StorePath};

use crate::ids::{ChunkHash, SourceId};

/// Why a call to the vault failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another process or thread writes to this source.
    #[error("source {source_id} is locked by another writer")]
    Locked {
        /// The source.
        source_id: SourceId,
    },
    /// The source was forgotten and must not be recorded again.
    #[error("source {source_id} was forgotten")]
    Forgotten {
        /// The source.
        source_id: SourceId,
    },
    /// The writer failed before. Its unsynced bytes are not safe, and it refuses everything until the source is opened
    /// again.
    #[error("the writer of source {source_id} failed earlier; open the source again")]
    Poisoned {
        /// The source.
        source_id: SourceId,
    },
    /// The file was deleted or replaced while its writer had it open.
    #[error("`{path}` was deleted or replaced while it was being written")]
    Vanished {
        /// The file.
        path: StorePath,
    },
    /// Another process holds the lock and did not release it in time.
    #[error("`{path}` is locked by another process")]
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
    /// There was no space left. Nothing was changed, and a retry may succeed.
    #[error("cannot write `{path}`")]
    NoRoom {
        /// The file.
        path: StorePath,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// A sync failed. Everything written since the last sync may be lost and has to be written again to another file.
    #[error("`{path}` could not be synced")]
    NotSynced {
        /// The file.
        path: StorePath,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// A manifest names a chunk that no pack has.
    #[error("chunk {hash} is not in any pack")]
    MissingChunk {
        /// The chunk.
        hash: ChunkHash,
    },
    /// A chunk is damaged.
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
    /// A file is damaged.
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
    #[error("`{path}` has format version {found}; this program supports versions up to {known}")]
    TooNew {
        /// The file.
        path: StorePath,
        /// Its version.
        found: u64,
        /// The newest version that this program supports.
        known: u64,
    },
    /// The requested bytes do not exist.
    #[error("generation {generation} of source {source_id} has no bytes at {offset}")]
    NoSuchBytes {
        /// The source.
        source_id: SourceId,
        /// Which generation of it.
        generation: u32,
        /// The offset of the first byte that was requested.
        offset: u64,
    },
    /// The path of one of our files has something else.
    #[error("`{path}` is {found}, not a regular file")]
    NotRegular {
        /// Its path.
        path: StorePath,
        /// What it is.
        found: &'static str,
    },
    /// The operating system reported an error.
    #[error("cannot {doing} `{path}`")]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// The path it was tried on.
        path: StorePath,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Tells whether evidence is damaged or missing. A retry does not help then.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::MissingChunk { .. } | Self::DamagedChunk { .. } | Self::Damaged { .. })
    }

    /// Returns a function that adds the action and the path to an I/O error.
    pub(crate) fn io(doing: &'static str, path: &StorePath) -> impl FnOnce(io::Error) -> Self {
        let path = path.clone();
        move |source| match NotRegular::inside(&source) {
            Some(NotRegular { found }) => Self::NotRegular { path, found },
            None if is_no_room(&source) => Self::NoRoom { path, source },
            None => Self::Io { doing, path, source },
        }
    }

    /// Tells whether nothing was changed, so that the caller can continue.
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
