//! Counts the syncs and writes of programs with strace.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use steno_testkit::bench_programs::Outcome;
use steno_testkit::tool;

const SYNCS: [&str; 4] = ["fsync", "fdatasync", "syncfs", "sync"];
const WRITES: [&str; 5] = ["write", "pwrite64", "writev", "pwritev", "pwritev2"];

/// How often programs called the disk.
#[derive(Default)]
pub(crate) struct DiskCalls {
    pub(crate) syncs: u32,
    pub(crate) writes: u32,
}

impl DiskCalls {
    /// Runs a program under strace and adds its calls.
    pub(crate) fn add(&mut self, strace: &Path, home: &Path, words: &[&str]) -> Outcome<()> {
        let report = tempfile::NamedTempFile::new()?;
        let calls = [&SYNCS[..], &WRITES].concat().join(",");
        let mut command = Command::new(strace);
        // The filter in the kernel leaves all other calls as fast as they are.
        command.args([
            "-f",
            "--seccomp-bpf",
            "-c",
            "-U",
            "calls,name",
            "-e",
            &format!("trace={calls}"),
            "-o",
        ]);
        command.arg(report.path()).args(words).env("HOME", home);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if !status.success() {
            return Err(format!("strace failed: {status}").into());
        }
        for line in fs::read_to_string(report.path())?.lines() {
            let mut columns = line.split_whitespace();
            let (Some(count), Some(name)) = (columns.next(), columns.next()) else { continue };
            let Ok(count) = count.parse::<u32>() else { continue };
            self.syncs += if SYNCS.contains(&name) { count } else { 0 };
            self.writes += if WRITES.contains(&name) { count } else { 0 };
        }
        Ok(())
    }
}

/// Returns the path of strace.
pub(crate) fn strace() -> Option<PathBuf> {
    tool("strace")
}
