//! The files of a home: every one that has a place in it, and the directories where more may appear.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::homes::Home;
use super::layout;
use super::place::{Place, leads_to_files, role_of};
use super::problem::Problem;
use super::provider::Provider;
use super::walk::{Rules, stat, walk};

/// A file of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Whose it is.
    pub provider: Provider,
    /// The root of the home that it lies in.
    pub home: PathBuf,
    /// Where it lies: absolute, below `home`, byte for byte as the file system has it.
    pub path: PathBuf,
    /// What it is.
    pub place: Place,
    /// What is known of it without opening it.
    pub stat: Stat,
}

/// What is known of a file without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// How long it is.
    pub size_bytes: u64,
    /// When it was last written to.
    pub modified: Timestamp,
    /// The device that it lies on. With `inode` it tells one file from another, also where two homes share a directory.
    pub device: u64,
    /// Its number on the device.
    pub inode: u64,
}

/// What a home holds, everything sorted by path: a session's own file comes before those in its directory.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files that have a place.
    pub files: Vec<FoundFile>,
    /// The directories that such files may appear in, the home among them: those to watch.
    pub dirs: Vec<PathBuf>,
    /// What could not be looked at, or is not followed.
    pub problems: Vec<Problem>,
}

/// Lists the files of a home.
///
/// Links are not followed, with one exception: a well-known directory right below the home, such as `projects` or
/// `sessions`, may lie elsewhere. What is found there keeps the path by way of the link. Goes
/// [`DEPTH_MAX`](super::DEPTH_MAX) directories deep.
#[must_use]
pub fn files(home: &Home) -> Listing {
    files_below(home, &home.root)
}

/// Lists the files in a directory of a home and below it, as [`files`] does for all of it.
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

/// Looks at one path of a home; `None` unless a regular file with a place stands there.
#[must_use]
pub fn file_at(home: &Home, path: &Path) -> Option<FoundFile> {
    let place = role_of(home, path)?;
    let about = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let (provider, home) = (home.provider, home.root.clone());
    Some(FoundFile { provider, home, path: path.to_owned(), place, stat: stat(&about) })
}

struct HomeRules<'a>(&'a Home);

impl Rules for HomeRules<'_> {
    type Taken = Place;

    fn enters(&self, dir: &Path) -> bool {
        leads_to_files(self.0, dir)
    }

    fn follows(&self, link: &Path) -> bool {
        let name = link.file_name().and_then(|name| name.to_str());
        link.parent() == Some(&self.0.root)
            && name.is_some_and(|name| layout::tops(self.0.provider).contains(&name))
    }

    fn takes(&self, path: &Path) -> Option<Place> {
        role_of(self.0, path)
    }
}
