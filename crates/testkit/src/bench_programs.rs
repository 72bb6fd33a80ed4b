//! Shared by benchmarks of programs: runs programs, measures their cost, and makes the history to measure on.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::places;
use serde_json::Value;

/// The result of a benchmark step, with any error.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The name has size and seed, so that another size or seed is another corpus.
const CORPUS: &str = "corpus-200mb-seed7";

/// The cost and the output of a program.
pub struct Cost {
    /// CPU seconds, user and system, of all its threads.
    pub cpu_s: f64,
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Its peak memory.
    pub peak_mb: f64,
    /// Its output.
    pub output: String,
}

/// Runs a program and returns its output.
///
/// # Errors
/// If it does not start or fails.
pub fn run<A: AsRef<OsStr>>(program: &str, args: impl IntoIterator<Item = A>) -> Outcome<String> {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("`{program}` does not start: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("`{program}` failed: {}", output.status).into())
    }
}

/// Builds the release `steno`.
///
/// # Errors
/// If it does not build.
pub fn build_steno() -> Outcome<()> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = places::workspace_root().join("Cargo.toml");
    let args = ["build", "--release", "--quiet", "--package", "steno", "--manifest-path"].map(OsStr::new);
    run(&cargo, args.into_iter().chain([manifest.as_os_str()]))?;
    Ok(())
}

/// Returns the `steno` of another version to compare with, from `STENO_BENCH_BEFORE`.
#[must_use]
pub fn program_before() -> Option<PathBuf> {
    env::var_os("STENO_BENCH_BEFORE").map(PathBuf::from)
}

/// A program to be measured.
pub struct Measured<'a> {
    /// The program.
    pub program: &'a Path,
    /// Its arguments.
    pub args: &'a [&'a OsStr],
    /// Its home directory.
    pub home: &'a Path,
    /// Further environment variables.
    pub variables: &'a [(&'a str, &'a OsStr)],
    /// Where its output goes.
    pub output: &'a Path,
}

/// Runs a program through the script that measures its cost.
///
/// # Errors
/// If it does not start or fails.
pub fn cost(measured: &Measured<'_>) -> Outcome<Cost> {
    let Measured { program, args, home, variables, output } = *measured;
    let script = places::workspace_root().join("scripts/spent.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(output).arg(program).args(args).stdin(Stdio::null());
    command.env("HOME", home).envs(variables.iter().copied());
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

/// Returns the home directory of the synthetic history; creates it below `dir` if it does not exist.
///
/// # Errors
/// If it cannot be made.
pub fn corpus(shared: &Path, dir: &Path) -> Outcome<PathBuf> {
    let corpus = dir.join(CORPUS);
    if !corpus.is_dir() {
        // An incomplete corpus must not be used the next time.
        let partial = dir.join(format!("{CORPUS}.partial"));
        if partial.is_dir() {
            fs::remove_dir_all(&partial)?;
        }
        let generator = shared.join("corpus/gen.py");
        let args = ["--mb", "200", "--seed", "7"].map(Path::new);
        run("python3", [&*generator, &*partial].into_iter().chain(args))?;
        fs::rename(&partial, &corpus)?;
    }
    Ok(corpus)
}
