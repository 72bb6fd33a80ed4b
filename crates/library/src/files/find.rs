//! Finds agents' files: those that were named, and below a directory all that may be an agent's.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io;
use std::path::{Path, PathBuf};

use steno_views::{Lines, visible};

use super::unrecognized::check_transcript;
use super::{AgentFile, FileError, FileReport};

/// How deep below a given directory files are looked for.
const DEPTH_MAX: usize = 32;

/// The files that arguments name, each opened when it is its turn.
#[derive(Default)]
pub struct Files {
    /// A file that had to be opened to tell what it is.
    opened: Option<AgentFile>,
    waiting: Vec<PathBuf>,
    /// The sources that the archive has of files, by path: runs are named after them.
    sources: HashMap<PathBuf, String>,
    /// Whether there is more to answer from than these files, so that none of them failing is the end of it.
    has_more: bool,
    /// Paths at which nothing could even be looked for.
    failures: Vec<FileError>,
}

/// What became of files. What could not be read was said, or is said by [`Tally::check`].
#[must_use]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Files that an agent wrote.
    pub known: u64,
    /// Files and directories that could not be read, or not to their end.
    pub unread: u64,
    /// Files that end inside of compressed data.
    pub cut: u64,
    /// Pieces of them that cannot be read.
    pub unreadable: u64,
    /// Records of unknown types.
    pub unknown: u64,
    /// All of them.
    pub total: u64,
    /// Whether there was no need to read them all, as nobody reads what comes of it.
    pub is_enough: bool,
}

impl Tally {
    /// Adds what became of other files.
    pub fn add(&mut self, other: Self) {
        self.known += other.known;
        self.unread += other.unread;
        self.cut += other.cut;
        self.unreadable += other.unreadable;
        self.unknown += other.unknown;
        self.total += other.total;
        self.is_enough |= other.is_enough;
    }

    /// Fails when something could not be read: what was shown is good, and not all.
    ///
    /// # Errors
    /// [`FileError::Unread`].
    pub fn check(self) -> Result<(), FileError> {
        if self.unread == 0 || self.is_enough {
            return Ok(());
        }
        Err(FileError::Unread { unread: self.unread, total: self.total })
    }

    /// Fails also when there was no agent's file at `path`.
    ///
    /// # Errors
    /// [`FileError::Unknown`] then.
    pub fn check_known(self, path: &str) -> Result<(), FileError> {
        self.check()?;
        if self.known == 0 && !self.is_enough {
            return Err(FileError::Unknown { path: path.to_owned() });
        }
        Ok(())
    }
}

impl Files {
    /// Finds the files that paths name: themselves, or below a directory all that may be an agent's.
    #[must_use]
    pub fn find(paths: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for path in paths {
            match std::fs::metadata(path) {
                Ok(about) if about.is_dir() => found.walk(path, DEPTH_MAX),
                Ok(_) => found.waiting.push(path.clone()),
                Err(error) => found.failures.push(FileError::of("read", path, error)),
            }
        }
        // In the same order everywhere, a session's file before those below its directory, and each file once, however
        // it is spelled.
        found.waiting.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
        let mut seen = HashSet::new();
        found
            .waiting
            .retain(|path| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
        found
    }

    /// Takes files of agents, with the source that the archive has of each, if any.
    #[must_use]
    pub fn of_sources(files: Vec<(PathBuf, Option<String>)>) -> Self {
        let waiting = files.iter().map(|(path, _)| path.clone()).collect();
        let sources = files.into_iter().filter_map(|(path, source)| Some((path, source?))).collect();
        Self { waiting, sources, has_more: true, ..Self::default() }
    }

    /// Returns the files at a path, unless it is a transcript of ours, or a damaged one.
    ///
    /// Fails for a file that is neither ours nor one that an adapter reads, and says what it is.
    ///
    /// # Errors
    /// That, or what the system says.
    pub fn unless_transcript(path: &Path) -> Result<Option<Self>, FileError> {
        if path.is_dir() {
            return Ok(Some(Self::find(&[path.to_owned()])));
        }
        let opened = AgentFile::open(path)?;
        let Some(sniffed) = opened.sniffed() else {
            // A damaged transcript is to be told as one.
            return check_transcript(path).map(|()| None);
        };
        if opened.surface().is_none() {
            return Err(FileError::NotReadYet { path: path.to_owned(), surface: sniffed.surface });
        }
        Ok(Some(Self { opened: Some(opened), ..Self::default() }))
    }

    /// Splits the files into groups by what `keys` says of each, in the order of their first. One without a key is alone, and
    /// one with several is in several groups.
    #[must_use]
    pub fn groups<K: Eq + Hash + Copy>(self, keys: impl Fn(&Path) -> Vec<K>) -> Vec<(Option<K>, Self)> {
        let mut groups = Vec::<(Option<K>, Self)>::new();
        let mut places = HashMap::new();
        if !self.failures.is_empty() {
            groups.push((None, Self { failures: self.failures, ..Self::default() }));
        }
        for path in self.waiting {
            let keys = keys(&path);
            let keys = if keys.is_empty() { vec![None] } else { keys.into_iter().map(Some).collect() };
            for key in keys {
                let next = groups.len();
                let place = key.map_or(next, |key| *places.entry(key).or_insert(next));
                if place == next {
                    groups.push((key, Self::default()));
                }
                groups[place].1.waiting.push(path.clone());
            }
        }
        groups
    }

    /// Returns the paths that are to be read.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.waiting
    }

    /// Returns what could not even be looked for.
    #[must_use]
    pub fn into_failures(self) -> Vec<FileError> {
        self.failures
    }

    /// Hands each file to `read`, which returns what it found if an agent wrote it.
    ///
    /// One that cannot be read is said and takes nothing from the others; only when there are no others it is an error.
    ///
    /// # Errors
    /// What is wrong with the only one.
    pub fn each(
        self,
        mut read: impl FnMut(AgentFile) -> Result<Option<FileReport>, FileError>,
    ) -> Result<Tally, FileError> {
        let opened = self.opened.into_iter().map(Ok);
        let total = (opened.len() + self.waiting.len() + self.failures.len()) as u64;
        let mut tally = Tally { total, ..Tally::default() };
        let files = opened.chain(
            self.waiting
                .iter()
                .map(|path| AgentFile::open_as(path, self.sources.get(path).map(String::as_str))),
        );
        for outcome in self.failures.into_iter().map(Err).chain(files) {
            match outcome.and_then(&mut read) {
                Ok(None) => {}
                Ok(Some(reading)) => {
                    tally.known += 1;
                    tally.cut += u64::from(reading.is_cut);
                    tally.unreadable += reading.completeness.unreadable;
                    tally.unknown += reading.completeness.unknown.values().sum::<u64>();
                    if reading.is_cut {
                        warn_about_cut(&reading.path);
                    }
                    if reading.is_enough {
                        tally.is_enough = true;
                        break;
                    }
                }
                Err(error) if tally.total == 1 && !self.has_more => return Err(error),
                Err(error) => {
                    tracing::warn!("{}", visible(&error.to_string(), Lines::Escape));
                    tally.unread += 1;
                }
            }
        }
        Ok(tally)
    }

    /// Adds what may be an agent's file below a directory.
    fn walk(&mut self, dir: &Path, depth: usize) {
        if let Err(error) = self.walk_entries(dir, depth) {
            self.failures.push(FileError::of("list", dir, error));
        }
    }

    fn walk_entries(&mut self, dir: &Path, depth: usize) -> io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            // Links are not followed: they lead out of what was named, or round in circles.
            let kind = entry.file_type()?;
            if kind.is_dir() && depth > 0 {
                self.walk(&entry.path(), depth - 1);
            } else if kind.is_file() && is_candidate(&entry.path()) {
                self.waiting.push(entry.path());
            }
        }
        Ok(())
    }
}

fn warn_about_cut(path: &Path) {
    let path = path.display().to_string();
    let path = visible(&path, Lines::Escape);
    tracing::warn!("`{path}` ends inside of compressed data; what came before is read");
}

fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".jsonl", ".ndjson", ".jsonl.zst"].iter().any(|ending| name.ends_with(ending))
}
