//! Walks a directory tree: one listing per directory, one stat per wanted file, and no blocking.
//!
//! [`Rules`] decide what is wanted. What cannot be read becomes a problem, and the walk continues. A file that
//! disappears meanwhile is not a problem: agents delete and rename their files at any time.

use std::fs::{DirEntry, FileType, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jiff::Timestamp;

use super::files::Stat;
use super::layout::DEPTH_MAX;
use super::problem::{Problem, ProblemKind};

/// Decides what a walk does with each path.
pub(super) trait Rules {
    /// What is returned for a file besides its path.
    type Item;

    /// Tells whether to enter a directory.
    fn enters(&self, dir: &Path) -> bool;

    /// Tells whether to follow a link to a directory for which [`Rules::enters`] is true.
    fn follows(&self, link: &Path) -> bool;

    /// Returns what to return for a file; `None` to ignore it.
    fn takes(&self, path: &Path) -> Option<Self::Item>;
}

/// A file that the walk returns.
pub(super) struct WalkedFile<T> {
    pub(super) path: PathBuf,
    pub(super) what: T,
    pub(super) stat: Stat,
}

/// The result of a walk, everything sorted by path.
pub(super) struct WalkResult<T> {
    pub(super) files: Vec<WalkedFile<T>>,
    /// All directories that were entered.
    pub(super) dirs: Vec<PathBuf>,
    pub(super) problems: Vec<Problem>,
}

/// Walks a directory, [`DEPTH_MAX`] levels deep.
pub(super) fn walk<R: Rules>(root: &Path, rules: &R) -> WalkResult<R::Item> {
    let mut walked = WalkResult { files: Vec::new(), dirs: Vec::new(), problems: Vec::new() };
    let mut waiting = vec![(root.to_owned(), 0)];
    while let Some((dir, depth)) = waiting.pop() {
        if depth > DEPTH_MAX {
            walked.problems.push(Problem::new(&dir, ProblemKind::TooDeep));
            continue;
        }
        let mut below = Vec::new();
        match walked.list(&dir, rules, &mut below) {
            Ok(()) => {}
            // It disappeared. Only for the root this is a problem.
            Err(error) if error.kind() == io::ErrorKind::NotFound && depth > 0 => continue,
            Err(error) => walked.problems.push(Problem::unreadable(&dir, error)),
        }
        // Also one that cannot be listed now: it is watched, and may become readable.
        walked.dirs.push(dir);
        waiting.extend(below.into_iter().map(|dir| (dir, depth + 1)));
    }
    // By bytes and not by component, so that `<session>.jsonl` comes before the files in `<session>/`.
    walked.files.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
    walked.dirs.sort_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    walked.problems.sort_by(|one, other| one.path.as_os_str().cmp(other.path.as_os_str()));
    walked
}

impl<T> WalkResult<T> {
    fn list<R: Rules<Item = T>>(
        &mut self,
        dir: &Path,
        rules: &R,
        below: &mut Vec<PathBuf>,
    ) -> io::Result<()> {
        for entry in std::fs::read_dir(dir)? {
            let entry = entry?;
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => below.extend(rules.enters(&path).then_some(path)),
                Ok(kind) if kind.is_symlink() => below.extend(self.link(path, rules)),
                Ok(kind) => self.file(&entry, kind, rules.takes(&path)),
                Err(error) => self.trouble(&path, error),
            }
        }
        Ok(())
    }

    /// Returns the directory that a link leads to, under the link's name. Other links in place of something wanted are
    /// reported.
    fn link<R: Rules<Item = T>>(&mut self, path: PathBuf, rules: &R) -> Option<PathBuf> {
        if rules.enters(&path) && rules.follows(&path) {
            match std::fs::metadata(&path) {
                Ok(about) if about.is_dir() => return Some(path),
                Ok(_) => {}
                // Also for a dangling link: a disk may be missing.
                Err(error) => self.problems.push(Problem::unreadable(&path, error)),
            }
        } else if rules.enters(&path) && leads_to_dir(&path) || rules.takes(&path).is_some() {
            self.problems.push(Problem::new(&path, ProblemKind::Link));
        }
        None
    }

    fn file(&mut self, entry: &DirEntry, kind: FileType, what: Option<T>) {
        let Some(what) = what else { return };
        let path = entry.path();
        if !kind.is_file() {
            self.problems.push(Problem::new(&path, ProblemKind::NotRegular));
            return;
        }
        match entry.metadata() {
            // Checked again: it may have been replaced since it was listed.
            Ok(about) if about.is_file() => self.files.push(WalkedFile { path, what, stat: stat(&about) }),
            Ok(_) => self.problems.push(Problem::new(&path, ProblemKind::NotRegular)),
            Err(error) => self.trouble(&path, error),
        }
    }

    fn trouble(&mut self, path: &Path, error: io::Error) {
        if error.kind() != io::ErrorKind::NotFound {
            self.problems.push(Problem::unreadable(path, error));
        }
    }
}

fn leads_to_dir(link: &Path) -> bool {
    std::fs::metadata(link).is_ok_and(|about| about.is_dir())
}

/// Converts the metadata of a file.
pub(super) fn stat(about: &Metadata) -> Stat {
    let modified = about.modified().ok().map_or(Timestamp::UNIX_EPOCH, instant);
    Stat { size_bytes: about.len(), modified, device: about.dev(), inode: about.ino() }
}

/// A file system may have times out of range; the nearest valid time is used.
fn instant(time: SystemTime) -> Timestamp {
    Timestamp::try_from(time).unwrap_or(if time < SystemTime::UNIX_EPOCH {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    })
}
