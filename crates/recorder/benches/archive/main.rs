//! What `steno import` costs beside agentsview, how small the archive is, how soon `steno watch` tells of what an agent
//! writes, and what it costs while nothing happens.
//!
//! Prints a table and writes `target/bench/archive.json`; `docs/benchmarks.md` explains the rows.

mod following;
mod import;

use std::io::{self, Write as _};
use std::process::ExitCode;

use steno_testkit::bench_programs::{self, Outcome};
use steno_testkit::bench_report::{Report, Row, bench_dir};
use steno_testkit::{shared_dir, skip};

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout();
    // `cargo test --all-targets` starts benchmarks too, without this flag.
    if !args.iter().any(|arg| arg == "--bench") {
        writeln!(out, "hint: run `cargo bench -p steno-recorder`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen: Vec<String> = args.into_iter().filter(|arg| !arg.starts_with('-')).collect();
    let includes = |name: &str| chosen.is_empty() || chosen.iter().any(|part| name.contains(part.as_str()));
    let dir = bench_dir()?;
    let mut report = Report::new("archive", &dir);
    writeln!(out, "{}", report.machine())?;
    let mut take = |row: Row| {
        // The table is for those who watch; the file has everything.
        writeln!(io::stdout(), "{}", report.push(row)).ok();
    };
    bench_programs::build_steno()?;
    match shared_dir() {
        Some(shared) if includes("import") => {
            import::measure(&bench_programs::corpus(&shared, &dir)?, &dir, &mut take)?;
        }
        Some(_) => {}
        None => skipped("import", "there is no history to measure on"),
    }
    if includes("following") {
        for files in [1_000, 10_000] {
            following::measure(files, &dir, &mut take)?;
        }
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
