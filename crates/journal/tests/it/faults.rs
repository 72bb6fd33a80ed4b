//! Full disks, failing disks, deleted files: a clear error, and nothing lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use steno_disk::{Disk as _, StorePath};
use steno_journal::{Error, Journal, Level, Note, NoteKind, Recorder, RunFile, Store, read_notes};
use steno_testkit::sample::message;
use steno_testkit::sim_disk::{Call, Fault, SimDisk};

use crate::kit::{bench, label, lines, newlines, options, run, transcript};
use crate::watched_disk::{Doing, WatchedDisk};

const EIO: i32 = 5;
const EFBIG: i32 = 27;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EDQUOT: i32 = 122;

#[test]
fn full_disk_refuses_records_and_later_ones_succeed() {
    for (error, level) in [(ENOSPC, Level::Synced), (EDQUOT, Level::Written), (EFBIG, Level::Synced)] {
        let bench = bench();
        bench.recorder.record(message("one", 300), level).unwrap();
        let before = transcript(&bench.disk);
        bench.disk.plan(Fault::Fail { kind: Call::Write, nth: 1, error });
        let refused = bench.recorder.record(message("refused", 300), level);
        assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
        assert_eq!((transcript(&bench.disk), bench.disk.fired()), (before, 1));
        assert_eq!(
            bench.recorder.record(message("two", 300), level).unwrap().get(),
            2,
            "the number was not used up"
        );
        bench.recorder.close().unwrap();
        let notes = read_notes(&bench.disk, run()).unwrap();
        assert!(matches!(notes[0].what, NoteKind::Refused { count: 1, seq_last: 1, .. }), "{notes:?}");
    }
}

#[test]
fn line_that_does_not_fit_on_the_disk_leaves_no_bytes() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    let used: usize = bench.disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    let before = transcript(&bench.disk);
    for room in [0, 1, 150, 299] {
        bench.disk.set_room(Some((used + room) as u64));
        let refused = bench.recorder.record(message("refused", 400), Level::Synced);
        assert!(matches!(refused, Err(Error::NoRoom { .. })), "{refused:?}");
        assert_eq!(transcript(&bench.disk), before, "with room for {room} bytes");
    }
    bench.disk.set_room(None);
    bench.recorder.record(message("two", 300), Level::Synced).unwrap();
    bench.recorder.close().unwrap();
    let notes = read_notes(&bench.disk, run()).unwrap();
    assert!(matches!(notes[0].what, NoteKind::Refused { count: 4, .. }), "{notes:?}");
    assert_eq!(
        lines(bench.journal.store(), run()).iter().map(|line| label(line)).collect::<Vec<_>>(),
        ["one", "two"]
    );
}

#[test]
fn refusals_are_noted_on_close_when_no_record_followed() {
    let bench = bench();
    bench.disk.plan(Fault::Fail { kind: Call::Write, nth: 1, error: ENOSPC });
    assert!(bench.recorder.record(message("refused", 300), Level::Synced).is_err());
    bench.recorder.close().unwrap();
    let notes = read_notes(&bench.disk, run()).unwrap();
    assert!(matches!(notes[0].what, NoteKind::Refused { count: 1, seq_last: 0, .. }), "{notes:?}");
}

#[test]
fn short_and_interrupted_writes_are_continued() {
    let bench = bench();
    bench.disk.make_writes_short(2);
    for number in 0..200 {
        bench.recorder.record(message(&number.to_string(), 700), Level::Written).unwrap();
    }
    let labels: Vec<_> = lines(bench.journal.store(), run()).iter().map(|line| label(line)).collect();
    assert_eq!(labels, (0..200).map(|number: i32| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn failed_write_stops_the_writer_until_reopening() {
    for error in [EIO, EROFS] {
        let bench = bench();
        bench.recorder.record(message("one", 300), Level::Synced).unwrap();
        bench.disk.plan(Fault::Fail { kind: Call::Write, nth: 1, error });
        for _ in 0..2 {
            let refused = bench.recorder.record(message("refused", 300), Level::Synced);
            assert!(matches!(refused, Err(Error::Poisoned { what: "written", .. })), "{refused:?}");
        }
        assert_eq!(bench.disk.fired(), 1);
        assert!(matches!(bench.recorder.close(), Err(Error::Poisoned { .. })));
        let again = bench.journal.record(run()).unwrap();
        assert_eq!(again.record(message("two", 300), Level::Synced).unwrap().get(), 2);
    }
}

#[test]
fn failed_sync_is_reported_to_all_waiting_records() {
    let bench = bench();
    bench.disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: EIO });
    let pending: Vec<_> = (0..20)
        .filter_map(|number| bench.recorder.append(message(&number.to_string(), 300), Level::Synced).ok())
        .collect();
    assert!(!pending.is_empty());
    for one in pending {
        assert!(matches!(one.wait(), Err(Error::Poisoned { what: "synced", .. })));
    }
}

/// Records until the writer notices that its file was deleted; returns how many records were acknowledged, and where
/// they are.
pub fn record_until_noticed(recorder: &Recorder, level: Level) -> (usize, StorePath) {
    for acknowledged in 0..1_000_000 {
        match recorder.record(message("m", 300), level) {
            Ok(_) => {}
            Err(Error::Vanished { kept: Some(kept), .. }) => return (acknowledged, kept),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("nobody noticed");
}

#[test]
fn deleted_file_is_noticed_and_saved() {
    for level in [Level::Synced, Level::Written] {
        let bench = bench();
        let path = RunFile::Transcript(run()).path();
        bench.recorder.record(message("one", 300), level).unwrap();
        let held = transcript(&bench.disk);
        bench.disk.delete(&path);
        let (acknowledged, kept) = record_until_noticed(&bench.recorder, level);
        assert!(level == Level::Written || acknowledged == 0, "a commit looks every time");
        let content = bench.disk.content(&kept).unwrap();
        assert!(content.starts_with(&held));
        assert_eq!(newlines(&content), 1 + acknowledged + 1, "all that was recorded, and the last one too");
        assert!(matches!(bench.recorder.record(message("three", 300), level), Err(Error::Vanished { .. })));
        assert_eq!(bench.disk.content(&path), None, "no second history is begun at its place");
        assert!(matches!(bench.recorder.close(), Err(Error::Vanished { .. })));
        let notes = read_notes(&bench.disk, run()).unwrap();
        let said = matches!(&notes[..], [Note { what: NoteKind::Vanished { kept: name, .. }, .. }] if kept.file_name() == name);
        assert!(said, "{notes:?}");
    }
}

#[test]
fn no_written_record_is_acknowledged_after_its_file_changed() {
    let path = RunFile::Transcript(run()).path();
    let elsewhere = RunFile::Transcript(steno_testkit::sample::run_id(9)).path();
    for how in ["deleted", "replaced", "moved", "cut", "written to"] {
        let bench = bench();
        let append = |label| bench.recorder.append(message(label, 300), Level::Written).unwrap();
        assert_eq!(append("one").wait().unwrap().get(), 1);
        let held = transcript(&bench.disk);
        match how {
            "deleted" => bench.disk.delete(&path),
            "replaced" => {
                bench.disk.tamper(&elsewhere, b"something else\n");
                bench.disk.rename(&elsewhere, &path).unwrap();
            }
            "moved" => bench.disk.rename(&path, &elsewhere).unwrap(),
            "cut" => bench.disk.tamper(&path, &held[..held.len() / 2]),
            _ => bench.disk.tamper(&path, &[&held[..], b"mine\n"].concat()),
        }
        let refused = match bench.recorder.append(message("two", 300), Level::Written) {
            Ok(pending) => pending.wait(),
            Err(error) => Err(error),
        };
        if ["cut", "written to"].contains(&how) {
            assert!(matches!(refused, Err(Error::Changed { .. })), "{how}: {refused:?}");
        } else {
            let Err(Error::Vanished { kept: Some(kept), .. }) = refused else { panic!("{how}: {refused:?}") };
            assert!(bench.disk.content(&kept).unwrap().starts_with(&held), "{how}");
        }
        assert!(bench.recorder.append(message("three", 300), Level::Written).is_err(), "{how}");
    }
}

#[test]
fn one_check_serves_all_earlier_records() {
    let disk = WatchedDisk::new(&SimDisk::new(7));
    let journal = Journal::new(Store::create(Arc::new(disk.clone())).unwrap(), options());
    let recorder = journal.record(run()).unwrap();
    let path = RunFile::Transcript(run()).path();
    let pending: Vec<_> =
        (0..100).map(|_| recorder.append(message("m", 300), Level::Written).unwrap()).collect();
    let looks = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&looks);
    disk.set_hook(move |doing, at| {
        counted.fetch_add(u64::from(doing == Doing::Find && *at == path), Ordering::SeqCst);
        Ok(())
    });
    for one in pending {
        one.wait().unwrap();
    }
    // One, or none if the last append checked the file. An idle run is also checked once a second.
    assert!(looks.load(Ordering::SeqCst) < 50, "{looks:?}");
}

#[test]
fn saved_copies_are_not_overwritten() {
    let bench = bench();
    let path = RunFile::Transcript(run()).path();
    let mut kept = Vec::new();
    for life in 0..3 {
        // The lock files are deleted too, so that every opening has the same epoch.
        bench.disk.tamper(&RunFile::Lock(run()).path(), b"");
        bench.recorder.close().ok();
        let recorder = bench.journal.record(run()).unwrap();
        recorder.record(message(&format!("life-{life}"), 300), Level::Written).unwrap();
        bench.disk.delete(&path);
        kept.push(record_until_noticed(&recorder, Level::Synced).1);
    }
    for (life, path) in kept.iter().enumerate() {
        let content = String::from_utf8(bench.disk.content(path).unwrap()).unwrap();
        assert!(content.contains(&format!("life-{life} ")), "{path}");
    }
}

#[test]
fn replaced_file_is_noticed_at_the_next_commit() {
    let bench = bench();
    let path = RunFile::Transcript(run()).path();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.disk.delete(&path);
    bench.disk.tamper(&path, b"something else\n");
    let refused = bench.recorder.record(message("two", 300), Level::Synced);
    assert!(matches!(refused, Err(Error::Vanished { kept: Some(_), .. })), "{refused:?}");
    assert_eq!(bench.disk.content(&path).unwrap(), b"something else\n");
}

#[test]
fn changed_file_is_noticed_and_not_sealed() {
    let path = RunFile::Transcript(run()).path();
    for change in
        [|bytes: &mut Vec<u8>| bytes.extend_from_slice(b"mine\n"), |bytes: &mut Vec<u8>| bytes.truncate(10)]
    {
        let bench = bench();
        bench.recorder.record(message("one", 300), Level::Synced).unwrap();
        let mut bytes = transcript(&bench.disk);
        change(&mut bytes);
        bench.disk.tamper(&path, &bytes);
        for _ in 0..2 {
            let refused = bench.recorder.record(message("two", 300), Level::Synced);
            assert!(matches!(refused, Err(Error::Changed { .. })), "{refused:?}");
        }
        assert!(matches!(bench.recorder.close(), Err(Error::Changed { .. })));
        assert_eq!(steno_journal::read_seals(&bench.disk, run()).unwrap(), []);
    }
}

#[test]
fn changed_bytes_are_not_sealed() {
    let path = RunFile::Transcript(run()).path();
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    assert!(bench.recorder.seal().unwrap().is_some());
    bench.recorder.record(message("two", 300), Level::Synced).unwrap();
    let mut bytes = transcript(&bench.disk);
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    bench.disk.tamper(&path, &bytes);
    let sealed = bench.recorder.seal();
    assert!(matches!(sealed, Err(Error::Changed { .. })), "{sealed:?}");
    assert!(sealed.unwrap_err().to_string().contains("differs from what was written"));
    assert!(matches!(
        bench.recorder.record(message("three", 300), Level::Synced),
        Err(Error::Changed { .. })
    ));
    assert!(matches!(bench.recorder.close(), Err(Error::Changed { .. })));
    assert_eq!(steno_journal::read_seals(&bench.disk, run()).unwrap().len(), 1);
}

#[test]
fn failed_copy_is_reported() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.disk.delete(&RunFile::Transcript(run()).path());
    bench.disk.plan(Fault::Fail { kind: Call::Create, nth: 1, error: ENOSPC });
    let refused = bench.recorder.record(message("two", 300), Level::Synced);
    assert!(matches!(refused, Err(Error::Vanished { kept: None, .. })), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("could not be saved"));
}

#[test]
fn events_dropped_by_the_caller_are_noted() {
    let bench = bench();
    bench.recorder.record(message("one", 300), Level::Synced).unwrap();
    bench.recorder.note_dropped(7, "the queue was full").unwrap();
    let notes = read_notes(&bench.disk, run()).unwrap();
    let want = NoteKind::Dropped { count: 7, seq_last: 1, cause: "the queue was full".into() };
    assert_eq!(notes[0].what, want);
}

#[test]
fn failed_creation_of_a_run_releases_its_lock() {
    let bench = bench();
    bench.recorder.close().unwrap();
    bench.disk.plan(Fault::Fail { kind: Call::SyncDir, nth: 2, error: EIO });
    assert!(matches!(bench.journal.record(run()).err(), Some(Error::Io { .. })));
    assert_eq!(bench.disk.fired(), 1);
    assert!(bench.journal.record(run()).is_ok());
}
