//! A first import with its index, and one with nothing new, beside agentsview on the same files and in the same minutes.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use steno_testkit::bench_programs::{self, Cost, MeasuredProgram, Outcome, cpu_row, median_of, ratio_row};
use steno_testkit::bench_report::{Row, float};
use steno_testkit::places;

use crate::costs::{both, peak_mb};
use crate::disk_calls::{DiskCalls, strace};
use crate::{agentsview, skipped};

const ROUNDS: usize = 3;
const FIRST_CPU_S_MAX: f64 = 3.5;
const PEAK_MB_MAX: f64 = 96.0;
const AGAIN_CPU_S_MAX: f64 = 0.05;
const AGAIN_WALL_MS_MAX: f64 = 50.0;
const VAULT_SHARE_MAX: f64 = 0.25;
/// The share of agentsview's CPU and wall-clock time that an import with its index may take.
const PEER_SHARE_MAX: f64 = 0.5;
const SYNCS_MAX: f64 = 400.0;
const WRITES_MAX: f64 = 10_000.0;

/// How much another program writes each time, and how often, while an import is measured.
const OTHER_WRITE_BYTES: usize = 1024 * 1024;
const OTHER_WRITE_EVERY: Duration = Duration::from_millis(20);
const OTHER_FILE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// A figure of a program with its name.
type Figure = (&'static str, fn(&Cost) -> f64);

const FIGURES: &[Figure] = &[("CPU", cpu_s), ("wall", wall_s)];

/// Measures both, alternating: each time a fresh store, then the same again.
pub(crate) fn measure(corpus: &Path, dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let race = Race { corpus, dir };
    let peer = agentsview::program(dir);
    let (mut ours, mut theirs) = (Rounds::default(), Rounds::default());
    for round in 0..ROUNDS {
        race.ours(&race.store(round), &mut ours)?;
        if let Ok(program) = &peer {
            let (first, again) = agentsview::costs(program, corpus, dir)?;
            theirs.whole.push(first);
            theirs.again.push(again);
        }
    }
    race.rows(&ours, &mut take);
    match &peer {
        Ok(program) => {
            peer_rows(&ours, &theirs, &mut take);
            take(race.beside_a_writer(program)?);
        }
        Err(error) => rows_without_peer(&ours, &error.to_string(), &mut take),
    }
    race.disk_calls(&mut take)?;
    for round in 0..=ROUNDS {
        fs::remove_dir_all(race.store(round)).ok();
    }
    Ok(())
}

/// What each round cost.
#[derive(Default)]
struct Rounds {
    /// The import alone.
    import: Vec<Cost>,
    /// The index alone.
    index: Vec<Cost>,
    /// Import and index.
    whole: Vec<Cost>,
    /// An import with nothing new.
    again: Vec<Cost>,
}

struct Race<'a> {
    corpus: &'a Path,
    dir: &'a Path,
}

impl Race<'_> {
    /// Names a round's store. It stays until all rounds are done: making files where others were deleted a moment ago is
    /// slower, and nobody imports so.
    fn store(&self, round: usize) -> PathBuf {
        self.dir.join(format!("import-store-{round}"))
    }

    fn ours(&self, store: &Path, rounds: &mut Rounds) -> Outcome<()> {
        let (import, index) = self.import_and_index(store)?;
        rounds.whole.push(both(&import, &index));
        rounds.import.push(import);
        rounds.index.push(index);
        rounds.again.push(self.cost(store, "import")?);
        Ok(())
    }

    /// Imports into a new store, and lists the sessions, which makes the index.
    fn import_and_index(&self, store: &Path) -> Outcome<(Cost, Cost)> {
        if store.exists() {
            fs::remove_dir_all(store)?;
        }
        Ok((self.cost(store, "import")?, self.cost(store, "ls")?))
    }

    fn cost(&self, store: &Path, command: &str) -> Outcome<Cost> {
        let args = ["--store".as_ref(), store.as_os_str(), command.as_ref(), "--json".as_ref()];
        bench_programs::cost(&MeasuredProgram {
            program: &bench_programs::steno(),
            args: &args,
            home: self.corpus,
            variables: &[],
            output: &self.dir.join("import-ours.json"),
        })
    }

    fn rows(&self, ours: &Rounds, take: &mut impl FnMut(Row)) {
        let store = self.store(0);
        let source = float(size_below(&self.corpus.join(".claude/projects")));
        let (vault, transcripts) =
            (float(size_below(&store.join("vault"))), float(size_below(&store.join("transcripts"))));
        take(cpu_row("import, CPU", &ours.import).at_most(FIRST_CPU_S_MAX));
        take(cpu_row("import, CPU of the index", &ours.index));
        take(cpu_row("import and index, CPU", &ours.whole));
        take(Row::new("import and index, peak memory", peak_mb(&ours.whole), "MB").at_most(PEAK_MB_MAX));
        take(cpu_row("import again, CPU", &ours.again).at_most(AGAIN_CPU_S_MAX));
        let again_ms = median_of(&ours.again, |cost| cost.wall_s) * 1e3;
        take(Row::new("import again, wall", again_ms, "ms").at_most(AGAIN_WALL_MS_MAX));
        let row = Row::new("import, vault / source", vault / source, "ratio").with("bytes", vault);
        take(row.at_most(VAULT_SHARE_MAX));
        let row = Row::new("import, transcripts / source", transcripts / source, "ratio");
        take(row.with("bytes", transcripts));
    }

    /// Measures both once more while another program writes and never syncs.
    fn beside_a_writer(&self, peer: &Path) -> Outcome<Row> {
        let is_done = AtomicBool::new(false);
        let (ours, theirs) = std::thread::scope(|scope| {
            scope.spawn(|| write_until(&is_done, &self.dir.join("import-other-writer")));
            let measure = || -> Outcome<(Cost, Cost)> {
                let (import, index) = self.import_and_index(&self.store(ROUNDS))?;
                Ok((both(&import, &index), agentsview::costs(peer, self.corpus, self.dir)?.0))
            };
            let measured = measure();
            is_done.store(true, Ordering::Relaxed);
            measured
        })?;
        let name = "import and index, wall / agentsview's, others write";
        let row = ratio_row(name, &[ours], &[theirs], |cost| cost.wall_s);
        Ok(row.at_most(PEER_SHARE_MAX))
    }

    fn disk_calls(&self, take: &mut impl FnMut(Row)) -> Outcome<()> {
        let (syncs, writes) = ("import and index, syncs", "import and index, writes");
        let Some(strace) = strace() else {
            take(Row::not_measured(syncs, "strace is not installed"));
            take(Row::not_measured(writes, "strace is not installed"));
            return Ok(());
        };
        let store = self.store(ROUNDS);
        if store.exists() {
            fs::remove_dir_all(&store)?;
        }
        let mut calls = DiskCalls::default();
        let (program, store) = (bench_programs::steno(), store.to_string_lossy().into_owned());
        for command in ["import", "ls"] {
            let words = [&*program.to_string_lossy(), "--store", &store, command, "--json"];
            calls.add(&strace, self.corpus, &words)?;
        }
        take(Row::new(syncs, f64::from(calls.syncs), "calls").at_most(SYNCS_MAX));
        take(Row::new(writes, f64::from(calls.writes), "calls").at_most(WRITES_MAX));
        Ok(())
    }
}

fn peer_rows(ours: &Rounds, theirs: &Rounds, take: &mut impl FnMut(Row)) {
    take(cpu_row("import and index, CPU of agentsview", &theirs.whole));
    take(Row::new("import and index, peak memory of agentsview", peak_mb(&theirs.whole), "MB"));
    take(cpu_row("import again, CPU of agentsview", &theirs.again));
    for (name, what) in FIGURES {
        let name = format!("import and index, {name} / agentsview's");
        take(ratio_row(name, &ours.whole, &theirs.whole, what).at_most(PEER_SHARE_MAX));
    }
    take(ratio_row("import and index, memory / agentsview's", &ours.whole, &theirs.whole, peak));
    take(ratio_row("import again, CPU / agentsview's", &ours.again, &theirs.again, cpu_s));
    take(ratio_row("import again, wall / agentsview's", &ours.again, &theirs.again, wall_s));
}

/// Compares with figures of another machine, which is a hint and no proof: there is no threshold.
fn rows_without_peer(ours: &Rounds, why: &str, take: &mut impl FnMut(Row)) {
    take(Row::not_measured("import and index / agentsview's", why));
    skipped("import and index / agentsview", why);
    let elsewhere: Vec<Cost> = ours.whole.iter().map(|_| agentsview::cost_elsewhere()).collect();
    for (name, what) in [FIGURES, &[("memory", peak)]].concat() {
        let row =
            ratio_row(format!("import and index, {name} / agentsview's"), &ours.whole, &elsewhere, what);
        take(row.with("agentsview", "measured elsewhere"));
    }
}

fn peak(cost: &Cost) -> f64 {
    cost.peak_mb
}

fn cpu_s(cost: &Cost) -> f64 {
    cost.cpu_s
}

fn wall_s(cost: &Cost) -> f64 {
    cost.wall_s
}

/// Writes to a file at a steady pace, beginning anew when it is large.
fn write_until(is_done: &AtomicBool, path: &Path) {
    let block = vec![7; OTHER_WRITE_BYTES];
    while !is_done.load(Ordering::Relaxed) {
        let Ok(mut file) = fs::File::create(path) else { break };
        for _ in 0..OTHER_FILE_BYTES_MAX / OTHER_WRITE_BYTES {
            if is_done.load(Ordering::Relaxed) {
                break;
            }
            if file.write_all(&block).is_err() {
                // A full disk fails the import too, which reports it.
                fs::remove_file(path).ok();
                return;
            }
            std::thread::sleep(OTHER_WRITE_EVERY);
        }
    }
    fs::remove_file(path).ok();
}

pub(crate) fn size_below(dir: &Path) -> u64 {
    let size = |name: &String| fs::metadata(dir.join(name)).map_or(0, |about| about.len());
    places::files_below(dir).iter().map(size).sum()
}
