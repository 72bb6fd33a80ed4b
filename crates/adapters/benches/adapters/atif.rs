//! What `steno export atif` costs for every session of the corpus, beside Harbor's own converter on the same files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_testkit::bench_programs::{self as programs, Cost, MeasuredProgram};
use steno_testkit::bench_report::{Row, float, median, rounded};
use steno_testkit::{places, tool};

use crate::{Outcome, samples, skipped};

const TRIALS: usize = 5;
const CPU_S_MAX: f64 = 2.0;
const HARBOR: &str = "harbor==0.25.0";
/// What Harbor's converter imports.
const IMPORTS: [&str; 7] = ["pydantic", "pathspec", "toml", "shortuuid", "platformdirs", "jinja2", "litellm"];

/// Measures both: ours several times, Harbor's once, which takes as long.
pub(crate) fn measure(corpus: &Path, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    programs::build_steno()?;
    let projects = samples::projects(corpus);
    let mut trials = Vec::new();
    let mut told = Value::Null;
    for _ in 0..=TRIALS {
        let (cost, last) = ours(&projects, corpus, dir)?;
        told = last;
        trials.push(cost);
    }
    // The first one fills the cache.
    trials.remove(0);
    let cpu: Vec<f64> = trials.iter().map(|cost| rounded(cost.cpu_s)).collect();
    let median_cpu = median(&cpu);
    let peak: Vec<f64> = trials.iter().map(|cost| cost.peak_mb).collect();
    let bytes = told["bytes"].as_u64().unwrap_or_default();
    let row = Row::new("ATIF, CPU", median_cpu, "s").at_most(CPU_S_MAX).with("trials", cpu);
    take(
        row.with("sessions", told["exported"].clone())
            .with("steps", told["steps"].clone())
            .with("bytes", bytes),
    );
    take(Row::new("ATIF, peak memory", median(&peak), "MB"));
    let failed = told["failed"].as_u64().unwrap_or(u64::MAX);
    take(Row::new("ATIF, sessions not exported", float(failed), "sessions").at_most(0.0));
    take(Row::new("ATIF, whether one is not valid", checked(dir)?, "of 1").at_most(0.0));
    let theirs = theirs(&projects, dir).inspect_err(|error| {
        let why = format!("Harbor's converter cannot be run: {error}");
        skipped("ATIF / Harbor", &why);
        take(Row::not_measured("ATIF / Harbor's", why));
    });
    if let Ok(theirs) = theirs {
        let cpu_s = theirs["cpu_s"].as_f64().ok_or("Harbor's converter says no time")?;
        let row = Row::new(format!("ATIF, CPU of {HARBOR}, its start not counted"), cpu_s, "s");
        take(row.with("sessions", theirs["sessions"].clone()).with("steps", theirs["steps"].clone()));
        take(Row::new("ATIF, CPU / Harbor's", median_cpu / cpu_s, "ratio"));
    }
    Ok(())
}

/// Exports everything, and returns what that cost and what is told of it.
fn ours(projects: &Path, home: &Path, dir: &Path) -> Outcome<(Cost, Value)> {
    let out = dir.join("atif-ours");
    if out.is_dir() {
        fs::remove_dir_all(&out)?;
    }
    let args = [OsStr::new("export"), OsStr::new("atif"), projects.as_os_str(), OsStr::new("--json")];
    let args: Vec<&OsStr> = args.into_iter().chain([OsStr::new("-o"), out.as_os_str()]).collect();
    let output = dir.join("atif-ours.jsonl");
    let program = programs::steno();
    let cost = programs::cost(&MeasuredProgram {
        program: &program,
        args: &args,
        home,
        variables: &[],
        output: &output,
    })?;
    let last = cost.output.lines().last().map(serde_json::from_str).ok_or("nothing is told")??;
    Ok((cost, last))
}

/// Returns 0 if all trajectories are valid, and else 1.
fn checked(dir: &Path) -> Outcome<f64> {
    let out = fs::read_dir(dir.join("atif-ours"))?;
    let files = out.map(|entry| Ok(entry?.path())).collect::<Outcome<Vec<PathBuf>>>()?;
    let files = files.iter().filter(|path| path.is_file()).map(|path| path.as_os_str());
    let program = programs::steno();
    let args = [OsStr::new("export"), OsStr::new("check")].into_iter().chain(files);
    Ok(if programs::run(&program.to_string_lossy(), args).is_ok() { 0.0 } else { 1.0 })
}

/// Returns what Harbor's converter says that it spent; the error says why there is nothing to compare with.
fn theirs(projects: &Path, dir: &Path) -> Outcome<Value> {
    let (python, code) = harbor(&dir.join(HARBOR.replace("==", "-")))?;
    let script = places::workspace_root().join("scripts/harbor/convert.py");
    let out = dir.join("atif-theirs");
    let python = python.to_string_lossy().into_owned();
    // What has an `=` in it is a variable for `env`, and no program.
    let code = format!("PYTHONPATH={}", code.display());
    let args = [OsStr::new(&code), OsStr::new(&python), script.as_os_str()];
    let report = programs::run("env", args.into_iter().chain([projects.as_os_str(), out.as_os_str()]))?;
    let last = report.lines().last().ok_or("Harbor's converter says nothing")?;
    Ok(serde_json::from_str(last)?)
}

/// Returns a Python that has what Harbor imports, and where Harbor's code is, fetched if need be.
fn harbor(place: &Path) -> Outcome<(PathBuf, PathBuf)> {
    let (python, code) = (place.join("python/bin/python"), place.join("code"));
    if code.is_dir() {
        return Ok((python, code));
    }
    let newer = ["python3.14", "python3.13", "python3.12"].into_iter().filter_map(tool);
    // A name may be there without the program behind it.
    let newer = newer.map(|found| found.to_string_lossy().into_owned());
    let found = newer.into_iter().find(|found| programs::run(found, ["--version"]).is_ok());
    let found = found.ok_or("there is no Python from 3.12 on")?;
    let venv = place.join("python");
    programs::run(&found, [OsStr::new("-m"), OsStr::new("venv"), venv.as_os_str()])?;
    let pip = venv.join("bin/pip").to_string_lossy().into_owned();
    programs::run(&pip, ["install", "--quiet"].into_iter().chain(IMPORTS))?;
    let wheels = place.join("wheels").to_string_lossy().into_owned();
    programs::run(&pip, ["download", "--quiet", "--no-deps", "--dest", &wheels, HARBOR])?;
    let wheel = fs::read_dir(&wheels)?.next().ok_or("no wheel was fetched")??.path();
    let partial = place.join("code.partial");
    let unpack =
        [OsStr::new("-m"), OsStr::new("zipfile"), OsStr::new("-e"), wheel.as_os_str(), partial.as_os_str()];
    programs::run(&python.to_string_lossy(), unpack)?;
    fs::rename(partial, &code)?;
    Ok((python, code))
}
