//! Many threads, one file: order, gaps, duplicates.

use std::collections::BTreeMap;

use steno_disk::RealDisk;
use steno_journal::{Journal, Level, Options, Reader, Store};
use steno_testkit::sample::message;

use crate::kit::{label, run};

const THREADS: usize = 64;
const EVENTS_EACH: usize = 1_000;

/// Records from many threads on the real disk, then compares file order, numbers and each thread's own order.
#[track_caller]
fn check(level: Level) {
    let dir = tempfile::tempdir().unwrap();
    let disk = std::sync::Arc::new(RealDisk::create(&dir.path().join("store")).unwrap());
    let journal = Journal::new(Store::create(disk).unwrap(), Options::default());
    let recorder = journal.record(run()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let recorder = &recorder;
            scope.spawn(move || {
                let mut last = 0;
                for event in 0..EVENTS_EACH {
                    let draft = message(&format!("{thread}:{event}"), 300);
                    let seq = recorder.record(draft, level).unwrap().get();
                    assert!(seq > last, "a thread's own events are in its order");
                    last = seq;
                }
            });
        }
    });
    recorder.close().unwrap();
    let mut reader = Reader::open(journal.store(), run()).unwrap();
    let mut next_of_thread = BTreeMap::<String, usize>::new();
    let mut count = 0_u64;
    // The reader itself refuses a gap, a duplicate and lines out of order.
    while let Some(recorded) = reader.read_next().unwrap() {
        count += 1;
        assert_eq!(recorded.event.seq.get(), count);
        let label = label(std::str::from_utf8(&recorded.line).unwrap());
        let (thread, event) = label.split_once(':').unwrap();
        let next = next_of_thread.entry(thread.to_owned()).or_default();
        assert_eq!(event, next.to_string(), "thread {thread}");
        *next += 1;
    }
    assert_eq!(count, (THREADS * EVENTS_EACH) as u64);
}

#[test]
fn file_order_is_seq_order_when_written() {
    check(Level::Written);
}

#[test]
fn file_order_is_seq_order_when_synced() {
    check(Level::Synced);
}
