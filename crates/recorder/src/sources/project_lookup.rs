//! Which project files and sessions belong to, according to the agents' homes.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use steno_capture::discovery::{Home, Origin, Role as PlaceRole, files, gemini_project_dir};
use steno_model::Provider;
use steno_vault::{Role, SourceInfo};

use super::exclusions::claude_name;
use super::identity::{SessionIdentity, copilot_dir, head_of, session_file, slug_of, string_at};
use super::shared_file::SharedFileFormat;

/// How many sessions of a project are read to find its directory.
const SESSIONS_ASKED_MAX: usize = 16;
/// How long to wait before reading all sessions of a home again for an unknown one.
const LEARN_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The project of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Project {
    /// One project: the agent's name for it, its directory, or both.
    One { name: Option<String>, dir: Option<String> },
    /// The file has data of several projects.
    Several,
    /// The project is unknown.
    Unknown,
}

impl Project {
    fn new(name: Option<String>, dir: Option<String>) -> Self {
        if name.is_none() && dir.is_none() { Self::Unknown } else { Self::One { name, dir } }
    }
}

/// Finds the projects of files and sessions, and caches what it finds.
#[derive(Debug, Default)]
pub struct ProjectLookup {
    known: Mutex<ProjectCache>,
}

#[derive(Debug, Default)]
struct ProjectCache {
    /// The directories of projects that have names.
    projects: HashMap<(PathBuf, String), String>,
    /// The projects of sessions.
    sessions: HashMap<(PathBuf, String), Project>,
    /// When all sessions of a Codex home were last read.
    codex_learned: HashMap<PathBuf, Instant>,
}

impl ProjectLookup {
    /// Finds the project of a file.
    pub(crate) fn of(&self, info: &SourceInfo) -> Project {
        let path = &info.path.0;
        let home = info.home.as_ref().map(|home| home.0.as_path());
        let name = info.project.clone();
        let id = info.session.as_deref().and_then(|session| session.rsplit('/').next());
        if SharedFileFormat::of(info).is_some_and(SharedFileFormat::is_of_several_projects) {
            return Project::Several;
        }
        let dir = match (info.known_provider(), home) {
            (Some(Provider::Claude), Some(home)) => match (&name, id) {
                (Some(name), _) => {
                    let own = session_file(info).and_then(|session| SessionIdentity::of_file(&session).dir);
                    own.or_else(|| self.claude_dir(home, name))
                }
                (None, Some(id)) => return self.of_session(Provider::Claude, home, id),
                (None, None) => return self.of_plan(home, path),
            },
            (Some(Provider::Gemini), Some(home)) => {
                let name = name.clone().unwrap_or_default();
                self.project_dir(home, &name, || gemini_project_dir(home, &name))
            }
            (Some(Provider::Copilot), Some(home)) => copilot_dir(home, path),
            (Some(Provider::Codex), _) if info.role == Role::Transcript => SessionIdentity::of_file(path).dir,
            (Some(Provider::Codex), Some(home)) => {
                return id.map_or(Project::Unknown, |id| self.of_session(Provider::Codex, home, id));
            }
            // No file of its home is recorded.
            (Some(Provider::OpenCode), Some(_)) => return Project::Unknown,
            (
                Some(
                    Provider::Claude
                    | Provider::Codex
                    | Provider::Gemini
                    | Provider::Copilot
                    | Provider::OpenCode,
                ),
                None,
            )
            | (None, _) => return of_loose(path),
        };
        Project::new(name, dir)
    }

    /// Finds the project of a session, by the session's id.
    pub(crate) fn of_session(&self, provider: Provider, home: &Path, id: &str) -> Project {
        let key = (home.to_owned(), id.to_owned());
        if let Some(project) = self.known().sessions.get(&key) {
            return project.clone();
        }
        let project = match provider {
            Provider::Claude => claude_project_of(home, id).map_or(Project::Unknown, |project| {
                let dir = self.claude_dir(home, &project);
                Project::new(Some(project), dir)
            }),
            Provider::Codex => return self.learn_codex(home, &key),
            Provider::Copilot => {
                let events = home.join("session-state").join(id).join("events.jsonl");
                Project::new(None, copilot_dir(home, &events))
            }
            // Files of Gemini CLI are in directories of projects; OpenCode has none.
            Provider::Gemini | Provider::OpenCode => Project::Unknown,
        };
        if project != Project::Unknown {
            self.known().sessions.insert(key, project.clone());
        }
        project
    }

    fn known(&self) -> std::sync::MutexGuard<'_, ProjectCache> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn project_dir(&self, home: &Path, name: &str, look: impl FnOnce() -> Option<String>) -> Option<String> {
        let key = (home.to_owned(), name.to_owned());
        if let Some(dir) = self.known().projects.get(&key) {
            return Some(dir.clone());
        }
        let dir = look()?;
        self.known().projects.insert(key, dir.clone());
        Some(dir)
    }

    /// Finds the directories of all Codex sessions in a home; returns the project of one of them. An unknown session is
    /// not looked up again at once, because histories have many deleted sessions.
    fn learn_codex(&self, home: &Path, key: &(PathBuf, String)) -> Project {
        let now = Instant::now();
        let is_fresh = |learned: &Instant| now.duration_since(*learned) < LEARN_AGAIN_AFTER;
        if !self.known().codex_learned.get(home).is_some_and(is_fresh) {
            let whole = Home { provider: Provider::Codex, root: home.to_owned(), origin: Origin::NamedPath };
            for file in files(&whole).files {
                let Some(session) = file.place.session.filter(|_| file.place.role == PlaceRole::Transcript)
                else {
                    continue;
                };
                let key = (home.to_owned(), session.id().to_owned());
                if !self.known().sessions.contains_key(&key)
                    && let Some(dir) = SessionIdentity::of_file(&file.path).dir
                {
                    self.known().sessions.insert(key, Project::new(None, Some(dir)));
                }
            }
            self.known().codex_learned.insert(home.to_owned(), now);
        }
        self.known().sessions.get(key).cloned().unwrap_or(Project::Unknown)
    }

    fn claude_dir(&self, home: &Path, project: &str) -> Option<String> {
        self.project_dir(home, project, || claude_dir(home, project))
    }

    /// Finds the project of a plan's session, by the slug that both have.
    fn of_plan(&self, home: &Path, path: &Path) -> Project {
        let slug = slug_of(path);
        let is_its = |session: &Path| {
            head_of(session).and_then(|head| string_at(&head, "slug")).as_ref() == Some(&slug)
        };
        let owner = claude_sessions(home).into_iter().find(|(_, session)| is_its(session));
        owner.map_or(Project::Unknown, |(project, _)| {
            let dir = self.claude_dir(home, &project);
            Project::new(Some(project), dir)
        })
    }
}

/// Finds the project of a file outside agents' homes, by its records.
fn of_loose(path: &Path) -> Project {
    let head = head_of(path).unwrap_or_default();
    // The first releases of Gemini CLI record a hash of the directory.
    Project::new(string_at(&head, "projectHash"), SessionIdentity::of_head(&head).dir)
}

/// Lists the sessions of a home of Claude Code with the names of their projects.
fn claude_sessions(home: &Path) -> Vec<(String, PathBuf)> {
    let mut sessions = Vec::new();
    for project in entries(&home.join("projects")) {
        let name = project.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_session = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "jsonl");
        sessions.extend(entries(&project).into_iter().filter(is_session).map(|path| (name.clone(), path)));
    }
    sessions
}

/// Finds the project that Claude Code keeps a session in.
fn claude_project_of(home: &Path, id: &str) -> Option<String> {
    let has_it =
        |project: &PathBuf| project.join(format!("{id}.jsonl")).exists() || project.join(id).is_dir();
    let project = entries(&home.join("projects")).into_iter().find(has_it)?;
    Some(project.file_name()?.to_string_lossy().into_owned())
}

/// Finds the directory of a Claude Code project in the records of its sessions. Prefers the directory that the project
/// is named after, as a session may use others too.
fn claude_dir(home: &Path, project: &str) -> Option<String> {
    let sessions = entries(&home.join("projects").join(project));
    let sessions = sessions.into_iter().filter(|path| path.is_file()).take(SESSIONS_ASKED_MAX);
    let dirs: Vec<String> = sessions.filter_map(|path| SessionIdentity::of_file(&path).dir).collect();
    dirs.iter().find(|dir| claude_name(dir) == project).or_else(|| dirs.first()).cloned()
}

fn entries(dir: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_dir(dir).into_iter().flatten();
    let mut paths: Vec<PathBuf> = listed.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}
