//! Events per second beside the bare limit: line sizes, levels, threads, runs.

use std::hint::black_box;
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use steno_disk::{Disk, RealDisk};
use steno_journal::{Journal, Level, Options, Recorder, Store};
use steno_model::Draft;
use steno_testkit::bench_report::{
    Noise, OTHERS_CORES, Row, Spent, float, median, ns_each, per_second, rounded,
};
use steno_testkit::bench_suite::Suite;
use steno_testkit::sample::{message, run_id};

use crate::race::{Lap, elapsed};
use crate::traced_disk::{Call, Op, TracedDisk};
use crate::{Outcome, bare};

const TRIALS: usize = 7;

/// How many trials are made at most to get enough trials in which other processes used less of the machine than this.
const TRIALS_MAX: usize = 10;
const OTHERS_CORES_MAX: f64 = 0.3;

/// How many events a single thread records in a round; what it records in all is a multiple of it.
const ROUND_LEN: usize = 50;
const RATIO_MIN: f64 = 0.60;
const LINE_BYTES: [usize; 2] = [300, 4096];

/// How many threads write to how many runs.
#[derive(Clone, Copy)]
struct Shape {
    runs: usize,
    threads_per_run: usize,
}

/// One measurement.
#[derive(Clone, Copy)]
struct Case {
    level: Level,
    line_bytes: usize,
    shape: Shape,
}

/// What one trial gave, in events per second, with what the disk was asked to do for it.
struct Trial {
    recorder: f64,
    bare: f64,
    ops: Vec<Op>,
    others_cores: f64,
}

/// Measures all cases; returns each row as soon as it is measured.
pub(crate) fn measure(suite: &Suite) -> Outcome<()> {
    let (dir, take) = (suite.dir(), |row| suite.take(row));
    if suite.includes("harness") {
        harness(dir, take)?;
    }
    let one_run = [1, 8, 64, 256].map(|threads_per_run| Shape { runs: 1, threads_per_run });
    let shapes = one_run.into_iter().chain([Shape { runs: 64, threads_per_run: 1 }]);
    for shape in shapes {
        for level in [Level::Written, Level::Synced] {
            for line_bytes in LINE_BYTES {
                let case = Case { level, line_bytes, shape };
                if !suite.includes(&case.name()) {
                    continue;
                }
                case.rows(&case.calmest_trials(dir)?).into_iter().for_each(take);
            }
        }
    }
    Ok(())
}

/// Measures the cost of measuring itself, so that the other rows can be judged.
fn harness(dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let ratio =
        |name: String, trials: &[f64]| Row::new(name, median(trials), "ratio").with("trials", list(trials));
    for line_bytes in LINE_BYTES {
        let case = Case { level: Level::Written, line_bytes, shape: Shape { runs: 1, threads_per_run: 1 } };
        let (mut logged, mut inlined, mut clones) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..TRIALS {
            let (with_log, ops) = case.traced(dir)?;
            logged.push(case.untraced(dir)?.as_secs_f64() / with_log.as_secs_f64());
            let place = (tempfile::tempdir_in(dir)?, tempfile::tempdir_in(dir)?);
            let called = bare::replay(place.0.path(), &ops, 1, bare::write)?;
            let faster = bare::replay(place.1.path(), &ops, 1, bare::write_inlined)?;
            inlined.push(called.as_secs_f64() / faster.as_secs_f64());
            let draft = message("m", line_bytes);
            let cloning = || (0..case.events()).for_each(|_| drop(black_box(draft.clone())));
            clones.push(ns_each(case.events(), Spent::on(cloning).1.wall));
        }
        take(ratio(format!("harness {line_bytes} B, recording with the disk log / without"), &logged));
        take(ratio(
            format!("harness {line_bytes} B, bare loop with the system call inlined / as it is"),
            &inlined,
        ));
        take(Row::new(format!("harness {line_bytes} B, cloning a draft"), median(&clones), "ns/event"));
    }
    Ok(())
}

fn list(values: &[f64]) -> Vec<f64> {
    values.iter().copied().map(rounded).collect()
}

impl Case {
    fn threads(&self) -> usize {
        self.shape.runs * self.shape.threads_per_run
    }

    /// Returns how many events each thread records: enough for a fifth of a second or so.
    fn events_per_thread(&self) -> usize {
        let total = match (self.level, self.line_bytes) {
            (Level::Written, ..=1000) => 100_000,
            (Level::Written, _) => 32_000,
            (Level::Synced, _) => (400 * self.threads()).min(20_000),
        };
        total / self.threads()
    }

    fn events(&self) -> u64 {
        (self.events_per_thread() * self.threads()) as u64
    }

    fn name(&self) -> String {
        let level = match self.level {
            Level::Written => "written",
            Level::Synced => "synced",
        };
        let Shape { runs, threads_per_run } = self.shape;
        format!("record {level} {} B, {runs} × {threads_per_run}", self.line_bytes)
    }

    fn threshold(&self) -> Option<f64> {
        (self.level == Level::Written || self.threads() >= 64).then_some(RATIO_MIN)
    }

    /// Makes trials until enough of them were calm, and returns the calmest.
    ///
    /// The bare loop is one thread and the recorder has many: when other processes want the processors, the two lose
    /// different amounts, and the ratio means nothing.
    fn calmest_trials(&self, dir: &Path) -> Outcome<Vec<Trial>> {
        let mut trials: Vec<Trial> = Vec::new();
        let is_calm = |trial: &&Trial| trial.others_cores <= OTHERS_CORES_MAX;
        while trials.iter().filter(is_calm).count() < TRIALS && trials.len() < TRIALS_MAX {
            trials.push(self.trial(dir)?);
        }
        trials.sort_by(|one, other| one.others_cores.total_cmp(&other.others_cores));
        trials.truncate(TRIALS);
        Ok(trials)
    }

    /// Records, then makes the same calls bare.
    fn trial(&self, dir: &Path) -> Outcome<Trial> {
        let noise = Noise::watch();
        let (recorded, ops) = self.traced(dir)?;
        let place = tempfile::tempdir_in(dir)?;
        settle(dir)?;
        let replayed = bare::replay(place.path(), &ops, self.shape.runs, bare::write)?;
        let others_cores = noise.cores().unwrap_or(0.0);
        let rate = |time| per_second(self.events(), time);
        Ok(Trial { recorder: rate(recorded), bare: rate(replayed), ops, others_cores })
    }

    /// Records on the traced disk; returns the time and the calls.
    fn traced(&self, dir: &Path) -> Outcome<(Duration, Vec<Op>)> {
        const SPARE_OPS: usize = 1024;
        let place = tempfile::tempdir_in(dir)?;
        let ops_max = self.events_per_thread() * self.threads() * 2 + SPARE_OPS;
        let disk = TracedDisk::create(place.path(), ops_max)?;
        let recorders = self.open_runs(Arc::new(disk.clone()))?;
        settle(dir)?;
        disk.start();
        let time = self.drive(&recorders)?;
        Ok((time, disk.stop()?))
    }

    /// Records on the disk itself, only to see what the log costs.
    fn untraced(&self, dir: &Path) -> Outcome<Duration> {
        let place = tempfile::tempdir_in(dir)?;
        let recorders = self.open_runs(Arc::new(RealDisk::create(place.path())?))?;
        settle(dir)?;
        self.drive(&recorders)
    }

    fn open_runs(&self, disk: Arc<dyn Disk>) -> Outcome<Vec<Recorder>> {
        let journal = Journal::new(Store::create(disk)?, Options::default());
        let runs = (1..=self.shape.runs as u64).map(|number| journal.record(run_id(number)));
        Ok(runs.collect::<Result<_, _>>()?)
    }

    /// Has all threads record, round by round, and returns how long the rounds took.
    fn drive(&self, recorders: &[Recorder]) -> Outcome<Duration> {
        let barrier = Barrier::new(self.threads());
        let work = |recorder: &Recorder| {
            let draft = message("m", self.line_bytes);
            let rounds = self.events_per_thread() / self.round_len();
            (0..rounds).map(|_| self.round(recorder, &draft, &barrier)).collect::<Outcome<Vec<Lap>>>()
        };
        let work = &work;
        thread::scope(|scope| {
            let threads = recorders.iter().flat_map(|one| vec![one; self.shape.threads_per_run]);
            let running: Vec<_> = threads.map(|one| scope.spawn(move || work(one))).collect();
            elapsed(running)
        })
    }

    /// Returns how many events a thread records between two stops of the clock.
    ///
    /// One thread makes some, then records them, so that making them is not counted and they are still in the
    /// processor's cache, as an event is that has just been made. Many threads would spend the rounds on starting
    /// together; they record everything in one and make each event before they record it, beside each other.
    fn round_len(&self) -> usize {
        if self.threads() == 1 { ROUND_LEN } else { self.events_per_thread() }
    }

    fn round(&self, recorder: &Recorder, draft: &Draft, barrier: &Barrier) -> Outcome<Lap> {
        let record = |draft| recorder.record(draft, self.level).map(|_| ());
        if self.threads() == 1 {
            let drafts = vec![draft.clone(); ROUND_LEN];
            return Lap::of(|| Ok(drafts.into_iter().try_for_each(record)?));
        }
        barrier.wait();
        Lap::of(|| Ok((0..self.round_len()).try_for_each(|_| record(draft.clone()))?))
    }

    fn rows(&self, trials: &[Trial]) -> [Row; 2] {
        let of = |value: fn(&Trial) -> f64| trials.iter().map(value).collect::<Vec<f64>>();
        let (recorder, bare) = (of(|trial| trial.recorder), of(|trial| trial.bare));
        let ratios = of(|trial| trial.recorder / trial.bare);
        let syncs = of(|trial| float(count(&trial.ops, |call| call == Call::Sync)));
        let writes = of(|trial| float(count(&trial.ops, |call| call != Call::Sync)));
        let others = of(|trial| trial.others_cores).into_iter().fold(0.0, f64::max);
        let events = Row::new(self.name(), median(&recorder), "events/s")
            .with(OTHERS_CORES, rounded(others))
            .with("bare", rounded(median(&bare)))
            .with("events", self.events())
            .with("writes", median(&writes))
            .with("syncs", median(&syncs))
            .with("trials", list(&recorder))
            .with("bare_trials", list(&bare));
        let ratio = Row::new(format!("{} / bare", self.name()), median(&ratios), "ratio");
        let ratio = ratio.with("trials", list(&ratios)).with(OTHERS_CORES, rounded(others));
        [events, self.threshold().into_iter().fold(ratio, Row::at_least)]
    }
}

fn count(ops: &[Op], wanted: impl Fn(Call) -> bool) -> u64 {
    ops.iter().filter(|op| wanted(op.call)).count() as u64
}

/// Makes the file system finish the previous trial, so that no later sync pays for it.
fn settle(dir: &Path) -> Outcome<()> {
    let dir = rustix::fs::open(dir, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())?;
    Ok(rustix::fs::fsync(dir)?)
}
