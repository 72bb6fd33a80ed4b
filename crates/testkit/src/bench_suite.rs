//! The frame of every benchmark: reads the command line, prints a table, writes a file, and fails if a threshold was
//! missed.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::bench_programs::Outcome;
use crate::bench_report::{Report, Row, bench_dir};

/// A benchmark that is being run.
pub struct Suite {
    /// Filters: parts of names, any of which selects a row. Empty selects all.
    chosen: Vec<String>,
    dir: PathBuf,
    // Shared, so that rows can be taken while the rest is looked at.
    report: RefCell<Report>,
}

impl Suite {
    /// Begins with the command line's filters and prints the machine; `None` if nothing is to be measured.
    ///
    /// # Errors
    /// An I/O error.
    pub fn begin(name: &'static str, package: &str) -> Outcome<Option<Self>> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        // `cargo test --all-targets` starts benchmarks too, without this flag.
        if !args.iter().any(|arg| arg == "--bench") {
            writeln!(io::stdout(), "hint: run `cargo bench -p {package}`")?;
            return Ok(None);
        }
        let chosen = args.into_iter().filter(|arg| !arg.starts_with('-')).collect();
        let dir = bench_dir()?;
        let report = Report::new(name, &dir);
        writeln!(io::stdout(), "{}", report.machine())?;
        Ok(Some(Self { chosen, dir, report: RefCell::new(report) }))
    }

    /// Tells whether rows of this name are selected.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        self.chosen.is_empty() || self.chosen.iter().any(|part| name.contains(part.as_str()))
    }

    /// Returns the directory to measure in.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Takes a row.
    pub fn take(&self, row: Row) {
        // The table is a summary; the file has everything.
        writeln!(io::stdout(), "{}", self.report.borrow_mut().push(row)).ok();
    }

    /// Writes the file; fails when a threshold was missed.
    ///
    /// # Errors
    /// An I/O error.
    pub fn finish(self) -> Outcome<ExitCode> {
        let report = self.report.into_inner();
        let path = report.write()?;
        let missed = report.missed().count();
        writeln!(io::stdout(), "{missed} thresholds missed; all rows are in `{}`", path.display())?;
        Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
