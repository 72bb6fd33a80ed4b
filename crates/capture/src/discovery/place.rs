//! What a file in a home is, told by its path alone, so that it serves a walk and a single path from a watcher alike.

use std::borrow::Cow;
use std::fmt;
use std::path::{Component, Path};

use super::homes::Home;
use super::layout::{self, DEPTH_MAX};

/// What a file is to a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// A file that an agent writes its session's records into.
    Transcript,
    /// Another file of a session, without which it cannot be given back as it was.
    Sidecar,
    /// A file of several sessions, or of none that its path names in full: prompt histories, plans, lists of things to
    /// do, saved states of files, notes on a project.
    Shared,
}

/// What a path says of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// What the file is.
    pub role: Role,
    /// What it belongs to; a shared file may have none.
    pub session: Option<SessionKey>,
    /// The directory that the agent keeps for a project: of Claude and Gemini.
    pub project: Option<String>,
}

/// What the files of one session have in common within a home.
///
/// - Claude: `<project>/<session id>`. A subagent of the 2.0 era is a session of its own, `<project>/agent-<id>`: which
///   session it worked for stands only in it. Of shared files it is the id alone, as their path has no project.
/// - Codex: the thread's id.
/// - Gemini: `<project>/<first eight characters of the session's id>`, all that the names of its files have in common.
/// - Copilot: the session's id.
///
/// Bytes of a path that are no UTF-8 are replaced: it is a key to compare and to show, and no path to open.
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

/// Tells what the file at a path is; `None` for one that is no business of ours, or that does not lie in the home.
///
/// Nothing is looked at but the path. A file with a place lies in directories that [`may_hold`] is true of.
#[must_use]
pub fn role_of(home: &Home, path: &Path) -> Option<Place> {
    let names = names_below(&home.root, path)?;
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    layout::place(home.provider, &names)
}

/// Tells whether a directory may hold files with a [`Place`], at whatever depth; true of the home itself.
#[must_use]
pub fn may_hold(home: &Home, dir: &Path) -> bool {
    let is_too_deep = |below: &Path| below.components().count() > DEPTH_MAX;
    leads_to_files(home, dir) && !dir.strip_prefix(&home.root).is_ok_and(is_too_deep)
}

/// As [`may_hold`], and also of a directory that is too deep, so that a walk can tell that it is.
pub(super) fn leads_to_files(home: &Home, dir: &Path) -> bool {
    let Some(names) = names_below(&home.root, dir) else { return false };
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    names.is_empty() || layout::may_hold(home.provider, &names)
}

/// Returns the names of a path below a directory; `None` when it does not lie there, or goes up again.
fn names_below<'a>(root: &Path, path: &'a Path) -> Option<Vec<Cow<'a, str>>> {
    let below = path.strip_prefix(root).ok()?;
    let names = below.components().map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
    });
    names.collect()
}
