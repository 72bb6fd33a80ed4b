//! Shared by these tests: the binary, a store in a temporary directory, output and exit codes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;

pub const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";
pub const TIME: &str = "2026-06-08T08:14:42.123Z";

/// The time after which a process counts as stuck. No result depends on it.
const PATIENCE: Duration = Duration::from_mins(2);

/// A temporary store for one test.
pub struct Steno {
    pub dir: tempfile::TempDir,
}

/// The output and exit code of a command.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: i32,
    pub out: String,
    pub err: String,
}

/// A running `steno`: takes lines, gives lines, and is killed when the test ends.
pub struct RunningSteno {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    talk: Option<JoinHandle<String>>,
    out: String,
}

/// The state of a file: type and mode, inode, time of the last change, content.
#[derive(Clone, PartialEq, Eq)]
pub struct FileState {
    pub mode: u32,
    inode: u64,
    modified: SystemTime,
    pub bytes: Vec<u8>,
}

impl Steno {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub fn transcript(&self, run: &str) -> PathBuf {
        self.beside(run, "jsonl")
    }

    /// A file of a run: `seals.jsonl`, `notes.jsonl`.
    pub fn beside(&self, run: &str, ending: &str) -> PathBuf {
        self.store().join(format!("transcripts/{run}.{ending}"))
    }

    /// Reads a run's transcript.
    pub fn text(&self, run: &str) -> String {
        std::fs::read_to_string(self.transcript(run)).unwrap()
    }

    /// The binary, with nothing of this machine's settings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program());
        self.furnish(command.args(args));
        command
    }

    /// A shell with the same settings, in which `"$0" "$@"` is the binary with its arguments.
    pub fn shell(&self, script: &str, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        self.furnish(command.arg("-c").arg(script).arg(program()).args(args));
        command
    }

    fn furnish(&self, command: &mut Command) {
        command.env_clear().env("HOME", self.dir.path()).env("STENO_HOME", self.store()).env("TZ", "UTC");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(self.dir.path());
    }

    pub fn start(&self, args: &[&str]) -> RunningSteno {
        RunningSteno::start(self.command(args))
    }

    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with(args, b"")
    }

    pub fn run_with(&self, args: &[&str], input: &[u8]) -> CommandOutput {
        run(self.command(args), input)
    }

    /// Records lines and returns the answers.
    pub fn record(&self, lines: &[&str]) -> CommandOutput {
        self.run_with(&["record", "--run", RUN], format!("{}\n", lines.join("\n")).as_bytes())
    }

    /// Records events, all of which are accepted.
    #[track_caller]
    pub fn recorded(&self, run: &str, events: &[Value]) {
        let input = events.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        let said = self.run_with(&["record", "--run", run, "--level", "written"], input.as_bytes());
        let first = said.out.lines().next().and_then(|answer| json(answer)["seq"].as_u64()).unwrap_or(0);
        let want: String = (first..).take(events.len()).map(|seq| answer(seq, "written")).collect();
        assert_eq!((said.code, said.out, said.err), (0, want, String::new()));
    }

    /// Adds a line to a transcript by hand, as another writer might have written it.
    pub fn write_by_hand(&self, run: &str, line: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.transcript(run)).unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }

    /// Looks at everything in the store.
    pub fn look(&self) -> BTreeMap<String, FileState> {
        look_at(&self.store())
    }

    /// Fails if anything in the store has changed.
    #[track_caller]
    pub fn assert_unchanged(&self, before: &BTreeMap<String, FileState>, context: &str) {
        let now = self.look();
        let names = before.keys().chain(now.keys());
        let changed: Vec<_> = names.filter(|name| before.get(*name) != now.get(*name)).collect();
        assert!(changed.is_empty(), "{context}: changed {changed:?}");
    }
}

impl RunningSteno {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while stdout.read_line(&mut line).unwrap() > 0 && sender.send(std::mem::take(&mut line)).is_ok() {
            }
        });
        let talk = std::thread::spawn(move || {
            let mut text = String::new();
            stderr.read_to_string(&mut text).unwrap();
            text
        });
        Self { stdin: child.stdin.take(), child, lines, talk: Some(talk), out: String::new() }
    }

    pub fn send(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for the next line of output.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => {
                self.out.push_str(&line);
                line
            }
            Err(error) => panic!("no line after `{}`: {error}", self.out),
        }
    }

    pub fn lines(&mut self, count: usize) -> String {
        (0..count).map(|_| self.line()).collect()
    }

    /// Says whether the process has not ended yet.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal, given by its name: `TERM`.
    pub fn signal(&self, name: &str) {
        let script = format!("kill -{name} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &script]).status().unwrap().success());
    }

    /// Closes stdin and waits for the end; returns the whole output.
    #[track_caller]
    pub fn finish(mut self) -> CommandOutput {
        self.stdin = None;
        self.ended()
    }

    /// Waits for the end with the input left open.
    #[track_caller]
    pub fn ended(mut self) -> CommandOutput {
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) => self.out.push_str(&line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("does not end after `{}`", self.out),
            }
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let err = self.talk.take().unwrap().join().unwrap();
        CommandOutput { code, out: std::mem::take(&mut self.out), err }
    }
}

impl Drop for RunningSteno {
    fn drop(&mut self) {
        // Both fail when it has ended, which is as well.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl CommandOutput {
    /// The output as one JSON value a line.
    #[track_caller]
    pub fn json(&self) -> Vec<Value> {
        self.out.lines().map(json).collect()
    }
}

/// The binary under test. `STENO_TEST_PROGRAM` names another one, to see that a test fails with an older program.
pub fn program() -> OsString {
    std::env::var_os("STENO_TEST_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_steno").into())
}

/// Runs a command to its end.
#[track_caller]
pub fn run(command: Command, input: &[u8]) -> CommandOutput {
    let mut live = RunningSteno::start(command);
    let mut stdin = live.stdin.take().unwrap();
    let input = input.to_vec();
    let writing = std::thread::spawn(move || {
        // A command that reads no input may be gone by now.
        stdin.write_all(&input).ok();
    });
    let said = live.ended();
    writing.join().unwrap();
    said
}

/// Asks again and again until the answer is yes.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "no {what}");
        std::thread::yield_now();
    }
}

/// The answer of `record` to an accepted event.
pub fn answer(seq: u64, level: &str) -> String {
    format!("{{\"seq\":{seq},\"level\":\"{level}\"}}\n")
}

/// The nth of any number of run ids, of which none is the beginning of another.
pub fn id(number: u8) -> String {
    format!("{number:02x}{number:02x}{number:02x}{number:02x}-e29b-41d4-a716-446655440000")
}

#[track_caller]
pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("`{text}` is not JSON: {error}"))
}

/// Looks at a directory and everything below it.
pub fn look_at(path: &Path) -> BTreeMap<String, FileState> {
    let mut found = BTreeMap::new();
    look_below(path, String::new(), &mut found);
    found
}

fn look_below(path: &Path, name: String, found: &mut BTreeMap<String, FileState>) {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::MetadataExt as _;
    let Ok(meta) = path.symlink_metadata() else { return };
    let mut bytes = Vec::new();
    if meta.is_dir() {
        for item in path.read_dir().unwrap().map(Result::unwrap) {
            look_below(&item.path(), format!("{name}/{}", item.file_name().display()), found);
        }
    } else if meta.is_symlink() {
        bytes = path.read_link().unwrap().into_os_string().into_vec();
    } else if meta.is_file() {
        bytes = std::fs::read(path).unwrap();
    }
    let modified = meta.modified().unwrap();
    found.insert(name, FileState { mode: meta.mode(), inode: meta.ino(), modified, bytes });
}
