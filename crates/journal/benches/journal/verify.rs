//! How fast a transcript is checked and reopened, compared with the unavoidable parts.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};
use steno_disk::RealDisk;
use steno_journal::{Journal, Level, Options, RunFile, Store, check_run};
use steno_model::{Envelope, RunId};
use steno_testkit::bench_report::{Row, Spent, float, median, rounded};
use steno_testkit::sample::{message, run_id};

use crate::Outcome;
use crate::traced_disk::TracedDisk;

const ROUNDS: usize = 5;
const RECOVERIES: usize = 3;
const LINE_BYTES: usize = 1024;
const LINES: usize = 210_000;
const MB_PER_S_MIN: f64 = 350.0;

/// A sealed transcript in a separate store.
struct Sample {
    root: PathBuf,
    run: RunId,
    bytes: u64,
}

/// What is measured: its name, what it has to reach, the work.
type Job = (&'static str, Option<f64>, fn(&Sample) -> Outcome<Spent>);

/// Measures all of it on one transcript, which the page cache holds.
pub(crate) fn measure(dir: &Path, mut take: impl FnMut(Row)) -> Outcome<()> {
    let place = tempfile::tempdir_in(dir)?;
    let (sample, sealing) = Sample::make(place.path())?;
    take(sample.row("seal what was recorded", &[sealing]));
    let jobs: [Job; 5] = [
        ("verify", Some(MB_PER_S_MIN), Sample::verify),
        ("verify, sha256 alone", None, Sample::hash),
        ("verify, splitting lines alone", None, Sample::split),
        ("verify, splitting and envelopes alone", None, Sample::parse),
        ("open a sealed run", None, Sample::open),
    ];
    let mut spent: [Vec<Spent>; 5] = Default::default();
    for _ in 0..ROUNDS {
        for ((_, _, job), spent) in jobs.iter().zip(&mut spent) {
            spent.push(job(&sample)?);
        }
    }
    for ((name, threshold, _), spent) in jobs.into_iter().zip(&spent) {
        take(threshold.into_iter().fold(sample.row(name, spent), Row::at_least));
    }
    let recoveries: Outcome<Vec<Spent>> = (0..RECOVERIES).map(|_| sample.recover()).collect();
    take(sample.row("open an unsealed run", &recoveries?));
    Ok(())
}

impl Sample {
    /// Records a run and seals it; returns how long the sealing took, without the disk's part in it.
    fn make(root: &Path) -> Outcome<(Self, Spent)> {
        let run = run_id(1);
        let disk = TracedDisk::create(root, 0)?;
        let recorder = Journal::new(Store::create(Arc::new(disk))?, Options::default()).record(run)?;
        let draft = message("m", LINE_BYTES);
        for _ in 0..LINES {
            recorder.record(draft.clone(), Level::Written)?;
        }
        let (closed, spent) = Spent::on(|| recorder.close());
        closed?;
        let mut sample = Self { root: root.to_owned(), run, bytes: 0 };
        // The traced disk has not synced: without this the disk would be written to while we measure.
        sample.transcript()?.sync_all()?;
        sample.bytes = sample.transcript()?.metadata()?.len();
        Ok((sample, spent))
    }

    fn path(&self, file: RunFile) -> PathBuf {
        self.root.join(file.path().as_str())
    }

    fn transcript(&self) -> Outcome<File> {
        Ok(File::open(self.path(RunFile::Transcript(self.run)))?)
    }

    fn store(&self) -> Outcome<Store> {
        Ok(Store::open(Arc::new(RealDisk::create(&self.root)?))?)
    }

    fn verify(&self) -> Outcome<Spent> {
        let store = self.store()?;
        let (checked, spent) = Spent::on(|| check_run(&store, self.run, Vec::new()));
        let checked = checked?;
        if (checked.bytes, checked.seals) == (self.bytes, 1) {
            Ok(spent)
        } else {
            Err("the check saw another file than was written".into())
        }
    }

    /// Reads the file in the journal's pieces; whole lines of a piece, and what begins after them, go to `work`.
    fn pieces(&self, mut work: impl FnMut(&[u8]) -> Outcome<usize>) -> Outcome<Spent> {
        const PIECE_BYTES: usize = 256 * 1024;
        let file = self.transcript()?;
        let mut piece = vec![0; PIECE_BYTES];
        let mut offset = 0;
        let read_all = || -> Outcome<()> {
            while offset < self.bytes {
                let read = file.read_at(&mut piece, offset)?;
                offset += work(&piece[..read])? as u64;
            }
            Ok(())
        };
        let (done, spent) = Spent::on(read_all);
        done?;
        Ok(spent)
    }

    fn hash(&self) -> Outcome<Spent> {
        let mut hash = Sha256::new();
        let spent = self.pieces(|piece| {
            hash.update(piece);
            Ok(piece.len())
        })?;
        std::hint::black_box(hash.finalize());
        Ok(spent)
    }

    fn split(&self) -> Outcome<Spent> {
        let mut lines = 0;
        let spent = self.pieces(|piece| {
            lines += memchr::memchr_iter(b'\n', piece).count();
            Ok(piece.len())
        })?;
        if lines == LINES { Ok(spent) } else { Err("lines were lost".into()) }
    }

    fn parse(&self) -> Outcome<Spent> {
        self.pieces(|piece| {
            let mut start = 0;
            for newline in memchr::memchr_iter(b'\n', piece) {
                std::hint::black_box(Envelope::parse(&piece[start..newline])?);
                start = newline + 1;
            }
            Ok(start)
        })
    }

    /// Opens the run to append: the recovery scan, the lock, a few syncs.
    fn open(&self) -> Outcome<Spent> {
        let journal = Journal::new(self.store()?, Options::default());
        let (recorder, spent) = Spent::on(|| journal.record(self.run));
        recorder?.close()?;
        Ok(spent)
    }

    /// Opens the run after all its seals are gone: everything is written again, synced and sealed.
    fn recover(&self) -> Outcome<Spent> {
        fs::remove_file(self.path(RunFile::Seals(self.run)))?;
        self.open()
    }

    fn row(&self, name: &str, spent: &[Spent]) -> Row {
        let rate = |time: fn(&Spent) -> std::time::Duration| -> Vec<f64> {
            spent.iter().map(|spent| float(self.bytes) / 1e6 / time(spent).as_secs_f64()).collect()
        };
        let (core, wall) = (rate(Spent::one_core), rate(|spent| spent.wall));
        let by_wall = name.starts_with("open");
        Row::new(name, median(if by_wall { &wall } else { &core }), "MB/s")
            .with("cpu_mb_per_s", rounded(median(&core)))
            .with("wall_mb_per_s", rounded(median(&wall)))
            .with("bytes", self.bytes)
            .with("trials", core.iter().copied().map(rounded).collect::<Vec<f64>>())
    }
}
