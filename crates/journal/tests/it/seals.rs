//! Seals: on close, on idle, on demand; over a prefix, and only over what is synced.

use std::time::{Duration, Instant};

use steno_journal::{Error, Level, Seal, read_seals};
use steno_testkit::sample::message;
use steno_testkit::sim_disk::{Call, Fault};

use crate::kit::{bench, run, transcript};

fn seals(bench: &crate::kit::Bench) -> Vec<Seal> {
    read_seals(&bench.disk, run()).unwrap()
}

#[test]
fn close_seals_everything_once() {
    let bench = bench();
    for number in 0..3 {
        bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
    }
    bench.recorder.close().unwrap();
    bench.journal.record(run()).unwrap().close().unwrap();
    let sealed = seals(&bench);
    let [seal] = &sealed[..] else { panic!("{sealed:?}") };
    assert_eq!((seal.bytes, seal.seq_last), (transcript(&bench.disk).len() as u64, 3));
    assert_eq!(seal.run_id, run().to_string());
    assert_eq!(Seal::parse(&seal.to_line()).unwrap(), *seal);
}

#[test]
fn run_without_events_has_no_seal() {
    let bench = bench();
    bench.recorder.close().unwrap();
    assert_eq!(seals(&bench), []);
}

#[test]
fn requested_seal_covers_all_events_and_the_run_continues() {
    let bench = bench();
    assert_eq!(bench.recorder.seal().unwrap(), None);
    bench.recorder.record(message("one", 300), Level::Written).unwrap();
    let seal = bench.recorder.seal().unwrap().unwrap();
    assert_eq!((seal.bytes, seal.seq_last), (transcript(&bench.disk).len() as u64, 1));
    assert_eq!(bench.recorder.seal().unwrap(), None, "covered already");
    bench.recorder.record(message("two", 300), Level::Written).unwrap();
    bench.recorder.close().unwrap();
    assert_eq!(seals(&bench).iter().map(|seal| seal.seq_last).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn only_idle_runs_are_sealed() {
    let bench = bench();
    let start = Instant::now();
    bench.recorder.record(message("one", 300), Level::Written).unwrap();
    bench.recorder.seal_if_idle(start);
    bench.recorder.seal_if_idle(start + Duration::from_secs(29));
    assert_eq!(seals(&bench), [], "not idle for long enough");
    bench.recorder.record(message("two", 300), Level::Written).unwrap();
    bench.recorder.seal_if_idle(start + Duration::from_secs(31));
    assert_eq!(seals(&bench), [], "it has grown since");
    bench.recorder.seal_if_idle(start + Duration::from_secs(62));
    bench.recorder.seal_if_idle(start + Duration::from_secs(99));
    assert_eq!(seals(&bench).iter().map(|seal| seal.seq_last).collect::<Vec<_>>(), [2]);
}

#[test]
fn unsynced_bytes_are_not_sealed() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Written).unwrap();
    bench.disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: 5 });
    assert!(matches!(bench.recorder.seal(), Err(Error::Poisoned { .. })));
    assert!(matches!(bench.recorder.seal(), Err(Error::Poisoned { .. })), "and not the second time either");
    assert!(matches!(bench.recorder.close(), Err(Error::Poisoned { .. })));
    assert_eq!(seals(&bench), []);
    assert_eq!(bench.disk.fired(), 1);
}
