//! Shared by benchmarks of programs: runs programs, measures their cost, and makes the history to measure on.

use std::env;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::bench_report::{Row, median, rounded, target_dir};
use crate::places;
use serde_json::Value;

/// The result of a benchmark step, with any error.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// The variable that names a `steno` to measure, instead of one that is built.
const BINARY: &str = "STENO_BENCH_BINARY";

/// The variable that names an older `steno` to compare with: a program, or a commit that is built.
const BEFORE: &str = "STENO_BENCH_BEFORE";

/// The variable with the size of the long history in megabytes, and its size without it.
const HISTORY_MB: (&str, u32) = ("STENO_BENCH_HISTORY_MB", 1000);

/// How long ago the files of a corpus were written, apart from the newest.
const CORPUS_AGE: Duration = Duration::from_hours(48);

/// The cost and the output of a program.
pub struct Cost {
    /// CPU seconds, user and system, of all its threads.
    pub cpu_s: f64,
    /// Wall-clock seconds.
    pub wall_s: f64,
    /// Wall-clock seconds until its first output; all of them if it has none.
    pub first_s: f64,
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

/// Builds the release `steno`, unless `STENO_BENCH_BINARY` names one.
///
/// # Errors
/// If it does not build, or the one that is named does not exist.
pub fn build_steno() -> Outcome<()> {
    if env::var_os(BINARY).is_none() {
        return build_steno_in(&places::workspace_root(), &target_dir());
    }
    let program = steno();
    if program.is_file() { Ok(()) } else { Err(format!("there is no `{}`", program.display()).into()) }
}

fn build_steno_in(workspace: &Path, target: &Path) -> Outcome<()> {
    let cargo = env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let manifest = workspace.join("Cargo.toml");
    let args = ["build", "--release", "--quiet", "--package", "steno", "--manifest-path"].map(OsStr::new);
    let args = args.into_iter().chain([manifest.as_os_str(), "--target-dir".as_ref(), target.as_os_str()]);
    run(&cargo, args)?;
    Ok(())
}

/// Returns the `steno` to measure.
#[must_use]
pub fn steno() -> PathBuf {
    env::var_os(BINARY).map_or_else(|| target_dir().join("release/steno"), PathBuf::from)
}

/// Returns the `steno` of another version to compare with, from `STENO_BENCH_BEFORE`: the path of a program, or a commit,
/// which is built below `dir` once.
///
/// # Errors
/// If it is neither, or does not build.
pub fn steno_before(dir: &Path) -> Outcome<Option<PathBuf>> {
    let Some(named) = env::var_os(BEFORE).filter(|name| !name.is_empty()) else { return Ok(None) };
    if Path::new(&named).is_file() {
        return Ok(Some(PathBuf::from(named)));
    }
    let root = places::workspace_root();
    let git = |args: &[&OsStr]| {
        run("git", [OsStr::new("-C"), root.as_os_str()].iter().chain(args)).map(|text| text.trim().to_owned())
    };
    let named = named.to_string_lossy();
    let commit = git(&["rev-parse".as_ref(), "--verify".as_ref(), format!("{named}^{{commit}}").as_ref()])
        .map_err(|_| format!("`{BEFORE}` is `{named}`, which is neither a program nor a commit"))?;
    let place = dir.join(format!("before-{commit}"));
    let (source, program) = (place.join("source"), place.join("steno"));
    if !program.is_file() {
        if !source.is_dir() {
            fs::create_dir_all(&place)?;
            let shared = [OsStr::new("clone"), OsStr::new("--quiet"), OsStr::new("--no-checkout")];
            run("git", shared.into_iter().chain([root.as_os_str(), source.as_os_str()]))?;
        }
        let checkout = ["-C".as_ref(), source.as_os_str(), "checkout".as_ref(), "--quiet".as_ref()];
        run("git", checkout.into_iter().chain([OsStr::new(&commit)]))?;
        let target = place.join("target");
        build_steno_in(&source, &target)?;
        fs::copy(target.join("release/steno"), &program)?;
        fs::remove_dir_all(&target)?;
    }
    Ok(Some(program))
}

/// A program to be measured.
pub struct MeasuredProgram<'a> {
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
pub fn cost(measured: &MeasuredProgram<'_>) -> Outcome<Cost> {
    let MeasuredProgram { program, args, home, variables, output } = *measured;
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
        first_s: number("first_s").or_else(|_| number("wall_s"))?,
        peak_mb: number("peak_kib")? * 1024.0 / 1e6,
        output: fs::read_to_string(output)?,
    })
}

/// Returns the size of the long history in megabytes.
///
/// # Errors
/// If the variable is not a number.
pub fn history_mb() -> Outcome<u32> {
    let (name, usual) = HISTORY_MB;
    let Ok(text) = env::var(name) else { return Ok(usual) };
    Ok(text.parse().map_err(|error| format!("`{name}` is `{text}`: {error}"))?)
}

/// Returns the home directory of a synthetic history of about this size; creates it below `dir` if it does not exist.
///
/// Its files are two days old, apart from those of the newest session: an agent writes only one session at a time, and
/// some commands read only files that were changed lately.
///
/// # Errors
/// If it cannot be made.
pub fn corpus(shared: &Path, dir: &Path, megabytes: u32) -> Outcome<PathBuf> {
    // The name has size and seed, so that another size or seed is another corpus.
    let name = format!("corpus-{megabytes}mb-seed7");
    let corpus = dir.join(&name);
    if !corpus.is_dir() {
        // An incomplete corpus must not be used the next time.
        let partial = dir.join(format!("{name}.partial"));
        if partial.is_dir() {
            fs::remove_dir_all(&partial)?;
        }
        let generator = shared.join("corpus/gen.py");
        let size = megabytes.to_string();
        let args = ["--mb", &size, "--seed", "7"].map(Path::new);
        run("python3", [&*generator, &*partial].into_iter().chain(args))?;
        fs::rename(&partial, &corpus)?;
    }
    set_ages(&corpus.join(".claude/projects"))?;
    Ok(corpus)
}

/// Makes all sessions two days old, apart from the one whose name comes last.
fn set_ages(projects: &Path) -> Outcome<()> {
    let files = places::files_below(projects);
    let session = |name: &str| {
        let part = name.split('/').nth(1).unwrap_or_default();
        part.strip_suffix(".jsonl").unwrap_or(part).to_owned()
    };
    let newest = files.iter().map(|name| session(name)).max();
    let now = SystemTime::now();
    for name in &files {
        let is_newest = Some(session(name)) == newest;
        let time = if is_newest { now } else { now - CORPUS_AGE };
        fs::File::options().append(true).open(projects.join(name))?.set_modified(time)?;
    }
    Ok(())
}

/// Makes a row of CPU seconds, with the wall-clock time beside it.
#[must_use]
pub fn cpu_row(name: impl Into<String>, costs: &[Cost]) -> Row {
    let trials: Vec<f64> = costs.iter().map(|cost| rounded(cost.cpu_s)).collect();
    Row::new(name, median_of(costs, |cost| cost.cpu_s), "s")
        .with("wall_s", rounded(median_of(costs, |cost| cost.wall_s)))
        .with("trials", trials)
}

/// Makes a row of the ratios of pairs that were measured one after the other.
#[must_use]
pub fn ratio_row(
    name: impl Into<String>,
    ours: &[Cost],
    theirs: &[Cost],
    what: impl Fn(&Cost) -> f64,
) -> Row {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| what(ours) / what(theirs)).collect();
    let trials: Vec<f64> = ratios.iter().copied().map(rounded).collect();
    Row::new(name, median(&ratios), "ratio").with("trials", trials)
}

/// Returns the median of one figure.
#[must_use]
pub fn median_of(costs: &[Cost], what: impl Fn(&Cost) -> f64) -> f64 {
    median(&costs.iter().map(what).collect::<Vec<f64>>())
}
