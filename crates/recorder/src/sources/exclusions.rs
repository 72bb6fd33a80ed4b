//! Projects and paths that the user excluded from recording.

use std::borrow::Cow;
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest as _, Sha256};
use steno_vault::SourceInfo;

use super::SourceFile;
use super::project_lookup::{Project, ProjectLookup};

/// What is not recorded: projects by name or directory, and paths with everything below them. `*` matches any text.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    /// Projects, by the agent's name for them or by a directory, with everything below it.
    pub projects: Vec<String>,
    /// Files or directories.
    pub paths: Vec<String>,
}

/// Whether a file is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is recorded.
    Included,
    /// It is excluded.
    Excluded,
    /// Projects are excluded and its project is unknown, so it is not recorded.
    Unknown,
}

impl Exclusions {
    /// Takes the user's patterns. A directory also matches by its path without symbolic links.
    #[must_use]
    pub fn new(projects: &[String], paths: &[String]) -> Self {
        let both = |pattern: &String| {
            let real = std::fs::canonicalize(pattern).ok().filter(|real| real.is_absolute());
            let real = real.map(|real| real.to_string_lossy().into_owned());
            let real = real.filter(|real| is_dir(pattern) && real != plain(pattern));
            [Some(pattern.clone()), real].into_iter().flatten()
        };
        Self {
            projects: projects.iter().flat_map(both).collect(),
            paths: paths.iter().flat_map(both).collect(),
        }
    }

    /// Decides whether a file is recorded.
    pub(crate) fn judge(&self, file: &SourceFile, membership: &ProjectLookup) -> Verdict {
        if self.names_path(file.path()) {
            return Verdict::Excluded;
        }
        if self.projects.is_empty() {
            return Verdict::Included;
        }
        self.judge_project(&membership.of(&file.info))
    }

    /// Decides whether the sessions in a directory are recorded.
    #[must_use]
    pub fn judge_dir(&self, dir: Option<&str>) -> Verdict {
        if self.projects.is_empty() { Verdict::Included } else { self.judge_names(None, dir) }
    }

    pub(crate) fn judge_project(&self, project: &Project) -> Verdict {
        match project {
            // Each piece of it is judged separately.
            Project::Several => Verdict::Included,
            Project::Unknown => Verdict::Unknown,
            Project::One { name, dir } => self.judge_names(name.as_deref(), dir.as_deref()),
        }
    }

    fn judge_names(&self, name: Option<&str>, dir: Option<&str>) -> Verdict {
        // A directory is exact and Claude's name for it is not, but the name counts if the two do not match.
        let fits = dir.zip(name).is_some_and(|(dir, name)| claude_name(plain(dir)) == name);
        let is_named = |pattern: &String| {
            let by_name = |name| names_project(pattern, name) || may_name_below(pattern, name);
            dir.is_some_and(|dir| names_dir(pattern, dir))
                || name.is_some_and(|name| matches(plain(pattern), name))
                || !fits && name.is_some_and(by_name)
        };
        if self.projects.iter().any(is_named) {
            return Verdict::Excluded;
        }
        // A project's name does not give its directory; it is enough only if no pattern is a directory.
        let is_known = dir.is_some()
            || name.is_some_and(is_claude_name)
            || !self.projects.iter().any(|pattern| is_dir(pattern));
        if is_known && (dir.is_some() || name.is_some()) { Verdict::Included } else { Verdict::Unknown }
    }

    /// Tells whether a path is excluded, or is below an excluded path.
    #[must_use]
    pub fn names_path(&self, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.paths.iter().any(|pattern| is_at_or_below(plain(pattern), &path))
    }
}

/// Tells whether a project matches a pattern: by the agent's name for it, or by a directory at or below the pattern.
#[must_use]
pub fn is_project(pattern: &str, info: &SourceInfo, dir: Option<&str>) -> bool {
    let is_named = |pattern: &str| {
        let by_name = |name| matches(plain(pattern), name) || names_dir(pattern, name);
        let by_made_up_name = |name| dir.is_none() && names_project(pattern, name);
        info.project.as_deref().is_some_and(|name| by_name(name) || by_made_up_name(name))
            || dir.is_some_and(|dir| names_dir(pattern, dir))
    };
    is_named(pattern) || std::fs::canonicalize(pattern).is_ok_and(|real| is_named(&real.to_string_lossy()))
}

/// Tells whether a directory is at or below a project's directory.
#[must_use]
pub fn is_in_project(pattern: &str, dir: &str) -> bool {
    names_dir(pattern, dir)
        || std::fs::canonicalize(pattern).is_ok_and(|real| names_dir(&real.to_string_lossy(), dir))
}

fn is_dir(pattern: &str) -> bool {
    pattern.starts_with('/') || pattern.starts_with("*/")
}

/// Returns a pattern without slashes at its end.
fn plain(pattern: &str) -> &str {
    let trimmed = pattern.trim_end_matches('/');
    if trimmed.is_empty() { pattern } else { trimmed }
}

/// Returns a path without `//`, `/./`, `/../` and trailing slashes.
fn normal(path: &str) -> Cow<'_, str> {
    if !path.contains("//") && !path.contains("/.") {
        return plain(path).into();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/")).into()
}

/// Tells whether a directory matches a pattern or is below it, as given or without symbolic links.
pub(crate) fn names_dir(pattern: &str, dir: &str) -> bool {
    let pattern = &*normal(pattern);
    if !pattern.starts_with(['/', '*']) {
        return false;
    }
    let dir = dir.strip_prefix("file://").unwrap_or(dir);
    let is_named = |dir: &str| is_at_or_below(pattern, &normal(dir));
    is_named(dir) || std::fs::canonicalize(dir).is_ok_and(|real| is_named(&real.to_string_lossy()))
}

/// Tells whether a project's name matches a pattern, or is the agent's name for the pattern's directory.
fn names_project(pattern: &str, name: &str) -> bool {
    let pattern = plain(pattern);
    let is_hash = || {
        name.len() == 64 && pattern.starts_with('/') && !pattern.contains('*') && gemini_name(pattern) == name
    };
    matches(pattern, name) || is_dir(pattern) && matches(&claude_name(pattern), name) || is_hash()
}

/// Tells whether Claude Code's name for a project may be that of a directory below the pattern.
fn may_name_below(pattern: &str, name: &str) -> bool {
    is_dir(pattern) && matches(&format!("{}-*", claude_name(plain(pattern))), name)
}

fn is_claude_name(name: &str) -> bool {
    name.starts_with('-')
}

/// Returns how Claude Code names the project in a directory.
pub(crate) fn claude_name(dir: &str) -> String {
    let letter = |letter: char| if letter.is_ascii_alphanumeric() || letter == '*' { letter } else { '-' };
    dir.chars().map(letter).collect()
}

/// Returns how the first releases of Gemini CLI name the project in a directory.
fn gemini_name(dir: &str) -> String {
    HEXLOWER.encode(&Sha256::digest(dir.as_bytes()))
}

fn is_at_or_below(pattern: &str, path: &str) -> bool {
    matches(pattern, path) || matches(&format!("{pattern}/*"), path)
}

/// Tells whether a text matches a pattern in which `*` matches any text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut last = None;
    for part in parts {
        // All parts but the last can match at their first occurrence.
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
    fn star_matches_any_text() {
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
    fn project_is_excluded_by_directory_and_by_name() {
        use Verdict::{Excluded, Included, Unknown};
        let check = |pattern: &str, name: Option<&str>, dir: Option<&str>, want: Verdict| {
            let exclusions = Exclusions { projects: vec![pattern.to_owned()], paths: Vec::new() };
            assert_eq!(exclusions.judge_names(name, dir), want, "{pattern} {name:?} {dir:?}");
        };
        for pattern in ["/src/secret", "/src/secret/", "/src/sec*"] {
            check(pattern, None, Some("/src/secret"), Excluded);
            check(pattern, None, Some("/src/secret/"), Excluded);
            check(pattern, None, Some("/src/secret/deep/er"), Excluded);
            check(pattern, None, Some("/src/other"), Included);
            check(pattern, Some("-src-secret"), None, Excluded);
            // It may be `/src/secret/plans`.
            check(pattern, Some("-src-secret-plans"), None, Excluded);
            check(pattern, None, None, Unknown);
            check(pattern, Some("shop"), None, Unknown);
        }
        check("/src/secret", Some("-src-secret-plans"), Some("/src/secret-plans"), Included);
        check("/src/secret", None, Some("/src/secret-plans"), Included);
        check("/src/secret", Some(&gemini_name("/src/secret")), None, Excluded);
        check("shop", Some("shop"), None, Excluded);
        check("shop", Some("web"), None, Included);
        check("shop", None, Some("/src/shop"), Included);
    }

    #[test]
    fn claude_name_replaces_special_characters() {
        assert_eq!(claude_name("/src/my app.v2"), "-src-my-app-v2");
    }
}
