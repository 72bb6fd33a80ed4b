//! Finds agents' homes by the variables and the defaults of each agent.
//!
//! A variable adds a home and does not remove the default one: it was set in some shell, and recording covers what
//! agents did on this machine, also in other shells and before it was set.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use steno_model::{Provider, Vocabulary as _};

use super::problem::{Problem, ProblemKind};

/// The environment of the user and the machine. It is always an argument.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The user's home directory, if there is one.
    pub home: Option<PathBuf>,
    /// The variables of [`Environment::VARIABLES`] that are set. An empty value counts as not set.
    pub variables: BTreeMap<&'static str, OsString>,
    /// The root for the machine's settings: `/` except in tests.
    pub system_root: PathBuf,
}

/// The directory in which an agent keeps its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Home {
    /// The agent.
    pub provider: Provider,
    /// The directory, absolute and without links.
    pub root: PathBuf,
    /// How it was found.
    pub origin: Origin,
}

/// How a home was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// By a variable; for `XDG_…`, a directory below the one that it names.
    Variable(&'static str),
    /// The agent's default directory.
    Default,
    /// Because the user named a path in it, see [`list_path`](super::list_path).
    NamedPath,
}

/// The homes on a machine.
#[derive(Debug, Default)]
pub struct Homes {
    /// The existing homes, each once, ordered by provider; those of a variable first.
    pub found: Vec<Home>,
    /// Homes that a variable names and that do not exist, and homes that cannot be read.
    pub problems: Vec<Problem>,
}

impl Environment {
    /// The variables that determine where homes and settings are.
    pub const VARIABLES: [&'static str; 9] = [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
        "COPILOT_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
    ];

    /// Looks up all these variables.
    pub fn from_lookup(home: Option<PathBuf>, look_up: impl Fn(&str) -> Option<OsString>) -> Self {
        let variables = Self::VARIABLES.into_iter().filter_map(|name| Some((name, look_up(name)?)));
        Self { home, variables: variables.collect(), system_root: PathBuf::from("/") }
    }

    /// Returns a variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        debug_assert!(Self::VARIABLES.contains(&name), "`{name}` is missing in `Environment::VARIABLES`");
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns a directory from an XDG variable. The specification says to ignore relative paths.
    fn desktop_dir(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|path| path.is_absolute())
    }
}

/// Finds the homes of all agents.
#[must_use]
pub fn homes(environment: &Environment) -> Homes {
    let mut homes = Homes::default();
    let mut seen = HashSet::new();
    for candidate in Provider::ALL.iter().flat_map(|&provider| candidates(provider, environment)) {
        match look(&candidate) {
            Ok(Some(home)) if seen.insert((home.provider, home.root.clone())) => homes.found.push(home),
            Ok(_) => {}
            Err(why) => homes.problems.push(Problem::new(&candidate.path, why)),
        }
    }
    homes
}

/// Returns the database in which an agent keeps its sessions, if it has one there. It is not captured.
#[must_use]
pub fn database(home: &Home) -> Option<PathBuf> {
    match home.provider {
        Provider::OpenCode => Some(home.root.join("opencode.db")).filter(|path| path.is_file()),
        Provider::Claude | Provider::Codex | Provider::Gemini | Provider::Copilot => None,
    }
}

/// A path where a home may be.
struct Candidate {
    provider: Provider,
    path: PathBuf,
    origin: Origin,
    /// The variable that names exactly this home, so that it should exist.
    named_by: Option<&'static str>,
}

impl Candidate {
    fn named(provider: Provider, variable: &'static str, path: PathBuf) -> Self {
        Self { provider, path, origin: Origin::Variable(variable), named_by: Some(variable) }
    }

    fn possible(provider: Provider, origin: Origin, path: PathBuf) -> Self {
        Self { provider, path, origin, named_by: None }
    }
}

fn candidates(provider: Provider, environment: &Environment) -> Vec<Candidate> {
    let named_by = |variable: &'static str, paths: fn(&OsStr) -> Vec<PathBuf>| {
        let named = environment.variable(variable).map(paths).unwrap_or_default();
        named.into_iter().map(|path| Candidate::named(provider, variable, path)).collect::<Vec<_>>()
    };
    let whole = |value: &OsStr| vec![PathBuf::from(value)];
    let mut found = match provider {
        Provider::Claude => named_by("CLAUDE_CONFIG_DIR", split_list),
        Provider::Codex => named_by("CODEX_HOME", whole),
        // The variable replaces the user's home directory, not the agent's.
        Provider::Gemini => named_by("GEMINI_CLI_HOME", |value| vec![Path::new(value).join(".gemini")]),
        Provider::Copilot => named_by("COPILOT_HOME", whole),
        Provider::OpenCode => Vec::new(),
    };
    found.extend(defaults(provider, environment));
    found
}

fn defaults(provider: Provider, environment: &Environment) -> Vec<Candidate> {
    let mut found = Vec::new();
    if let Some(home) = &environment.home {
        let name = match provider {
            Provider::Claude => ".claude",
            Provider::Codex => ".codex",
            Provider::Gemini => ".gemini",
            Provider::Copilot => ".copilot",
            Provider::OpenCode => ".local/share/opencode",
        };
        found.push(Candidate::possible(provider, Origin::Default, home.join(name)));
    }
    match provider {
        // Some releases of 2025 used this directory.
        Provider::Claude => {
            if let Some(dir) = environment.desktop_dir("XDG_CONFIG_HOME") {
                let origin = Origin::Variable("XDG_CONFIG_HOME");
                found.push(Candidate::possible(provider, origin, dir.join("claude")));
            } else if let Some(home) = &environment.home {
                found.push(Candidate::possible(provider, Origin::Default, home.join(".config/claude")));
            }
        }
        // Releases before 1.0 used this hidden directory if the variable was set.
        Provider::Copilot => {
            if let Some(dir) = environment.desktop_dir("XDG_STATE_HOME") {
                let origin = Origin::Variable("XDG_STATE_HOME");
                found.push(Candidate::possible(provider, origin, dir.join(".copilot")));
            }
        }
        Provider::OpenCode => {
            if let Some(dir) = environment.desktop_dir("XDG_DATA_HOME") {
                let origin = Origin::Variable("XDG_DATA_HOME");
                found.push(Candidate::possible(provider, origin, dir.join("opencode")));
            }
        }
        Provider::Codex | Provider::Gemini => {}
    }
    found
}

/// Splits a list of directories. Claude itself supports one directory only, whose name may contain a comma; the list is
/// a convention of tools that read its files.
fn split_list(value: &OsStr) -> Vec<PathBuf> {
    if Path::new(value).exists() {
        return vec![PathBuf::from(value)];
    }
    let parts = value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    parts.filter(|part| !part.is_empty()).map(|part| PathBuf::from(OsStr::from_bytes(part))).collect()
}

/// Tells whether a home exists. A missing one is a problem only if a variable names it.
fn look(candidate: &Candidate) -> Result<Option<Home>, ProblemKind> {
    let &Candidate { provider, ref path, origin, named_by } = candidate;
    let root = match std::fs::canonicalize(path) {
        Ok(root) => root,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return named_by.map_or(Ok(None), |variable| Err(ProblemKind::NotThere { variable }));
        }
        Err(error) => return Err(ProblemKind::Unreadable(error)),
    };
    match std::fs::metadata(&root) {
        Ok(about) if about.is_dir() => Ok(Some(Home { provider, root, origin })),
        Ok(_) => named_by.map_or(Ok(None), |variable| Err(ProblemKind::NoDirectory { variable })),
        Err(error) => Err(ProblemKind::Unreadable(error)),
    }
}
