//! How fast files of Claude Code, Codex and Gemini CLI become drafts, what `steno usage` costs beside ccusage and
//! `steno export atif` beside Harbor's converter, and how much memory it takes.
//!
//! Prints a table and writes `target/bench/adapters.json`; `docs/benchmarks.md` explains the rows.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the library is pure; what measures it needs files, programs and a clock"
)]

mod atif;
mod memory;
mod normalise;
mod samples;
mod usage;

use std::io::{self, Write as _};
use std::process::ExitCode;

use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_suite::Suite;
use steno_testkit::{shared_dir, skip};

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, path] = &args[..]
        && [memory::READ_ONCE, memory::READ_ON].contains(&flag.as_str())
    {
        writeln!(io::stdout(), "{}", memory::read_one_file(path.as_ref(), flag)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(suite) = Suite::begin("adapters", env!("CARGO_PKG_NAME"))? else { return Ok(ExitCode::SUCCESS) };
    let (dir, take) = (suite.dir(), |row| suite.take(row));
    if let Some(shared) = shared_dir() {
        let corpus = bench_programs::corpus(&shared, dir, 200)?;
        if suite.includes("normalise") {
            normalise::measure(&shared, &corpus, take)?;
        }
        if suite.includes("ATIF") {
            atif::measure(&corpus, dir, take)?;
        }
        if suite.includes("usage") {
            usage::measure(&corpus, dir, take)?;
        }
    } else {
        skipped("normalise, ATIF and usage", "there are no samples to measure on");
    }
    if suite.includes("memory") {
        memory::measure(dir, take)?;
    }
    suite.finish()
}

/// Says that rows are missing, where tests say so too.
fn skipped(rows: &str, why: &str) {
    skip::announce(env!("CARGO_PKG_NAME"), &format!("bench::{rows}"), why);
}
