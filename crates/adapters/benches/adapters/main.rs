//! How fast files of Claude Code and Codex become drafts, what `steno usage` costs beside ccusage, and how much memory
//! it takes.
//!
//! Prints a table and writes `target/bench/adapters.json`; `docs/benchmarks.md` explains the rows.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library is pure; what measures it needs files, programs and a clock"
)]

mod memory;
mod normalise;
mod samples;
mod usage;

use std::io::{self, Write as _};
use std::process::ExitCode;

use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_report::{Report, Row, bench_dir};
use steno_testkit::{shared_dir, skip};

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout();
    if let [flag, path] = &args[..]
        && [memory::READ_ONCE, memory::READ_ON].contains(&flag.as_str())
    {
        writeln!(out, "{}", memory::read_one_file(path.as_ref(), flag)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    // `cargo test --all-targets` starts benchmarks too, without this flag.
    if !args.iter().any(|arg| arg == "--bench") {
        writeln!(out, "hint: run `cargo bench -p steno-adapters`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<String> = args.into_iter().filter(|arg| !arg.starts_with('-')).collect();
    let includes = |name: &str| chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str()));
    let dir = bench_dir()?;
    let mut report = Report::new("adapters", &dir);
    writeln!(out, "{}", report.machine())?;
    let mut take = |row: Row| {
        // The table is for those who watch; the file has everything.
        writeln!(io::stdout(), "{}", report.push(row)).ok();
    };
    if let Some(shared) = shared_dir() {
        let corpus = bench_programs::corpus(&shared, &dir)?;
        if includes("normalise") {
            normalise::measure(&shared, &corpus, &mut take)?;
        }
        if includes("usage") {
            usage::measure(&corpus, &dir, &mut take)?;
        }
    } else {
        skipped("normalise and usage", "there are no samples to measure on");
    }
    if includes("memory") {
        memory::measure(&dir, &mut take)?;
    }
    let path = report.write()?;
    let missed = report.missed().count();
    writeln!(out, "{missed} thresholds missed; all rows are in `{}`", path.display())?;
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says that rows are missing, where tests say so too.
fn skipped(rows: &str, why: &str) {
    skip::announce(env!("CARGO_PKG_NAME"), &format!("bench::{rows}"), why);
}
