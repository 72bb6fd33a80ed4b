//! Whether the file is still the one at its path, and what to do when it is not.

use std::io;
use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::log::{Health, Level, Log};
use crate::names::StorePath;
use crate::recovery;
use crate::sync::lock;

impl Log {
    /// Makes sure that the file is still at its path and holds what we wrote, no more and no less.
    pub(super) fn check_in_place(&self) -> Result<(), Error> {
        let (open, wanted) = {
            // Under the lock, because nobody is in the middle of a write then.
            let state = lock(&self.state);
            (self.file.identity(), state.tail.end().len)
        };
        match (open, self.disk.identity(&self.path)) {
            (Ok(open), Ok(Some(named))) if open.links > 0 && open.is_same_file(&named) => {
                let found = open.size_bytes;
                if found == wanted {
                    return Ok(());
                }
                Err(Error::Changed { path: self.path.clone(), found, wanted })
            }
            _ => Err(self.keep_orphan()),
        }
    }

    /// Looks whether the file still has a name; a `written` record must survive the death of the process.
    ///
    /// Only for records that no sync follows: a commit looks by itself.
    pub(crate) fn check_not_deleted(&self, level: Level) -> Result<(), Error> {
        if level == Level::Synced
            || !self.is_time_to_look()
            || self.file.identity().is_ok_and(|open| open.links > 0)
        {
            return Ok(());
        }
        let _alone = lock(&self.syncing);
        let mut state = lock(&self.state);
        if let Health::Failed(error) = &state.health {
            return Err(error.clone());
        }
        drop(state);
        let error = self.keep_orphan();
        state = lock(&self.state);
        state.health = Health::Failed(error.clone());
        Err(error)
    }

    /// Tells once in a while that it is time, and always after a pause: looking costs a third of a write.
    fn is_time_to_look(&self) -> bool {
        let now = u64::try_from(self.opened.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.looked_ms.swap(now, Ordering::Relaxed) != now
    }

    /// Copies what was recorded into a file whose name is gone to a file with a name.
    fn keep_orphan(&self) -> Error {
        let kept = match self.copy_orphan() {
            Ok(kept) => Some(kept),
            Err(error) => {
                tracing::error!(path = %self.path, %error, "what was recorded could not be kept");
                None
            }
        };
        Error::Vanished { path: self.path.clone(), kept }
    }

    fn copy_orphan(&self) -> io::Result<StorePath> {
        for to in self.path.orphans(self.epoch) {
            if self.disk.identity(&to)?.is_none() {
                recovery::copy_aside(&*self.disk, &*self.reader, &to, self.len())?;
                return Ok(to);
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
