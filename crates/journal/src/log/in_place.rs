//! Checks that the file is still the one at its path, and handles the case that it is not.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use steno_disk::{Identity, StorePath};
use steno_model::Seq;

use crate::error::Error;
use crate::log::{Health, Log};
use crate::recovery;
use crate::sync::lock;

/// What is at the path of a file that is being written.
enum PathState {
    /// The file itself, with its length.
    Ours { size_bytes: u64 },
    /// Another file, or none.
    NotOurs,
    /// Unknown, because the system lacks descriptors or memory. The next check may succeed.
    Unclear(io::Error),
    /// Unknown, because of another I/O error.
    Failed(io::Error),
}

impl Log {
    /// Checks that the file is still at its path and has exactly the length that we wrote; otherwise it fails
    /// permanently. The caller holds the lock over syncs.
    pub(super) fn check_in_place(&self) -> Result<(), Error> {
        // Under the lock no write is in progress, and no record is acknowledged that is written after everything was
        // copied away.
        let mut state = lock(&self.state);
        let wanted = state.tail.end().len;
        let error = match self.find() {
            PathState::Ours { size_bytes } if size_bytes == wanted => return Ok(()),
            PathState::Ours { size_bytes } => {
                Error::Changed { path: self.path.clone(), found: size_bytes, wanted }
            }
            PathState::NotOurs => self.keep_orphan(wanted),
            PathState::Unclear(error) => {
                tracing::warn!(path = %self.path, %error, "cannot tell whether the file is still at its path");
                return Ok(());
            }
            PathState::Failed(source) => {
                Error::Poisoned { path: self.path.clone(), what: "accessed", source: Arc::new(source) }
            }
        };
        state.fail(&error);
        Err(error)
    }

    fn find(&self) -> PathState {
        self.find_as(self.file.identity())
    }

    /// Compares the open file with the one at the path.
    fn find_as(&self, open: io::Result<Identity>) -> PathState {
        match (open, self.disk.identity(&self.path)) {
            (Ok(open), Ok(Some(named))) if open.links > 0 && open.is_same_file(&named) => {
                PathState::Ours { size_bytes: open.size_bytes }
            }
            (Ok(_), Ok(Some(_) | None)) => PathState::NotOurs,
            (Ok(_), Err(error)) if is_replaced_above(&error) => PathState::NotOurs,
            (Err(error), _) | (Ok(_), Err(error)) if is_shortage(&error) => PathState::Unclear(error),
            (Err(error), _) | (Ok(_), Err(error)) => PathState::Failed(error),
        }
    }

    /// Checks that the file was at its path some time after record `seq` was written. One check serves all records
    /// written before it.
    pub(crate) fn look_once_after(&self, seq: Seq) -> Result<(), Error> {
        if self.looked_seq.load(Ordering::Acquire) >= seq.get() { Ok(()) } else { self.look() }
    }

    /// Checks that the file is still at its path and has the length that we wrote; a `written` record must survive the
    /// death of the process.
    ///
    /// Used for records without a sync, and when nothing is recorded for a while. A commit does the same check.
    pub(crate) fn look(&self) -> Result<(), Error> {
        let (open, end, is_closed) = {
            // Under the lock no write is in progress.
            let state = lock(&self.state);
            let is_closed = match &state.health {
                Health::Good => false,
                Health::Failed(Error::Closed) => true,
                Health::Failed(error) => return Err(error.clone()),
            };
            (self.file.identity(), state.tail.end(), is_closed)
        };
        match self.find_as(open) {
            PathState::Ours { size_bytes } if size_bytes == end.len => {
                self.looked_seq.fetch_max(end.seq_last.map_or(0, Seq::get), Ordering::Release);
                return Ok(());
            }
            // Another writer may have continued it.
            PathState::Ours { size_bytes } if is_closed && size_bytes > end.len => return Ok(()),
            PathState::Unclear(_) => return Ok(()),
            PathState::Ours { .. } | PathState::NotOurs | PathState::Failed(_) => {}
        }
        let _alone = lock(&self.syncing);
        if let Health::Failed(error) = &lock(&self.state).health {
            return Err(error.clone());
        }
        self.check_in_place()
    }

    /// Checks at most once per millisecond, because a check takes as long as a write.
    pub(crate) fn look_now_and_then(&self) -> Result<(), Error> {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        if self.looked_ms.swap(now, Ordering::Relaxed) == now { Ok(()) } else { self.look() }
    }

    /// Copies the content of a file that lost its name to a new file.
    fn keep_orphan(&self, len: u64) -> Error {
        let kept = match self.copy_orphan(len) {
            Ok(kept) => Some(kept),
            Err(error) => {
                tracing::error!(path = %self.path, %error, "the recorded events could not be saved");
                None
            }
        };
        Error::Vanished { path: self.path.clone(), kept }
    }

    fn copy_orphan(&self, len: u64) -> io::Result<StorePath> {
        for to in self.path.orphans(self.epoch) {
            if self.disk.identity(&to)?.is_none() {
                recovery::copy_aside(&*self.disk, &*self.reader, &to, len)?;
                return Ok(to);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}

/// Recognizes errors that say nothing about the file.
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::INTR];
    Errno::from_io_error(error).is_some_and(|error| shortages.contains(&error))
}

/// Recognizes errors that mean that a directory of ours was replaced.
fn is_replaced_above(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP)
}
