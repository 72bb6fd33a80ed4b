//! Finds agents' files: those that were named, and below a directory all that may be an agent's.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::{Opened, cannot};
use crate::failure::Failure;

/// How deep below a given directory files are looked for.
const DEPTH_MAX: usize = 32;

/// The files that arguments name, each opened when it is its turn.
pub struct Files {
    /// A file that had to be opened to tell what it is.
    opened: Option<Opened>,
    waiting: std::vec::IntoIter<PathBuf>,
}

impl Files {
    /// Finds the files that paths name: themselves, or below a directory all that may be an agent's.
    pub fn find(paths: &[PathBuf]) -> Result<Self, Failure> {
        let mut found = Vec::new();
        for path in paths {
            let about = std::fs::metadata(path).map_err(|error| cannot("read", path, &error))?;
            if about.is_dir() {
                walk(path, DEPTH_MAX, &mut found).map_err(|error| cannot("list", path, &error))?;
            } else {
                found.push(path.clone());
            }
        }
        // In the same order everywhere, a session's file before those below its directory, and each file once, however
        // it is spelled.
        found.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
        let mut seen = HashSet::new();
        found.retain(|path| seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())));
        Ok(Self { opened: None, waiting: found.into_iter() })
    }

    /// Returns the files at a path, unless it is a transcript of ours, or so damaged that it may be one.
    pub fn unless_transcript(path: &Path) -> Result<Option<Self>, Failure> {
        if path.is_dir() {
            return Self::find(&[path.to_owned()]).map(Some);
        }
        let opened = Opened::open(path)?;
        // What nobody else's is, is ours to judge: a damaged transcript is to be told as one.
        Ok(opened.sniffed().is_some().then(|| Self { opened: Some(opened), waiting: Vec::new().into_iter() }))
    }
}

impl Iterator for Files {
    type Item = Result<Opened, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        self.opened.take().map(Ok).or_else(|| self.waiting.next().map(|path| Opened::open(&path)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.waiting.len() + usize::from(self.opened.is_some());
        (len, Some(len))
    }
}

impl ExactSizeIterator for Files {}

fn walk(dir: &Path, depth: usize, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        // Links are not followed: they lead out of what was named, or round in circles.
        let kind = entry.file_type()?;
        if kind.is_dir() && depth > 0 {
            if let Err(error) = walk(&entry.path(), depth - 1, found) {
                // One directory that cannot be read takes nothing from the others.
                tracing::warn!("cannot list `{}`: {error}", entry.path().display());
            }
        } else if kind.is_file() && is_candidate(&entry.path()) {
            found.push(entry.path());
        }
    }
    Ok(())
}

fn is_candidate(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    [".jsonl", ".ndjson", ".jsonl.zst"].iter().any(|ending| name.ends_with(ending))
}
