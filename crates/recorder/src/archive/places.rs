//! Where files to archive come from: agents' homes, and what somebody names; without what is excluded.

use std::path::{Path, PathBuf};

use steno_capture::discovery::{
    GivenFile, Home, Listing, Problem, file_at, files, files_below, given, may_hold,
};

use steno_vault::{SourceInfo, is_being_restored};

use super::ToArchive;
use super::catalog::plain_name;

/// Where to look, and what to leave alone.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Agents' homes.
    pub homes: Vec<Home>,
    /// Files and directories that somebody named.
    pub given: Vec<PathBuf>,
    /// What is left alone.
    pub exclusions: Exclusions,
}

/// What was found in places.
#[derive(Debug, Default)]
pub struct Found {
    /// The files to archive.
    pub files: Vec<ToArchive>,
    /// How many more there are that are excluded.
    pub excluded: u64,
    /// The directories where more may appear.
    pub dirs: Vec<PathBuf>,
    /// What could not be looked at.
    pub problems: Vec<Problem>,
}

impl Places {
    /// Lists everything.
    #[must_use]
    pub fn list(&self) -> Found {
        let mut found = Found::default();
        for home in &self.homes {
            self.take(files(home), &mut found);
        }
        for path in &self.given {
            let listed = given(path);
            found.problems.extend(listed.problems);
            for file in &listed.files {
                self.take_file(ToArchive::given(file), &mut found);
                found.dirs.extend(file.path().parent().map(Path::to_owned));
            }
            if path.is_dir() {
                found.dirs.push(path.clone());
            }
        }
        found.dirs.sort();
        found.dirs.dedup();
        found
    }

    /// Lists a directory that has changed, and those below it.
    #[must_use]
    pub fn list_below(&self, dir: &Path) -> Found {
        let mut found = Found::default();
        for home in self.homes.iter().filter(|home| dir == home.root || may_hold(home, dir)) {
            self.take(files_below(home, dir), &mut found);
        }
        if self.given.iter().any(|path| dir.starts_with(path)) {
            for file in &given(dir).files {
                self.take_file(ToArchive::given(file), &mut found);
            }
            found.dirs.push(dir.to_owned());
        }
        found
    }

    /// Looks at one path; `None` unless a file to archive stands there.
    #[must_use]
    pub fn at(&self, path: &Path) -> Option<ToArchive> {
        let in_home = self.homes.iter().find_map(|home| file_at(home, path));
        let file = match in_home {
            Some(file) => ToArchive::found(&file),
            None if self.given.iter().any(|given| path.starts_with(given)) => {
                let listed = given(path).files;
                ToArchive::given(listed.iter().find(|file: &&GivenFile| file.path() == path)?)
            }
            None => return None,
        };
        (!is_passed_over(path) && !self.exclusions.cover(&file)).then_some(file)
    }

    fn take(&self, listing: Listing, found: &mut Found) {
        listing.files.iter().for_each(|file| self.take_file(ToArchive::found(file), found));
        found.dirs.extend(listing.dirs);
        found.problems.extend(listing.problems);
    }

    fn take_file(&self, file: ToArchive, found: &mut Found) {
        if is_passed_over(file.path()) {
            return;
        }
        if self.exclusions.cover(&file) {
            found.excluded += 1;
        } else {
            found.files.push(file);
        }
    }
}

/// Tells whether a file is none of its own: one that is being restored, or the compressed form of another that is there
/// too, which is the one that is written to.
fn is_passed_over(path: &Path) -> bool {
    let plain = plain_name(path);
    is_being_restored(path) || (plain != path && plain.exists())
}

/// What is left alone: projects by name or directory, paths with all that is below them. `*` stands for anything.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    /// Projects, as their agent names them or by their directory.
    pub projects: Vec<String>,
    /// Files or directories.
    pub paths: Vec<String>,
}

impl Exclusions {
    /// Tells whether a file is left alone.
    #[must_use]
    pub fn cover(&self, file: &ToArchive) -> bool {
        let path = file.path().to_string_lossy();
        let is_below = |pattern: &String| {
            let pattern = pattern.trim_end_matches('/');
            matches(pattern, &path) || matches(&format!("{pattern}/*"), &path)
        };
        if self.paths.iter().any(is_below) {
            return true;
        }
        // Finding out the project may take a look into the file.
        let info = if self.projects.is_empty() { None } else { Some(file.whole_info()) };
        info.is_some_and(|info| self.projects.iter().any(|project| is_project(project, &info)))
    }
}

/// Tells whether a file belongs to a project, given as its agent names it or by its directory.
#[must_use]
pub fn is_project(pattern: &str, info: &SourceInfo) -> bool {
    let is_named = |name: &str| matches(pattern, name) || matches(&claude_name(pattern), name);
    info.project.as_deref().is_some_and(is_named)
}

/// Returns how Claude Code names the project in a directory.
fn claude_name(dir: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '*' { letter } else { '-' };
    dir.chars().map(letter).collect()
}

/// Tells whether a text is what a pattern says, in which `*` stands for anything.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        // All but the last part may stand at the first place where they are found.
        if let Some(middle) = last.replace(part) {
            let Some((_, after)) = rest.split_once(middle) else { return false };
            rest = after;
        }
    }
    last.map_or(rest.is_empty(), |last| rest.ends_with(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, want) in [
            ("abc", "abc", true),
            ("abc", "abcd", false),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*c*e", "abcde", true),
            ("a*c*e", "abcd", false),
            ("*", "", true),
            ("a*a", "a", false),
            ("**b**", "abc", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern, text), want, "{pattern} {text}");
        }
    }

    #[test]
    fn a_directory_is_the_project_that_claude_names_after_it() {
        assert_eq!(claude_name("/src/my app.v2"), "-src-my-app-v2");
    }
}
