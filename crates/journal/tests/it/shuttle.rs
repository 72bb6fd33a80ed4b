//! The commit queue and fan-out under shuttle: many interleavings of a few threads.

use std::sync::Arc;

use shuttle::thread;
use steno_journal::{Level, NoteKind, Reader, read_notes};
use steno_testkit::sample::message;

use crate::kit::{bench, label, run};

const ITERATIONS: usize = 2_000;
const THREADS: usize = 3;
const EVENTS_EACH: usize = 3;

fn explore(test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), ITERATIONS);
    shuttle::check_pct(test, ITERATIONS, 3);
}

/// File order is seq order without gaps or duplicates, and records acknowledged as synced are synced.
#[test]
fn shuttle_acknowledged_records_are_in_order_and_durable() {
    explore(|| {
        let bench = bench();
        let disk = bench.disk.clone();
        let recorder = Arc::new(bench.recorder);
        let writers: Vec<_> = (0..THREADS)
            .map(|writer| {
                let recorder = Arc::clone(&recorder);
                thread::spawn(move || {
                    let mut acknowledged = Vec::new();
                    for event in 0..EVENTS_EACH {
                        let level = if event == 0 { Level::Written } else { Level::Synced };
                        let draft = message(&format!("{writer}:{event}"), 300);
                        acknowledged.push((recorder.record(draft, level).unwrap(), level));
                    }
                    acknowledged
                })
            })
            .collect();
        let acknowledged: Vec<_> = writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
        let mut seqs: Vec<_> = acknowledged.iter().map(|(seq, _)| seq.get()).collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (1..=(THREADS * EVENTS_EACH) as u64).collect::<Vec<_>>());
        // After a power cut everything acknowledged as synced exists.
        let synced =
            acknowledged.iter().filter(|(_, level)| *level == Level::Synced).map(|(seq, _)| seq.get()).max();
        let after = disk.die(steno_testkit::sim_disk::Death::PowerCut);
        let store = steno_journal::Store::open(Arc::new(after)).unwrap();
        let mut reader = Reader::open(&store, run()).unwrap();
        while let Some(recorded) = reader.read_next().ok().flatten() {
            assert!(!label(std::str::from_utf8(&recorded.line).unwrap()).is_empty());
        }
        assert!(reader.seq_last().map(steno_model::Seq::get) >= synced);
    });
}

/// Subscribers see all of the file in its order; closing while others record ends everything.
#[test]
fn shuttle_subscriber_gets_every_event_before_close_ends() {
    explore(|| {
        let bench = bench();
        let store = bench.journal.store().clone();
        let recorder = Arc::new(bench.recorder);
        let mut live = recorder.subscribe();
        let listener = thread::spawn(move || {
            let mut got = Vec::new();
            while let Some(event) = live.recv() {
                got.push(event.seq.get());
            }
            got
        });
        let writers: Vec<_> = (0..2)
            .map(|writer| {
                let recorder = Arc::clone(&recorder);
                thread::spawn(move || {
                    let level = if writer == 0 { Level::Written } else { Level::Synced };
                    (0..2).take_while(|_| recorder.record(message("m", 300), level).is_ok()).count()
                })
            })
            .collect();
        recorder.close().unwrap();
        let acknowledged: usize = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        let got = listener.join().unwrap();
        assert_eq!(got, (1..=got.len() as u64).collect::<Vec<_>>());
        let mut reader = Reader::open(&store, run()).unwrap();
        while reader.read_next().unwrap().is_some() {}
        let last = reader.seq_last().map_or(0, steno_model::Seq::get);
        assert!(last >= acknowledged as u64);
        assert_eq!(got.len() as u64, last, "the queue has room for all of them");
        assert!(
            read_notes(&**store.disk(), run())
                .unwrap()
                .iter()
                .all(|note| !matches!(note.what, NoteKind::Refused { .. }))
        );
    });
}

/// Many runs share the commit threads and none is forgotten.
#[test]
fn shuttle_runs_share_commit_threads() {
    explore(|| {
        let bench = bench();
        let recorders: Vec<_> = (2..5)
            .map(|number| bench.journal.record(steno_testkit::sample::run_id(number)).unwrap())
            .collect();
        let writers: Vec<_> = recorders
            .into_iter()
            .map(|recorder| {
                thread::spawn(move || {
                    // Appended without waiting, so that another thread commits.
                    let append = || recorder.append(message("m", 300), Level::Synced).unwrap();
                    for pending in [append(), append()] {
                        pending.wait().unwrap();
                    }
                    recorder.close().unwrap();
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
    });
}

/// A seal beside writers covers a prefix, and closing waits for every commit under way.
#[test]
fn shuttle_sealing_beside_writers() {
    explore(|| {
        let bench = bench();
        let store = bench.journal.store().clone();
        let recorder = Arc::new(bench.recorder);
        let writers: Vec<_> = (0..2)
            .map(|_| {
                let recorder = Arc::clone(&recorder);
                thread::spawn(move || {
                    let pending = recorder.append(message("m", 300), Level::Synced).unwrap();
                    recorder.record(message("m", 300), Level::Synced).unwrap();
                    pending.wait().unwrap();
                })
            })
            .collect();
        recorder.seal().unwrap();
        for writer in writers {
            writer.join().unwrap();
        }
        recorder.close().unwrap();
        let checked = steno_journal::check_run(&store, run(), Vec::new()).unwrap();
        assert_eq!((checked.events, checked.sealed_bytes), (4, checked.bytes));
    });
}
