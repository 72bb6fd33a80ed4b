//! How fast the journal is, beside the limit that the disk and the processor set in the same minutes.
//!
//! Prints a table and writes `target/bench/journal.json`; `docs/benchmarks.md` explains the rows and how to choose
//! some of them.

mod bare;
mod race;
mod record;
mod spine;
mod subscribers;
mod traced_disk;
mod verify;

use std::process::ExitCode;

use steno_testkit::bench_programs::Outcome;
use steno_testkit::bench_suite::Suite;

fn main() -> Outcome<ExitCode> {
    let Some(suite) = Suite::begin("journal", env!("CARGO_PKG_NAME"))? else { return Ok(ExitCode::SUCCESS) };
    let (dir, take) = (suite.dir(), |row| suite.take(row));
    record::measure(&suite)?;
    if suite.includes("subscribers") {
        subscribers::measure(dir, take)?;
    }
    if suite.includes("verify") {
        verify::measure(dir, take)?;
    }
    if suite.includes("spine validate") {
        spine::measure(dir, take)?;
    }
    suite.finish()
}
