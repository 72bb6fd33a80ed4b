//! Makes directory trees for tests.

use std::fs;
use std::path::{Path, PathBuf};

use steno_capture::discovery::{FoundFile, Home, Origin};
use steno_model::Provider;
use tempfile::TempDir;

/// A directory that is deleted with its test. Its path has no links, so that paths can be compared.
pub(crate) struct Tree {
    _dir: TempDir,
    pub(crate) root: PathBuf,
}

impl Tree {
    /// Makes files, each with its own path as its content.
    pub(crate) fn of(paths: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("there is room for a directory");
        let root = dir.path().canonicalize().expect("it was just made");
        let tree = Self { _dir: dir, root };
        for path in paths {
            tree.write(path, path);
        }
        tree
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("it lies below the tree")).expect("directories can be made");
        fs::write(path, content).expect("files can be written");
    }

    /// Returns the tree as an agent's home.
    pub(crate) fn home(&self, provider: Provider) -> Home {
        Home { provider, root: self.root.clone(), origin: Origin::Default }
    }

    /// Returns a path as it is below the tree.
    pub(crate) fn below(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).expect("it lies below the tree").to_string_lossy().into_owned()
    }

    pub(crate) fn all_below<'a>(&self, paths: impl IntoIterator<Item = &'a Path>) -> Vec<String> {
        paths.into_iter().map(|path| self.below(path)).collect()
    }
}

pub(crate) fn paths(files: &[FoundFile]) -> impl Iterator<Item = &Path> {
    files.iter().map(|file| file.path.as_path())
}
