//! The project that a directory belongs to: the root of its repository.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// How long a file `.git` of a worktree may be.
const LINK_BYTES_MAX: u64 = 4096;
/// The directories in which agents and people keep worktrees, below the root of a repository.
const WORKTREE_DIRS: [&str; 2] = ["/.worktrees/", "/.claude/worktrees/"];

/// The roots that were found, by directory.
#[derive(Default)]
pub(crate) struct Projects(Mutex<HashMap<String, String>>);

impl Projects {
    /// Returns the root of the repository that a directory is in, else the directory.
    pub(crate) fn root_of(&self, directory: &str) -> String {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(root) = lock().get(directory) {
            return root.clone();
        }
        let root = find_root(Path::new(directory))
            .map_or_else(|| without_worktree(directory).to_owned(), |root| root.display().to_string());
        lock().insert(directory.to_owned(), root.clone());
        root
    }
}

/// Returns the root of the repository around a directory of this machine.
fn find_root(directory: &Path) -> Option<PathBuf> {
    let root = directory.ancestors().find(|dir| dir.is_absolute() && dir.join(".git").exists())?;
    Some(main_root(root).unwrap_or_else(|| root.to_owned()))
}

/// Returns the main root of a worktree, which its file `.git` names.
fn main_root(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    if !link.metadata().is_ok_and(|found| found.is_file() && found.len() <= LINK_BYTES_MAX) {
        return None;
    }
    let text = std::fs::read_to_string(link).ok()?;
    let dir = Path::new(text.strip_prefix("gitdir:")?.trim());
    // `ROOT/.git/worktrees/NAME`
    let git = dir.parent().filter(|parent| parent.ends_with(".git/worktrees"))?.parent()?;
    git.parent().map(Path::to_owned)
}

/// Cuts the part of a path that names a worktree. The directory may be of another machine, or gone.
fn without_worktree(directory: &str) -> &str {
    let cut = WORKTREE_DIRS.iter().filter_map(|part| directory.find(part)).min();
    cut.map_or(directory, |end| &directory[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_the_repository_or_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        std::fs::create_dir_all(dir.path().join("shop/.git/worktrees/fix")).unwrap();
        std::fs::create_dir_all(dir.path().join("shop/src/deep")).unwrap();
        std::fs::create_dir_all(dir.path().join("fix/src")).unwrap();
        std::fs::create_dir_all(dir.path().join("plain")).unwrap();
        let link = format!("gitdir: {}\n", path("shop/.git/worktrees/fix"));
        std::fs::write(dir.path().join("fix/.git"), link).unwrap();
        let projects = Projects::default();
        for (directory, want) in [
            (path("shop"), path("shop")),
            (path("shop/src/deep"), path("shop")),
            (path("shop/gone/long/ago"), path("shop")),
            (path("fix/src"), path("shop")),
            (path("plain"), path("plain")),
            ("/x/cli/.worktrees/fix/deep".to_owned(), "/x/cli".to_owned()),
            ("relative".to_owned(), "relative".to_owned()),
        ] {
            assert_eq!(projects.root_of(&directory), want, "{directory}");
        }
    }
}
