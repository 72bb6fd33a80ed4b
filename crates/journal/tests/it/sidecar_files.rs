//! Seals and notes: many threads, many lines, torn tails.

use std::fs;
use std::sync::Arc;

use steno_disk::RealDisk;
use steno_journal::{
    Ending, Error, Journal, Level, NoteKind, Options, RunFile, Store, check_run, inspect, read_notes,
    read_seals,
};
use steno_testkit::sample::message;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

use crate::kit::{Bench, bench, journal_on, newlines, options, run};
use crate::watched_disk::WatchedDisk;

#[test]
fn notes_of_many_threads_are_all_kept() {
    const THREADS: usize = 4;
    const NOTES_EACH: usize = 40;
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::create(dir.path()).unwrap());
    let journal = Journal::new(Store::create(disk).unwrap(), Options::default());
    let recorder = journal.record(run()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            scope.spawn(move || {
                for note in 0..NOTES_EACH {
                    // Some notes are long, so that a write takes time.
                    let cause = "x".repeat(100 + 10_000 * ((thread + note) % 3));
                    recorder.note_dropped(1, &cause).unwrap();
                }
            });
        }
    });
    assert_eq!(read_notes(&**journal.store().disk(), run()).unwrap().len(), THREADS * NOTES_EACH);
    let names = journal.store().disk().list(&RunFile::Notes(run()).path().dir()).unwrap();
    assert!(names.iter().all(|name| !name.contains(".torn-")), "{names:?}");
    let text = fs::read(dir.path().join(RunFile::Notes(run()).path().as_str())).unwrap();
    assert_eq!(newlines(&text), THREADS * NOTES_EACH);
}

#[test]
fn cost_of_a_seal_or_note_is_constant() {
    const LINES: u64 = 1_500;
    let watched = WatchedDisk::new(&SimDisk::new(1));
    let journal = Journal::new(Store::create(Arc::new(watched.clone())).unwrap(), options());
    let recorder = journal.record(run()).unwrap();
    let mut most = 0;
    for _ in 0..LINES {
        recorder.record(message("m", 300), Level::Written).unwrap();
        watched.take_moved();
        recorder.seal().unwrap();
        recorder.note_dropped(1, "why").unwrap();
        most = most.max(watched.take_moved());
    }
    assert_eq!(read_seals(&watched, run()).unwrap().len() as u64, LINES);
    assert_eq!(read_notes(&watched, run()).unwrap().len() as u64, LINES);
    assert!(most < 128 * 1024, "{most} bytes were read and written for one seal and one note");
}

/// What a crash can leave after the last line of a file.
fn tails() -> Vec<Vec<u8>> {
    let hole_then_end = [&[0; 100][..], b"42.123Z\"}\n"].concat();
    let head_then_hole = [&b"{\"run_id\":\"0000"[..], &[0; 700], b"\n"].concat();
    vec![b"{\"run_id\":".to_vec(), vec![0; 50], vec![b'\0'; 20_000], hole_then_end, head_then_hole]
}

#[test]
fn torn_seal_is_moved_aside_by_the_next_seal() {
    for tail in tails() {
        let Bench { disk, recorder, journal } = bench();
        recorder.record(message("one", 300), Level::Synced).unwrap();
        recorder.close().unwrap();
        let path = RunFile::Seals(run()).path();
        let whole = disk.content(&path).unwrap();
        disk.tamper(&path, &[&whole[..], &tail].concat());
        let before = disk.snapshot();
        let torn = Ending::Torn { offset: whole.len() as u64, len: tail.len() as u64 };
        assert_eq!(read_seals(&disk, run()).unwrap().len(), 1);
        assert_eq!(check_run(journal.store(), run(), Vec::new()).unwrap().seals_ending, torn);
        assert_eq!(inspect(&disk, run()).unwrap().seals_ending(), torn);
        assert_eq!(disk.snapshot(), before, "readers never repair");
        let again = journal.record(run()).unwrap();
        again.record(message("two", 300), Level::Synced).unwrap();
        again.close().unwrap();
        let now = disk.content(&path).unwrap();
        assert!(now.starts_with(&whole) && newlines(&now) == 2);
        let kept = disk.snapshot().into_iter().any(|(name, bytes)| name.contains(".torn-") && bytes == tail);
        assert!(kept, "the tail is kept");
        assert_eq!(check_run(journal.store(), run(), Vec::new()).unwrap().seals_ending, Ending::Whole);
    }
}

#[test]
fn torn_note_is_moved_aside_by_the_next_note() {
    for tail in tails() {
        let Bench { disk, recorder, .. } = bench();
        recorder.note_dropped(1, "one").unwrap();
        let path = RunFile::Notes(run()).path();
        let whole = disk.content(&path).unwrap();
        disk.tamper(&path, &[&whole[..], &tail].concat());
        assert_eq!(read_notes(&disk, run()).unwrap().len(), 1);
        recorder.note_dropped(2, "two").unwrap();
        let notes: Vec<_> = read_notes(&disk, run()).unwrap().into_iter().map(|note| note.what).collect();
        let of = |count, cause: &str| NoteKind::Dropped { count, seq_last: 0, cause: cause.to_owned() };
        assert_eq!(notes, [of(1, "one"), of(2, "two")]);
        assert!(disk.content(&path).unwrap().starts_with(&whole));
        assert!(disk.snapshot().iter().any(|(name, bytes)| name.contains(".torn-") && *bytes == tail));
    }
}

#[test]
fn zeros_between_seals_and_invalid_seal_lines_are_damage() {
    let Bench { disk, recorder, journal } = bench();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
    let path = RunFile::Seals(run()).path();
    let whole = disk.content(&path).unwrap();
    let at = whole.len() as u64;
    // Zeros with a seal after them, and a line that we did not write.
    let bad = [[&whole[..], b"\0\0\0\n", &whole].concat(), [&whole[..], b"abc\0\n"].concat()];
    for content in bad {
        disk.tamper(&path, &content);
        let refused = journal.record(run()).err();
        let Some(Error::Damaged { path: found, offset, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!((found, offset), (path.clone(), at));
    }
}

#[test]
fn run_opens_after_a_power_cut_inside_a_seal() {
    const SEEDS: u64 = 1_500;
    let (mut fired, mut torn) = (0, 0);
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        let recorder = journal_on(&disk).unwrap().record(run()).unwrap();
        for _ in 0..2 {
            recorder.record(message("m", 250), Level::Synced).unwrap();
            recorder.seal().unwrap();
        }
        recorder.record(message("m", 250), Level::Synced).unwrap();
        disk.plan(Fault::DieAt { call: 2 + seed % 6 });
        let before = disk.fired();
        recorder.seal().ok();
        fired += disk.fired() - before;
        let disk = disk.die(Death::PowerCut);
        drop(recorder);
        torn += u64::from(inspect(&disk, run()).unwrap().seals_ending() != Ending::Whole);
        let again = journal_on(&disk).unwrap().record(run()).unwrap();
        assert_eq!(again.seq_last().map(steno_model::Seq::get), Some(3), "seed {seed}");
    }
    assert!(fired > SEEDS / 4 && torn > SEEDS / 40, "{fired} fired, {torn} torn");
}

#[test]
fn line_with_a_failed_sync_is_removed() {
    let Bench { disk, recorder, .. } = bench();
    recorder.note_dropped(1, "one").unwrap();
    let path = RunFile::Notes(run()).path();
    let before = disk.content(&path).unwrap();
    disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: 5 });
    assert!(recorder.note_dropped(2, "lost").is_err());
    assert_eq!((disk.content(&path).unwrap(), disk.fired()), (before, 1));
    recorder.note_dropped(3, "three").unwrap();
    let disk = disk.die(Death::PowerCut);
    drop(recorder);
    assert_eq!(read_notes(&disk, run()).unwrap().len(), 2);
}
