//! Tells which of many files may have changed.
//!
//! The caller adds directories and lists each **after** adding it: older files are in the list, and later changes are
//! reported. The system reports changes if it can (inotify has a limited number of watches and of queued notices);
//! otherwise, and for what it may have missed, sizes and times are polled.

mod dirs;
mod notices;
mod system;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::options::{Backend, TailOptions};
use dirs::{WatchMode, WatchedDirs};
use notices::{NameChange, NoticeQueue, Notices};
use system::SystemWatcher;

/// The minimum interval of polling, for all settings, so that there is no busy waiting.
const INTERVAL_MIN: Duration = Duration::from_millis(5);

/// What may have changed since the last call, sorted and without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files to read: new, changed, moved or deleted.
    pub paths: Vec<PathBuf>,
    /// Directories to add if they are wanted, with those below them, and then to list: files in them may be new,
    /// deleted or changed.
    pub dirs: Vec<PathBuf>,
    /// Notices were lost: everything has to be listed and read again.
    pub overflow: bool,
    /// A [`Waker`] ended the waiting.
    pub woken: bool,
}

/// The state of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// The backend in use.
    pub backend: Backend,
    /// How many directories the system watches.
    pub dirs_watched: usize,
    /// How many are polled instead.
    pub dirs_polled: usize,
    /// How many do not exist at the moment.
    pub dirs_missing: usize,
    /// How often notices were lost.
    pub overflows: u64,
    /// Why directories are polled, unless polling was requested: the error of the last one.
    pub why_polled: Option<String>,
}

/// Ends the waiting of a [`Watch`] from another thread.
#[derive(Clone)]
pub struct Waker {
    queue: Arc<NoticeQueue>,
}

impl Waker {
    /// Ends the current wait, or else the next one.
    pub fn wake(&self) {
        self.queue.wake();
    }
}

/// Watches directories and the files that are followed in them. Paths are absolute.
pub struct Watch {
    options: TailOptions,
    queue: Arc<NoticeQueue>,
    dirs: WatchedDirs,
    overflows: u64,
    files_due: Instant,
    dirs_due: Instant,
}

/// Changes while they are collected.
#[derive(Default)]
struct PendingChanges {
    paths: BTreeSet<PathBuf>,
    dirs: BTreeSet<PathBuf>,
    overflow: bool,
    woken: bool,
}

impl Watch {
    /// Starts a watch. If the system cannot report changes, polling is used; [`Watch::health`] tells.
    #[must_use]
    pub fn new(options: TailOptions) -> Self {
        let queue = Arc::new(NoticeQueue::default());
        let system = match options.backend {
            Backend::System => SystemWatcher::start(&queue, options.watches_max).map_err(Some),
            Backend::Polling => Err(None),
        };
        let now = Instant::now();
        Self { options, queue, dirs: WatchedDirs::new(system), overflows: 0, files_due: now, dirs_due: now }
    }

    /// Watches a directory, not those below it. A missing one is reported when it appears; one that is deleted and
    /// created again, or replaced, is watched again. Returns whether it is new: earlier files in it are not reported,
    /// so list it afterwards.
    pub fn add_dir(&mut self, dir: &Path) -> bool {
        self.dirs.add(dir)
    }

    /// Stops watching a directory and the files in it.
    pub fn remove_dir(&mut self, dir: &Path) {
        self.dirs.remove(dir);
    }

    /// Adds a followed file, so that it is reported also where its directory is polled. Its directory is added too.
    /// Later changes are reported: add it first, then read it.
    pub fn add_file(&mut self, file: &Path) {
        self.dirs.add_file(file);
    }

    /// Removes a followed file. In a watched directory it is still reported.
    pub fn remove_file(&mut self, file: &Path) {
        self.dirs.remove_file(file);
    }

    /// Returns a handle that ends the waiting.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker { queue: Arc::clone(&self.queue) }
    }

    /// Returns the state of the watch.
    #[must_use]
    pub fn health(&self) -> Health {
        Health {
            backend: if self.dirs.has_system() { Backend::System } else { Backend::Polling },
            dirs_watched: self.dirs.count(WatchMode::Watched),
            dirs_polled: self.dirs.count(WatchMode::Polled),
            dirs_missing: self.dirs.count(WatchMode::Missing),
            overflows: self.overflows,
            why_polled: self.dirs.why_polled().map(str::to_owned),
        }
    }

    /// Waits for changes until the time is over. Without changes, everything is empty.
    pub fn wait(&mut self, at_most: Duration) -> Changes {
        let deadline = Instant::now().checked_add(at_most);
        loop {
            let mut found = PendingChanges::default();
            self.look_around(&mut found);
            self.sort(self.queue.take(), &mut found);
            if !found.is_empty() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return found.into_changes();
            }
            self.queue.wait([deadline, self.next_look()].into_iter().flatten().min());
        }
    }

    fn next_look(&self) -> Option<Instant> {
        if self.dirs.is_empty() {
            None
        } else if self.dirs.polls_files() {
            Some(self.files_due.min(self.dirs_due))
        } else {
            Some(self.dirs_due)
        }
    }

    fn look_around(&mut self, found: &mut PendingChanges) {
        let now = Instant::now();
        if self.dirs.polls_files() && self.files_due <= now {
            self.dirs.look_at_files(found);
            self.files_due = Instant::now() + self.options.poll_interval.max(INTERVAL_MIN);
        }
        if self.dirs_due <= now {
            self.dirs.look_at_dirs(found);
            self.dirs_due = Instant::now() + self.options.subagent_discovery_interval.max(INTERVAL_MIN);
        }
    }

    fn sort(&mut self, notices: Notices, found: &mut PendingChanges) {
        found.woken = notices.woken;
        if notices.overflow {
            self.overflows += 1;
            found.overflow = true;
            // The notice of a deleted directory may be among the lost ones.
            self.dirs.attend_all();
        }
        for (path, happened) in notices.paths {
            let is_known = self.dirs.contains(&path);
            match happened {
                NameChange::Moved => self.dirs.attend_below(&path, found),
                // It may have been created again.
                NameChange::Changed if is_known => {
                    self.dirs.add(&path);
                }
                NameChange::Changed => {}
            }
            let is_dir = || fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
            let list = if is_known || is_dir() { &mut found.dirs } else { &mut found.paths };
            list.insert(path);
        }
    }
}

impl PendingChanges {
    fn is_empty(&self) -> bool {
        let Self { paths, dirs, overflow, woken } = self;
        paths.is_empty() && dirs.is_empty() && !overflow && !woken
    }

    fn into_changes(self) -> Changes {
        let Self { paths, dirs, overflow, woken } = self;
        Changes { paths: paths.into_iter().collect(), dirs: dirs.into_iter().collect(), overflow, woken }
    }
}
