//! What can go wrong between a draft and the disk: one variant per thing that happened.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use steno_disk::{NotRegular, StorePath};
use steno_model::RunId;

/// Why the journal did not do what it was asked.
///
/// Cloned to everyone who waits on the same sync, hence the shared causes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Another process or thread writes to this run or spine.
    #[error("`{path}` is held by another writer")]
    Held {
        /// The lock file.
        path: StorePath,
    },
    /// The line is longer than a line may be.
    #[error("record of {bytes} bytes is longer than a line may be")]
    TooLong {
        /// How long it would be.
        bytes: u64,
    },
    /// There was no room; nothing of the record is in the file, its seq is not used up, and the writer can go on.
    #[error("no room in `{path}`; the record was not written")]
    NoRoom {
        /// The file.
        path: StorePath,
        /// What the disk said.
        #[source]
        source: Arc<io::Error>,
    },
    /// A write or sync failed, and the writer refuses everything until the run is opened again.
    #[error("`{path}` could not be {what}; the writer has stopped")]
    Poisoned {
        /// The file.
        path: StorePath,
        /// What was tried: `written`, `synced`, `read back` or `looked at`.
        what: &'static str,
        /// What the disk said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The file was deleted, renamed or replaced while it was being written.
    #[error("`{path}` was deleted or replaced under its writer; {}", kept_words(kept.as_ref()))]
    Vanished {
        /// Where it was.
        path: StorePath,
        /// Where everything recorded so far has been kept.
        kept: Option<StorePath>,
    },
    /// Somebody else has written to the file, or cut it, while it was being recorded.
    #[error("`{path}` was changed by somebody else under its writer: {}", changed_words(*found, *wanted))]
    Changed {
        /// The file.
        path: StorePath,
        /// How long it is.
        found: u64,
        /// How long it would be if it were only ours.
        wanted: u64,
    },
    /// The writer has been closed.
    #[error("the writer is closed")]
    Closed,
    /// Recording into the store is paused.
    #[error("recording is paused")]
    Paused,
    /// Bad bytes with good lines after them, or lines out of order. Nothing was changed.
    #[error("`{path}` is damaged at byte {offset}: {why}")]
    Damaged {
        /// The file.
        path: StorePath,
        /// Where the first bad line begins.
        offset: u64,
        /// What is wrong there.
        why: Damage,
    },
    /// A seal does not vouch for what the file holds.
    #[error("`{path}` does not match its seal over {bytes} bytes: {why}{}", differs_words(.differs.as_ref()))]
    SealBroken {
        /// The file.
        path: StorePath,
        /// Among which bytes the first one is that differs, if that is known: behind the last seal that holds.
        differs: Option<Range<u64>>,
        /// How many bytes the seal covers.
        bytes: u64,
        /// What differs.
        why: &'static str,
    },
    /// There is something else where a file of ours should be.
    #[error("`{path}` is {found}, not a regular file of ours")]
    NotRegular {
        /// Its path.
        path: StorePath,
        /// What it is.
        found: &'static str,
    },
    /// The store has no such run.
    #[error("no run {run} in the store")]
    NoSuchRun {
        /// The run.
        run: RunId,
    },
    /// The directory holds other things and is no store.
    #[error("the directory is not a store: it has `{found}` in it and no `format.json`")]
    NotAStore {
        /// Something that no store has.
        found: String,
    },
    /// The store was written by a newer version.
    #[error("the store has format version {found}; this program knows up to {known}")]
    StoreTooNew {
        /// The store's version.
        found: u64,
        /// The newest that we know.
        known: u64,
    },
    /// `format.json` cannot be read as one.
    #[error("`format.json` is not a store's format file: {why}")]
    BadFormatFile {
        /// What is wrong with it.
        why: String,
    },
    /// Lines that a follower has already passed on are gone from the file.
    #[error("`{path}` has become shorter than what was already read from it")]
    Shrunk {
        /// The file.
        path: StorePath,
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
        source: Arc<io::Error>,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It cannot be read as a record.
    #[error("{0}")]
    Unreadable(#[from] steno_model::Error),
    /// It is a record with another number than the one that comes next.
    #[error("seq {found} where {wanted} should be")]
    OutOfOrder {
        /// The number that should be there.
        wanted: u64,
        /// The number that is there.
        found: u64,
    },
    /// It is a record of something else.
    #[error("a record of `{found}`")]
    Stranger {
        /// The run or thread that it names.
        found: String,
    },
    /// It is longer than a line may be.
    #[error("a line longer than {} bytes", steno_model::limits::LINE_BYTES_MAX)]
    TooLong,
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &StorePath, source: io::Error) -> Self {
        match NotRegular::inside(&source) {
            Some(NotRegular { found }) => Self::NotRegular { path: path.clone(), found },
            None => Self::Io { doing, path: path.clone(), source: Arc::new(source) },
        }
    }
}

fn changed_words(found: u64, wanted: u64) -> String {
    if found == wanted {
        return "it does not hold what was written".to_owned();
    }
    format!("it has {found} bytes and should have {wanted}")
}

fn kept_words(kept: Option<&StorePath>) -> String {
    kept.map_or_else(
        || "what it held could not be kept".to_owned(),
        |path| format!("what it held is kept in `{path}`"),
    )
}

fn differs_words(differs: Option<&Range<u64>>) -> String {
    match differs {
        None => String::new(),
        Some(range) if range.end == range.start + 1 => format!("; it differs from byte {} on", range.start),
        Some(range) => {
            format!(
                "; the first byte that differs is one of {} to {}",
                range.start,
                range.end.saturating_sub(1)
            )
        }
    }
}
