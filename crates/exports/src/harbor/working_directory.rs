//! The directory of a session, and the directory of the same files in a task.

use super::command::Command;
use super::session::Session;
use super::shell::split;
use super::turn::Turn;
use super::window::Refusal;
use steno_session::PayloadFields;

/// The path of a repository whose original path cannot be used.
const ELSEWHERE: &str = "/repo";

/// Directories that exist on every machine with similar content.
const COMMON: [&str; 7] = ["/bin/", "/dev/", "/etc/", "/lib/", "/proc/", "/sbin/", "/usr/"];

/// Directories that are not replaced by a repository, since an image or Harbor uses them.
const TAKEN: [&str; 9] =
    ["/boot/", "/lib64/", "/logs/", "/opt/", "/run/", "/solution/", "/sys/", "/tests/", "/var/"];

/// The source of the root if only the session's directory is recorded.
const GUESSED: &str = "the directory of the session, which may be below the root";

/// The working directory of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkingDirectory {
    /// The top directory of its repository.
    pub root: String,
    /// The source of that path.
    pub root_from: &'static str,
    /// The directory in which the session began.
    cwd: String,
}

impl WorkingDirectory {
    /// Finds the working directory of a session; `given` takes precedence.
    pub(super) fn of(session: &Session, given: Option<&str>) -> Result<Self, Refusal> {
        let repository = &session.repository;
        let recorded = repository.root.as_deref().or(session.cwd.as_deref());
        let (root, root_from) = match (given, recorded) {
            (Some(root), _) => (root, "given"),
            (None, Some(root)) if repository.root_is_cwd || repository.root.is_none() => (root, GUESSED),
            (None, Some(root)) => (root, "recorded"),
            (None, None) => return Err(Refusal::new("the directory of the session is not recorded")),
        };
        let root = root.trim_end_matches('/');
        if !root.starts_with('/') || root.split('/').any(|part| part == "..") {
            let why = format!("`{root}` is not a valid directory of a repository");
            return Err(Refusal::new(why).with_hint("set it with `--root`"));
        }
        let cwd = session.cwd.clone().unwrap_or_else(|| root.to_owned());
        Ok(Self { root: root.to_owned(), root_from, cwd })
    }

    /// Returns true if the top of the repository is recorded or given.
    pub(super) fn is_sure(&self) -> bool {
        self.root_from != GUESSED
    }

    /// Returns the directory of a turn.
    pub(super) fn of_turn(&self, turn: &Turn) -> String {
        let settings = turn.settings.as_ref().map_or("null", steno_model::json::RawJson::as_str);
        let cwd = PayloadFields::parse(settings).text("cwd").map(|cwd| super::session::plain_path(&cwd));
        cwd.unwrap_or_else(|| self.cwd.clone())
    }

    /// Returns the directory of a command, relative to the repository.
    pub(super) fn of_command(&self, turn: &Turn, command: &Command) -> Result<String, String> {
        let cwd = self.of_turn(turn);
        let at = match &command.cwd {
            Some(at) if at.starts_with('/') => at.clone(),
            Some(at) => format!("{}/{at}", cwd.trim_end_matches('/')),
            None => cwd,
        };
        let outside = || "it ran outside the repository".to_owned();
        let below = at.strip_prefix(&self.root).ok_or_else(outside)?;
        if !below.is_empty() && !below.starts_with('/') {
            return Err(outside());
        }
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.contains(&"..") {
            return Err(outside());
        }
        if self.reaches_outside(&command.script, &parts) {
            return Err("it names places outside the repository".to_owned());
        }
        Ok(parts.join("/"))
    }

    /// Returns true if a script that begins in a directory uses paths that a task does not have.
    fn reaches_outside(&self, script: &str, dir: &[&str]) -> bool {
        if ["$HOME", "${HOME}", "$OLDPWD"].iter().any(|home| script.contains(home)) {
            return true;
        }
        // This also finds the files of redirections, which are not words of a command.
        let absolute = script.split(is_edge).filter(|piece| piece.starts_with('/'));
        if !absolute.into_iter().all(|piece| self.inside(&[], piece).is_some()) {
            return true;
        }
        let Some(commands) = split(script) else { return true };
        let mut at: Vec<String> = dir.iter().map(|part| (*part).to_owned()).collect();
        for words in commands.iter().map(|command| &command.words) {
            let pieces = words.iter().flat_map(|word| word.split(is_edge)).filter(|piece| !piece.is_empty());
            if !pieces.into_iter().all(|piece| self.inside(&at, piece).is_some()) {
                return true;
            }
            let is_cd = words.first().is_some_and(|word| matches!(word.as_str(), "cd" | "pushd" | "popd"));
            if is_cd {
                let to = words.get(1).filter(|to| !to.starts_with('-') && !to.contains('$'));
                match to.and_then(|to| self.inside(&at, to)) {
                    Some(inside) => at = inside,
                    None => return true,
                }
            }
        }
        false
    }

    /// Resolves a word from a directory of the repository, if it is a path that exists in a task.
    fn inside(&self, at: &[String], word: &str) -> Option<Vec<String>> {
        if word.starts_with('~') {
            return None;
        }
        let mut parts = at.to_vec();
        if word.starts_with("//") {
            // This is the syntax of some build tools for targets.
            return Some(parts);
        }
        let mut path = word;
        // An option may have its path directly after the letter.
        let path_at = if word.starts_with('-') { word.find('/') } else { None };
        if let Some(absolute) =
            path_at.map(|at| &word[at..]).or_else(|| word.starts_with('/').then_some(word))
        {
            let is_common = |dir: &&str| absolute.starts_with(*dir) || absolute == dir.trim_end_matches('/');
            let climbs = absolute.split('/').any(|part| part == "..");
            if !climbs && (absolute == "/" || COMMON.iter().any(is_common)) {
                return Some(parts);
            }
            let rest = absolute.strip_prefix(self.root.as_str()).filter(|_| self.dir() == self.root)?;
            if !rest.is_empty() && !rest.starts_with('/') {
                return None;
            }
            (parts, path) = (Vec::new(), rest);
        }
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            if part == ".." {
                parts.pop()?;
            } else {
                parts.push(part.to_owned());
            }
        }
        Some(parts)
    }

    /// Returns the directory of the repository in a task. It is the original one, so that paths in commands stay valid,
    /// unless a Dockerfile cannot express it or it is a system directory.
    pub(super) fn dir(&self) -> &str {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@".contains(&byte);
        let is_taken = COMMON.iter().chain(&TAKEN).any(|dir| self.root.starts_with(dir));
        let is_own = self.root.matches('/').count() > 1 && !is_taken;
        if self.root.bytes().all(is_plain) && is_own { &self.root } else { ELSEWHERE }
    }
}

/// Returns true if a character separates a path from other text.
fn is_edge(letter: char) -> bool {
    letter.is_whitespace() || "'\"=:;|&<>(),".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &str) -> WorkingDirectory {
        WorkingDirectory { root: root.to_owned(), root_from: "given", cwd: root.to_owned() }
    }

    #[test]
    fn script_that_reaches_outside_is_recognized() {
        let place = place("/people/u/proj");
        for script in [
            "cargo test",
            "cd sub && pytest ../x",
            "cd sub/deep && cd ../.. && pytest",
            "pytest /people/u/proj/tests",
            "/usr/bin/env pytest > /dev/null",
            "cd /people/u/proj/sub && ./x ../y",
            "go test ./...",
            "rg a..b",
            "python3 -c 'print(1 / 2)'",
        ] {
            assert!(!place.reaches_outside(script, &[]), "{script}");
        }
        for script in [
            "cd .. && pytest",
            "cd sub && cd ../.. && pytest",
            "pytest ../other",
            "cd && pytest",
            "cd - && pytest",
            "cd ~ && pytest",
            "cd $WORK && pytest",
            "python3 /tmp/check.py",
            "pytest /people/u/other",
            "pytest /people/u/project",
            "pytest /people/u/proj/../other",
            "pytest --rootdir=/srv/x",
            "make -C/people/u/other",
            "PATH=/people/u/bin:$PATH pytest",
            "pytest $HOME/x",
            "cat ~/.bashrc",
            "pytest < /people/u/other",
        ] {
            assert!(place.reaches_outside(script, &[]), "{script}");
        }
        assert!(!place.reaches_outside("pytest ../x", &["sub"]));
    }

    #[test]
    fn repository_keeps_its_directory_unless_it_is_reserved() {
        for (root, want) in [
            ("/people/u/proj", "/people/u/proj"),
            ("/tmp/proj", "/tmp/proj"),
            ("/work", ELSEWHERE),
            ("/usr/src/x", ELSEWHERE),
            ("/logs/verifier", ELSEWHERE),
            ("/tests/x", ELSEWHERE),
            ("/people/u/a b", ELSEWHERE),
            ("/people/u/$x", ELSEWHERE),
            ("/people/u\nRUN x", ELSEWHERE),
        ] {
            assert_eq!(place(root).dir(), want, "{root}");
        }
    }
}
