//! Tests that a window wrote. The agent that solves the task does not see them, and may choose other names.

use std::rc::Rc;

use super::command::Rank;
use super::patch::Patch;
use super::plan::Check;
use super::programs::is_test_file;

/// The test files that a window changed, in their final state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TestFiles {
    files: Vec<(String, Option<Vec<u8>>)>,
}

impl TestFiles {
    /// Finds the test files, if the check runs tests and the window also changed other files. Otherwise the tests are
    /// the work itself.
    pub(super) fn of(check: &Check, patches: &[Rc<Patch>]) -> Self {
        let is_tested = matches!(check, Check::Command(chosen) if chosen.rank == Rank::TestRunner);
        let all = || patches.iter().flat_map(|patch| &patch.files);
        if !is_tested || all().all(|file| is_test_file(file)) {
            return Self::default();
        }
        let mut names: Vec<&String> = all().filter(|file| is_test_file(file)).collect();
        names.sort_unstable();
        names.dedup();
        let content = |name: &String| {
            let mut touching = patches.iter().filter(|patch| patch.files.contains(name));
            let only = touching.next().filter(|_| touching.next().is_none())?;
            let (_, content) = only.added.iter().find(|(path, _)| path == name)?;
            Some(content.clone().into_bytes())
        };
        Self { files: names.into_iter().map(|name| (name.clone(), content(name))).collect() }
    }

    /// Returns all paths.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(path, _)| path.as_str())
    }

    /// Takes the final content from a trial. Files that no longer exist are removed.
    pub fn take(&mut self, mut read: impl FnMut(&str) -> Option<Vec<u8>>) {
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files.filter_map(|(path, _)| read(&path).map(|bytes| (path, Some(bytes)))).collect();
    }

    /// Returns the files whose content is known.
    pub(super) fn known(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().filter_map(|(path, bytes)| Some((path.as_str(), bytes.as_deref()?)))
    }

    /// Returns the paths of the files whose content is unknown.
    pub(super) fn unknown(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|(_, bytes)| bytes.is_none()).map(|(path, _)| path.as_str())
    }
}
