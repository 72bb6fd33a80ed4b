//! Lists the files of a home, and the directories where more may appear.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use steno_model::Provider;

use super::file_place::{FilePlace, leads_to_files, role_of};
use super::homes::Home;
use super::layout;
use super::problem::Problem;
use super::walk::{Rules, stat, walk};

/// A file of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// The agent.
    pub provider: Provider,
    /// The root of its home.
    pub home: PathBuf,
    /// Its path: absolute, below `home`, byte for byte as the file system has it.
    pub path: PathBuf,
    /// Its role, session and project.
    pub place: FilePlace,
    /// Its metadata.
    pub stat: Stat,
}

/// The metadata of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// Its length.
    pub size_bytes: u64,
    /// Its modification time.
    pub modified: Timestamp,
    /// Its device. With `inode` it identifies the file, also where two homes share a directory.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
}

/// The files of a home, everything sorted by path: the transcript of a session comes before the files in its directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files that a rule names.
    pub files: Vec<FoundFile>,
    /// The directories to watch: such files may appear in them. Includes the home.
    pub dirs: Vec<PathBuf>,
    /// Paths that could not be read or are not followed.
    pub problems: Vec<Problem>,
}

/// Lists the files of a home.
///
/// Links are not followed, with one exception: a well-known directory directly below the home, such as `projects` or
/// `sessions`, may be a link. Files found there have the path through the link. Goes [`DEPTH_MAX`](super::DEPTH_MAX)
/// directories deep.
#[must_use]
pub fn files(home: &Home) -> Listing {
    files_below(home, &home.root)
}

/// Lists the files below a directory of a home, as [`files`] does for the whole home.
#[must_use]
pub fn files_below(home: &Home, dir: &Path) -> Listing {
    if !leads_to_files(home, dir) {
        return Listing::default();
    }
    let walked = walk(dir, &HomeRules(home));
    let files = walked.files.into_iter().map(|taken| FoundFile {
        provider: home.provider,
        home: home.root.clone(),
        path: taken.path,
        place: taken.what,
        stat: taken.stat,
    });
    Listing { files: files.collect(), dirs: walked.dirs, problems: walked.problems }
}

/// Reads the metadata of one path of a home; `None` unless it is a regular file that a rule names.
#[must_use]
pub fn file_at(home: &Home, path: &Path) -> Option<FoundFile> {
    let place = role_of(home, path)?;
    let about = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let (provider, home) = (home.provider, home.root.clone());
    Some(FoundFile { provider, home, path: path.to_owned(), place, stat: stat(&about) })
}

struct HomeRules<'a>(&'a Home);

impl Rules for HomeRules<'_> {
    type Item = FilePlace;

    fn enters(&self, dir: &Path) -> bool {
        leads_to_files(self.0, dir)
    }

    fn follows(&self, link: &Path) -> bool {
        let name = link.file_name().and_then(|name| name.to_str());
        link.parent() == Some(&self.0.root)
            && name.is_some_and(|name| layout::tops(self.0.provider).contains(&name))
    }

    fn takes(&self, path: &Path) -> Option<FilePlace> {
        role_of(self.0, path)
    }
}
