//! Says which files of many are worth a look.
//!
//! The caller adds directories, and lists each **after** adding it: what was there before is in the list, and what
//! comes later is told. The system tells if it can (inotify has a limited number of watches, and of notices that can
//! wait); where it cannot, and for what it may have missed, there is looking at sizes and times.

mod bell;
mod dirs;
mod system;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::options::{Backend, TailOptions};
use bell::{Bell, Happened, Heard};
use dirs::{Dirs, Hearing};
use system::System;

/// How often anything is looked at, at most, whatever the settings say: there is no busy waiting.
const INTERVAL_MIN: Duration = Duration::from_millis(5);

/// What may have changed since the last time. Nothing in it twice, and in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files to look at: new, changed, moved or gone.
    pub paths: Vec<PathBuf>,
    /// Directories to add if they are wanted, also those below them, and then to list: files in them may be new, gone
    /// or changed.
    pub dirs: Vec<PathBuf>,
    /// Notices were lost: everything has to be listed and looked at again.
    pub overflow: bool,
    /// A [`Waker`] ended the waiting.
    pub woken: bool,
}

/// How the watching is done, and how well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// What is in use.
    pub backend: Backend,
    /// How many directories the system watches.
    pub dirs_watched: usize,
    /// How many are looked at instead.
    pub dirs_polled: usize,
    /// How many are not there at the moment.
    pub dirs_missing: usize,
    /// How often notices were lost.
    pub overflows: u64,
    /// Why directories are polled, if any are and nobody asked for it: what was said of the last one.
    pub why_polled: Option<String>,
}

/// Ends the waiting of a [`Watch`] from another thread.
#[derive(Clone)]
pub struct Waker {
    bell: Arc<Bell>,
}

impl Waker {
    /// Ends the waiting that is going on, or else the next.
    pub fn wake(&self) {
        self.bell.wake();
    }
}

/// Hears of changes in directories, the files of which somebody follows. Paths are absolute.
pub struct Watch {
    options: TailOptions,
    bell: Arc<Bell>,
    dirs: Dirs,
    overflows: u64,
    files_due: Instant,
    dirs_due: Instant,
}

/// Changes while they are being gathered.
#[derive(Default)]
struct Found {
    paths: BTreeSet<PathBuf>,
    dirs: BTreeSet<PathBuf>,
    overflow: bool,
    woken: bool,
}

impl Watch {
    /// Starts. If the system cannot tell of changes, polling takes its place; [`Watch::health`] says so.
    #[must_use]
    pub fn new(options: TailOptions) -> Self {
        let bell = Arc::new(Bell::default());
        let system = match options.backend {
            Backend::System => System::start(&bell, options.watches_max).map_err(Some),
            Backend::Polling => Err(None),
        };
        let now = Instant::now();
        Self { options, bell, dirs: Dirs::new(system), overflows: 0, files_due: now, dirs_due: now }
    }

    /// Watches a directory, not those below it. One that is not there yet is told of when it comes; one that is
    /// deleted and made again, or replaced, is watched again. Says whether it is new: what was made in it before is not
    /// told of, so list it afterwards.
    pub fn add_dir(&mut self, dir: &Path) -> bool {
        self.dirs.add(dir)
    }

    /// No longer watches a directory, nor the files in it.
    pub fn remove_dir(&mut self, dir: &Path) {
        self.dirs.remove(dir);
    }

    /// Says that a file is followed, so that it is told of also where its directory has to be polled. Its directory is
    /// added too. What happens to it from now on is told: add it, then look at it.
    pub fn add_file(&mut self, file: &Path) {
        self.dirs.add_file(file);
    }

    /// Says that a file is no longer followed. Where the system tells of its directory it still tells of this file.
    pub fn remove_file(&mut self, file: &Path) {
        self.dirs.remove_file(file);
    }

    /// Returns a handle that ends the waiting.
    #[must_use]
    pub fn waker(&self) -> Waker {
        Waker { bell: Arc::clone(&self.bell) }
    }

    /// Says how the watching is done.
    #[must_use]
    pub fn health(&self) -> Health {
        Health {
            backend: if self.dirs.has_system() { Backend::System } else { Backend::Polling },
            dirs_watched: self.dirs.count(Hearing::Watched),
            dirs_polled: self.dirs.count(Hearing::Polled),
            dirs_missing: self.dirs.count(Hearing::Missing),
            overflows: self.overflows,
            why_polled: self.dirs.why_polled().map(str::to_owned),
        }
    }

    /// Waits for changes, at most so long. With none, all is empty.
    pub fn wait(&mut self, at_most: Duration) -> Changes {
        let deadline = Instant::now().checked_add(at_most);
        loop {
            let mut found = Found::default();
            self.look_around(&mut found);
            self.sort(self.bell.take(), &mut found);
            if !found.is_empty() || deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return found.into_changes();
            }
            self.bell.wait([deadline, self.next_look()].into_iter().flatten().min());
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

    fn look_around(&mut self, found: &mut Found) {
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

    fn sort(&mut self, heard: Heard, found: &mut Found) {
        found.woken = heard.woken;
        if heard.overflow {
            self.overflows += 1;
            found.overflow = true;
            // That a directory was deleted may be among what was lost.
            self.dirs.attend_all();
        }
        for (path, happened) in heard.paths {
            let is_known = self.dirs.contains(&path);
            match happened {
                Happened::Moved => self.dirs.attend_below(&path, found),
                // It may have come back.
                Happened::Changed if is_known => {
                    self.dirs.add(&path);
                }
                Happened::Changed => {}
            }
            let is_dir = || fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_dir());
            let list = if is_known || is_dir() { &mut found.dirs } else { &mut found.paths };
            list.insert(path);
        }
    }
}

impl Found {
    fn is_empty(&self) -> bool {
        let Self { paths, dirs, overflow, woken } = self;
        paths.is_empty() && dirs.is_empty() && !overflow && !woken
    }

    fn into_changes(self) -> Changes {
        let Self { paths, dirs, overflow, woken } = self;
        Changes { paths: paths.into_iter().collect(), dirs: dirs.into_iter().collect(), overflow, woken }
    }
}
