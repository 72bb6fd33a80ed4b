//! Runs that are written many events at a time: the same lines as one by one, and nothing lost after a crash.

use steno_disk::SyncSet;
use steno_journal::{Error, Level, read_seals};
use steno_testkit::sample::{message, run_id};
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

use crate::kit::{journal_on, label, lines};

const EVENTS: u64 = 30;
const EIO: i32 = 5;

fn labels(disk: &SimDisk) -> Vec<String> {
    let journal = journal_on(disk).unwrap();
    // Opening it recovers it.
    journal.record(run_id(1)).unwrap().close().unwrap();
    lines(journal.store(), run_id(1)).iter().map(|line| label(line)).collect()
}

fn wanted() -> Vec<String> {
    (1..=EVENTS).map(|number| format!("m{number}")).collect()
}

/// Writes all events, with syncs of its own.
fn write(disk: &SimDisk) -> Result<(), Error> {
    let mut bulk = journal_on(disk)?.record_bulk(run_id(1))?;
    let from = bulk.seq_last().map_or(0, steno_model::Seq::get);
    for number in from + 1..=EVENTS {
        bulk.append(message(&format!("m{number}"), 300))?;
    }
    bulk.close()
}

#[test]
fn bulk_writes_the_same_lines_in_few_calls() {
    let (one_by_one, at_once) = (SimDisk::new(1), SimDisk::new(1));
    let recorder = journal_on(&one_by_one).unwrap().record(run_id(1)).unwrap();
    for number in 1..=EVENTS {
        recorder.record(message(&format!("m{number}"), 300), Level::Written).unwrap();
    }
    recorder.close().unwrap();
    write(&at_once).unwrap();
    assert!(at_once.calls() + EVENTS - 1 <= one_by_one.calls(), "{} calls", at_once.calls());
    let path = steno_journal::RunFile::Transcript(run_id(1)).path();
    assert_eq!(at_once.content(&path), one_by_one.content(&path));
    let seals = |disk: &SimDisk| read_seals(disk, run_id(1)).unwrap();
    assert_eq!(seals(&at_once), seals(&one_by_one));
}

#[test]
fn crash_in_any_call_leaves_a_run_that_goes_on() {
    for death in [Death::Kill, Death::PowerCut] {
        for call in 1.. {
            let disk = SimDisk::new(call);
            disk.plan(Fault::DieAt { call });
            let first = write(&disk);
            let has_fired = disk.fired() > 0;
            let disk = disk.die(death);
            if !has_fired {
                assert!(call > 10 && first.is_ok());
                assert_eq!(labels(&disk), wanted(), "{death:?} after everything");
                break;
            }
            write(&disk).unwrap();
            assert_eq!(labels(&disk.die(death)), wanted(), "{death:?} in call {call}");
        }
    }
}

#[test]
fn dropped_recorder_writes_nothing_more() {
    let disk = SimDisk::new(1);
    let mut bulk = journal_on(&disk).unwrap().record_bulk(run_id(1)).unwrap();
    bulk.append(message("m1", 300)).unwrap();
    bulk.write_out(&mut SyncSet::default()).unwrap();
    bulk.append(message("m2", 300)).unwrap();
    drop(bulk);
    assert_eq!(labels(&disk), ["m1"]);
}

#[test]
fn full_disk_drops_gathered_events_and_their_numbers() {
    let disk = SimDisk::new(1);
    let mut bulk = journal_on(&disk).unwrap().record_bulk(run_id(1)).unwrap();
    bulk.append(message("m1", 300)).unwrap();
    bulk.write_out(&mut SyncSet::default()).unwrap();
    disk.set_room(Some(0));
    bulk.append(message("lost", 300)).unwrap();
    bulk.append(message("lost too", 300)).unwrap();
    let refused = bulk.write_out(&mut SyncSet::default());
    assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
    disk.set_room(None);
    assert_eq!(bulk.append(message("m2", 300)).unwrap().get(), 2);
    bulk.close().unwrap();
    assert_eq!(labels(&disk), ["m1", "m2"]);
    let notes = steno_journal::read_notes(&disk, run_id(1)).unwrap();
    assert!(format!("{notes:?}").contains("Refused { count: 2"), "{notes:?}");
}

#[test]
fn failed_sync_is_not_tried_again() {
    let disk = SimDisk::new(1);
    let mut bulk = journal_on(&disk).unwrap().record_bulk(run_id(1)).unwrap();
    bulk.append(message("m1", 300)).unwrap();
    disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: EIO });
    assert!(bulk.close().is_err());
    assert_eq!(disk.fired(), 1);
    let disk = disk.die(Death::PowerCut);
    assert!(labels(&disk).len() <= 1);
}
