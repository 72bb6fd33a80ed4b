//! Thousands of crashes on the simulated disk: committed bytes survive, and each fault did happen.

use std::sync::Arc;

use steno_testkit::dice::Dice;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};
use steno_vault::{Error, Limits, Vault};

use crate::kit::{SMALL, cousin, disk, session, small_vault};
use crate::model::{Counts, Ledger, Recording, Scale};
use crate::packs::deltas_of_deltas;

const SEEDS: u64 = 2_000;
/// With content as large as agents write it.
const FULL_SEEDS: u64 = 20;
const LIVES: u64 = 3;
const EIO: i32 = 5;

/// Two processes on one disk, each with its own sources.
struct Processes {
    vaults: Vec<Arc<Vault>>,
    recordings: Vec<Vec<Recording>>,
}

/// How often the disk did something, over all seeds.
#[derive(Debug, Default)]
struct Faults {
    fired: u64,
    power_cuts: u64,
    recoveries_killed: u64,
}

fn vault_of(disk: &SimDisk, scale: Scale) -> Result<Arc<Vault>, Error> {
    let limits = if scale == Scale::Full { Limits::default() } else { SMALL };
    Vault::create_with(Arc::new(disk.clone()), limits)
}

fn name(process: usize, dice: &mut Dice) -> String {
    format!("{process}-{}", ["a", "b", "c"][dice.below(3)])
}

/// Plans what goes wrong in one life.
fn plan(disk: &SimDisk, dice: &mut Dice) {
    if dice.once_in(3) {
        let kinds =
            [Call::Sync, Call::Sync, Call::SyncDir, Call::Write, Call::Rename, Call::Create, Call::Truncate];
        let kind = kinds[dice.below(kinds.len())];
        disk.plan(Fault::Fail { kind, nth: 1 + dice.below(20) as u64, error: EIO });
    }
    if dice.once_in(2) {
        disk.make_writes_short(3);
    }
    if dice.once_in(3) {
        let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
        disk.set_room(Some((used + dice.below(60_000)) as u64));
    }
    disk.plan(Fault::DieAt { call: 1 + dice.below(150) as u64 });
}

/// One life of two processes: record until the planned fault ends it.
fn live(disk: &SimDisk, ledger: &mut Ledger, dice: &mut Dice, counts: &mut Counts) -> Option<Processes> {
    let scale = ledger.scale;
    let vaults: Vec<_> = (0..2).map(|_| vault_of(disk, scale)).collect::<Result<_, _>>().ok()?;
    let mut processes = Processes { vaults, recordings: vec![Vec::new(), Vec::new()] };
    for _ in 0..30 {
        let process = dice.below(2);
        let name = &name(process, dice);
        let recordings = &mut processes.recordings[process];
        let opened = recordings.iter().position(|recording| recording.name == *name);
        let at = opened.unwrap_or(recordings.len());
        if opened.is_none() {
            // A failed open may succeed later: a failed sync happens once.
            let Ok(recording) = ledger.open(&processes.vaults[process], name) else { continue };
            recordings.push(recording);
        }
        let goes_on = ledger.step(&mut recordings[at], dice, counts);
        if !goes_on || dice.once_in(8) {
            recordings.swap_remove(at);
        }
        if dice.once_in(8) {
            processes.vaults[process].close_pack().ok();
        }
        if dice.once_in(40) {
            // Their owners ended and may have left packs open.
            processes.recordings.iter_mut().for_each(Vec::clear);
            ledger.forget(&processes.vaults[dice.below(2)], name, counts);
        }
        if dice.once_in(10) {
            disk.set_room(None);
        }
        if dice.once_in(12) {
            // One of the processes is killed, and another replaces it.
            processes.recordings[process].clear();
            processes.vaults[process] = vault_of(disk, scale).ok()?;
        }
    }
    Some(processes)
}

/// Opens the vault as the next process does, and checks that a second open changes nothing.
fn recover(disk: &SimDisk, ledger: &mut Ledger, counts: &mut Counts) {
    let reader = Vault::open(Arc::new(disk.clone()));
    ledger.check(&reader, counts);
    let findings = reader.verify(|_| ()).unwrap().findings;
    assert!(findings.is_empty(), "what crashes leave is no damage: {findings:?}");
    let vault = small_vault(disk).unwrap();
    ledger.check(&vault, counts);
    drop(vault);
    let after = disk.snapshot();
    drop(small_vault(disk).unwrap());
    assert!(disk.snapshot() == after, "a second recovery changes nothing");
}

/// Records similar content and forks of it before any fault.
fn record_family(disk: &SimDisk, ledger: &mut Ledger, dice: &mut Dice) {
    let vault = vault_of(disk, ledger.scale).unwrap();
    let first = session(dice.roll(), 12_000, "first-session");
    let second = cousin(&first, dice.roll());
    let fork = |content: &[u8]| {
        String::from_utf8_lossy(content).replace("first-session", "other-session").into_bytes()
    };
    let family = [first.clone(), second.clone(), fork(&second), fork(&first)];
    for (name, content) in ["0-a", "0-b", "1-a", "1-b"].into_iter().zip(family) {
        let mut recording = ledger.open(&vault, name).unwrap();
        ledger.record(&mut recording, &content);
    }
    vault.close_pack().unwrap();
}

fn survive(seed: u64, scale: Scale, counts: &mut Counts, faults: &mut Faults) {
    let mut dice = Dice::new(seed);
    let mut disk = disk(dice.roll());
    let mut ledger = Ledger { scale, ..Ledger::default() };
    if dice.once_in(2) {
        record_family(&disk, &mut ledger, &mut dice);
    }
    for _ in 0..LIVES {
        let before = disk.fired();
        plan(&disk, &mut dice);
        let held = live(&disk, &mut ledger, &mut dice, counts);
        faults.fired += disk.fired() - before;
        let death = if dice.once_in(3) { Death::Kill } else { Death::PowerCut };
        faults.power_cuts += u64::from(death == Death::PowerCut);
        disk.set_room(None);
        disk = disk.die(death);
        drop(held);
        if dice.once_in(2) {
            // Recovery itself may be killed at any call.
            let before = disk.fired();
            disk.plan(Fault::DieAt { call: 5 + dice.below(12) as u64 });
            small_vault(&disk).ok();
            faults.recoveries_killed += disk.fired() - before;
            disk = disk.die(if dice.once_in(2) { Death::Kill } else { Death::PowerCut });
        }
        recover(&disk, &mut ledger, counts);
        counts.deltas_of_deltas += deltas_of_deltas(&disk) as u64;
    }
}

fn survive_all(seeds: std::ops::Range<u64>, scale: Scale, counts: &mut Counts, faults: &mut Faults) {
    for seed in seeds {
        let survived = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            survive(seed, scale, counts, faults);
        }));
        assert!(survived.is_ok(), "seed {seed}, {scale:?}");
    }
}

#[test]
fn committed_bytes_survive_thousands_of_crashes() {
    let (mut counts, mut faults) = (Counts::default(), Faults::default());
    survive_all(0..SEEDS, Scale::Small, &mut counts, &mut faults);
    survive_all(0..FULL_SEEDS, Scale::Full, &mut counts, &mut faults);
    print_counts(&counts, &faults);
    assert!(faults.fired > SEEDS * LIVES / 2, "{faults:?}");
    assert!(faults.power_cuts > SEEDS, "{faults:?}");
    assert!(faults.recoveries_killed > SEEDS / 10, "{faults:?}");
    assert!(
        counts.commits > SEEDS && counts.no_room > SEEDS / 10 && counts.failed > SEEDS / 10,
        "{counts:?}"
    );
    assert!(
        counts.generations > SEEDS / 2 && counts.late > SEEDS / 20 && counts.states > SEEDS,
        "{counts:?}"
    );
    assert!(counts.forgotten > SEEDS / 4 && counts.deltas_of_deltas > SEEDS, "{counts:?}");
    assert!(counts.more_than_committed > SEEDS / 10, "{counts:?}");
}

#[expect(clippy::print_stderr, reason = "how often faults fired is what the test is worth")]
fn print_counts(counts: &Counts, faults: &Faults) {
    eprintln!("crashes: {SEEDS} seeds, {faults:?}, {counts:?}");
}

/// A short history that uses every kind of file; ends early when the disk fails.
fn script(disk: &SimDisk, ledger: &mut Ledger) -> Result<Vec<Recording>, Error> {
    let mut held = Vec::new();
    let mut counts = Counts::default();
    let mut dice = Dice::new(9);
    for life in 0..3 {
        held.clear();
        let vault = small_vault(disk)?;
        for name in ["a", "b"] {
            let mut recording = ledger.open(&vault, name)?;
            for _ in 0..8 {
                if !ledger.step(&mut recording, &mut dice, &mut counts) {
                    held.push(recording);
                    return Ok(held);
                }
            }
            held.push(recording);
        }
        if life == 1 {
            vault.close_pack()?;
        }
    }
    Ok(held)
}

/// Ends the process inside every single call of a fixed script, one after the other.
#[test]
fn kill_in_every_call_loses_nothing_committed() {
    let calls = {
        let disk = disk(1);
        script(&disk, &mut Ledger::default()).unwrap();
        disk.calls()
    };
    let mut fired = 0;
    for call in 1..calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = disk(call);
            let mut ledger = Ledger::default();
            disk.plan(Fault::DieAt { call });
            let held = script(&disk, &mut ledger);
            assert_eq!(disk.fired(), 1, "the death at call {call} of {calls} did fire");
            fired += 1;
            let disk = disk.die(death);
            drop(held);
            recover(&disk, &mut ledger, &mut Counts::default());
            go_on(&disk, &mut ledger);
        }
    }
    assert_eq!(fired, (calls - 1) * 2);
    assert!(calls > 100, "{calls}");
}

/// Fails each call of the script in turn, goes on in the same boot, then cuts the power.
#[test]
fn failure_of_every_call_loses_nothing_committed() {
    let mut fired = 0;
    for kind in [Call::Sync, Call::SyncDir, Call::Write, Call::Create, Call::Rename, Call::Remove] {
        for nth in 1.. {
            let disk = disk(nth);
            let mut ledger = Ledger::default();
            disk.plan(Fault::Fail { kind, nth, error: EIO });
            for _ in 0..2 {
                script(&disk, &mut ledger).ok();
            }
            if disk.fired() == 0 {
                assert!(nth > 2, "{kind:?}: {nth}");
                break;
            }
            fired += 1;
            let disk = disk.die(Death::PowerCut);
            recover(&disk, &mut ledger, &mut Counts::default());
            go_on(&disk, &mut ledger);
        }
    }
    assert!(fired > 100, "{fired}");
}

/// Records more, and cuts the power once more.
fn go_on(disk: &SimDisk, ledger: &mut Ledger) {
    script(disk, ledger).unwrap();
    let disk = disk.die(Death::PowerCut);
    recover(&disk, ledger, &mut Counts::default());
}
