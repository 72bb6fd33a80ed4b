//! Following a file that another process writes.

use std::sync::Arc;
use std::time::Duration;

use steno_disk::RealDisk;
use steno_journal::{Error, Follower, Journal, Level, Options, RunFile, Store, WakeReason};
use steno_model::Seq;
use steno_testkit::sample::message;

use crate::kit::{bench, label, run};

const SOON: Duration = Duration::from_secs(5);

/// Reads until `count` events came.
fn take(follower: &mut Follower, count: usize) -> Vec<String> {
    let mut got = Vec::new();
    while got.len() < count {
        match follower.read_next().unwrap() {
            Some(recorded) => got.push(label(std::str::from_utf8(&recorded.line).unwrap())),
            None => drop(follower.wait(SOON).unwrap()),
        }
    }
    got
}

#[test]
fn follower_with_its_own_store_sees_every_event() {
    const EVENTS: usize = 2_000;
    let dir = tempfile::tempdir().unwrap();
    let open = || Arc::new(RealDisk::create(&dir.path().join("store")).unwrap());
    let journal = Journal::new(Store::create(open()).unwrap(), Options::default());
    let recorder = journal.record(run()).unwrap();
    // A separate store acts as the other process: it shares only the directory.
    let mut follower = Follower::open(&Store::open(open()).unwrap(), run(), Seq::FIRST).unwrap();
    let got = std::thread::scope(|scope| {
        let following = scope.spawn(move || take(&mut follower, EVENTS));
        for number in 0..EVENTS {
            recorder.record(message(&number.to_string(), 300 + number % 700), Level::Written).unwrap();
        }
        following.join().unwrap()
    });
    assert_eq!(got, (0..EVENTS).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn follower_waits_for_the_end_of_a_line() {
    let bench = bench();
    for name in ["one", "two"] {
        bench.recorder.record(message(name, 300), Level::Synced).unwrap();
    }
    bench.recorder.close().unwrap();
    let path = RunFile::Transcript(run()).path();
    let whole = bench.disk.content(&path).unwrap();
    bench.disk.tamper(&path, &whole[..whole.len() - 1]);
    let mut follower = Follower::open(bench.journal.store(), run(), Seq::FIRST).unwrap();
    assert_eq!(take(&mut follower, 1), ["one"]);
    assert_eq!(follower.read_next().unwrap(), None);
    bench.disk.tamper(&path, &whole);
    assert_eq!(take(&mut follower, 1), ["two"]);
}

#[test]
fn reading_an_idle_run_causes_no_notices() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::create(&dir.path().join("store")).unwrap());
    let journal = Journal::new(Store::create(disk).unwrap(), Options::default());
    let recorder = journal.record(run()).unwrap();
    recorder.record(message("one", 300), Level::Synced).unwrap();
    let mut follower = Follower::open(journal.store(), run(), Seq::FIRST).unwrap();
    assert_eq!(take(&mut follower, 1), ["one"]);
    let woken: Vec<_> = (0..20).map(|_| follower.wait(Duration::from_millis(5)).unwrap()).collect();
    assert_eq!(woken.last(), Some(&WakeReason::TimedOut), "{woken:?}");
    recorder.record(message("two", 300), Level::Synced).unwrap();
    assert_eq!(follower.wait(SOON).unwrap(), WakeReason::Changed);
}

#[test]
fn follower_starts_at_the_given_number() {
    let bench = bench();
    for name in ["one", "two", "three"] {
        bench.recorder.record(message(name, 300), Level::Synced).unwrap();
    }
    let mut follower = Follower::open(bench.journal.store(), run(), Seq::new(3).unwrap()).unwrap();
    assert_eq!(take(&mut follower, 1), ["three"]);
}

#[test]
fn shrunk_or_deleted_file_is_an_error_for_followers() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    let path = RunFile::Transcript(run()).path();
    let mut follower = Follower::open(bench.journal.store(), run(), Seq::FIRST).unwrap();
    assert_eq!(take(&mut follower, 1), ["one"]);
    bench.disk.tamper(&path, b"");
    assert!(matches!(follower.wait(Duration::ZERO), Err(Error::Shrunk { .. })));
    bench.disk.delete(&path);
    assert!(follower.wait(Duration::ZERO).is_err());
}

#[test]
fn missing_run_cannot_be_followed() {
    let bench = bench();
    let other = steno_testkit::sample::run_id(99);
    let opened = Follower::open(bench.journal.store(), other, Seq::FIRST);
    assert!(matches!(opened.err(), Some(Error::NoSuchRun { run }) if run == other));
}
