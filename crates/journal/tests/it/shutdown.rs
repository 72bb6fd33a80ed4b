//! Stopping and closing a recorder, and waiting for others: nothing acknowledged is lost, and everything is reported.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use steno_disk::{Disk, RealDisk};
use steno_journal::{
    Error, Journal, Level, Note, NoteKind, Options, PendingRecord, RunFile, Store, read_notes, read_seals,
};
use steno_testkit::sample::{message, run_id};
use steno_testkit::sim_disk::SimDisk;

use crate::kit::{bench, newlines, options, run};
use crate::watched_disk::{Doing, WatchedDisk};

/// A test that waits for something that never comes fails after this long.
const PATIENCE: Duration = Duration::from_mins(1);

fn journal_on(disk: WatchedDisk, options: Options) -> Journal {
    Journal::new(Store::create(Arc::new(disk)).unwrap(), options)
}

fn wait_within_patience(pending: PendingRecord) -> Option<Result<steno_model::Seq, Error>> {
    let (told, outcome) = mpsc::channel();
    std::thread::spawn(move || told.send(pending.wait()));
    outcome.recv_timeout(PATIENCE).ok()
}

#[test]
fn deleting_the_file_under_many_writers_loses_no_acknowledged_record() {
    let mut noticed = 0;
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(&dir.path().join("store")).unwrap());
        let journal = Journal::new(Store::create(disk).unwrap(), options());
        let recorder = journal.record(run()).unwrap();
        let acknowledged = AtomicU64::new(0);
        let kept = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    loop {
                        match recorder.record(message("m", 300), Level::Written) {
                            Ok(seq) => acknowledged.fetch_max(seq.get(), Ordering::SeqCst),
                            Err(Error::Vanished { kept: path, .. }) => break *kept.lock().unwrap() = path,
                            Err(error) => panic!("{error}"),
                        };
                    }
                });
            }
            while acknowledged.load(Ordering::SeqCst) < 200 {
                std::thread::yield_now();
            }
            let path = RunFile::Transcript(run()).path();
            std::fs::remove_file(dir.path().join("store").join(path.as_str())).unwrap();
        });
        let kept = kept.into_inner().unwrap().unwrap();
        let content = std::fs::read(dir.path().join("store").join(kept.as_str())).unwrap();
        assert!(newlines(&content) as u64 >= acknowledged.load(Ordering::SeqCst));
        noticed += 1;
    }
    assert_eq!(noticed, 10);
}

#[test]
fn renamed_file_is_noticed_by_written_records() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Written).unwrap();
    let path = RunFile::Transcript(run()).path();
    bench.disk.rename(&path, &RunFile::Transcript(run_id(9)).path()).unwrap();
    let began = Instant::now();
    let error = loop {
        match bench.recorder.record(message("two", 300), Level::Written) {
            Ok(_) => assert!(began.elapsed() < PATIENCE, "nobody noticed"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Vanished { kept: Some(_), .. }), "{error}");
}

#[test]
fn file_deleted_while_idle_is_noticed() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Written).unwrap();
    bench.disk.delete(&RunFile::Transcript(run()).path());
    let began = Instant::now();
    let kept = RunFile::Transcript(run()).path().orphans(bench.recorder.epoch()).next().unwrap();
    while bench.disk.content(&kept).is_none() {
        assert!(began.elapsed() < PATIENCE, "nobody noticed");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(newlines(&bench.disk.content(&kept).unwrap()), 1);
}

#[test]
fn failed_file_lookup_is_not_a_deletion() {
    let failing = Arc::new(AtomicBool::new(false));
    let disk = WatchedDisk::new(&SimDisk::new(7));
    let (asked, fails) = (Arc::new(AtomicU64::new(0)), Arc::clone(&failing));
    let counted = Arc::clone(&asked);
    disk.set_hook(move |doing, _| {
        if doing != Doing::Find || !fails.load(Ordering::SeqCst) {
            return Ok(());
        }
        counted.fetch_add(1, Ordering::SeqCst);
        // Too many open files.
        Err(io::Error::from_raw_os_error(24))
    });
    let journal = journal_on(disk, options());
    let recorder = journal.record(run()).unwrap();
    failing.store(true, Ordering::SeqCst);
    recorder.record(message("one", 300), Level::Synced).unwrap();
    assert!(asked.load(Ordering::SeqCst) > 0, "the fault did not fire");
    failing.store(false, Ordering::SeqCst);
    recorder.record(message("two", 300), Level::Synced).unwrap();
    recorder.close().unwrap();
}

#[test]
fn close_returns_the_error_that_stopped_the_recorder() {
    let failing = Arc::new(AtomicBool::new(false));
    let disk = WatchedDisk::new(&SimDisk::new(7));
    let fails = Arc::clone(&failing);
    disk.set_hook(move |doing, _| {
        let is_failing = doing == Doing::Sync && fails.load(Ordering::SeqCst);
        if is_failing { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
    });
    let journal = journal_on(disk, options());
    let recorder = journal.record(run()).unwrap();
    failing.store(true, Ordering::SeqCst);
    let pending = recorder.append(message("one", 300), Level::Synced).unwrap();
    assert!(matches!(wait_within_patience(pending), Some(Err(Error::Poisoned { .. }))));
    failing.store(false, Ordering::SeqCst);
    assert!(matches!(recorder.close(), Err(Error::Poisoned { .. })));
    assert_eq!(read_seals(&**journal.store().disk(), run()).unwrap(), []);
    recorder.close().unwrap();
}

#[test]
fn file_deleted_before_close_is_noted() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.disk.delete(&RunFile::Transcript(run()).path());
    let closed = bench.recorder.close();
    assert!(matches!(closed, Err(Error::Vanished { kept: Some(_), .. })), "{closed:?}");
    let notes = read_notes(&bench.disk, run()).unwrap();
    assert!(matches!(&notes[..], [Note { what: NoteKind::Vanished { .. }, .. }]), "{notes:?}");
}

#[test]
fn closed_recorder_writes_no_notes_or_seals() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.recorder.close().unwrap();
    let next = bench.journal.record(run()).unwrap();
    next.record(message("two", 300), Level::Synced).unwrap();
    assert!(matches!(bench.recorder.note_dropped(1, "late"), Err(Error::Closed)));
    assert!(matches!(bench.recorder.seal(), Err(Error::Closed)));
    assert_eq!(read_notes(&bench.disk, run()).unwrap(), []);
}

/// Blocks a call until it is released.
struct Held {
    reached: mpsc::Receiver<()>,
    release: mpsc::Sender<()>,
}

/// Installs a hook that blocks the first sync of a file whose name `is_held` accepts.
fn hold_sync(disk: &WatchedDisk, is_held: fn(&str) -> bool) -> Held {
    let (reach, reached) = mpsc::channel();
    let (release, released) = mpsc::channel();
    let waiting = Mutex::new(Some((reach, released)));
    let armed = Arc::new(AtomicBool::new(true));
    disk.set_hook(move |doing, path| {
        if doing == Doing::Sync && is_held(path.as_str()) && armed.swap(false, Ordering::SeqCst) {
            let (reach, released) = waiting.lock().unwrap().take().unwrap();
            reach.send(()).unwrap();
            // An error means that the test has failed already.
            released.recv().ok();
        }
        Ok(())
    });
    Held { reached, release }
}

#[test]
fn sealing_an_idle_run_does_not_delay_other_runs() {
    let disk = WatchedDisk::new(&SimDisk::new(7));
    let held = hold_sync(&disk, |path| path.ends_with(".seals.jsonl"));
    let journal = journal_on(disk, Options { seal_idle: Duration::from_millis(1), ..options() });
    let idle = journal.record(run_id(2)).unwrap();
    idle.record(message("one", 300), Level::Written).unwrap();
    let busy = journal.record(run_id(3)).unwrap();
    held.reached.recv_timeout(PATIENCE).expect("no idle run was sealed");
    let pending = busy.append(message("two", 300), Level::Synced).unwrap();
    let outcome = wait_within_patience(pending);
    held.release.send(()).unwrap();
    outcome.expect("the acknowledgement waited for another run's seal").unwrap();
}

#[test]
fn slow_sync_of_one_run_does_not_delay_others() {
    let disk = WatchedDisk::new(&SimDisk::new(7));
    let slow = RunFile::Transcript(run_id(2)).path();
    let (reach, reached) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let (armed, released) = (Arc::new(AtomicBool::new(false)), Mutex::new(released));
    let is_armed = Arc::clone(&armed);
    disk.set_hook(move |doing, path| {
        if doing == Doing::Sync && *path == slow && is_armed.swap(false, Ordering::SeqCst) {
            reach.send(()).unwrap();
            released.lock().unwrap().recv().ok();
        }
        Ok(())
    });
    let journal = journal_on(disk, options());
    let (one, other) = (journal.record(run_id(2)).unwrap(), journal.record(run_id(3)).unwrap());
    armed.store(true, Ordering::SeqCst);
    let first = one.append(message("one", 300), Level::Synced).unwrap();
    let second = other.append(message("two", 300), Level::Synced).unwrap();
    let outcome = wait_within_patience(second);
    reached.recv_timeout(PATIENCE).expect("the slow sync did not begin");
    release.send(()).unwrap();
    outcome.expect("the acknowledgement waited for another run's sync").unwrap();
    first.wait().unwrap();
}
