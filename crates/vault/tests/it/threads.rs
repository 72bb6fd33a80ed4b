//! Several threads share a vault: each commits its own sources, and a failed sync loses nothing that was committed.

use std::sync::Arc;

use steno_testkit::dice::Dice;
use steno_testkit::sim_disk::{Call, Death, Fault};
use steno_vault::Vault;

use crate::kit::{disk, small_vault};
use crate::model::{Counts, Ledger};

const SEEDS: u64 = 60;
const THREADS: u64 = 4;
const EIO: i32 = 5;

/// Records two sources until it is stopped; a failed writer is opened again.
fn record(vault: &Arc<Vault>, thread: u64, seed: u64) -> (Ledger, Counts) {
    let mut dice = Dice::new(seed * THREADS + thread);
    let (mut ledger, mut counts) = (Ledger::default(), Counts::default());
    for life in 0..4 {
        let name = format!("{thread}-{}", life % 2);
        let Ok(mut recording) = ledger.open(vault, &name) else { continue };
        for _ in 0..15 {
            if !ledger.step(&mut recording, &mut dice, &mut counts) {
                break;
            }
            if dice.once_in(12) {
                vault.close_pack().ok();
            }
        }
    }
    (ledger, counts)
}

#[test]
fn failed_sync_loses_nothing_committed_by_other_threads() {
    let (mut fired, mut commits, mut failed) = (0, 0, 0);
    for seed in 0..SEEDS {
        let disk = disk(seed);
        let vault = small_vault(&disk).unwrap();
        for nth in [2, 9, 30] {
            disk.plan(Fault::Fail { kind: Call::Sync, nth: nth + seed % 7, error: EIO });
        }
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let vault = Arc::clone(&vault);
                std::thread::spawn(move || record(&vault, thread, seed))
            })
            .collect();
        let done: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        drop(vault);
        fired += disk.fired();
        let disk = disk.die(Death::PowerCut);
        let vault = small_vault(&disk).unwrap();
        let mut all = Ledger::default();
        for (ledger, counts) in done {
            all.sources.extend(ledger.sources);
            commits += counts.commits;
            failed += counts.failed;
        }
        all.check(&vault, &mut Counts::default());
    }
    assert!(fired >= SEEDS * 2 && commits > SEEDS * 4 && failed > SEEDS, "{fired} {commits} {failed}");
}

#[test]
fn forgetting_beside_writers_loses_nothing_of_theirs() {
    let mut forgotten = 0;
    for seed in 0..SEEDS / 4 {
        let disk = disk(seed);
        let vaults = [small_vault(&disk).unwrap(), small_vault(&disk).unwrap()];
        let recording: Vec<_> = (0..THREADS)
            .map(|thread| {
                let vault = Arc::clone(&vaults[usize::from(thread % 2 == 0)]);
                std::thread::spawn(move || record(&vault, thread, seed).0)
            })
            .collect();
        // Similar to what the others record, so that they share chunks and bases.
        let (mut ledger, mut counts) = (Ledger::default(), Counts::default());
        let mut dice = Dice::new(seed);
        for number in 0..6 {
            let name = format!("forgotten-{number}");
            let mut recording = ledger.open(&vaults[0], &name).unwrap();
            for _ in 0..6 {
                assert!(ledger.step(&mut recording, &mut dice, &mut counts));
            }
            drop(recording);
            ledger.forget(&vaults[number % 2], &name, &mut counts);
        }
        for thread in recording {
            ledger.sources.extend(thread.join().unwrap().sources);
        }
        forgotten += counts.forgotten;
        ledger.check(&vaults[1], &mut Counts::default());
        drop(vaults);
        let disk = disk.die(Death::PowerCut);
        let vault = small_vault(&disk).unwrap();
        ledger.check(&vault, &mut Counts::default());
        assert!(vault.tombstones().unwrap().iter().all(|tombstone| tombstone.is_swept));
        assert_eq!(vault.verify(|_| ()).unwrap().findings.len(), 0);
    }
    assert!(forgotten > SEEDS, "{forgotten}");
}
