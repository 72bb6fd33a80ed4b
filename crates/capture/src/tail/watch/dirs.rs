//! The watched and polled directories, the files followed in them, and regular checks of both.
//!
//! A watched directory is checked every time for a few seconds and then once a minute: the watch alone misses what was
//! created before it was set, and is silent when it is lost. Checking 10,000 directories every second takes 3 % of a
//! core, and this takes a sixtieth of that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::PendingChanges;
use super::system::SystemWatcher;
use crate::tail::stamp::Stamp;

/// How long a new watch is not trusted.
const TRUSTED_AFTER: Duration = Duration::from_secs(5);

/// In how many rounds each directory with a trusted watch is checked once.
const ROUNDS: usize = 60;

/// How changes in a directory are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchMode {
    /// The system watches it.
    Watched,
    /// It is polled.
    Polled,
    /// It does not exist.
    Missing,
}

struct WatchedDir {
    mode: WatchMode,
    /// Its metadata when it was last reported or added.
    stamp: Option<Stamp>,
    since: Instant,
    /// The round in which it is checked.
    round: usize,
    /// The files followed in it, with their metadata when they were last reported or added.
    files: BTreeMap<PathBuf, Option<Stamp>>,
}

/// The result of checking a directory.
enum DirChange {
    AsBefore,
    Changed,
    /// It appeared, disappeared or was replaced.
    Another,
}

/// All directories.
pub(super) struct WatchedDirs {
    system: Option<SystemWatcher>,
    known: BTreeMap<PathBuf, WatchedDir>,
    round: usize,
    /// How many directories were ever added.
    added: usize,
    /// Whether there may be files to poll.
    polls_files: bool,
    /// Why directories are polled: the error of the last one.
    why_polled: Option<String>,
}

impl WatchedDirs {
    pub(super) fn new(system: Result<SystemWatcher, Option<String>>) -> Self {
        let (system, why_polled) = match system {
            Ok(system) => (Some(system), None),
            Err(why) => (None, why),
        };
        Self { system, known: BTreeMap::new(), round: 0, added: 0, polls_files: false, why_polled }
    }

    pub(super) fn has_system(&self) -> bool {
        self.system.is_some()
    }

    pub(super) fn why_polled(&self) -> Option<&str> {
        self.why_polled.as_deref()
    }

    pub(super) fn count(&self, mode: WatchMode) -> usize {
        self.known.values().filter(|dir| dir.mode == mode).count()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn polls_files(&self) -> bool {
        self.polls_files
    }

    pub(super) fn contains(&self, path: &Path) -> bool {
        self.known.contains_key(path)
    }

    /// Adds a directory; returns whether it is new.
    pub(super) fn add(&mut self, path: &Path) -> bool {
        if let Some(dir) = self.known.get(path) {
            if dir.mode == WatchMode::Missing {
                self.attend(path);
            }
            return false;
        }
        self.added += 1;
        let (round, files) = (self.added % ROUNDS, BTreeMap::new());
        let dir = WatchedDir { mode: WatchMode::Missing, stamp: None, since: Instant::now(), round, files };
        self.known.insert(path.to_owned(), dir);
        self.attend(path);
        true
    }

    pub(super) fn remove(&mut self, path: &Path) {
        if self.known.remove(path).is_some()
            && let Some(system) = &mut self.system
        {
            system.unwatch(path);
        }
    }

    pub(super) fn add_file(&mut self, file: &Path) {
        let Some(parent) = file.parent() else { return };
        self.add(parent);
        if let Some(dir) = self.known.get_mut(parent) {
            dir.files.entry(file.to_owned()).or_insert_with(|| Stamp::at(file).ok().flatten());
            self.polls_files |= dir.mode != WatchMode::Watched;
        }
    }

    pub(super) fn remove_file(&mut self, file: &Path) {
        if let Some(dir) = file.parent().and_then(|parent| self.known.get_mut(parent)) {
            dir.files.remove(file);
        }
    }

    /// Watches all directories at and below a replaced path again, and reports them.
    pub(super) fn attend_below(&mut self, path: &Path, found: &mut PendingChanges) {
        let at_and_below = self.known.range(path.to_owned()..).map(|(dir, _)| dir);
        let lost: Vec<PathBuf> = at_and_below.take_while(|dir| dir.starts_with(path)).cloned().collect();
        for dir in lost {
            self.attend(&dir);
            found.dirs.insert(dir);
        }
    }

    /// Watches all directories again.
    pub(super) fn attend_all(&mut self) {
        let all: Vec<PathBuf> = self.known.keys().cloned().collect();
        for dir in all {
            self.attend(&dir);
        }
    }

    /// Checks every file whose directory is not watched.
    pub(super) fn look_at_files(&mut self, found: &mut PendingChanges) {
        self.polls_files = false;
        for dir in self.known.values_mut().filter(|dir| dir.mode != WatchMode::Watched) {
            self.polls_files |= !dir.files.is_empty();
            for (file, known) in &mut dir.files {
                let now = Stamp::at(file).ok().flatten();
                if is_news(known.as_ref(), now.as_ref()) {
                    *known = now;
                    found.paths.insert(file.clone());
                }
            }
        }
    }

    /// Checks the directories of this round.
    pub(super) fn look_at_dirs(&mut self, found: &mut PendingChanges) {
        self.round = (self.round + 1) % ROUNDS;
        let now = Instant::now();
        let mut others = Vec::new();
        for (path, dir) in &mut self.known {
            if !dir.is_due(self.round, now) {
                continue;
            }
            match dir.look(path) {
                DirChange::AsBefore => {}
                DirChange::Changed => drop(found.dirs.insert(path.clone())),
                DirChange::Another => others.push(path.clone()),
            }
        }
        for path in others {
            self.attend(&path);
            found.dirs.insert(path);
        }
    }

    /// Watches a directory as it is now. The caller has to list it afterwards.
    fn attend(&mut self, path: &Path) {
        let Some(dir) = self.known.get_mut(path) else { return };
        if let Some(system) = &mut self.system {
            // A moved directory still causes notices under its old name.
            system.unwatch(path);
        }
        let before = Stamp::of_dir(path);
        dir.mode = match (before, &mut self.system) {
            (None, _) => WatchMode::Missing,
            (Some(_), None) => WatchMode::Polled,
            (Some(stamp), Some(system)) => match system.watch(path, stamp.file) {
                Ok(()) => WatchMode::Watched,
                Err(why) => {
                    self.why_polled = Some(why);
                    WatchMode::Polled
                }
            },
        };
        // Stamped after the watch is set: the caller sees earlier changes when it lists the directory, and later ones
        // cause a notice or show in the stamp.
        dir.stamp = Stamp::of_dir(path);
        if dir.stamp.map(|stamp| stamp.file) != before.map(|stamp| stamp.file) {
            // It was created, removed or replaced just now, and it is unknown which one is watched: the next check
            // starts over.
            (dir.mode, dir.stamp) = (WatchMode::Missing, None);
        }
        dir.since = Instant::now();
        self.polls_files |= dir.mode != WatchMode::Watched;
    }
}

impl WatchedDir {
    fn is_due(&self, round: usize, now: Instant) -> bool {
        let is_trusted =
            self.mode == WatchMode::Watched && now.saturating_duration_since(self.since) > TRUSTED_AFTER;
        !is_trusted || self.round == round
    }

    fn look(&mut self, path: &Path) -> DirChange {
        let now = Stamp::of_dir(path);
        let id = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.file);
        if id(now) != id(self.stamp) {
            return DirChange::Another;
        }
        let is_changed = match self.mode {
            // The system reports later changes, also within the same clock tick.
            WatchMode::Watched => self.stamp.zip(now).is_some_and(|(known, now)| !known.agrees_with(&now)),
            WatchMode::Polled | WatchMode::Missing => is_news(self.stamp.as_ref(), now.as_ref()),
        };
        self.stamp = now;
        if is_changed { DirChange::Changed } else { DirChange::AsBefore }
    }
}

/// Tells whether something changed between two checks, or may have changed without showing.
fn is_news(known: Option<&Stamp>, now: Option<&Stamp>) -> bool {
    match (known, now) {
        (Some(known), Some(now)) => !known.settled || !known.agrees_with(now),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    }
}
