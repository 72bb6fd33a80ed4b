//! Refusals on a full disk are noted once, even if processes die.

use steno_disk::StorePath;
use steno_journal::{Error, Level, Note, NoteKind, Rotation, RunFile, read_notes};
use steno_model::json::RawJson;
use steno_model::{SpineDraft, SpineType, ThreadId};
use steno_testkit::sample::{message, time};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

use crate::kit::{bench, clock, journal_on, run};

const DEATHS: [Death; 2] = [Death::Kill, Death::PowerCut];

fn thread() -> ThreadId {
    ThreadId::parse("thread_123").unwrap()
}

fn draft() -> SpineDraft {
    SpineDraft::new(SpineType::Event, time(), RawJson::null()).unwrap()
}

/// Leaves no free space.
fn fill(disk: &SimDisk) {
    let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_room(Some(used as u64));
}

/// Returns the count of each `refused` note in a notes file, with the event before it.
fn refused_in(disk: &SimDisk, path: &StorePath) -> Vec<(u64, u64)> {
    let text = String::from_utf8(disk.content(path).unwrap_or_default()).unwrap();
    let notes = text.lines().map(|line| serde_json::from_str::<Note>(line).unwrap().what);
    let refused = notes.filter_map(|what| {
        let NoteKind::Refused { count, seq_last, .. } = what else { return None };
        Some((count, seq_last))
    });
    refused.collect()
}

fn refused(disk: &SimDisk) -> Vec<(u64, u64)> {
    refused_in(disk, &RunFile::Notes(run()).path())
}

/// Makes a disk on which a process recorded an event, had three refused, and died while the disk was full.
fn died_while_full(death: Death) -> SimDisk {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.recorder.seal().unwrap();
    fill(&bench.disk);
    for _ in 0..3 {
        let refused = bench.recorder.record(message("refused", 300), Level::Synced);
        assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
    }
    bench.disk.die(death)
}

#[test]
fn refusals_of_a_dead_process_are_noted_on_the_next_open() {
    for death in DEATHS {
        let disk = died_while_full(death);
        assert_eq!(refused(&disk), [], "{death:?}: there was no room for a note");
        let [Note { what: NoteKind::Refused { count: 3, seq_last: 1, cause, .. }, .. }] =
            &read_notes(&disk, run()).unwrap()[..]
        else {
            panic!("{death:?}: readers know of it before it is noted")
        };
        assert!(cause.contains("storage space"), "{cause}");
        disk.set_room(None);
        let before = read_notes(&disk, run()).unwrap();
        let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
        assert_eq!(refused(&disk), [(3, 1)], "{death:?}");
        assert_eq!(
            read_notes(&disk, run()).unwrap(),
            before,
            "{death:?}: told once, and as it was told before"
        );
        recorder.record(message("two", 300), Level::Synced).unwrap();
        recorder.close().unwrap();
        drop(journal_on(&disk).unwrap().record(run()).unwrap());
        assert_eq!(refused(&disk), [(3, 1)], "{death:?}");
    }
}

#[test]
fn refusals_are_noted_once_if_the_next_process_dies() {
    let mut fired = 0;
    for death in DEATHS {
        for call in 1..40 {
            let disk = died_while_full(death);
            disk.set_room(None);
            disk.plan(Fault::DieAt { call });
            let opened = journal_on(&disk).and_then(|journal| journal.record(run()));
            fired += disk.fired();
            let disk = disk.die(death);
            drop(opened);
            let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
            assert_eq!(refused(&disk), [(3, 1)], "{death:?} at call {call}");
            assert_eq!(read_notes(&disk, run()).unwrap().len(), 1, "{death:?} at call {call}");
            recorder.close().unwrap();
        }
    }
    assert!(fired > 20, "{fired}");
}

#[test]
fn refusals_are_noted_once_if_the_refusing_process_dies() {
    let mut fired = 0;
    for death in DEATHS {
        for call in 1..20 {
            let bench = bench();
            bench.recorder.record(message("one", 300), Level::Synced).unwrap();
            fill(&bench.disk);
            for _ in 0..3 {
                bench.recorder.record(message("refused", 300), Level::Synced).unwrap_err();
            }
            bench.disk.set_room(None);
            bench.disk.plan(Fault::DieAt { call });
            bench.recorder.record(message("two", 300), Level::Synced).ok();
            bench.recorder.close().ok();
            fired += bench.disk.fired();
            let disk = bench.disk.die(death);
            drop(journal_on(&disk).unwrap().record(run()).unwrap());
            assert_eq!(refused(&disk), [(3, 1)], "{death:?} at call {call}");
        }
    }
    assert!(fired > 10, "{fired}");
}

#[test]
fn refusals_are_counted_while_the_disk_stays_full() {
    let disk = died_while_full(Death::Kill);
    for _ in 0..2 {
        let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
        recorder.record(message("refused", 300), Level::Synced).unwrap_err();
        recorder.close().unwrap();
        assert_eq!(refused(&disk), []);
    }
    disk.set_room(None);
    let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
    assert_eq!(refused(&disk), [(5, 1)]);
    // Later refusals are counted separately, although nothing was written in between.
    fill(&disk);
    recorder.record(message("refused", 300), Level::Synced).unwrap_err();
    let disk = disk.die(Death::Kill);
    disk.set_room(None);
    drop(journal_on(&disk).unwrap().record(run()).unwrap());
    assert_eq!(refused(&disk), [(5, 1), (1, 1)]);
}

#[test]
fn lock_file_has_space_for_refusals_from_the_start() {
    let bench = bench();
    let path = RunFile::Lock(run()).path();
    let before = bench.disk.content(&path).unwrap();
    fill(&bench.disk);
    bench.recorder.record(message("refused", 300), Level::Written).unwrap_err();
    let now = bench.disk.content(&path).unwrap();
    assert_eq!((before.len(), now.len()), (512, 512));
    let holder: serde_json::Value = serde_json::from_slice(&now).unwrap();
    assert_eq!((&holder["refused"]["count"], &holder["refused"]["seq_last"]), (&1.into(), &0.into()));
}

#[test]
fn refusals_of_a_deleted_run_are_not_noted_for_its_successor() {
    let disk = died_while_full(Death::Kill);
    disk.set_room(None);
    let journal = journal_on(&disk).unwrap();
    journal.store().remove_run(run(), clock()).unwrap();
    drop(journal.record(run()).unwrap());
    assert_eq!(read_notes(&disk, run()).unwrap(), []);
}

#[test]
fn refusals_of_a_spine_are_noted_on_the_next_open() {
    for death in DEATHS {
        for is_closed in [false, true] {
            let disk = SimDisk::new(1);
            let spine = journal_on(&disk).unwrap().spine(&thread(), Rotation::default()).unwrap();
            spine.record(&draft(), Level::Synced).unwrap();
            fill(&disk);
            for _ in 0..3 {
                let refused = spine.record(&draft(), Level::Written);
                assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
            }
            if is_closed {
                spine.close().unwrap_err();
            }
            let disk = disk.die(death);
            let path = StorePath::spine_notes(&thread());
            assert_eq!(refused_in(&disk, &path), []);
            assert_eq!(read_notes(&disk, &thread()).unwrap().len(), 1);
            disk.set_room(None);
            let spine = journal_on(&disk).unwrap().spine(&thread(), Rotation::default()).unwrap();
            assert_eq!(refused_in(&disk, &path), [(3, 1)], "{death:?}, closed: {is_closed}");
            spine.record(&draft(), Level::Synced).unwrap();
            spine.close().unwrap();
            assert_eq!(refused_in(&disk, &path), [(3, 1)], "{death:?}, closed: {is_closed}");
            journal_on(&disk).unwrap().store().lock_spine(&thread(), clock()).unwrap().remove().unwrap();
            assert_eq!(read_notes(&disk, &thread()).unwrap(), []);
        }
    }
}
