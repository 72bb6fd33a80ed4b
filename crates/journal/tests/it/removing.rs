//! A run that is deleted is gone with everything beside it, and nothing of others is.

use steno_journal::{Error, Level, RunFile};
use steno_testkit::sample::{run_id, run_started};
use steno_testkit::sim_disk::{Death, SimDisk};

use crate::kit::{clock, journal_on};

fn names(disk: &SimDisk) -> Vec<String> {
    let all = disk.snapshot().into_iter().map(|(name, _)| name);
    all.filter(|name| name.starts_with("transcripts/")).collect()
}

#[test]
fn a_run_is_deleted_with_everything_beside_it_and_stays_deleted() {
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
fn a_run_that_is_being_written_is_not_deleted() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let recorder = journal.record(run_id(1)).unwrap();
    recorder.record(run_started(), Level::Synced).unwrap();
    assert!(matches!(journal.store().remove_run(run_id(1), clock()), Err(Error::Held { .. })));
    assert!(journal.store().has(run_id(1)).unwrap());
    recorder.close().unwrap();
    journal.store().remove_run(run_id(1), clock()).unwrap();
    assert_eq!(journal.store().remove_run(run_id(1), clock()).unwrap(), 0);
}
