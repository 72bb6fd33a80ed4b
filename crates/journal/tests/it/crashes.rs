//! Thousands of crashes on the simulated disk: acknowledged records survive, and each fault did happen.

use std::io;
use std::sync::Arc;

use steno_disk::Disk;
use steno_journal::{Ending, Error, Level, Reader, Recorder, RunFile, Store, apply, inspect};
use steno_model::{Draft, Seq};
use steno_testkit::dice::Dice;
use steno_testkit::sample::{message, time};
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

use crate::kit::{clock, journal_on, run, transcript};

const SEEDS: u64 = 4_000;
const LIVES: u64 = 3;
const EIO: i32 = 5;

/// The client's knowledge, kept outside the faulty disk.
#[derive(Default)]
struct Ledger {
    /// Lines by position, as written in the current life of the process.
    lines: Vec<Vec<u8>>,
    /// How many of them were acknowledged as written, and as synced.
    written: usize,
    synced: usize,
}

/// Counts over all seeds.
#[derive(Debug, Default)]
struct Counts {
    fired: u64,
    power_cuts: u64,
    torn_tails: u64,
    failed_syncs: u64,
    refused_as_damaged: u64,
    lost_unacknowledged: u64,
}

fn line_of(draft: &Draft, seq: Seq) -> Vec<u8> {
    let mut line = Vec::new();
    draft.clone().encode(run(), time).write_line(seq, &mut line);
    line
}

impl Ledger {
    /// Records one event; false when the disk has failed.
    fn record(&mut self, recorder: &Recorder, label: &str, dice: &mut Dice) -> bool {
        let level = if dice.once_in(3) { Level::Written } else { Level::Synced };
        let draft = message(label, 200 + dice.below(1_500));
        let next = Seq::new(self.lines.len() as u64 + 1).unwrap();
        let line = line_of(&draft, next);
        // The line may be in the file whether or not it is acknowledged.
        if dice.once_in(2) {
            // A lone writer that waits commits by itself; otherwise the commit threads do.
            self.lines.push(line);
            match recorder.record(draft, level) {
                Err(_) => return false,
                Ok(seq) => assert_eq!(seq, next),
            }
        } else {
            let Ok(pending) = recorder.append(draft, level) else { return false };
            assert_eq!(pending.seq(), next);
            self.lines.push(line);
            if level == Level::Written {
                self.written = self.lines.len();
            }
            if pending.wait().is_err() {
                return false;
            }
        }
        self.written = self.lines.len();
        if level == Level::Synced {
            self.synced = self.lines.len();
        }
        true
    }

    /// Compares the disk with what was acknowledged, before it is opened for writing.
    fn check(&mut self, disk: &SimDisk, death: Death, counts: &mut Counts) {
        let acknowledged = if death == Death::Kill { self.written } else { self.synced };
        let store = Store::open(Arc::new(disk.clone())).unwrap();
        let mut found = 0;
        if let Ok(mut reader) = Reader::open(&store, run()) {
            while let Ok(Some(recorded)) = reader.read_next() {
                let mut line = recorded.line;
                line.push(b'\n');
                if found < self.lines.len() {
                    assert_eq!(line, self.lines[found], "line {found} is as it was recorded");
                } else {
                    // Written by a call that the process died in: whole, and never acknowledged.
                    self.lines.push(line);
                }
                found += 1;
            }
        }
        assert!(found >= acknowledged, "{found} of {acknowledged} acknowledged events are there");
        counts.lost_unacknowledged += (self.lines.len() - found) as u64;
        self.lines.truncate(found);
        (self.written, self.synced) = (found, found);
    }
}

/// Recovers by hand, as opening does, and checks that torn bytes are kept and that doing it again does nothing.
fn recover(disk: &SimDisk, counts: &mut Counts) -> Result<(), Error> {
    let before = transcript(disk);
    let found = inspect(disk, run())?;
    let clean = found.is_clean();
    apply(disk, &found, clock())?;
    if let Ending::Torn { offset, len } = found.ending() {
        counts.torn_tails += 1;
        let start = usize::try_from(offset).unwrap();
        let torn = &before[start..];
        assert_eq!(torn.len() as u64, len);
        let kept = disk.snapshot().into_iter().any(|(name, bytes)| name.contains(".torn-") && bytes == torn);
        assert!(kept, "torn bytes are kept aside");
        assert_eq!(transcript(disk), before[..start]);
    } else {
        assert_eq!(transcript(disk), before, "the good prefix stays as it is");
    }
    let after = disk.snapshot();
    let again = inspect(disk, run())?;
    assert!(again.is_clean(), "recovered (clean before: {clean})");
    apply(disk, &again, clock())?;
    assert_eq!(disk.snapshot(), after, "a second recovery changes nothing");
    Ok(())
}

/// One life of a process: record until the planned fault ends it.
///
/// Returns a recorder that was still open at the end; when it is dropped later, all its calls fail.
fn live(
    disk: &SimDisk,
    ledger: &mut Ledger,
    dice: &mut Dice,
    counts: &mut Counts,
) -> Result<Option<Recorder>, Error> {
    let before = disk.fired();
    if dice.once_in(3) {
        disk.plan(Fault::Fail { kind: Call::Sync, nth: 1 + dice.below(12) as u64, error: EIO });
    }
    if dice.once_in(2) {
        disk.make_writes_short(3);
    }
    disk.plan(Fault::DieAt { call: 1 + dice.below(60) as u64 });
    // A failed sync stops a recorder; opening again in the same boot, with the same cache, must be safe too.
    for _ in 0..3 {
        let opened = journal_on(disk).and_then(|journal| journal.record(run()));
        let recorder = match opened {
            Ok(recorder) => recorder,
            Err(error @ (Error::Damaged { .. } | Error::SealBroken { .. })) => return Err(error),
            Err(_) => continue,
        };
        ledger.adopt(disk);
        for event in 0..12 {
            if !ledger.record(&recorder, &format!("e{event}"), dice) {
                break;
            }
            if dice.once_in(6) && recorder.seal().is_err() {
                break;
            }
        }
        // Closing seals; a process that is killed does not get that far.
        if dice.once_in(2) {
            counts.fired += disk.fired() - before;
            return Ok(Some(recorder));
        }
        recorder.close().ok();
    }
    counts.fired += disk.fired() - before;
    Ok(None)
}

impl Ledger {
    /// Takes over the content of the file when a recorder was opened: unacknowledged lines may or may not exist.
    fn adopt(&mut self, disk: &SimDisk) {
        let content = transcript(disk);
        let lines: Vec<_> = content.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        assert!(lines.len() >= self.written, "an acknowledged line is gone while the process lives");
        let shared = lines.len().min(self.lines.len());
        assert_eq!(lines[..shared], self.lines[..shared]);
        self.lines = lines;
    }
}

fn survive(seed: u64, counts: &mut Counts) -> Result<(), Error> {
    let mut dice = Dice::new(seed);
    let mut disk = SimDisk::new(dice.roll());
    let mut ledger = Ledger::default();
    for _ in 0..LIVES {
        let held = live(&disk, &mut ledger, &mut dice, counts)?;
        let death = if dice.once_in(3) { Death::Kill } else { Death::PowerCut };
        counts.power_cuts += u64::from(death == Death::PowerCut);
        disk = disk.die(death);
        drop(held);
        ledger.check(&disk, death, counts);
        if dice.once_in(2) {
            // Recovery itself may be killed at any call.
            disk.plan(Fault::DieAt { call: 1 + dice.below(12) as u64 });
            let held = journal_on(&disk).and_then(|journal| journal.record(run()));
            disk = disk.die(death);
            drop(held);
            ledger.check(&disk, death, counts);
        }
        journal_on(&disk)?;
        recover(&disk, counts)?;
    }
    Ok(())
}

#[test]
fn acknowledged_records_survive_thousands_of_crashes() {
    let mut counts = Counts::default();
    for seed in 0..SEEDS {
        match survive(seed, &mut counts) {
            Ok(()) => {}
            // Unsynced sectors in any combination can leave zeros before a good line. Nothing acknowledged is
            // behind them, readers see all of it, and appending is refused.
            Err(Error::Damaged { path, .. }) if path == RunFile::Transcript(run()).path() => {
                counts.refused_as_damaged += 1;
            }
            Err(error) => panic!("seed {seed}: {error}"),
        }
    }
    println_counts(&counts);
    assert!(counts.fired > SEEDS, "{counts:?}");
    assert!(counts.power_cuts > SEEDS, "{counts:?}");
    assert!(counts.torn_tails > SEEDS / 10, "{counts:?}");
    assert!(counts.lost_unacknowledged > SEEDS / 10, "{counts:?}");
    assert!(counts.refused_as_damaged < SEEDS / 100, "{counts:?}");
}

#[expect(clippy::print_stderr, reason = "how often faults fired is what the test is worth")]
fn println_counts(counts: &Counts) {
    eprintln!("crashes: {SEEDS} seeds, {counts:?}");
}

/// Fails each sync in turn, then cuts the power: records acknowledged by a later sync must exist.
#[test]
fn failed_sync_stops_acknowledgements_until_reopening() {
    let mut counts = Counts::default();
    for nth in 1..60 {
        let disk = SimDisk::new(nth);
        let mut ledger = Ledger::default();
        let mut dice = Dice::new(nth);
        let journal = journal_on(&disk).unwrap();
        disk.plan(Fault::Fail { kind: Call::Sync, nth, error: EIO });
        for _ in 0..4 {
            let Ok(recorder) = journal.record(run()) else { continue };
            ledger.adopt(&disk);
            for event in 0..8 {
                if !ledger.record(&recorder, &format!("e{event}"), &mut dice) {
                    let refused = recorder.record(message("after", 300), Level::Written);
                    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
                    break;
                }
            }
            recorder.close().ok();
        }
        counts.failed_syncs += disk.fired();
        let disk = disk.die(Death::PowerCut);
        ledger.check(&disk, Death::PowerCut, &mut counts);
        recover(&disk, &mut counts).unwrap();
    }
    assert!(counts.failed_syncs > 30, "{counts:?}");
}

/// Kills the process inside every single call of a fixed scenario, one after the other.
#[test]
fn kill_in_every_call_loses_nothing_acknowledged() {
    let mut counts = Counts::default();
    let calls = {
        let disk = SimDisk::new(1);
        scenario(&disk, &mut Ledger::default());
        disk.calls()
    };
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = SimDisk::new(call);
            let mut ledger = Ledger::default();
            disk.plan(Fault::DieAt { call });
            let held = scenario(&disk, &mut ledger);
            assert_eq!(disk.fired(), 1, "the kill at call {call} of {calls} did fire");
            counts.fired += 1;
            let disk = disk.die(death);
            drop(held);
            ledger.check(&disk, death, &mut counts);
            journal_on(&disk).unwrap();
            match recover(&disk, &mut counts) {
                Ok(()) => {}
                Err(Error::Damaged { path, .. }) if path == RunFile::Transcript(run()).path() => {
                    counts.refused_as_damaged += 1;
                }
                Err(error) => panic!("call {call}: {error}"),
            }
        }
    }
    assert_eq!(counts.fired, calls * 2);
    assert!(counts.refused_as_damaged <= calls * 2 / 100, "{counts:?}");
    assert!(counts.torn_tails > 0, "{counts:?}");
}

/// Records, closes and reopens; returns the recorder that was open when the process died.
fn scenario(disk: &SimDisk, ledger: &mut Ledger) -> Option<Recorder> {
    let mut dice = Dice::new(5);
    for _ in 0..3 {
        let recorder = journal_on(disk).and_then(|journal| journal.record(run())).ok()?;
        ledger.adopt(disk);
        for event in 0..6 {
            if !ledger.record(&recorder, &format!("e{event}"), &mut dice) {
                return Some(recorder);
            }
        }
        recorder.close().ok();
    }
    None
}

#[test]
fn simulated_disk_keeps_synced_bytes_and_may_lose_others() {
    let path = RunFile::Notes(run()).path();
    let (mut lost, mut kept) = (0, 0);
    for seed in 0..100 {
        let disk = SimDisk::new(seed);
        disk.make_dir(&path.dir()).unwrap();
        let file = disk.open_append(&path).unwrap();
        file.append(b"synced").unwrap();
        file.sync().unwrap();
        disk.sync_dir(&path.dir()).unwrap();
        file.append(b" and not").unwrap();
        let after = disk.die(Death::PowerCut);
        assert!(file.append(b"x").is_err(), "a dead process writes nothing");
        let content = after.content(&path).unwrap();
        assert!(content.starts_with(b"synced"));
        if content.len() == 6 { lost += 1 } else { kept += 1 }
    }
    assert!(lost > 10 && kept > 10, "{lost} lost, {kept} kept");
    let full = SimDisk::new(1);
    full.make_dir(&path.dir()).unwrap();
    full.set_room(Some(4));
    let file = full.open_append(&path).unwrap();
    assert_eq!(file.append(b"123456").unwrap(), 4);
    assert_eq!(file.append(b"56").unwrap_err().kind(), io::ErrorKind::StorageFull);
}
