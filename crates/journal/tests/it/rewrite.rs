//! A transcript that is written anew takes the place of the old one at once, and the old one is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use steno_disk::StorePath;
use steno_journal::{
    AdapterChange, Error, Level, NoteKind, RunFile, Seal, Store, check_file, check_run, read_notes,
    read_seals,
};
use steno_testkit::sample::{message, run_started};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

use crate::kit::{clock, journal_on, label, lines, run, transcript};
use crate::watched_disk::{Doing, WatchedDisk};

const OLD: [&str; 2] = ["old-1", "old-2"];
const NEW: [&str; 3] = ["new-1", "new-2", "new-3"];

/// A store whose run has an old transcript, sealed and with a note.
fn with_old(seed: u64) -> SimDisk {
    let disk = SimDisk::new(seed);
    let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
    recorder.record(run_started(), Level::Synced).unwrap();
    for label in OLD {
        recorder.record(message(label, 600), Level::Synced).unwrap();
    }
    recorder.note_dropped(7, "for a test").unwrap();
    recorder.close().unwrap();
    disk
}

fn with() -> AdapterChange {
    AdapterChange { from: "claude/1".into(), to: "claude/2".into(), carried: 0 }
}

/// Writes the transcript anew.
fn rewrite(disk: &SimDisk) -> Result<(), Error> {
    let mut rewrite = journal_on(disk)?.rewrite(run())?;
    rewrite.append(run_started())?;
    for label in NEW {
        rewrite.append(message(label, 600))?;
        rewrite.suspend()?;
    }
    rewrite.note_dropped(1, "too long for a test")?;
    rewrite.put_in_place(with())
}

fn store(disk: &SimDisk) -> Store {
    Store::open(Arc::new(disk.clone())).unwrap()
}

/// Returns what the events of the run say, behind its start.
#[track_caller]
fn labels(disk: &SimDisk) -> Vec<String> {
    lines(&store(disk), run()).iter().skip(1).map(|line| label(line)).collect()
}

fn paths() -> [StorePath; 3] {
    [RunFile::Transcript(run()), RunFile::Seals(run()), RunFile::Notes(run())].map(RunFile::path)
}

/// Fails unless all of the old files are kept under a number, as they were.
#[track_caller]
fn check_kept(disk: &SimDisk, number: u32, about: &str) {
    let old = with_old(1);
    for path in paths() {
        assert_eq!(disk.content(&path.superseded(number)), old.content(&path), "{about}: `{path}`");
    }
}

/// Fails unless nothing of an exchange is left that has not come to its end.
#[track_caller]
fn check_settled(disk: &SimDisk, about: &str) {
    let names: Vec<String> = disk.snapshot().into_iter().map(|(name, _)| name).collect();
    let is_left = |name: &&String| name.contains(".jsonl.next");
    assert_eq!(names.iter().find(is_left), None, "{about}");
}

#[track_caller]
fn check_new(disk: &SimDisk, about: &str) {
    assert_eq!(labels(disk), NEW, "{about}");
    check_kept(disk, 1, about);
    let notes = read_notes(disk, run()).unwrap();
    let kinds: Vec<_> = notes.into_iter().map(|note| note.what).collect();
    let AdapterChange { from, to, carried } = with();
    let dropped = NoteKind::Dropped { count: 1, seq_last: 4, cause: "too long for a test".into() };
    assert_eq!(
        kinds,
        [NoteKind::Rederived { from, to, superseded: 1, carried, flaw: None }, dropped],
        "{about}"
    );
}

#[test]
fn a_new_transcript_takes_the_place_of_the_old_one_and_the_old_one_is_kept() {
    let disk = with_old(1);
    let seals: Vec<Seal> = read_seals(&disk, run()).unwrap();
    rewrite(&disk).unwrap();
    let disk = disk.die(Death::PowerCut);
    check_new(&disk, "after");
    check_settled(&disk, "after");
    let checked = check_run(&store(&disk), run(), Vec::new()).unwrap();
    assert_eq!((checked.events, checked.seals, checked.bytes), (4, 1, checked.sealed_bytes));
    // A seal that was kept elsewhere holds for the old transcript and not for the new one.
    assert!(check_run(&store(&disk), run(), seals.clone()).is_err());
    let [kept] = &store(&disk).superseded(run()).unwrap()[..] else { panic!("one is kept") };
    let file = Arc::new(store(&disk).disk().open_read(kept).unwrap().unwrap());
    assert_eq!(check_file(Arc::clone(&*file), kept, Some(run()), seals).unwrap().events, 3);
    assert!(store(&disk).superseded_bytes().unwrap() > file.identity().unwrap().size_bytes);
}

#[test]
fn a_second_rewrite_keeps_the_first_under_the_next_number() {
    let disk = with_old(1);
    rewrite(&disk).unwrap();
    let first = transcript(&disk);
    rewrite(&disk).unwrap();
    check_kept(&disk, 1, "the first");
    assert_eq!(disk.content(&paths()[0].superseded(2)), Some(first));
    assert_eq!(store(&disk).superseded(run()).unwrap().len(), 2);
}

#[test]
fn a_rewrite_that_is_given_up_leaves_the_run_as_it_was() {
    let disk = with_old(1);
    let names = |disk: &SimDisk| disk.snapshot().into_iter().filter(|(name, _)| !name.starts_with("locks/"));
    let before: Vec<_> = names(&disk).collect();
    let journal = journal_on(&disk).unwrap();
    let mut rewrite = journal.rewrite(run()).unwrap();
    rewrite.append(run_started()).unwrap();
    assert!(matches!(journal.record(run()).err(), Some(Error::Locked { .. })));
    drop(rewrite);
    assert_eq!(names(&disk).collect::<Vec<_>>(), before);
}

/// Whoever checks a run has the seals of the transcript that it reads, also while another takes its place.
#[test]
fn a_check_that_goes_on_meanwhile_finds_the_old_transcript_whole_or_the_new_one() {
    let disk = with_old(1);
    let watched = WatchedDisk::new(&disk);
    let is_done = AtomicBool::new(false);
    let rewritten = disk.clone();
    watched.set_hook(move |doing, path| {
        let is_seals = *path == RunFile::Seals(run()).path();
        if doing == Doing::Read && is_seals && !is_done.swap(true, Ordering::Relaxed) {
            rewrite(&rewritten).unwrap();
        }
        Ok(())
    });
    let store = Store::open(Arc::new(watched)).unwrap();
    let checked = check_run(&store, run(), Vec::new()).unwrap();
    assert_eq!((checked.events, checked.seals), (4, 1));
}

#[test]
fn a_transcript_whose_seal_is_broken_is_not_written_anew() {
    let disk = with_old(1);
    let changed = String::from_utf8(transcript(&disk)).unwrap().replace("old-1", "odd-1");
    disk.tamper(&paths()[0], changed.as_bytes());
    assert!(matches!(rewrite(&disk).err(), Some(Error::SealBroken { .. })));
    assert_eq!(transcript(&disk), changed.as_bytes());
}

/// At any time the run has its old transcript or the new one, whole and true to its seals; whoever opens the run
/// completes what was begun, and whoever writes it anew again keeps the old one once.
#[test]
fn a_death_inside_every_call_leaves_the_old_transcript_or_the_new_one() {
    let (mut fired, mut new) = (0, 0);
    for call in 1.. {
        let mut has_fired = false;
        for death in [Death::Kill, Death::PowerCut] {
            let disk = with_old(call);
            disk.plan(Fault::DieAt { call });
            let done = rewrite(&disk);
            if disk.fired() == 0 {
                assert!(done.is_ok());
                continue;
            }
            (fired, has_fired) = (fired + 1, true);
            let disk = disk.die(death);
            let about = format!("{death:?} at call {call}");
            let seen = labels(&disk);
            assert!(seen == OLD || seen == NEW, "{about}: {seen:?}");
            check_run(&store(&disk), run(), Vec::new()).unwrap_or_else(|error| panic!("{about}: {error}"));
            // A second death inside of what completes it changes nothing either.
            for second in 1..8 {
                let disk = copy_of(&disk);
                disk.plan(Fault::DieAt { call: second });
                journal_on(&disk).and_then(|journal| journal.record(run())).ok();
                let disk = disk.die(death);
                let seen = labels(&disk);
                assert!(seen == OLD || seen == NEW, "{about}, then call {second}: {seen:?}");
                finish(&disk, &format!("{about}, then call {second}"));
            }
            new += u64::from(finish(&disk, &about));
        }
        if !has_fired {
            break;
        }
    }
    assert!(fired > 40 && new > 10 && new < fired, "{fired} {new}");
}

/// Opens the run as the next one does, and then writes it anew if it is the old one; says whether it was the new one.
#[track_caller]
fn finish(disk: &SimDisk, about: &str) -> bool {
    journal_on(disk).unwrap().record(run()).unwrap().close().unwrap();
    check_settled(disk, about);
    let is_new = labels(disk) == NEW;
    if is_new {
        check_new(disk, about);
    } else {
        assert_eq!(labels(disk), OLD, "{about}");
        let notes = read_notes(disk, run()).unwrap();
        assert!(matches!(notes[0].what, NoteKind::Dropped { count: 7, .. }), "{about}: {notes:?}");
        rewrite(disk).unwrap();
        check_new(disk, about);
    }
    let checked = check_run(&store(disk), run(), Vec::new()).unwrap();
    assert_eq!(checked.sealed_bytes, checked.bytes, "{about}");
    assert_eq!(store(disk).superseded(run()).unwrap().len(), 1, "{about}");
    is_new
}

fn copy_of(disk: &SimDisk) -> SimDisk {
    let copy = SimDisk::new(99);
    for (name, bytes) in disk.snapshot() {
        copy.tamper(&StorePath::new(name), &bytes);
    }
    copy
}

#[test]
fn a_death_inside_every_call_of_withdrawing_leaves_the_run_or_all_of_it_kept() {
    for call in 1.. {
        let mut has_fired = false;
        for death in [Death::Kill, Death::PowerCut] {
            let disk = with_old(call);
            disk.plan(Fault::DieAt { call });
            store(&disk).withdraw(run(), clock()).ok();
            if disk.fired() == 0 {
                continue;
            }
            has_fired = true;
            let disk = disk.die(death);
            let about = format!("{death:?} at call {call}");
            if store(&disk).has(run()).unwrap() {
                assert_eq!(labels(&disk), OLD, "{about}");
                store(&disk).withdraw(run(), clock()).unwrap();
            }
            check_kept(&disk, 1, &about);
            assert_eq!(store(&disk).runs().unwrap(), [], "{about}");
            assert_eq!(store(&disk).withdrawn_runs().unwrap(), [run()], "{about}");
            // What is forgotten goes with its run, also if that has no transcript any more.
            store(&disk).remove_run(run(), clock()).unwrap();
            let left = disk.snapshot().into_iter().find(|(name, _)| name.starts_with("transcripts/"));
            assert_eq!(left, None, "{about}");
        }
        if !has_fired {
            assert!(call > 5, "{call}");
            return;
        }
    }
}

#[test]
fn a_run_is_deleted_with_what_was_kept_of_it_wherever_it_dies() {
    for call in 1.. {
        let disk = with_old(call);
        rewrite(&disk).unwrap();
        disk.plan(Fault::DieAt { call });
        store(&disk).remove_run(run(), clock()).ok();
        let has_fired = disk.fired() > 0;
        let disk = disk.die(Death::PowerCut);
        let store = store(&disk);
        let left: Vec<_> = store.runs().unwrap().into_iter().chain(store.withdrawn_runs().unwrap()).collect();
        for run in left {
            store.remove_run(run, clock()).unwrap();
        }
        let left = disk.snapshot().into_iter().find(|(name, _)| name.starts_with("transcripts/"));
        assert_eq!(left, None, "call {call}");
        if !has_fired {
            assert!(call > 8, "{call}");
            return;
        }
    }
}
