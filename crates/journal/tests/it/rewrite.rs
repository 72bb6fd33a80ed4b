//! A rewritten transcript replaces the old one at once, and the old one is kept.

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

/// Rewrites the transcript.
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

/// Returns the texts of the events of the run, without its start.
#[track_caller]
fn labels(disk: &SimDisk) -> Vec<String> {
    lines(&store(disk), run()).iter().skip(1).map(|line| label(line)).collect()
}

fn paths() -> [StorePath; 3] {
    [RunFile::Transcript(run()), RunFile::Seals(run()), RunFile::Notes(run())].map(RunFile::path)
}

/// Fails unless all old files are kept unchanged under a number.
#[track_caller]
fn check_kept(disk: &SimDisk, number: u32, about: &str) {
    let old = with_old(1);
    for path in paths() {
        assert_eq!(disk.content(&path.superseded(number)), old.content(&path), "{about}: `{path}`");
    }
}

/// Fails if an exchange is incomplete.
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
fn rewrite_replaces_the_transcript_and_keeps_the_old_one() {
    let disk = with_old(1);
    let seals: Vec<Seal> = read_seals(&disk, run()).unwrap();
    rewrite(&disk).unwrap();
    let disk = disk.die(Death::PowerCut);
    check_new(&disk, "after");
    check_settled(&disk, "after");
    let checked = check_run(&store(&disk), run(), Vec::new()).unwrap();
    assert_eq!((checked.events, checked.seals, checked.bytes), (4, 1, checked.sealed_bytes));
    // A seal kept elsewhere matches the old transcript and not the new one.
    assert!(check_run(&store(&disk), run(), seals.clone()).is_err());
    let [kept] = &store(&disk).superseded(run()).unwrap()[..] else { panic!("one is kept") };
    let file = Arc::new(store(&disk).disk().open_read(kept).unwrap().unwrap());
    assert_eq!(check_file(Arc::clone(&*file), kept, Some(run()), seals).unwrap().events, 3);
    assert!(store(&disk).superseded_bytes().unwrap() > file.identity().unwrap().size_bytes);
}

#[test]
fn each_rewrite_keeps_the_old_transcript_under_a_new_number() {
    let disk = with_old(1);
    rewrite(&disk).unwrap();
    let first = transcript(&disk);
    rewrite(&disk).unwrap();
    check_kept(&disk, 1, "the first");
    assert_eq!(disk.content(&paths()[0].superseded(2)), Some(first));
    assert_eq!(store(&disk).superseded(run()).unwrap().len(), 2);
}

#[test]
fn dropped_rewrite_leaves_the_run_unchanged() {
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

/// A check uses the seals of the transcript that it reads, also during an exchange.
#[test]
fn check_during_a_rewrite_sees_a_whole_transcript() {
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
fn transcript_with_a_broken_seal_is_not_rewritten() {
    let disk = with_old(1);
    let changed = String::from_utf8(transcript(&disk)).unwrap().replace("old-1", "odd-1");
    disk.tamper(&paths()[0], changed.as_bytes());
    assert!(matches!(rewrite(&disk).err(), Some(Error::SealBroken { .. })));
    assert_eq!(transcript(&disk), changed.as_bytes());
}

/// At any time the run has its old transcript or the new one, complete and matching its seals; the next open completes
/// the exchange, and a second rewrite keeps the old one once.
#[test]
fn killed_rewrite_leaves_the_old_or_the_new_transcript() {
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
            // A second kill during the completion changes nothing either.
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

/// Opens the run as the next process does, and rewrites it if it is the old one; returns whether it was the new one.
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
fn killed_withdraw_leaves_the_run_or_its_copies() {
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
            // Superseded files are deleted with their run, even if it has no transcript any more.
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
fn killed_delete_of_superseded_runs_can_be_repeated() {
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
