//! Several processes with one store: a source is recorded by one of them at a time, and each event once.

use std::fs;
use std::sync::Arc;

use steno_journal::{Journal, Level, Options, Store};
use steno_model::{Draft, EventType, Payload, StepPayload};

use crate::bench::{Bench, Step, append, archive, sources, store, transcript};
use crate::sessions::{SESSION, prompt, response, turn};

/// Neither process knows a source at the start.
#[test]
fn source_of_another_process_is_continued() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let shared = store();
    let (mut first, mut second) = (archive(&shared), archive(&shared));
    fs::write(&path, turn(1, 2)).unwrap();
    assert_eq!(bench.import_with(&mut first).files_new, 1);
    assert_eq!(bench.import_with(&mut second).events, 0);
    append(&path, &prompt(5));
    bench.import_with(&mut second);
    append(&path, &response(6, 2));
    bench.import_with(&mut first);
    fs::write(&path, prompt(7)).unwrap();
    bench.import_with(&mut second);
    append(&path, &response(8, 2));
    bench.import_with(&mut first);
    bench.import_with(&mut second);
    assert_eq!(sources(&shared).len(), 1);
    assert_eq!(sources(&shared)[0].1.len(), 2);
    let other = store();
    fs::write(&path, turn(1, 2) + &prompt(5) + &response(6, 2)).unwrap();
    bench.import(&other);
    fs::write(&path, prompt(7) + &response(8, 2)).unwrap();
    bench.import(&other);
    assert_eq!(transcript(&shared), transcript(&other));
}

#[test]
fn source_held_by_another_process_is_skipped_until_released() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    let shared = store();
    let mut second = archive(&shared);
    let mut held = 0;
    let step: Step<'_> = Box::new(|| held = bench.import_with(&mut second).files_held);
    bench.follow(&shared, [step]);
    assert_eq!(held, 1);
    append(&path, &prompt(5));
    let health = bench.import_with(&mut second);
    assert_eq!((health.files_held, health.files_new), (0, 1));
    let other = store();
    bench.import(&other);
    assert_eq!(transcript(&shared), transcript(&other));
    assert_eq!(sources(&shared), sources(&other));
}

/// `steno record` can add to any run.
#[test]
fn added_event_of_another_program_repeats_nothing() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    let shared = store();
    let first = bench.import(&shared).events;
    let journal = Journal::new(Store::create(Arc::new(shared.clone())).unwrap(), Options::default());
    let recorder = journal.record(SESSION.parse().unwrap()).unwrap();
    let note = Payload::Step(StepPayload::new("note", "system"));
    recorder.record(Draft::new(EventType::StepCompleted, &note).unwrap(), Level::Synced).unwrap();
    recorder.close().unwrap();
    drop(recorder);
    append(&path, &prompt(5));
    let second = bench.import(&shared).events;
    let whole = store();
    assert_eq!(first + second, bench.import(&whole).events);
}
