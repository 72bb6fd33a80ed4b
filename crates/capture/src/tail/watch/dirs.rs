//! The directories that are watched or polled, the files followed in them, and looking after them now and then.
//!
//! A directory under the system's watch is looked at every time for a few seconds and then once a minute: the watch
//! alone misses what was made before it was set, and says nothing when it is lost. Looking at 10,000 directories every
//! second takes 3 % of a core, and this a sixtieth of that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::Found;
use super::system::System;
use crate::tail::stamp::Stamp;

/// How long a new watch is doubted.
const TRUSTED_AFTER: Duration = Duration::from_secs(5);

/// In how many rounds each directory under a trusted watch has its turn once.
const ROUNDS: usize = 60;

/// How we hear of what happens in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hearing {
    /// The system tells.
    Watched,
    /// It does not; we look.
    Polled,
    /// The directory is not there.
    Missing,
}

struct Dir {
    hearing: Hearing,
    /// What it was like when it was last reported, or added.
    stamp: Option<Stamp>,
    since: Instant,
    /// In which of the rounds it has its turn.
    round: usize,
    /// The files followed in it, as they were when they were last reported, or added.
    files: BTreeMap<PathBuf, Option<Stamp>>,
}

/// What a look at a directory comes to.
enum Verdict {
    AsBefore,
    Changed,
    /// It is there again, no longer, or another.
    Another,
}

/// All directories.
pub(super) struct Dirs {
    system: Option<System>,
    known: BTreeMap<PathBuf, Dir>,
    round: usize,
    /// How many were ever added.
    added: usize,
    /// Whether there may be files that have to be polled.
    polls_files: bool,
    /// Why a directory is polled: what was said of the last one.
    why_polled: Option<String>,
}

impl Dirs {
    pub(super) fn new(system: Result<System, Option<String>>) -> Self {
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

    pub(super) fn count(&self, hearing: Hearing) -> usize {
        self.known.values().filter(|dir| dir.hearing == hearing).count()
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

    /// Adds a directory; says whether it is new.
    pub(super) fn add(&mut self, path: &Path) -> bool {
        if let Some(dir) = self.known.get(path) {
            if dir.hearing == Hearing::Missing {
                self.attend(path);
            }
            return false;
        }
        self.added += 1;
        let (round, files) = (self.added % ROUNDS, BTreeMap::new());
        let dir = Dir { hearing: Hearing::Missing, stamp: None, since: Instant::now(), round, files };
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
            self.polls_files |= dir.hearing != Hearing::Watched;
        }
    }

    pub(super) fn remove_file(&mut self, file: &Path) {
        if let Some(dir) = file.parent().and_then(|parent| self.known.get_mut(parent)) {
            dir.files.remove(file);
        }
    }

    /// Watches again all directories at and below a path that came to stand for something else, and reports them.
    pub(super) fn attend_below(&mut self, path: &Path, found: &mut Found) {
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

    /// Looks at every file whose directory is not under the system's watch.
    pub(super) fn look_at_files(&mut self, found: &mut Found) {
        self.polls_files = false;
        for dir in self.known.values_mut().filter(|dir| dir.hearing != Hearing::Watched) {
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

    /// Looks at the directories whose turn it is.
    pub(super) fn look_at_dirs(&mut self, found: &mut Found) {
        self.round = (self.round + 1) % ROUNDS;
        let now = Instant::now();
        let mut others = Vec::new();
        for (path, dir) in &mut self.known {
            if !dir.is_due(self.round, now) {
                continue;
            }
            match dir.look(path) {
                Verdict::AsBefore => {}
                Verdict::Changed => drop(found.dirs.insert(path.clone())),
                Verdict::Another => others.push(path.clone()),
            }
        }
        for path in others {
            self.attend(&path);
            found.dirs.insert(path);
        }
    }

    /// Has the system watch a directory, as it is there now. The caller has to list it afterwards.
    fn attend(&mut self, path: &Path) {
        let Some(dir) = self.known.get_mut(path) else { return };
        if let Some(system) = &mut self.system {
            // A directory that was moved away is still being told of, under the name it had.
            system.unwatch(path);
        }
        let before = Stamp::of_dir(path);
        dir.hearing = match (before, &mut self.system) {
            (None, _) => Hearing::Missing,
            (Some(_), None) => Hearing::Polled,
            (Some(stamp), Some(system)) => match system.watch(path, stamp.file) {
                Ok(()) => Hearing::Watched,
                Err(why) => {
                    self.why_polled = Some(why);
                    Hearing::Polled
                }
            },
        };
        // Stamped after the watch is set: a change before this the caller sees when it lists the directory, and a
        // change after it is told of, or shows in the stamp.
        dir.stamp = Stamp::of_dir(path);
        if dir.stamp.map(|stamp| stamp.file) != before.map(|stamp| stamp.file) {
            // It came, went or was replaced just now, and nobody knows which one is watched: the next look begins anew.
            (dir.hearing, dir.stamp) = (Hearing::Missing, None);
        }
        dir.since = Instant::now();
        self.polls_files |= dir.hearing != Hearing::Watched;
    }
}

impl Dir {
    fn is_due(&self, round: usize, now: Instant) -> bool {
        let is_trusted =
            self.hearing == Hearing::Watched && now.saturating_duration_since(self.since) > TRUSTED_AFTER;
        !is_trusted || self.round == round
    }

    fn look(&mut self, path: &Path) -> Verdict {
        let now = Stamp::of_dir(path);
        let id = |stamp: Option<Stamp>| stamp.map(|stamp| stamp.file);
        if id(now) != id(self.stamp) {
            return Verdict::Another;
        }
        let is_changed = match self.hearing {
            // The system tells of what happens from now on, also within the same tick of the clock.
            Hearing::Watched => self.stamp.zip(now).is_some_and(|(known, now)| !known.agrees_with(&now)),
            Hearing::Polled | Hearing::Missing => is_news(self.stamp.as_ref(), now.as_ref()),
        };
        self.stamp = now;
        if is_changed { Verdict::Changed } else { Verdict::AsBefore }
    }
}

/// Tells whether something happened between two looks, or may have without showing.
fn is_news(known: Option<&Stamp>, now: Option<&Stamp>) -> bool {
    match (known, now) {
        (Some(known), Some(now)) => !known.settled || !known.agrees_with(now),
        (None, None) => false,
        (Some(_), None) | (None, Some(_)) => true,
    }
}
