//! How fast the journal is, beside the limit that the disk and the processor set in the same minutes.
//!
//! Prints a table and writes `target/bench/journal.json`; `docs/benchmarks.md` explains the rows and how to choose
//! some of them.

mod bare;
mod race;
mod record;
mod subscribers;
mod traced_disk;
mod verify;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use steno_testkit::bench_report::{Report, Row, bench_dir};

/// Anything may go wrong, and then there is no result.
type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What was asked for on the command line: parts of names, any of which will do; nothing means everything.
struct Chosen(Vec<String>);

impl Chosen {
    fn includes(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|part| name.contains(part.as_str()))
    }
}

fn main() -> Outcome<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut out = io::stdout();
    // `cargo test --all-targets` starts benchmarks too, without this flag.
    if !args.iter().any(|arg| arg == "--bench") {
        writeln!(out, "hint: run `cargo bench -p steno-journal`")?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = Chosen(args.into_iter().filter(|arg| !arg.starts_with('-')).collect());
    let dir = bench_dir()?;
    let mut report = Report::new("journal", &dir);
    writeln!(out, "{}", report.machine())?;
    let mut take = |row: Row| {
        // The table is for those who watch; the file has everything.
        writeln!(io::stdout(), "{}", report.push(row)).ok();
    };
    record::measure(&dir, &chosen, &mut take)?;
    if chosen.includes("subscribers") {
        subscribers::measure(&dir, &mut take)?;
    }
    if chosen.includes("verify") {
        verify::measure(&dir, &mut take)?;
    }
    let path = report.write()?;
    let missed = report.missed().count();
    writeln!(out, "{missed} thresholds missed; all rows are in `{}`", path.display())?;
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
