//! Lists the files at any path: a copy of a home, a project's directory, a single file.
//!
//! If the directories above a file are those of a home, the file has a role and its sidecars are found. Other files
//! whose name may be that of a transcript are loose: their content shows which agent wrote them, and others read that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use steno_model::{Provider, Vocabulary as _};

use super::file_place::{FilePlace, Role, role_of};
use super::files::{FoundFile, Stat};
use super::homes::{Home, Origin};
use super::layout;
use super::problem::{Problem, ProblemKind};
use super::walk::{Rules, WalkedFile, stat, walk};

/// The extensions of files that may contain records.
const ENDINGS: [&str; 3] = [".jsonl", ".ndjson", ".jsonl.zst"];

/// Tells whether a file may contain records of an agent, by its name.
#[must_use]
pub fn may_have_records(name: &str) -> bool {
    // Gemini CLI kept a session in one document; other documents are not read.
    let is_chat =
        layout::ends_in(name, &[".json"]) && (name.starts_with("session-") || name.contains("chat"));
    is_chat || layout::ends_in(name, &ENDINGS)
}

/// The files at a path, sorted by path.
#[derive(Debug, Default)]
pub struct PathListing {
    /// The files that may be an agent's, with their sidecars.
    pub files: Vec<PathFile>,
    /// Paths that could not be read or are not followed.
    pub problems: Vec<Problem>,
}

/// A file at a path that the user named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathFile {
    /// At a place where an agent puts such files, in a home or a copy of one.
    Placed(FoundFile),
    /// May contain records of any agent.
    Loose(LooseFile),
}

/// A file that may contain records, because of its name or because the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseFile {
    /// Its path, absolute and without links.
    pub path: PathBuf,
    /// Its metadata.
    pub stat: Stat,
}

impl PathFile {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            Self::Placed(file) => &file.path,
            Self::Loose(file) => &file.path,
        }
    }

    /// Returns the metadata of the file.
    #[must_use]
    pub fn stat(&self) -> &Stat {
        match self {
            Self::Placed(file) => &file.stat,
            Self::Loose(file) => &file.stat,
        }
    }

    /// Returns the agent by the path of the file; its content may show another.
    #[must_use]
    pub fn provider(&self) -> Option<Provider> {
        match self {
            Self::Placed(file) => Some(file.provider),
            Self::Loose(_) => None,
        }
    }
}

/// Lists the files at a path: the file itself, with any name, or those below a directory.
///
/// The path may be or contain a link. Below a directory links are not followed, and at most
/// [`DEPTH_MAX`](super::DEPTH_MAX) levels are read.
#[must_use]
pub fn list_path(path: &Path) -> PathListing {
    let looked =
        std::fs::canonicalize(path).and_then(|whole| std::fs::metadata(&whole).map(|about| (whole, about)));
    let (whole, about) = match looked {
        Ok(looked) => looked,
        Err(error) => {
            return PathListing { files: Vec::new(), problems: vec![Problem::unreadable(path, error)] };
        }
    };
    if about.is_file() {
        let what = home_above(&whole);
        let taken = WalkedFile { path: whole, what, stat: stat(&about) };
        return PathListing { files: vec![file(taken)], problems: Vec::new() };
    }
    if !about.is_dir() {
        return PathListing {
            files: Vec::new(),
            problems: vec![Problem::new(path, ProblemKind::NotRegular)],
        };
    }
    let walked = walk(&whole, &PathRules);
    let mut files: Vec<PathFile> = walked.files.into_iter().map(file).collect();
    place_shared(&mut files);
    PathListing { files, problems: walked.problems }
}

struct PathRules;

impl Rules for PathRules {
    type Item = Option<(Home, FilePlace)>;

    fn enters(&self, dir: &Path) -> bool {
        !dir.file_name().is_some_and(|name| layout::is_passed_over(&name.to_string_lossy()))
    }

    fn follows(&self, _link: &Path) -> bool {
        false
    }

    fn takes(&self, path: &Path) -> Option<Self::Item> {
        let name = path.file_name()?.to_string_lossy();
        let placed = home_above(path);
        let is_wanted = placed.is_some() || may_have_records(&name) && !layout::is_left_out(&name);
        is_wanted.then_some(placed)
    }
}

fn file(taken: WalkedFile<Option<(Home, FilePlace)>>) -> PathFile {
    let WalkedFile { path, what, stat } = taken;
    match what {
        Some((home, place)) => {
            PathFile::Placed(FoundFile { provider: home.provider, home: home.root, path, place, stat })
        }
        None => PathFile::Loose(LooseFile { path, stat }),
    }
}

/// Finds the home of a file by the names above it: the outermost directory in which the file would be a transcript or a
/// sidecar. Shared files have names that any directory may contain.
fn home_above(path: &Path) -> Option<(Home, FilePlace)> {
    let mut roots: Vec<(&Path, &str)> = Vec::new();
    for dir in path.ancestors().skip(1) {
        // Of `/tmp/…`, `/` is not a home.
        let root = dir.parent().filter(|root| root.parent().is_some());
        roots.extend(root.zip(dir.file_name().and_then(|name| name.to_str())));
    }
    roots.into_iter().rev().find_map(|(root, top)| {
        let whose = Provider::ALL.iter().copied().filter(|&provider| layout::tops(provider).contains(&top));
        whose.into_iter().find_map(|provider| {
            let home = Home { provider, root: root.to_owned(), origin: Origin::NamedPath };
            let place = role_of(&home, path)?;
            (place.role != Role::Shared).then_some((home, place))
        })
    })
}

/// Classifies loose files that are shared files of a known home, such as a history of prompts.
fn place_shared(files: &mut [PathFile]) {
    let homes: BTreeMap<PathBuf, Provider> = files
        .iter()
        .filter_map(|file| match file {
            PathFile::Placed(file) => Some((file.home.clone(), file.provider)),
            PathFile::Loose(_) => None,
        })
        .collect();
    for file in files {
        let PathFile::Loose(loose) = file else { continue };
        let placed = loose.path.ancestors().skip(1).find_map(|root| {
            let &provider = homes.get(root)?;
            let home = Home { provider, root: root.to_owned(), origin: Origin::NamedPath };
            Some((role_of(&home, &loose.path)?, home))
        });
        if let Some((place, home)) = placed {
            let LooseFile { path, stat } = loose.clone();
            *file =
                PathFile::Placed(FoundFile { provider: home.provider, home: home.root, path, place, stat });
        }
    }
}
