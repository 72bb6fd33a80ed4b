//! Watches of the operating system, one directory at a time.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::notices::NoticeQueue;
use crate::tail::stamp::{FileId, Stamp};

/// The watched directories.
pub(super) struct SystemWatcher {
    watcher: RecommendedWatcher,
    watches_max: usize,
    by_path: HashMap<PathBuf, FileId>,
    by_file: HashMap<FileId, PathBuf>,
}

impl SystemWatcher {
    /// Creates a watcher. Each takes one of a few that a user has (128 on Linux).
    ///
    /// # Errors
    /// The error of the system, as text.
    pub(super) fn start(queue: &Arc<NoticeQueue>, watches_max: usize) -> Result<Self, String> {
        let queue = Arc::clone(queue);
        let watcher =
            notify::recommended_watcher(move |event| queue.push(event)).map_err(|error| error.to_string())?;
        Ok(Self { watcher, watches_max, by_path: HashMap::new(), by_file: HashMap::new() })
    }

    /// Watches a directory, identified by path and inode.
    ///
    /// # Errors
    /// Why it cannot be watched, as text.
    pub(super) fn watch(&mut self, dir: &Path, file: FileId) -> Result<(), String> {
        if self.by_path.len() >= self.watches_max {
            return Err(format!("{} directories are watched, which is the limit", self.watches_max));
        }
        if dir.is_relative() {
            return Err(format!("`{}` is relative, and watches need absolute paths", dir.display()));
        }
        // The system identifies a directory by its inode and reports one name only: changes under another name would
        // never be noticed. But a name that no longer belongs to the directory must be removed first, or ending that
        // watch later would end this one.
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
            // The watch has already ended if the directory was deleted.
            self.watcher.unwatch(dir).ok();
        }
    }
}
