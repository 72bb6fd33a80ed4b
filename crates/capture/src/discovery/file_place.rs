//! Classifies a file in a home by its path alone. Used for listings and for single paths from a watch.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path};

use super::homes::Home;
use super::layout::{self, DEPTH_MAX};

/// The role of a file in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// The file with the records of a session.
    Transcript,
    /// Another file of a session, which is needed to restore it.
    Sidecar,
    /// A file of several sessions, or of none that its path names: prompt histories, plans, to-do lists, saved states
    /// of files, notes on a project.
    Shared,
}

/// The role, session and project of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FilePlace {
    /// The role.
    pub role: Role,
    /// The session; a shared file may have none.
    pub session: Option<SessionKey>,
    /// The agent's directory for the project; only Claude and Gemini have one.
    pub project: Option<String>,
}

/// The key that the files of one session share within a home.
///
/// - Claude: `<project>/<session id>`. A subagent of version 2.0 is a separate session, `<project>/agent-<id>`: only
///   its content names the session it worked for. For shared files it is the id alone, as their path has no project.
/// - Codex: the thread's id.
/// - Gemini: `<project>/<first eight characters of the session's id>`, which is all that the names of its files share.
/// - Copilot: the session's id.
///
/// Bytes of a path that are not UTF-8 are replaced: this is a key to compare and to show, not a path to open.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(Box<str>);

impl SessionKey {
    pub(super) fn of_project(project: &str, id: &str) -> Self {
        Self(format!("{project}/{id}").into())
    }

    pub(super) fn of_id(id: &str) -> Self {
        Self(id.into())
    }

    /// Returns the whole key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the key without the project.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.rsplit_once('/').map_or(&self.0, |(_, id)| id)
    }
}

impl fmt::Display for SessionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Classifies the file at a path; `None` if no rule names it, or if it is not in the home.
///
/// Uses only the path. Such a file is in directories for which [`may_hold`] is true.
#[must_use]
pub fn role_of(home: &Home, path: &Path) -> Option<FilePlace> {
    let names = names_below(&home.root, path)?;
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    layout::place(home.provider, &names)
}

/// Tells whether a directory may contain files with a [`FilePlace`], at any depth; true for the home itself.
#[must_use]
pub fn may_hold(home: &Home, dir: &Path) -> bool {
    let is_too_deep = |below: &Path| below.components().count() > DEPTH_MAX;
    leads_to_files(home, dir) && !dir.strip_prefix(&home.root).is_ok_and(is_too_deep)
}

/// As [`may_hold`], but also true for a directory that is too deep, so that a listing can report it.
pub(super) fn leads_to_files(home: &Home, dir: &Path) -> bool {
    let Some(names) = names_below(&home.root, dir) else { return false };
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.is_empty() || layout::may_hold(home.provider, &names)
}

/// Returns the names of a path below a directory; `None` when it is not below it, or contains `..`.
fn names_below<'a>(root: &Path, path: &'a Path) -> Option<Vec<Cow<'a, str>>> {
    let below = path.strip_prefix(root).ok()?;
    let names = below.components().map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    names.collect()
}
