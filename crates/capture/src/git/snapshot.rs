//! The files of a commit, checked so that they can be written to a directory.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::Path;

use super::commit::{CommittedFile, CommittedKind, committed};

/// The files of a commit, ordered by path.
pub struct Snapshot {
    files: Vec<CommittedFile>,
}

impl Snapshot {
    /// Reads a commit of a repository.
    ///
    /// # Errors
    /// Why it cannot be read, or cannot be written elsewhere, as text.
    pub fn read(repository: &Path, commit: &str) -> Result<Self, String> {
        let files = committed(repository, commit)?;
        let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.eq_ignore_ascii_case(".git");
        let is_odd_path = |file: &&CommittedFile| file.path.split('/').any(is_odd);
        if let Some(odd) = files.iter().find(is_odd_path) {
            return Err(format!("commit {commit} has a file named `{}`", odd.path));
        }
        let is_odd_link = |file: &&CommittedFile| {
            file.kind == CommittedKind::Link && std::str::from_utf8(&file.bytes).is_err()
        };
        if let Some(odd) = files.iter().find(is_odd_link) {
            return Err(format!("`{}` of commit {commit} links to a name that is not UTF-8", odd.path));
        }
        // git itself makes no such tree: below a link it would lead out of the directory.
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let is_below = |file: &&CommittedFile| {
            file.path.match_indices('/').any(|(at, _)| paths.contains(&file.path[..at]))
        };
        match files.iter().find(is_below) {
            Some(odd) => Err(format!("`{}` of commit {commit} is below a file, not a directory", odd.path)),
            None => Ok(Self { files }),
        }
    }

    /// Returns the files.
    #[must_use]
    pub fn files(&self) -> &[CommittedFile] {
        &self.files
    }

    /// Returns the paths of submodules, whose files a commit does not have.
    pub fn submodules(&self) -> impl Iterator<Item = &str> {
        let is_one = |file: &&CommittedFile| file.kind == CommittedKind::Submodule;
        self.files.iter().filter(is_one).map(|file| file.path.as_str())
    }

    /// Writes the files to a new directory.
    ///
    /// # Errors
    /// What the system says.
    pub fn write_to(&self, dir: &Path) -> io::Result<()> {
        fs::create_dir(dir)?;
        // Links last, so that nothing is written through one.
        let is_link = |file: &&CommittedFile| file.kind == CommittedKind::Link;
        for file in self.files.iter().filter(|file| !is_link(file)).chain(self.files.iter().filter(is_link)) {
            let path = dir.join(&file.path);
            fs::create_dir_all(path.parent().unwrap_or(dir))?;
            match file.kind {
                CommittedKind::Submodule => fs::create_dir(&path)?,
                CommittedKind::Link => symlink(String::from_utf8_lossy(&file.bytes).as_ref(), &path)?,
                CommittedKind::Plain | CommittedKind::Program => {
                    let mode = if file.kind == CommittedKind::Program { 0o755 } else { 0o644 };
                    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
                    opened?.write_all(&file.bytes)?;
                }
            }
        }
        Ok(())
    }
}
