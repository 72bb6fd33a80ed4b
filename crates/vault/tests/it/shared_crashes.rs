//! Commits that share their syncs, with a crash in each call: what was committed is there, and nothing is damaged.

use std::sync::Arc;

use steno_disk::SyncSet;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};
use steno_vault::{Error, SharedCommits, SourceEnd, SourceWriter, Vault};

use crate::kit::{NOW, cursor, disk, id, info, read_all, session, small_vault};

/// More than are synced one by one.
const SOURCES: usize = 9;
const EIO: i32 = 5;

fn name(number: usize) -> String {
    format!("s{number}")
}

fn content(number: usize) -> Vec<u8> {
    session(number as u64 + 1, 9_000, &name(number))
}

/// Writes all sources in two commits and saves their states; returns which of them say that they are done.
fn record(vault: &Arc<Vault>) -> Result<Vec<bool>, Error> {
    let commits = SharedCommits::new(vault);
    let ticket = commits.begin();
    let mut writers: Vec<SourceWriter> = Vec::new();
    for number in 0..SOURCES {
        writers.push(vault.write(id(&name(number)), &info(&name(number)), NOW)?);
    }
    let mut is_good = vec![true; SOURCES];
    for (part, end) in [(0, SourceEnd::Open), (1, SourceEnd::Reached)] {
        for (number, writer) in writers.iter_mut().enumerate() {
            let bytes = content(number);
            let (first, second) = bytes.split_at(bytes.len() / 2);
            is_good[number] &= writer.append(if part == 0 { first } else { second }).is_ok();
        }
        let mut all: Vec<_> = writers.iter_mut().map(|writer| (writer, end)).collect();
        let outcomes = commits.commit(ticket, &mut all);
        is_good.iter_mut().zip(outcomes).for_each(|(good, outcome)| *good &= outcome.is_ok());
    }
    let mut set = SyncSet::default();
    for (writer, good) in writers.iter_mut().zip(&mut is_good) {
        *good &= writer.write_state(None, (Some(cursor("1")), None), NOW, &mut set).is_ok();
    }
    let is_synced = commits.sync(ticket, &set).is_ok();
    for (writer, good) in writers.iter_mut().zip(&mut is_good) {
        *good &= is_synced && writer.end_state().is_ok();
    }
    Ok(is_good)
}

/// Checks that no source is damaged, and that each good one is complete.
#[track_caller]
fn check(disk: &SimDisk, is_good: &[bool], what: &str) {
    let vault = small_vault(disk).unwrap();
    for (number, good) in is_good.iter().enumerate() {
        let manifest = vault.manifest(id(&name(number))).unwrap();
        assert!(manifest.is_some() || !good, "{what}: source {number} is gone");
        let Some(manifest) = manifest else { continue };
        let bytes = read_all(&vault, &manifest, 0).unwrap();
        let wanted = content(number);
        assert!(wanted.starts_with(&bytes), "{what}: source {number} has other bytes");
        let is_done = manifest.cursor.is_some();
        assert!(!is_done || bytes == wanted, "{what}: source {number} is incomplete");
        assert!(!good || is_done, "{what}: source {number} was done");
    }
}

#[test]
fn crash_in_any_call_leaves_no_damaged_source() {
    for death in [Death::Kill, Death::PowerCut] {
        for call in 1.. {
            let disk = disk(call);
            let vault = small_vault(&disk).unwrap();
            disk.plan(Fault::DieAt { call });
            let is_good = record(&vault).unwrap_or_else(|_| vec![false; SOURCES]);
            drop(vault);
            if disk.fired() == 0 {
                assert!(call > 60 && is_good.iter().all(|good| *good), "only {call} calls");
                check(&disk.die(death), &is_good, "without a crash");
                break;
            }
            check(&disk.die(death), &is_good, &format!("{death:?} in call {call}"));
        }
    }
}

#[test]
fn failed_whole_sync_fails_all_sources() {
    for nth in 1.. {
        let disk = disk(nth);
        let vault = small_vault(&disk).unwrap();
        disk.plan(Fault::Fail { kind: Call::SyncWhole, nth, error: EIO });
        let is_good = record(&vault).unwrap();
        if disk.fired() == 0 {
            assert!(nth > 3, "only {nth} whole syncs");
            return;
        }
        assert!(is_good.iter().all(|good| !good), "sync {nth}: {is_good:?}");
        drop(vault);
        check(&disk.die(Death::PowerCut), &is_good, &format!("sync {nth} failed"));
    }
}

#[test]
fn other_threads_lose_what_a_failed_sync_may_have_lost() {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    let commits = SharedCommits::new(&vault);
    let (one, other) = (commits.begin(), commits.begin());
    let mut writers: Vec<SourceWriter> = Vec::new();
    for number in 0..2 * SOURCES {
        let mut writer = vault.write(id(&name(number)), &info(&name(number)), NOW).unwrap();
        writer.append(&content(number)).unwrap();
        writer.store_chunks(SourceEnd::Reached).unwrap();
        writers.push(writer);
    }
    let mut all: Vec<_> = writers.iter_mut().map(|writer| (writer, SourceEnd::Reached)).collect();
    let (first, second) = all.split_at_mut(SOURCES);
    disk.plan(Fault::Fail { kind: Call::SyncWhole, nth: 1, error: EIO });
    assert!(commits.commit(one, first).iter().all(Result::is_err));
    assert_eq!(disk.fired(), 1);
    // The failure may have been about these, and it is reported once.
    assert!(commits.commit(other, second).iter().all(Result::is_err));
    drop(writers);
    // What begins after it is not affected.
    assert_eq!(record(&vault).unwrap(), vec![true; SOURCES]);
    check(&disk.die(Death::PowerCut), &[true; SOURCES], "after the failure");
}
