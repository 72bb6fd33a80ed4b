//! What `steno import` costs beside agentsview, how small the store is, how soon `steno watch` tells of what an agent
//! writes, what it costs while nothing happens, and what commands cost that read the store.
//!
//! Prints a table and writes `target/bench/import_and_reading.json`; `docs/benchmarks.md` explains the rows.

mod following;
mod import;
mod reading;

use std::process::ExitCode;

use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_suite::Suite;
use steno_testkit::{shared_dir, skip};

fn main() -> Outcome<ExitCode> {
    let Some(suite) = Suite::begin("import_and_reading", env!("CARGO_PKG_NAME"))? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (dir, take) = (suite.dir(), |row| suite.take(row));
    bench_programs::build_steno()?;
    match shared_dir() {
        Some(shared) => {
            let corpus = bench_programs::corpus(&shared, dir)?;
            if suite.includes("import") {
                import::measure(&corpus, dir, take)?;
            }
            if suite.includes("reading") {
                reading::measure(&corpus, dir, take)?;
            }
        }
        None => skipped("import and reading", "there is no history to measure on"),
    }
    if suite.includes("following") {
        for files in [1_000, 10_000] {
            following::measure(files, dir, take)?;
        }
    }
    suite.finish()
}

/// Says that rows are missing, where tests say so too.
fn skipped(rows: &str, why: &str) {
    skip::announce(env!("CARGO_PKG_NAME"), &format!("bench::{rows}"), why);
}
