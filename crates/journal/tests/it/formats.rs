//! Files of every format version that was ever written: readable in the tree, and continued in a copy.
//!
//! `fixtures/store-v1` was written by hand after `docs/format` and is never changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::RealDisk;
use steno_journal::{
    Journal, Level, Note, NoteKind, Rotation, RunFile, Seal, SegmentIndex, SegmentMeta, Store, check_run,
    read_meta, read_notes, read_seals, run_ends,
};
use steno_model::json::RawJson;
use steno_model::{Epoch, RunId, SpineDraft, SpineType, ThreadId};
use steno_testkit::sample::{message, time};

use crate::kit::{lines, options};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-v1")
}

fn run() -> RunId {
    RunId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap()
}

fn thread() -> ThreadId {
    ThreadId::parse("thread_123").unwrap()
}

fn store() -> Store {
    Store::open(Arc::new(RealDisk::open(&fixtures()).unwrap().unwrap())).unwrap()
}

/// Returns all files below a directory with their bytes, to compare before and after.
fn files(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                found.push((path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// A copy to write to.
fn copy() -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    for (path, bytes) in files(&fixtures()) {
        fs::create_dir_all(dir.path().join(&path).parent().unwrap()).unwrap();
        fs::write(dir.path().join(&path), bytes).unwrap();
    }
    let disk = Arc::new(RealDisk::create(dir.path()).unwrap());
    (dir, Journal::new(Store::create(disk).unwrap(), options()))
}

#[test]
fn store_of_version_1_is_readable() {
    let before = files(&fixtures());
    let store = store();
    assert_eq!(store.runs().unwrap(), [run()]);
    let seal = |bytes, seq_last, sha256: &str, time: &str| Seal {
        run_id: run().to_string(),
        bytes,
        seq_last,
        sha256: sha256.to_owned(),
        time: time.to_owned(),
    };
    let want = [
        seal(
            194,
            1,
            "ef2a871b882a6175c1757c49450a1eb0e1dce72d56bb94afc0cd49bf881b0517",
            "2026-06-08T08:14:42.200Z",
        ),
        seal(
            607,
            3,
            "eac47338e7561bf984ccbb086778aac6451fa664cf3f4f1dd3530d7b72745216",
            "2026-06-08T08:15:01.000Z",
        ),
    ];
    assert_eq!(read_seals(&**store.disk(), run()).unwrap(), want);
    let checked = check_run(&store, run(), Vec::new()).unwrap();
    assert_eq!((checked.events, checked.seals, checked.sealed_bytes), (3, 2, checked.bytes));
    let (first, last) = run_ends(&store, run()).unwrap().events.unwrap();
    assert_eq!((first.seq.get(), last.seq.get()), (1, 3));
    assert_eq!(files(&fixtures()), before, "reading changes nothing");
}

#[test]
fn notes_of_version_1_are_readable() {
    let noted = |time: &str, what| Note { time: format!("2026-06-08T08:14:42.{time}Z"), what };
    let kept = |ending: &str| format!("{}.jsonl.{ending}", run());
    let cause = || "No space left on device (os error 28)".to_owned();
    let want = [
        noted(
            "150",
            NoteKind::Recovered {
                offset: 157,
                bytes: 16,
                kept: kept("torn-157-0123456789abcdef"),
                seq_last: 1,
            },
        ),
        noted("160", NoteKind::Refused { count: 2, seq_last: 1, cause: cause(), epoch: None }),
        noted("170", NoteKind::Dropped { count: 3, seq_last: 1, cause: "the queue was full".into() }),
        noted("180", NoteKind::Lagged { count: 4, seq_first: 2, seq_last: 9 }),
        noted("190", NoteKind::Vanished { kept: kept("orphan-2"), seq_last: 1 }),
    ];
    let store = store();
    assert_eq!(read_notes(&**store.disk(), run()).unwrap(), want);
    let spine = NoteKind::Refused { count: 1, seq_last: 2, cause: cause(), epoch: None };
    let want = [Note { time: "2026-01-31T08:15:30.000Z".into(), what: spine }];
    assert_eq!(read_notes(&**store.disk(), &thread()).unwrap(), want);
}

#[test]
fn meta_file_of_version_1_is_readable() {
    let want = SegmentMeta {
        schema_version: "codex_trace_spine_v1".into(),
        thread_id: "thread_123".into(),
        segment_index: 0,
        min_seq: 1,
        max_seq: 3,
        record_count: 3,
        bytes: 509,
        sha256: "cea95b17b3f449d8ac424d74f10f080346bf4e756450cacc524ad9588184bd89".into(),
        created_at: "2026-01-31T08:15:24.123Z".into(),
        closed_at: "2026-01-31T08:16:00.000Z".into(),
    };
    assert_eq!(read_meta(&**store().disk(), &thread(), SegmentIndex(0)).unwrap(), Some(want));
}

#[test]
fn run_of_version_1_can_be_continued() {
    let (dir, journal) = copy();
    let recorder = journal.record(run()).unwrap();
    assert_eq!(recorder.epoch(), Epoch(8), "the lock file said 7");
    assert_eq!(recorder.record(message("four", 300), Level::Synced).unwrap().get(), 4);
    recorder.note_dropped(1, "to have one more").unwrap();
    recorder.close().unwrap();
    assert_eq!(lines(journal.store(), run()).len(), 4);
    for file in [RunFile::Transcript(run()), RunFile::Seals(run()), RunFile::Notes(run())] {
        let path = file.path();
        let before = fs::read(fixtures().join(path.as_str())).unwrap();
        let after = fs::read(dir.path().join(path.as_str())).unwrap();
        assert!(after.len() > before.len() && after.starts_with(&before), "{path}");
    }
    assert_eq!(check_run(journal.store(), run(), Vec::new()).unwrap().seals, 3);
}

#[test]
fn spine_of_version_1_continues_in_a_new_segment() {
    let (dir, journal) = copy();
    let spine = journal.spine(&thread(), Rotation::default()).unwrap();
    let draft = SpineDraft::new(SpineType::Event, time(), RawJson::null()).unwrap();
    assert_eq!(spine.record(&draft, Level::Synced).unwrap().get(), 4);
    spine.close().unwrap();
    let meta = read_meta(&**journal.store().disk(), &thread(), SegmentIndex(1)).unwrap().unwrap();
    assert_eq!((meta.min_seq, meta.max_seq), (4, 4));
    let lock = fs::read_to_string(dir.path().join("locks/spine-thread_123.lock")).unwrap();
    assert!(lock.starts_with(r#"{"epoch":4,"pid":"#), "{lock}");
    for (path, bytes) in files(&fixtures()) {
        if path.starts_with("spine") {
            assert_eq!(fs::read(dir.path().join(&path)).unwrap(), bytes, "{}", path.display());
        }
    }
}
