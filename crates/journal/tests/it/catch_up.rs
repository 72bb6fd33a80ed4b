//! A live stream without gaps: missed events come from the file.

use std::sync::Arc;

use steno_disk::RealDisk;
use steno_journal::{Journal, Level, Options, Store};
use steno_model::Seq;
use steno_testkit::sample::message;

use crate::kit::{bench, run};

fn seqs(catch_up: &mut steno_journal::CatchUp) -> Vec<u64> {
    let mut got = Vec::new();
    while let Some(event) = catch_up.recv().unwrap() {
        got.push(event.seq.get());
    }
    got
}

#[test]
fn catch_up_returns_every_event_once() {
    for from in [1, 2, 500, 1_000, 1_001] {
        let bench = bench();
        for number in 1..=500 {
            bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
        }
        let mut catch_up = bench.recorder.catch_up(Seq::new(from).unwrap()).unwrap();
        for number in 501..=1_000 {
            bench.recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
        }
        bench.recorder.close().unwrap();
        assert_eq!(seqs(&mut catch_up), (from..=1_000).collect::<Vec<_>>(), "from {from}");
    }
}

#[test]
fn slow_reader_gets_every_event_of_a_busy_writer() {
    const EVENTS: u64 = 5_000;
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::create(&dir.path().join("store")).unwrap());
    let journal = Journal::new(Store::create(disk).unwrap(), Options::default());
    let recorder = journal.record(run()).unwrap();
    let mut catch_up = recorder.catch_up(Seq::FIRST).unwrap();
    let got = std::thread::scope(|scope| {
        let reading = scope.spawn(move || seqs(&mut catch_up));
        for number in 1..=EVENTS {
            recorder.record(message(&number.to_string(), 300), Level::Written).unwrap();
        }
        recorder.close().unwrap();
        reading.join().unwrap()
    });
    assert_eq!(got, (1..=EVENTS).collect::<Vec<_>>());
}
