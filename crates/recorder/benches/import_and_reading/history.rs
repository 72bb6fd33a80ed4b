//! How soon commands answer on a long history. Each is measured beside the start of a program that does nothing, and
//! what reads all transcripts beside a loop that only reads their bytes.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use steno_testkit::bench_programs::{self, Cost, MeasuredProgram, Outcome, cpu_row, median_of};
use steno_testkit::bench_report::{Row, float, median, rounded};
use steno_testkit::places;

use crate::costs::peak_mb;
use crate::import::size_below;

const ROUNDS: usize = 7;
const INDEX_SHARE_MAX: f64 = 0.25;

/// What of a command is measured.
#[derive(Clone, Copy)]
enum Until {
    FirstOutput,
    End,
}

/// A command of the table: the name of its row, the command, what is measured, and the most milliseconds if limited.
type Command = (&'static str, &'static [&'static str], Until, Option<f64>);

/// A word and an expression that are in more than half of the sessions.
const WORD: &str = "released";
const EXPRESSION: &str = "/impor[t]ed/";

const COMMANDS: [Command; 7] = [
    ("history, ls", &["ls"], Until::End, Some(30.0)),
    ("history, word, first hits", &["search", WORD], Until::FirstOutput, Some(50.0)),
    ("history, word, complete", &["search", WORD], Until::End, Some(300.0)),
    ("history, regular expression, complete", &["search", EXPRESSION], Until::End, Some(300.0)),
    ("history, show last, first line", &["show", "last"], Until::FirstOutput, Some(50.0)),
    ("history, import again", &["import"], Until::End, None),
    ("history, statusline", &["usage", "--statusline"], Until::End, Some(50.0)),
];

/// Measures all commands on the store of a history.
pub(crate) fn measure(corpus: &Path, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let place = tempfile::tempdir_in(dir)?;
    let history = History { corpus, store: place.path().join("store"), output: place.path().join("out") };
    take(cpu_row("history, import, CPU", &[history.cost(&["import"])?]));
    take(cpu_row("history, CPU of the index", &[history.cost(&["ls"])?]));
    let index = ["index.db", "index.db-wal"].map(|name| history.store.join(name));
    let index = index.iter().map(|path| fs::metadata(path).map_or(0, |about| about.len())).sum();
    let transcripts = float(size_below(&history.store.join("transcripts")));
    let row = Row::new("history, index / transcripts", float(index) / transcripts, "ratio");
    take(row.with("bytes", index).at_most(INDEX_SHARE_MAX));
    for command in COMMANDS {
        take(history.row(command)?);
    }
    Ok(())
}

struct History<'a> {
    corpus: &'a Path,
    store: PathBuf,
    output: PathBuf,
}

impl History<'_> {
    fn row(&self, (name, args, until, most_ms): Command) -> Outcome<Row> {
        let (mut costs, mut starts, mut scans) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            costs.push(self.cost(args)?);
            starts.push(self.cost(&["--version"])?.wall_s);
            if args.contains(&EXPRESSION) {
                scans.push(self.scan_s());
            }
        }
        let seconds = |cost: &Cost| match until {
            Until::FirstOutput => cost.first_s,
            Until::End => cost.wall_s,
        };
        let wall_s = median_of(&costs, seconds);
        let trials: Vec<f64> = costs.iter().map(|cost| rounded(seconds(cost) * 1e3)).collect();
        let row = Row::new(name, wall_s * 1e3, "ms")
            .with("cpu_ms", rounded(median_of(&costs, |cost| cost.cpu_s) * 1e3))
            .with("peak_mb", rounded(peak_mb(&costs)))
            .with("bare_start_ms", rounded(median(&starts) * 1e3))
            .with("times_bare_start", rounded(wall_s / median(&starts)))
            .with("trials", trials);
        let row = match most_ms {
            Some(most_ms) => row.at_most(most_ms),
            None => row,
        };
        Ok(if scans.is_empty() {
            row
        } else {
            row.with("bare_scan_ms", rounded(median(&scans) * 1e3))
                .with("times_bare_scan", rounded(wall_s / median(&scans)))
        })
    }

    fn cost(&self, args: &[&str]) -> Outcome<Cost> {
        let args = args.iter().map(OsStr::new);
        let args: Vec<&OsStr> =
            [OsStr::new("--store"), self.store.as_os_str()].into_iter().chain(args).collect();
        bench_programs::cost(&MeasuredProgram {
            program: &bench_programs::steno(),
            args: &args,
            home: self.corpus,
            variables: &[],
            output: &self.output,
        })
    }

    /// Reads all transcripts in as many threads as there are cores, and counts their lines.
    fn scan_s(&self) -> f64 {
        let dir = self.store.join("transcripts");
        let paths: VecDeque<PathBuf> =
            places::files_below(&dir).into_iter().map(|name| dir.join(name)).collect();
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let (paths, begun) = (Mutex::new(paths), Instant::now());
        let next = || paths.lock().ok().and_then(|mut paths| paths.pop_front());
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(path) = next() {
                        let bytes = fs::read(path).unwrap_or_default();
                        std::hint::black_box(bytes.split(|byte| *byte == b'\n').count());
                    }
                });
            }
        });
        begun.elapsed().as_secs_f64()
    }
}
