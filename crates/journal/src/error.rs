//! Errors of the journal: one variant per kind of failure.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use steno_disk::{NotRegular, StorePath};
use steno_model::RunId;

/// Why a call to the journal failed.
///
/// Cloned for every record that waits on the same sync, hence the shared causes.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    /// Another process or thread writes to this run or spine.
    #[error("`{path}` is locked by another writer")]
    Locked {
        /// The lock file.
        path: StorePath,
    },
    /// The line is longer than the limit.
    #[error("the record has {bytes} bytes, too many for one line")]
    TooLong {
        /// How long it would be.
        bytes: u64,
    },
    /// There was no space left. Nothing of the record is in the file, its seq is not used up, and the writer can
    /// continue.
    #[error("cannot write `{path}`; no part of the record was written")]
    NoRoom {
        /// The file.
        path: StorePath,
        /// The error of the disk.
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
        /// The error of the disk.
        #[source]
        source: Arc<io::Error>,
    },
    /// The file was deleted, renamed or replaced while it was being written.
    #[error("`{path}` was deleted or replaced while it was being written; {}", kept_words(kept.as_ref()))]
    Vanished {
        /// Where it was.
        path: StorePath,
        /// The copy of everything recorded so far.
        kept: Option<StorePath>,
    },
    /// Another program wrote to the file, or cut it, while it was being recorded.
    #[error("`{path}` was changed by another program while it was being written: {}", changed_words(*found, *wanted))]
    Changed {
        /// The file.
        path: StorePath,
        /// How long it is.
        found: u64,
        /// How long it should be.
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
    /// A seal does not match the file.
    #[error("`{path}` does not match its seal over {bytes} bytes: {why}{}", differs_words(.differs.as_ref()))]
    SealBroken {
        /// The file.
        path: StorePath,
        /// The range that contains the first changed byte, if known: after the last seal that matches.
        differs: Option<Range<u64>>,
        /// How many bytes the seal covers.
        bytes: u64,
        /// What differs.
        why: &'static str,
    },
    /// The path of one of our files has something else.
    #[error("`{path}` is {found}, not a regular file")]
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
    /// The directory contains other files and is not a store.
    #[error("the directory is not a store: it contains `{found}` and no `format.json`")]
    NotAStore {
        /// A name that stores do not have.
        found: String,
    },
    /// The store was written by a newer version.
    #[error("the store has format version {found}; this program supports versions up to {known}")]
    StoreTooNew {
        /// The store's version.
        found: u64,
        /// The newest version that this program supports.
        known: u64,
    },
    /// `format.json` is not valid.
    #[error("`format.json` is not a store's format file: {why}")]
    BadFormatFile {
        /// What is wrong with it.
        why: String,
    },
    /// Lines that a follower has already passed on are missing from the file.
    #[error("`{path}` became shorter than what was already read from it")]
    Shrunk {
        /// The file.
        path: StorePath,
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
        source: Arc<io::Error>,
    },
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// It cannot be read as a record.
    #[error("{0}")]
    Unreadable(#[from] steno_model::Error),
    /// It is a record with a number other than the next.
    #[error("seq {found} instead of {wanted}")]
    OutOfOrder {
        /// The number that should be there.
        wanted: u64,
        /// The number that is there.
        found: u64,
    },
    /// It is a record of another run or thread.
    #[error("it belongs to `{found}`")]
    Foreign {
        /// The run or thread that it names.
        found: String,
    },
    /// It is longer than the limit.
    #[error("a line longer than {} bytes", steno_model::limits::LINE_BYTES_MAX)]
    TooLong,
}

impl Error {
    /// Returns the error for a failed call of the system on a file.
    #[must_use]
    pub fn io(doing: &'static str, path: &StorePath, source: io::Error) -> Self {
        match NotRegular::inside(&source) {
            Some(NotRegular { found }) => Self::NotRegular { path: path.clone(), found },
            None => Self::Io { doing, path: path.clone(), source: Arc::new(source) },
        }
    }
}

fn changed_words(found: u64, wanted: u64) -> String {
    if found == wanted {
        return "its content differs from what was written".to_owned();
    }
    format!("it has {found} bytes and should have {wanted}")
}

fn kept_words(kept: Option<&StorePath>) -> String {
    kept.map_or_else(
        || "its content could not be saved".to_owned(),
        |path| format!("its content was saved in `{path}`"),
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
