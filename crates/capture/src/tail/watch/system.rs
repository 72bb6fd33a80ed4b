//! The system's own watching, one directory at a time, and what it could not do.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::bell::Bell;
use crate::tail::stamp::{FileId, Stamp};

/// Directories under the system's watch.
pub(super) struct System {
    watcher: RecommendedWatcher,
    watches_max: usize,
    by_path: HashMap<PathBuf, FileId>,
    by_file: HashMap<FileId, PathBuf>,
}

impl System {
    /// Asks the system for a way to hear of changes. Each takes one of a few that a user has (128 on Linux).
    ///
    /// # Errors
    /// What the system says, in words.
    pub(super) fn start(bell: &Arc<Bell>, watches_max: usize) -> Result<Self, String> {
        let bell = Arc::clone(bell);
        let watcher =
            notify::recommended_watcher(move |told| bell.hear(told)).map_err(|error| error.to_string())?;
        Ok(Self { watcher, watches_max, by_path: HashMap::new(), by_file: HashMap::new() })
    }

    /// Watches a directory, known by its number too.
    ///
    /// # Errors
    /// Why not, in words.
    pub(super) fn watch(&mut self, dir: &Path, file: FileId) -> Result<(), String> {
        if self.by_path.len() >= self.watches_max {
            return Err(format!("{} directories are watched, which is as many as allowed", self.watches_max));
        }
        if dir.is_relative() {
            return Err(format!("`{}` is relative, and the system tells absolute paths", dir.display()));
        }
        // The system knows a directory by its number and tells one name only: the other would never be heard of. But
        // a name that stands for it no longer must go first, or ending that watch later would end this one.
        if let Some(other) = self.by_file.get(&file).cloned() {
            if Stamp::of_dir(&other).is_some_and(|stamp| stamp.file == file) {
                return Err(format!("`{}` is watched as `{}`", dir.display(), other.display()));
            }
            self.unwatch(&other);
        }
        self.watcher.watch(dir, RecursiveMode::NonRecursive).map_err(|error| error.to_string())?;
        self.by_path.insert(dir.to_owned(), file);
        self.by_file.insert(file, dir.to_owned());
        Ok(())
    }

    /// Ends the watch on a directory, if there is one.
    pub(super) fn unwatch(&mut self, dir: &Path) {
        if let Some(file) = self.by_path.remove(dir) {
            self.by_file.remove(&file);
            // It has ended by itself when the directory was deleted.
            self.watcher.unwatch(dir).ok();
        }
    }
}
