//! What these tests share: the binary, a store in a temporary directory, output and exit codes.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub const RUN: &str = "550e8400-e29b-41d4-a716-446655440000";

/// A store of its own, gone when the test ends.
pub struct Steno {
    pub dir: tempfile::TempDir,
}

/// What a command said and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Steno {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    pub fn transcript(&self, run: &str) -> PathBuf {
        self.store().join(format!("transcripts/{run}.jsonl"))
    }

    /// The binary, with nothing of this machine's settings.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
        command.args(args).env_clear().env("HOME", self.dir.path()).env("STENO_HOME", self.store());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        self.run_with(args, b"")
    }

    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Said {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let writing = std::thread::spawn(move || {
            // A command that reads no input may be gone by now.
            stdin.write_all(&input).ok();
        });
        let output = child.wait_with_output().unwrap();
        writing.join().unwrap();
        Said::from(output)
    }

    /// Records lines and returns the answers.
    pub fn record(&self, lines: &[&str]) -> Said {
        self.run_with(&["record", "--run", RUN], format!("{}\n", lines.join("\n")).as_bytes())
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
