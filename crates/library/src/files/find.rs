//! Finds agents' files: the given ones, and all candidates below a directory.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use steno_capture::discovery::may_have_records;
use steno_views::{Lines, visible};

use super::last_time::may_have_records_since;
use super::subagents::subagent_dirs;
use super::unrecognized::check_transcript;
use super::{AgentFile, FileError, FileReport};
use crate::in_order::in_order;

/// How deep a directory is searched.
const DEPTH_MAX: usize = 32;

/// The files of arguments, each opened when it is read.
#[derive(Default)]
pub struct Files {
    /// A file that was opened to recognize it.
    opened: Option<AgentFile>,
    waiting: Vec<PathBuf>,
    /// The stored sources of files, by path: run ids are derived from them.
    sources: HashMap<PathBuf, String>,
    /// Whether the caller has other input, so that a failing file is not fatal.
    has_more: bool,
    /// Paths that could not be searched.
    failures: Vec<FileError>,
}

/// The results of reading files. Errors were logged, or are returned by [`Tally::check`].
#[must_use]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Files that an agent wrote.
    pub known: u64,
    /// Files and directories that could not be read completely.
    pub unread: u64,
    /// Files that end inside compressed data.
    pub cut: u64,
    /// Pieces of them that cannot be read.
    pub unreadable: u64,
    /// Records of unknown types.
    pub unknown: u64,
    /// All of them.
    pub total: u64,
    /// Whether reading stopped early, because the result is not needed.
    pub is_enough: bool,
}

impl Tally {
    /// Adds the results of other files.
    pub fn add(&mut self, other: Self) {
        self.known += other.known;
        self.unread += other.unread;
        self.cut += other.cut;
        self.unreadable += other.unreadable;
        self.unknown += other.unknown;
        self.total += other.total;
        self.is_enough |= other.is_enough;
    }

    /// Adds the result of a file.
    fn take(&mut self, reading: &FileReport) {
        self.known += 1;
        self.cut += u64::from(reading.is_cut);
        self.unreadable += reading.completeness.unreadable;
        self.unknown += reading.completeness.unknown.values().sum::<u64>();
        self.is_enough |= reading.is_enough;
        if reading.is_cut {
            warn_about_cut(&reading.path);
        }
    }

    /// Adds a file that cannot be read, unless it is the only one.
    fn take_error(&mut self, error: FileError, has_more: bool) -> Result<(), FileError> {
        if self.total == 1 && !has_more {
            return Err(error);
        }
        tracing::warn!("{}", visible(&error.to_string(), Lines::Escape));
        self.unread += 1;
        Ok(())
    }

    /// Fails if something could not be read, so that the output is incomplete.
    ///
    /// # Errors
    /// [`FileError::Unread`].
    pub fn check(self) -> Result<(), FileError> {
        if self.unread == 0 || self.is_enough {
            return Ok(());
        }
        Err(FileError::Unread { unread: self.unread, total: self.total })
    }

    /// Also fails if there was no agent's file at `path`.
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
    /// Finds the files that paths name: a file itself, or below a directory all files that may be an agent's.
    #[must_use]
    pub fn find(paths: &[PathBuf]) -> Self {
        let mut files = Self::default();
        for path in paths {
            match std::fs::metadata(path) {
                Ok(about) if about.is_dir() => files.walk(path, DEPTH_MAX),
                Ok(_) => files.waiting.push(path.clone()),
                Err(error) => files.failures.push(FileError::of("read", path, error)),
            }
        }
        // In the same order everywhere, a session's file before those below its directory, and each file once, even
        // under several paths.
        files.waiting.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
        let mut seen = HashSet::new();
        files
            .waiting
            .retain(|path| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
        files
    }

    /// Finds files like [`Files::find`], and with a session's file also the files of its subagents.
    #[must_use]
    pub fn find_with_subagents(paths: &[PathBuf]) -> Self {
        let dirs = paths.iter().filter(|path| !path.is_dir()).flat_map(|path| subagent_dirs(path));
        let all: Vec<PathBuf> = paths.iter().cloned().chain(dirs).collect();
        Self::find(&all)
    }

    /// Takes agents' files, each with its stored source, if any.
    #[must_use]
    pub fn of_sources(files: Vec<(PathBuf, Option<String>)>) -> Self {
        let waiting = files.iter().map(|(path, _)| path.clone()).collect();
        let sources = files.into_iter().filter_map(|(path, source)| Some((path, source?))).collect();
        Self { waiting, sources, has_more: true, ..Self::default() }
    }

    /// Keeps only files that were changed at or after a time, and may have records from then on.
    #[must_use]
    pub fn changed_since(mut self, time: SystemTime) -> Self {
        let changed = |path: &PathBuf| std::fs::metadata(path).and_then(|about| about.modified());
        let first = jiff::Timestamp::try_from(time).unwrap_or(jiff::Timestamp::MIN);
        let is_wanted = |path: &PathBuf| {
            changed(path).is_ok_and(|changed| changed >= time) && may_have_records_since(path, first)
        };
        let mut wanted = Vec::with_capacity(self.waiting.len());
        in_order(&self.waiting, is_wanted, |is_wanted| {
            wanted.push(is_wanted);
            true
        });
        let mut wanted = wanted.into_iter();
        self.waiting.retain(|_| wanted.next() == Some(true));
        self
    }

    /// Returns the files at a path, or `None` for a transcript, even a damaged one.
    ///
    /// Fails for a file that is neither a transcript nor supported by an adapter.
    ///
    /// # Errors
    /// That, or an error of the system.
    pub fn unless_transcript(path: &Path) -> Result<Option<Self>, FileError> {
        if path.is_dir() {
            return Ok(Some(Self::find(&[path.to_owned()])));
        }
        let opened = AgentFile::open(path)?;
        let Some(sniffed) = opened.sniffed() else {
            // A damaged transcript is reported as a transcript.
            return check_transcript(path).map(|()| None);
        };
        if opened.surface().is_none() {
            return Err(FileError::NotReadYet { path: path.to_owned(), surface: sniffed.surface });
        }
        Ok(Some(Self { opened: Some(opened), ..Self::default() }))
    }

    /// Groups the files by `keys`, in the order of their first file. A file without a key is alone, and one with several keys
    /// is in several groups.
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

    /// Returns the errors of paths that could not be searched.
    #[must_use]
    pub fn into_failures(self) -> Vec<FileError> {
        self.failures
    }

    /// Passes each file to `read`, which returns a report for an agent's file.
    ///
    /// A file that cannot be read is logged and skipped; it is an error only if there are no others.
    ///
    /// # Errors
    /// The error of the only file.
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
                    tally.take(&reading);
                    if tally.is_enough {
                        break;
                    }
                }
                Err(error) => tally.take_error(error, self.has_more)?,
            }
        }
        Ok(tally)
    }

    /// Reads the files in several threads, and passes what `read` returns to `take`, in the order of the files.
    ///
    /// # Errors
    /// As [`Files::each`].
    pub fn each_in_threads<T: Send>(
        self,
        read: impl Fn(AgentFile) -> Result<(T, Option<FileReport>), FileError> + Sync,
        mut take: impl FnMut(T, Option<&FileReport>),
    ) -> Result<Tally, FileError> {
        if self.opened.is_some() || self.waiting.len() < 2 {
            return self.each(|file| {
                let (result, report) = read(file)?;
                take(result, report.as_ref());
                Ok(report)
            });
        }
        let total = (self.waiting.len() + self.failures.len()) as u64;
        let mut tally = Tally { total, ..Tally::default() };
        for error in self.failures {
            tally.take_error(error, self.has_more)?;
        }
        let mut outcome = Ok(());
        let open = |path: &PathBuf| AgentFile::open_as(path, self.sources.get(path).map(String::as_str));
        in_order(
            &self.waiting,
            |path| open(path).and_then(&read),
            |result| {
                match result {
                    Ok((result, report)) => {
                        take(result, report.as_ref());
                        if let Some(report) = &report {
                            tally.take(report);
                        }
                    }
                    Err(error) => outcome = tally.take_error(error, self.has_more),
                }
                !tally.is_enough && outcome.is_ok()
            },
        );
        outcome.map(|()| tally)
    }

    /// Adds the candidates below a directory.
    fn walk(&mut self, dir: &Path, depth: usize) {
        if let Err(error) = self.walk_entries(dir, depth) {
            self.failures.push(FileError::of("list", dir, error));
        }
    }

    fn walk_entries(&mut self, dir: &Path, depth: usize) -> io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            // Links are not followed: they may lead elsewhere or in circles.
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
    tracing::warn!("`{path}` ends inside compressed data; the part before it was read");
}

fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    may_have_records(&name)
}
