//! Deleting a run or a spine removes all its files, and nothing of others.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{Error, Level, RunFile, Store};
use steno_model::{Seq, SpineType, ThreadId};
use steno_spine::validate_spine;
use steno_testkit::sample::{run_id, run_started};
use steno_testkit::sample_spine::{SMALL, draft, spine_on_disk, thread};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

use crate::kit::{clock, journal_on};

fn names(disk: &SimDisk) -> Vec<String> {
    let all = disk.snapshot().into_iter().map(|(name, _)| name);
    all.filter(|name| name.starts_with("transcripts/")).collect()
}

#[test]
fn remove_deletes_a_run_with_all_its_files() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    for number in [1, 2] {
        let recorder = journal.record(run_id(number)).unwrap();
        recorder.record(run_started(), Level::Synced).unwrap();
        recorder.note_dropped(1, "for a test").unwrap();
        recorder.close().unwrap();
    }
    disk.tamper(&RunFile::Transcript(run_id(1)).path().torn(7, "0123456789abcdef"), b"torn");
    let store = journal.store();
    assert!(store.remove_run(run_id(1), clock()).unwrap() > 0);
    let others = names(&disk);
    assert!(others.iter().all(|name| name.contains(&run_id(2).to_string())), "{others:?}");
    assert_eq!(others.len(), 3);
    assert_eq!(names(&disk.die(Death::PowerCut)), others);
}

#[test]
fn remove_refuses_an_open_run() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let recorder = journal.record(run_id(1)).unwrap();
    recorder.record(run_started(), Level::Synced).unwrap();
    assert!(matches!(journal.store().remove_run(run_id(1), clock()), Err(Error::Locked { .. })));
    assert!(journal.store().has(run_id(1)).unwrap());
    recorder.close().unwrap();
    journal.store().remove_run(run_id(1), clock()).unwrap();
    assert_eq!(journal.store().remove_run(run_id(1), clock()).unwrap(), 0);
}

/// A partly deleted run can be found and deleted again.
#[test]
fn killed_remove_leaves_the_run_or_nothing() {
    let filled = || {
        let disk = SimDisk::new(1);
        let recorder = journal_on(&disk).unwrap().record(run_id(1)).unwrap();
        recorder.record(run_started(), Level::Synced).unwrap();
        recorder.note_dropped(1, "for a test").unwrap();
        recorder.close().unwrap();
        disk.tamper(&RunFile::Transcript(run_id(1)).path().torn(7, "0123456789abcdef"), b"torn");
        disk
    };
    let mut fired = 0;
    for call in 1.. {
        let mut was_there = 0;
        for death in [Death::Kill, Death::PowerCut] {
            let disk = filled();
            let store = Store::open(Arc::new(disk.clone())).unwrap();
            disk.plan(Fault::DieAt { call });
            store.remove_run(run_id(1), clock()).ok();
            if disk.fired() == 0 {
                continue;
            }
            fired += 1;
            let disk = disk.die(death);
            let store = Store::open(Arc::new(disk.clone())).unwrap();
            was_there += 1;
            if store.runs().unwrap().is_empty() {
                assert_eq!(names(&disk), [""; 0], "{death:?} at call {call}");
            } else {
                store.remove_run(run_id(1), clock()).unwrap();
                assert_eq!(names(&disk.die(Death::PowerCut)), [""; 0], "{death:?} at call {call}");
            }
        }
        if was_there == 0 {
            break;
        }
    }
    assert!(fired > 10, "{fired}");
}

#[test]
fn remove_deletes_a_spine_with_all_its_files() {
    let disk = spine_on_disk();
    let journal = journal_on(&disk).unwrap();
    let other = ThreadId::parse("thread_1234").unwrap();
    journal
        .spine(&other, SMALL)
        .unwrap()
        .record(&draft(SpineType::SessionMeta, "{}"), Level::Synced)
        .unwrap();
    let dir = StorePath::spine_of(&thread());
    disk.tamper(&dir.below("notes.jsonl"), b"{}\n");
    disk.tamper(&dir.below("segment-001.jsonl.torn-7-0123456789abcdef"), b"torn");
    disk.tamper(&dir.below("artifacts/git_diff-x.patch.tmp-1-0123456789abcdef"), b"half");
    let store = journal.store();
    let bytes: usize = disk
        .snapshot()
        .iter()
        .filter(|(name, _)| name.starts_with("spine/thread_123/"))
        .map(|(_, bytes)| bytes.len())
        .sum();
    assert_eq!(store.spine_bytes(&thread()).unwrap(), bytes as u64);
    let mut held = store.lock_spine(&thread(), clock()).unwrap();
    assert!(matches!(journal.spine(&thread(), SMALL), Err(Error::Locked { .. })));
    held.remove().unwrap();
    // A second call is not an error.
    held.remove().unwrap();
    drop(held);
    assert_eq!(store.spines().unwrap(), std::slice::from_ref(&other));
    let disk = disk.die(Death::PowerCut);
    let left: Vec<_> =
        disk.snapshot().into_iter().map(|(name, _)| name).filter(|name| name.starts_with("spine/")).collect();
    assert!(!left.is_empty() && left.iter().all(|name| name.starts_with("spine/thread_1234/")), "{left:?}");
    // A new spine begins with the first record.
    let again = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    assert_eq!(again.seq_last(), None);
    again.record(&draft(SpineType::SessionMeta, "{}"), Level::Synced).unwrap();
    assert_eq!(again.seq_last().map(Seq::get), Some(1));
}

/// The last segment is deleted first, so that a kill leaves a shorter spine and not a damaged one.
#[test]
fn killed_remove_leaves_a_shorter_spine() {
    let mut lengths = std::collections::BTreeSet::new();
    for call in 1.. {
        let disk = spine_on_disk();
        let store = Store::open(Arc::new(disk.clone())).unwrap();
        disk.plan(Fault::DieAt { call });
        store.lock_spine(&thread(), clock()).and_then(|mut held| held.remove()).ok();
        if disk.fired() == 0 {
            break;
        }
        let disk = disk.die(Death::Kill);
        let store = Store::open(Arc::new(disk.clone())).unwrap();
        let report = validate_spine(&store, &thread()).unwrap();
        assert!(report.is_valid(), "call {call}: {:?}", report.findings);
        lengths.insert(report.records);
        store.lock_spine(&thread(), clock()).unwrap().remove().unwrap();
        assert_eq!(store.spines().unwrap(), [], "call {call}");
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [0, 3, 6, 8]);
}
