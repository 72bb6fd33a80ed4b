//! Where agents' homes are, by the variables and the defaults of each agent.
//!
//! A variable adds a home and does not take the default one away: it was set in some shell, and what is recorded is
//! what agents did on this machine, also in other shells and before it was set.

use std::collections::{BTreeMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::problem::{Problem, Why};
use super::provider::Provider;

/// What is known of the machine and the user: handed in, and never asked for.
#[derive(Clone, Debug)]
pub struct Environment {
    /// The user's home directory, if there is one.
    pub home: Option<PathBuf>,
    /// The variables that are set, of [`Environment::VARIABLES`]. One with an empty value counts as not set.
    pub variables: BTreeMap<&'static str, OsString>,
    /// The directory that the machine's own settings lie below, `/` except in tests.
    pub system_root: PathBuf,
}

/// The directory in which an agent keeps its sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Home {
    /// Whose it is.
    pub provider: Provider,
    /// The directory, absolute and without links.
    pub root: PathBuf,
    /// What named it.
    pub origin: Origin,
}

/// What named a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// A variable, or for those of the desktop (`XDG_…`) a directory below the one that it names.
    Variable(&'static str),
    /// The agent's default.
    Default,
    /// Somebody who named a path in it, see [`given`](super::given).
    Given,
}

/// The homes on a machine.
#[derive(Debug, Default)]
pub struct Homes {
    /// Those that are there, each once, by provider; first what a variable names.
    pub found: Vec<Home>,
    /// Those that a variable names and that are not there, and those that cannot be looked at.
    pub problems: Vec<Problem>,
}

impl Environment {
    /// The variables that have a say in where homes and settings are.
    pub const VARIABLES: [&'static str; 8] = [
        "CLAUDE_CONFIG_DIR",
        "CODEX_HOME",
        "GEMINI_CLI_HOME",
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH",
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH",
        "COPILOT_HOME",
        "XDG_CONFIG_HOME",
        "XDG_STATE_HOME",
    ];

    /// Takes from `look_up` every variable that matters.
    pub fn from_lookup(home: Option<PathBuf>, look_up: impl Fn(&str) -> Option<OsString>) -> Self {
        let variables = Self::VARIABLES.into_iter().filter_map(|name| Some((name, look_up(name)?)));
        Self { home, variables: variables.collect(), system_root: PathBuf::from("/") }
    }

    /// Returns a variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns a directory that a variable of the desktop names. The convention has it that others than absolute
    /// paths are to be ignored.
    fn desktop_dir(&self, name: &str) -> Option<&Path> {
        self.variable(name).map(Path::new).filter(|path| path.is_absolute())
    }
}

/// Finds the homes of all agents.
#[must_use]
pub fn homes(environment: &Environment) -> Homes {
    let mut homes = Homes::default();
    let mut seen = HashSet::new();
    for candidate in Provider::ALL.into_iter().flat_map(|provider| candidates(provider, environment)) {
        match look(&candidate) {
            Ok(Some(home)) if seen.insert((home.provider, home.root.clone())) => homes.found.push(home),
            Ok(_) => {}
            Err(why) => homes.problems.push(Problem::new(&candidate.path, why)),
        }
    }
    homes
}

/// A place where a home may be.
struct Candidate {
    provider: Provider,
    path: PathBuf,
    origin: Origin,
    /// The variable that names this very home, so that it ought to be there.
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
    let variable = match provider {
        Provider::Claude => "CLAUDE_CONFIG_DIR",
        Provider::Codex => "CODEX_HOME",
        Provider::Gemini => "GEMINI_CLI_HOME",
        Provider::Copilot => "COPILOT_HOME",
    };
    let named = environment.variable(variable).map(|value| match provider {
        Provider::Claude => split_list(value),
        // The variable stands in for the user's home directory and not for the agent's.
        Provider::Gemini => vec![Path::new(value).join(".gemini")],
        Provider::Codex | Provider::Copilot => vec![PathBuf::from(value)],
    });
    let named = named.into_iter().flatten().map(|path| Candidate::named(provider, variable, path));
    named.chain(defaults(provider, environment)).collect()
}

fn defaults(provider: Provider, environment: &Environment) -> Vec<Candidate> {
    let mut found = Vec::new();
    if let Some(home) = &environment.home {
        let name = match provider {
            Provider::Claude => ".claude",
            Provider::Codex => ".codex",
            Provider::Gemini => ".gemini",
            Provider::Copilot => ".copilot",
        };
        found.push(Candidate::possible(provider, Origin::Default, home.join(name)));
    }
    match provider {
        // Some releases of 2025 kept everything there.
        Provider::Claude => {
            if let Some(dir) = environment.desktop_dir("XDG_CONFIG_HOME") {
                let origin = Origin::Variable("XDG_CONFIG_HOME");
                found.push(Candidate::possible(provider, origin, dir.join("claude")));
            } else if let Some(home) = &environment.home {
                found.push(Candidate::possible(provider, Origin::Default, home.join(".config/claude")));
            }
        }
        // Releases before 1.0 kept sessions there if the variable was set, under this hidden name.
        Provider::Copilot => {
            if let Some(dir) = environment.desktop_dir("XDG_STATE_HOME") {
                let origin = Origin::Variable("XDG_STATE_HOME");
                found.push(Candidate::possible(provider, origin, dir.join(".copilot")));
            }
        }
        Provider::Codex | Provider::Gemini => {}
    }
    found
}

/// Takes apart a list of directories. Claude itself knows one directory only, whose name may well have a comma in it;
/// the list is a convention of tools that read its files.
fn split_list(value: &OsStr) -> Vec<PathBuf> {
    if Path::new(value).exists() {
        return vec![PathBuf::from(value)];
    }
    let parts = value.as_bytes().split(|&byte| byte == b',').map(<[u8]>::trim_ascii);
    parts.filter(|part| !part.is_empty()).map(|part| PathBuf::from(OsStr::from_bytes(part))).collect()
}

/// Looks whether a home is there. That one is not is worth telling only if it was named.
fn look(candidate: &Candidate) -> Result<Option<Home>, Why> {
    let &Candidate { provider, ref path, origin, named_by } = candidate;
    let root = match std::fs::canonicalize(path) {
        Ok(root) => root,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return named_by.map_or(Ok(None), |variable| Err(Why::NotThere { variable }));
        }
        Err(error) => return Err(Why::Unreadable(error)),
    };
    match std::fs::metadata(&root) {
        Ok(about) if about.is_dir() => Ok(Some(Home { provider, root, origin })),
        Ok(_) => named_by.map_or(Ok(None), |variable| Err(Why::NoDirectory { variable })),
        Err(error) => Err(Why::Unreadable(error)),
    }
}
