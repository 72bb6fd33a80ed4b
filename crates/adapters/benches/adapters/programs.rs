//! Other programs: run for their effect, or for what they cost.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use steno_testkit::places;

use crate::Outcome;

/// What a program cost, and what it printed.
pub(crate) struct Cost {
    /// Seconds of processor, user and system, of all its threads.
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) peak_mb: f64,
    pub(crate) output: String,
}

/// Runs a program, and returns what it printed.
pub(crate) fn run<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> Outcome<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("`{program}` does not start: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("`{program}` failed: {}", output.status).into())
    }
}

/// Builds the `steno` that ships.
pub(crate) fn build_steno() -> Outcome<()> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = places::workspace_root().join("Cargo.toml");
    let args = ["build", "--release", "--quiet", "--package", "steno", "--manifest-path"].map(OsStr::new);
    run(&cargo, args.into_iter().chain([manifest.as_os_str()]))?;
    Ok(())
}

/// Runs a program with another home, through the script that asks the system for its cost.
pub(crate) fn cost(program: &Path, args: &[&OsStr], home: &Path, output: &Path) -> Outcome<Cost> {
    let script = places::workspace_root().join("scripts/spent.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(output).arg(program).args(args).env("HOME", home).stdin(Stdio::null());
    let done = command.stderr(Stdio::null()).output()?;
    if !done.status.success() {
        return Err(format!("`{}` failed: {}", program.display(), done.status).into());
    }
    let spent: Value = serde_json::from_slice(&done.stdout)?;
    let number = |name: &str| spent[name].as_f64().ok_or_else(|| format!("no `{name}` in {spent}"));
    Ok(Cost {
        cpu_s: number("cpu_s")?,
        wall_s: number("wall_s")?,
        peak_mb: number("peak_kib")? * 1024.0 / 1e6,
        output: fs::read_to_string(output)?,
    })
}
