//! Where files to record are: agents' homes and paths that the user named, without what is excluded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_capture::discovery::{
    Home, Listing, PathFile, Problem, file_at, files, files_below, list_path, may_hold,
};

use steno_vault::is_being_restored;

use super::SourceFile;
use super::catalog::plain_name;
use super::exclusions::{Exclusions, Verdict};
use super::project_lookup::ProjectLookup;
use super::shared_file::{PieceRules, SharedFileFormat};

/// Where to look for files, and what to exclude.
#[derive(Clone, Debug, Default)]
pub struct SourceLocations {
    /// Agents' homes.
    pub homes: Vec<Home>,
    /// Files and directories that the user named.
    pub given: Vec<PathBuf>,
    /// What is excluded.
    pub exclusions: Exclusions,
    /// Finds the projects of files.
    pub membership: Arc<ProjectLookup>,
}

/// The files that were found.
#[derive(Debug, Default)]
pub struct SourceListing {
    /// The files to record.
    pub files: Vec<SourceFile>,
    /// How many files are excluded.
    pub excluded: u64,
    /// How many files are not recorded because their project is unknown.
    pub of_unknown_projects: u64,
    /// The directories where new files may appear.
    pub dirs: Vec<PathBuf>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

impl SourceLocations {
    /// Lists everything.
    #[must_use]
    pub fn list(&self) -> SourceListing {
        let mut listing = SourceListing::default();
        for home in &self.homes {
            self.take(files(home), &mut listing);
        }
        for path in &self.given {
            let listed = list_path(path);
            listing.problems.extend(listed.problems);
            for file in &listed.files {
                self.take_file(SourceFile::given(file), &mut listing);
                listing.dirs.extend(file.path().parent().map(Path::to_owned));
            }
            if path.is_dir() {
                listing.dirs.push(path.clone());
            }
        }
        listing.dirs.sort();
        listing.dirs.dedup();
        listing
    }

    /// Lists a directory that has changed, and those below it.
    #[must_use]
    pub fn list_below(&self, dir: &Path) -> SourceListing {
        let mut listing = SourceListing::default();
        for home in self.homes.iter().filter(|home| dir == home.root || may_hold(home, dir)) {
            self.take(files_below(home, dir), &mut listing);
        }
        if self.given.iter().any(|path| dir.starts_with(path)) {
            for file in &list_path(dir).files {
                self.take_file(SourceFile::given(file), &mut listing);
            }
            listing.dirs.push(dir.to_owned());
        }
        listing
    }

    /// Looks at one path; `None` unless there is a file to record.
    #[must_use]
    pub fn at(&self, path: &Path) -> Option<SourceFile> {
        let in_home = self.homes.iter().find_map(|home| file_at(home, path));
        let file = match in_home {
            Some(file) => SourceFile::in_home(&file),
            None if self.given.iter().any(|given| path.starts_with(given)) => {
                let listed = list_path(path).files;
                SourceFile::given(listed.iter().find(|file: &&PathFile| file.path() == path)?)
            }
            None => return None,
        };
        (!is_passed_over(path) && self.judge(&file) == Verdict::Included).then(|| self.with_rules(file))
    }

    /// Decides whether a file is recorded.
    #[must_use]
    pub fn judge(&self, file: &SourceFile) -> Verdict {
        self.exclusions.judge(file, &self.membership)
    }

    /// Adds the exclusions to a shared file, so that excluded pieces are left out.
    fn with_rules(&self, mut file: SourceFile) -> SourceFile {
        let is_mixed = SharedFileFormat::of(&file.info).is_some_and(SharedFileFormat::is_of_several_projects);
        if is_mixed && !self.exclusions.projects.is_empty() {
            let (exclusions, membership) = (self.exclusions.clone(), Arc::clone(&self.membership));
            file.rules = Some(Arc::new(PieceRules { exclusions, membership }));
        }
        file
    }

    fn take(&self, listing: Listing, sources: &mut SourceListing) {
        listing.files.iter().for_each(|file| self.take_file(SourceFile::in_home(file), sources));
        sources.dirs.extend(listing.dirs);
        sources.problems.extend(listing.problems);
    }

    fn take_file(&self, file: SourceFile, sources: &mut SourceListing) {
        if is_passed_over(file.path()) {
            return;
        }
        match self.judge(&file) {
            Verdict::Included => sources.files.push(self.with_rules(file)),
            Verdict::Excluded => sources.excluded += 1,
            Verdict::Unknown => sources.of_unknown_projects += 1,
        }
    }
}

/// Tells whether to skip a file: one that is being restored, or the compressed form of a file that still exists.
fn is_passed_over(path: &Path) -> bool {
    let plain = plain_name(path);
    is_being_restored(path) || (plain != path && plain.exists())
}
