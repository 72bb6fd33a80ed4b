//! Where a session worked, and where that is inside of a task.

use super::command::Command;
use super::session::Session;
use super::turn::Turn;
use super::window::Refusal;
use crate::fields::PayloadFields;

/// Where a repository is put whose own place cannot be used.
const ELSEWHERE: &str = "/repo";

/// Directories that are the same on every machine, or are nobody's.
const COMMON: [&str; 9] = ["/bin/", "/dev/", "/etc/", "/lib/", "/opt/", "/proc/", "/sbin/", "/tmp/", "/usr/"];

/// Where a session worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The top directory of its repository.
    pub root: String,
    /// Who says so.
    pub root_from: &'static str,
    /// Where the session itself began.
    cwd: String,
}

impl Place {
    /// What is said of a root that is only where the session worked.
    pub(super) const FROM_CWD: &'static str = "the directory of the session, which may lie deeper";

    /// Finds the place of a session; who calls may know its root better.
    pub(super) fn of(session: &Session, given: Option<&str>) -> Result<Self, Refusal> {
        let repository = &session.repository;
        let recorded = repository.root.as_deref().or(session.cwd.as_deref());
        let (root, root_from) = match (given, recorded) {
            (Some(root), _) => (root, "given"),
            (None, Some(root)) if repository.root_is_cwd || repository.root.is_none() => {
                (root, Self::FROM_CWD)
            }
            (None, Some(root)) => (root, "recorded"),
            (None, None) => return Err(Refusal::new("nothing says where the session worked")),
        };
        let root = root.trim_end_matches('/');
        if !root.starts_with('/') || root.split('/').any(|part| part == "..") {
            let why = format!("`{root}` is no place of a repository");
            return Err(Refusal::new(why).with_hint("name it with `--root`"));
        }
        let cwd = session.cwd.clone().unwrap_or_else(|| root.to_owned());
        Ok(Self { root: root.to_owned(), root_from, cwd })
    }

    /// Returns where a turn worked.
    pub(super) fn of_turn(&self, turn: &Turn) -> String {
        let settings = turn.settings.as_ref().map_or("null", steno_model::json::RawJson::as_str);
        let cwd = PayloadFields::parse(settings).text("cwd").map(|cwd| super::session::plain_path(&cwd));
        cwd.unwrap_or_else(|| self.cwd.clone())
    }

    /// Returns where a command ran, relative to the repository.
    pub(super) fn of_command(&self, turn: &Turn, command: &Command) -> Result<String, String> {
        let cwd = self.of_turn(turn);
        let at = match &command.cwd {
            Some(at) if at.starts_with('/') => at.clone(),
            Some(at) => format!("{}/{at}", cwd.trim_end_matches('/')),
            None => cwd,
        };
        let outside = || "it ran outside of the repository".to_owned();
        let below = at.strip_prefix(&self.root).ok_or_else(outside)?;
        if !below.is_empty() && !below.starts_with('/') {
            return Err(outside());
        }
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(outside());
        }
        if self.reaches_outside(&command.script) {
            return Err("it names places outside of the repository".to_owned());
        }
        Ok(parts.join("/"))
    }

    /// Tells whether a script names directories that a task does not have.
    fn reaches_outside(&self, script: &str) -> bool {
        if ["~/", "$HOME", "${HOME}"].iter().any(|home| script.contains(home)) {
            return true;
        }
        let is_edge = |letter: char| letter.is_whitespace() || "'\"=:;|&<>(),".contains(letter);
        let paths = script
            .split(is_edge)
            .filter(|word| word.starts_with('/') && word.len() > 1 && !word.starts_with("//"));
        let is_here = |path: &str| {
            let rest = path.strip_prefix(self.root.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_common =
            |path: &str| COMMON.iter().any(|dir| path.starts_with(dir) || path == dir.trim_end_matches('/'));
        let stays = self.dir() == self.root;
        !paths.into_iter().all(|path| is_common(path) || stays && is_here(path))
    }

    /// Returns the directory of the repository inside of a task: its own, so that paths in commands still hold, unless that
    /// one has letters that a Dockerfile cannot say, or is no place of its own.
    pub(super) fn dir(&self) -> &str {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@".contains(&byte);
        let is_own =
            self.root.matches('/').count() > 1 && !COMMON.iter().any(|dir| self.root.starts_with(dir));
        let is_common_but_tmp = self.root.starts_with("/tmp/");
        if self.root.bytes().all(is_plain) && (is_own || is_common_but_tmp) { &self.root } else { ELSEWHERE }
    }
}
