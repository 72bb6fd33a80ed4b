//! What `steno import` costs beside agentsview, how small the store is, how soon `steno watch` tells of what an agent
//! writes, what it costs while nothing happens, what commands cost that read the store, and how soon they answer on a
//! long history.
//!
//! Prints a table and writes `target/bench/import_and_reading.json`; `docs/benchmarks.md` explains the rows.

mod agentsview;
mod costs;
mod disk_calls;
mod following;
mod history;
mod import;
mod reading;

use std::process::ExitCode;

use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_suite::Suite;
use steno_testkit::{shared_dir, skip};

/// The size of the history that is imported.
const CORPUS_MB: u32 = 200;

fn main() -> Outcome<ExitCode> {
    let Some(suite) = Suite::begin("import_and_reading", env!("CARGO_PKG_NAME"))? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (dir, take) = (suite.dir(), |row| suite.take(row));
    bench_programs::build_steno()?;
    if let Some(shared) = shared_dir() {
        if suite.includes("import") || suite.includes("reading") {
            let corpus = bench_programs::corpus(&shared, dir, CORPUS_MB)?;
            if suite.includes("import") {
                import::measure(&corpus, dir, take)?;
            }
            if suite.includes("reading") {
                reading::measure(&corpus, dir, take)?;
            }
        }
        if suite.includes("history") {
            let corpus = bench_programs::corpus(&shared, dir, bench_programs::history_mb()?)?;
            history::measure(&corpus, dir, take)?;
        }
    } else {
        skipped("all rows of histories", "there is no history to measure on");
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
