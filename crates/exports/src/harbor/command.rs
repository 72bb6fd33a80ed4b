//! Commands of a session: script, directory, and the meaning of their exit code 0.

use super::programs::{Does, does, leaves_files};
use super::session::plain_path;
use super::shell::{Joint, Simple, split};
use steno_session::PayloadFields;
use steno_views::shell_word;

/// A command that an agent ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The script for the shell.
    pub script: String,
    /// The shell, if recorded.
    pub shell: Option<String>,
    /// The directory, if recorded.
    pub cwd: Option<String>,
}

/// The rank of a verification. A better one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// Any other command.
    Other,
    /// A linter or a check of formatting.
    Linter,
    /// A build.
    Build,
    /// A test runner.
    TestRunner,
}

impl Rank {
    /// Returns its word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Linter => "linter",
            Self::Build => "build",
            Self::TestRunner => "test_runner",
        }
    }
}

/// The effect of a command on relevant files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    /// It only reads or checks.
    None,
    /// Unknown.
    Unknown,
    /// It changes them.
    Writes,
}

/// The assessment of a command that ended with 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assessment {
    /// Its rank, or the reason why it is not a verification.
    pub(super) rank: Result<Rank, String>,
    pub(super) effect: Effect,
}

impl Command {
    /// Reads the input of a call that runs a command.
    pub(super) fn of_input(input: &str) -> Option<Self> {
        let fields = PayloadFields::parse(input);
        let cwd = fields.text("workdir").or_else(|| fields.text("cwd")).filter(|cwd| !cwd.is_empty());
        let cwd = cwd.map(|cwd| plain_path(&cwd));
        let given = fields.text("shell").map(std::borrow::Cow::into_owned);
        if let Some(script) = fields.text("cmd") {
            return Some(Self { script: script.into_owned(), shell: given, cwd });
        }
        let words = match fields.text("command") {
            Some(line) => match unwrapped_line(&line) {
                Some((shell, script)) => return Some(Self { script, shell: Some(shell), cwd }),
                None => return Some(Self { script: line.into_owned(), shell: given, cwd }),
            },
            None => fields.items("command"),
        };
        let words: Vec<String> =
            words.iter().filter_map(|word| serde_json::from_str(word.get()).ok()).collect();
        let (shell, script) = match unwrapped(&words) {
            Some((shell, script)) => (Some(shell), script),
            None => (None, words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")),
        };
        (!script.is_empty()).then_some(Self { script, shell, cwd })
    }

    /// Returns what the exit code 0 of the command proves.
    pub(super) fn judge(&self) -> Assessment {
        judge(&self.script)
    }

    /// Returns true if it may change files of the task: it does, or its effect is unknown.
    pub(super) fn may_change_files(&self) -> bool {
        let may = |simple: &Simple| {
            let does = does(&simple.words);
            simple.writes_file || does == Does::Other || does == Does::Writes && !leaves_files(&simple.words)
        };
        split(&self.script).is_none_or(|simple| simple.iter().any(may))
    }

    /// Returns true if it is known to change files of the task.
    pub(super) fn changes_files(&self) -> bool {
        let changes = |simple: &Simple| {
            simple.writes_file || does(&simple.words) == Does::Writes && !leaves_files(&simple.words)
        };
        split(&self.script).is_some_and(|simple| simple.iter().any(changes))
    }

    /// Returns the shell that can run its script again, if its shell is a known one.
    ///
    /// Simple commands mean the same in shells of one family, and an image has `sh` and `bash` rather than the others.
    pub(super) fn shell_again(&self) -> Result<&'static str, String> {
        let Some(shell) = &self.shell else { return Ok("bash") };
        match shell.rsplit('/').next().unwrap_or(shell) {
            "sh" | "dash" | "ash" => Ok("sh"),
            "bash" | "zsh" | "ksh" => Ok("bash"),
            _ => Err("it ran in an unknown shell".to_owned()),
        }
    }
}

/// Returns what the exit code 0 of a script proves.
pub(super) fn judge(script: &str) -> Assessment {
    let Some(simple) = split(script) else {
        let why = "it is more than simple commands".to_owned();
        return Assessment { rank: Err(why), effect: Effect::Unknown };
    };
    let effect = simple.iter().map(effect_of).max().unwrap_or(Effect::Unknown);
    if effect == Effect::Writes {
        return Assessment { rank: Err("it changes files itself".to_owned()), effect };
    }
    Assessment { rank: rank_of(&simple), effect }
}

fn effect_of(simple: &Simple) -> Effect {
    match does(&simple.words) {
        _ if simple.writes_file => Effect::Writes,
        Does::Writes => Effect::Writes,
        Does::Other => Effect::Unknown,
        Does::Reads | Does::Compares | Does::Lints | Does::Builds | Does::Tests => Effect::None,
    }
}

/// Finds the best of the commands that must have ended with 0 if the script did.
fn rank_of(simple: &[Simple]) -> Result<Rank, String> {
    let sets = |simple: &Simple, flags: &[&str]| {
        simple.words.first().is_some_and(|word| word == "set")
            && simple.words.iter().any(|word| flags.contains(&word.as_str()))
    };
    if simple.iter().any(|simple| sets(simple, &["+e", "+o"])) {
        return Err("it continues after a failed command".to_owned());
    }
    let is_early = |simple: &Simple| sets(simple, &["-e", "-eu", "-ex", "-euo", "-exo", "-euxo", "errexit"]);
    let fails_in_pipes = simple.first().is_some_and(|first| sets(first, &["pipefail"]));
    // Without `set -e`, only the last list decides the exit code.
    let last = simple.iter().rposition(|simple| simple.joint == Joint::After).unwrap_or(0);
    let from = simple.iter().position(is_early).map_or(last, |early| early.min(last));
    let counted = &simple[from..];
    if counted.iter().any(|simple| simple.joint == Joint::Or) {
        return Err("it continues after a failed command".to_owned());
    }
    let is_last_of_pipe = |at: usize| counted.get(at + 1).is_none_or(|next| next.joint != Joint::Pipe);
    let proven = counted.iter().enumerate().filter(|(at, _)| fails_in_pipes || is_last_of_pipe(*at));
    let best = proven.filter_map(|(_, simple)| match does(&simple.words) {
        Does::Tests => Some(Rank::TestRunner),
        Does::Builds => Some(Rank::Build),
        Does::Lints => Some(Rank::Linter),
        Does::Other | Does::Compares => Some(Rank::Other),
        Does::Reads | Does::Writes => None,
    });
    let last = counted.last().and_then(|simple| simple.words.first()).map_or("", String::as_str);
    let is_piped = counted.iter().any(|simple| simple.joint == Joint::Pipe);
    best.max().ok_or_else(|| {
        if is_piped { format!("its exit code is that of `{last}`") } else { "it checks nothing".to_owned() }
    })
}

/// Extracts the script of `bash -lc SCRIPT`.
fn unwrapped(words: &[String]) -> Option<(String, String)> {
    let [shell, flag, script] = words else { return None };
    let name = shell.rsplit('/').next().unwrap_or(shell);
    let is_shell = matches!(name, "bash" | "sh" | "zsh" | "dash" | "ksh" | "fish");
    (is_shell && matches!(flag.as_str(), "-c" | "-lc")).then(|| (name.to_owned(), script.clone()))
}

fn unwrapped_line(line: &str) -> Option<(String, String)> {
    match split(line)?.as_slice() {
        [only] if !only.writes_file => unwrapped(&only.words),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(script: &str) -> Assessment {
        Command { script: script.to_owned(), shell: None, cwd: None }.judge()
    }

    #[test]
    fn exit_code_of_a_script_ranks_its_last_command() {
        for (script, want) in [
            ("cargo test", Ok(Rank::TestRunner)),
            ("cd x && cargo build && cargo test", Ok(Rank::TestRunner)),
            ("cargo test; cargo build", Ok(Rank::Build)),
            ("cargo test; echo done", Err("it checks nothing")),
            ("set -e; cargo test; echo done", Ok(Rank::TestRunner)),
            ("cargo test; set -e; echo done", Err("it checks nothing")),
            ("set -e; set +e; cargo test; echo done", Err("it continues after a failed command")),
            ("cargo test; exit 0", Err("it is more than simple commands")),
            ("cargo test 2>&1 | tail -5", Err("its exit code is that of `tail`")),
            ("set -o pipefail; cargo test | tail -5", Ok(Rank::TestRunner)),
            ("cargo test || true", Err("it continues after a failed command")),
            ("sed -i s/a/b/ x && cargo test", Err("it changes files itself")),
            ("cargo test > out.txt", Err("it changes files itself")),
            ("git status", Err("it checks nothing")),
            ("python3 -c 'assert 1'", Ok(Rank::Other)),
            ("python3 - <<X\nX", Err("it is more than simple commands")),
            ("cargo clippy && ./x", Ok(Rank::Linter)),
        ] {
            assert_eq!(judge(script).rank, want.map_err(str::to_owned), "{script}");
        }
    }

    #[test]
    fn effect_of_a_script_is_none_writes_or_unknown() {
        for (script, want) in [
            ("ls && cargo test", Effect::None),
            ("./x", Effect::Unknown),
            ("cat <<X\nX", Effect::Unknown),
            ("echo a > b", Effect::Writes),
            ("./x && rm y", Effect::Writes),
        ] {
            assert_eq!(judge(script).effect, want, "{script}");
        }
    }

    #[test]
    fn scripts_that_change_files_are_recognized() {
        let changes =
            |script: &str| Command { script: script.to_owned(), shell: None, cwd: None }.changes_files();
        for script in ["cargo fmt", "ls && rm x", "echo a > b", "git checkout ."] {
            assert!(changes(script), "{script}");
        }
        for script in ["cargo test", "git add -A && git commit -m x", "./x", "mkdir -p a", "(rm x)"] {
            assert!(!changes(script), "{script}");
        }
        let may =
            |script: &str| Command { script: script.to_owned(), shell: None, cwd: None }.may_change_files();
        assert!(["./x", "(rm x)", "git commit -m x && ./x", "cargo fmt"].into_iter().all(may));
        assert!(!["cargo test", "git add -A && git commit -m x", "ls"].into_iter().any(may));
    }

    #[test]
    fn script_runs_again_only_in_a_known_shell() {
        let again = |shell: Option<&str>| {
            let shell = shell.map(str::to_owned);
            Command { script: "a".to_owned(), shell, cwd: None }.shell_again().ok()
        };
        assert_eq!(again(None), Some("bash"));
        assert_eq!(again(Some("/bin/zsh")), Some("bash"));
        assert_eq!(again(Some("/usr/bin/dash")), Some("sh"));
        for odd in ["fish", "pwsh", "", "bash; rm -rf /", "bash -x", "bash\n"] {
            assert_eq!(again(Some(odd)), None, "{odd}");
        }
    }

    #[test]
    fn command_is_read_from_every_form_of_input() {
        let read = |input: &str| Command::of_input(input).unwrap();
        let want = Command { script: "cargo test".to_owned(), shell: None, cwd: Some("/w".to_owned()) };
        assert_eq!(read(r#"{"cmd":"cargo test","workdir":"/w"}"#), want);
        assert_eq!(read(r#"{"command":["cargo","test"],"cwd":"file:///w"}"#), want);
        let bash = Command { shell: Some("bash".to_owned()), ..want };
        assert_eq!(read(r#"{"command":["/bin/bash","-lc","cargo test"],"workdir":"/w"}"#), bash);
        assert_eq!(read(r#"{"command":"/bin/bash -lc 'cargo test'","cwd":"/w"}"#), bash);
        assert_eq!(read(r#"{"command":["a","b c"]}"#).script, "a 'b c'");
        assert_eq!(Command::of_input("{}"), None);
        assert_eq!(Command::of_input("\"x\""), None);
    }
}
