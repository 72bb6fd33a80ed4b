//! What `steno usage` costs beside ccusage, on the same files and in the same minutes, and whether it is right.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use steno_testkit::bench_programs::{self as programs, Cost, MeasuredProgram, cpu_row, median_of, ratio_row};
use steno_testkit::bench_report::{Row, float};
use steno_testkit::tool;

use crate::{Outcome, samples, skipped};

const PAIRS: usize = 7;
const RATIO_MAX: f64 = 1.0;
const CCUSAGE: &str = "ccusage@20.0.24";

/// How `steno usage` and the corpus's `truth.json` call the same total.
const TOTALS: [(&str, &str); 5] = [
    ("responses", "unique_responses"),
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("cache_read_tokens", "cache_read"),
    ("cache_write_tokens", "cache_creation"),
];

/// Measures both, alternating, and compares our totals with the truth.
pub(crate) fn measure(corpus: &Path, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    programs::build_steno()?;
    let ccusage = ccusage(dir).inspect_err(|error| {
        take(Row::not_measured("usage / ccusage's", error.to_string()));
        skipped("usage / ccusage", &error.to_string());
    });
    let race = Race { corpus, dir, ccusage: ccusage.ok() };
    let warm = race.ours()?;
    if let Some(ccusage) = &race.ccusage {
        race.theirs(ccusage)?;
    }
    let truth = fs::read_to_string(corpus.join("truth.json"))?;
    take(compared(&totals(&warm.output)?, &serde_json::from_str(&truth)?)?);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        ours.push(race.ours()?);
        if let Some(ccusage) = &race.ccusage {
            theirs.push(race.theirs(ccusage)?);
        }
    }
    take(cpu_row("usage, CPU", &ours));
    take(Row::new("usage, peak memory", median_of(&ours, |cost| cost.peak_mb), "MB"));
    if !theirs.is_empty() {
        take(cpu_row(format!("usage, CPU of {CCUSAGE}"), &theirs));
        take(Row::new(
            format!("usage, peak memory of {CCUSAGE}"),
            median_of(&theirs, |cost| cost.peak_mb),
            "MB",
        ));
        take(ratio_row("usage, CPU / ccusage's", &ours, &theirs, |cost| cost.cpu_s).at_most(RATIO_MAX));
        take(ratio_row("usage, wall / ccusage's", &ours, &theirs, |cost| cost.wall_s).at_most(RATIO_MAX));
        take(ratio_row("usage, memory / ccusage's", &ours, &theirs, |cost| cost.peak_mb));
    }
    Ok(())
}

struct Race<'a> {
    corpus: &'a Path,
    dir: &'a Path,
    ccusage: Option<PathBuf>,
}

impl Race<'_> {
    fn ours(&self) -> Outcome<Cost> {
        let projects = samples::projects(self.corpus);
        let args = [OsStr::new("usage"), projects.as_os_str(), OsStr::new("--json")];
        let output = self.dir.join("usage-ours.jsonl");
        self.cost(&programs::steno(), &args, &output)
    }

    fn theirs(&self, ccusage: &Path) -> Outcome<Cost> {
        let args = ["claude", "daily", "--json", "--offline"].map(OsStr::new);
        self.cost(ccusage, &args, &self.dir.join("usage-theirs.json"))
    }

    fn cost(&self, program: &Path, args: &[&OsStr], output: &Path) -> Outcome<Cost> {
        programs::cost(&MeasuredProgram { program, args, home: self.corpus, variables: &[], output })
    }
}

/// Returns ccusage's program, installed below `dir` if need be; the error says why there is nothing to compare with.
fn ccusage(dir: &Path) -> Outcome<PathBuf> {
    let place = dir.join(CCUSAGE);
    let program = place.join("node_modules/@ccusage/ccusage-linux-x64/bin/ccusage");
    if !program.is_file() {
        let npm = tool("npm").ok_or("npm is not installed")?;
        let args = ["install", "--no-save", "--silent", "--prefix"].map(OsStr::new);
        let args = args.into_iter().chain([place.as_os_str(), OsStr::new(CCUSAGE)]);
        // Its own launcher makes the program executable.
        let launcher = place.join("node_modules/.bin/ccusage");
        programs::run(&npm.to_string_lossy(), args)
            .and_then(|_| programs::run(&launcher.to_string_lossy(), ["--version"]))
            .map_err(|error| format!("{CCUSAGE} cannot be installed: {error}"))?;
    }
    if program.is_file() { Ok(program) } else { Err("ccusage has no program for this machine".into()) }
}

/// Adds up the rows that `steno usage --json` printed.
fn totals(output: &str) -> Outcome<Map<String, Value>> {
    let mut sums = TOTALS.map(|_| 0);
    for line in output.lines() {
        let row: Value = serde_json::from_str(line)?;
        for ((name, _), sum) in TOTALS.iter().zip(&mut sums) {
            *sum += row[name].as_u64().ok_or_else(|| format!("no `{name}` in {line}"))?;
        }
    }
    Ok(TOTALS.iter().zip(sums).map(|((name, _), sum)| ((*name).to_owned(), json!(sum))).collect())
}

/// Counts the totals that are not the truth.
fn compared(ours: &Map<String, Value>, truth: &Value) -> Outcome<Row> {
    let wrong: Vec<String> = TOTALS
        .iter()
        .filter(|(name, true_name)| ours[*name] != truth[true_name])
        .map(|(name, true_name)| format!("{name}: {} and not {}", ours[*name], truth[true_name]))
        .collect();
    let row =
        Row::new("usage, totals that are wrong", float(u64::try_from(wrong.len())?), "of 5").at_most(0.0);
    Ok(row.with("totals", ours.clone()).with("wrong", wrong.join(", ")))
}
