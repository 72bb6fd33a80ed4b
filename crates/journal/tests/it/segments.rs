//! Spines: rotation, meta files, recovery of what a crash left open.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{
    Error, Journal, Level, NoteKind, Rotation, SegmentIndex, SegmentMeta, SegmentName, SpineWriter, Store,
    read_meta, read_notes,
};
use steno_model::json::RawJson;
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::{SPINE_SCHEMA_VERSION, SpineDraft, SpineRecord, SpineType, ThreadId};
use steno_testkit::sample::time;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

use crate::kit::{journal_on, options};

const ENOSPC: i32 = 28;

const SMALL: Rotation = Rotation { bytes_max: 100_000, records_max: 3 };

fn thread() -> ThreadId {
    ThreadId::parse("thread_123").unwrap()
}

fn draft(number: u64) -> SpineDraft {
    let payload = RawJson::parse(&format!(r#"{{"id":"turn","msg":{{"n":{number}}}}}"#)).unwrap();
    SpineDraft::new(SpineType::Event, time(), payload).unwrap()
}

fn content(disk: &SimDisk, index: u32) -> Option<Vec<u8>> {
    disk.content(&SegmentName::Records(SegmentIndex(index)).path(&thread()))
}

fn meta(disk: &SimDisk, index: u32) -> Option<SegmentMeta> {
    read_meta(disk, &thread(), SegmentIndex(index)).unwrap()
}

/// Returns the numbers of all records, segment by segment.
fn seqs(disk: &SimDisk) -> Vec<Vec<u64>> {
    let mut segments = Vec::new();
    while let Some(bytes) = content(disk, u32::try_from(segments.len()).unwrap()) {
        let lines = bytes.split_inclusive(|byte| *byte == b'\n');
        segments
            .push(lines.map(|line| SpineRecord::parse(line.trim_ascii_end()).unwrap().seq.get()).collect());
    }
    segments
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

#[track_caller]
fn check_meta(disk: &SimDisk, index: u32, seqs: (u64, u64)) {
    let bytes = content(disk, index).unwrap();
    let found = meta(disk, index).unwrap();
    let want = SegmentMeta {
        schema_version: SPINE_SCHEMA_VERSION.into(),
        thread_id: thread().to_string(),
        segment_index: index,
        min_seq: seqs.0,
        max_seq: seqs.1,
        record_count: seqs.1 - seqs.0 + 1,
        bytes: bytes.len() as u64,
        sha256: sha256(&bytes),
        created_at: "2026-06-08T08:14:42.123Z".into(),
        closed_at: "2026-06-08T08:14:42.123Z".into(),
    };
    assert_eq!(found, want);
}

#[test]
fn segments_rotate_by_records_and_numbers_continue() {
    let disk = SimDisk::new(1);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    for number in 1..=7 {
        assert_eq!(spine.record(&draft(number), Level::Synced).unwrap().get(), number);
    }
    assert_eq!(seqs(&disk), [vec![1, 2, 3], vec![4, 5, 6], vec![7]]);
    assert_eq!(meta(&disk, 2), None, "the last one is open");
    spine.close().unwrap();
    spine.close().unwrap();
    check_meta(&disk, 0, (1, 3));
    check_meta(&disk, 1, (4, 6));
    check_meta(&disk, 2, (7, 7));
    assert!(matches!(spine.record(&draft(8), Level::Synced), Err(Error::Closed)));
}

#[test]
fn segments_rotate_by_bytes() {
    let disk = SimDisk::new(1);
    let rotation = Rotation { bytes_max: 400, records_max: 1_000 };
    let spine = journal_on(&disk).unwrap().spine(&thread(), rotation).unwrap();
    for number in 1..=6 {
        spine.record(&draft(number), Level::Written).unwrap();
    }
    assert_eq!(seqs(&disk), [vec![1, 2, 3], vec![4, 5, 6]]);
}

#[test]
fn unsealed_segment_is_repaired_and_sealed_on_reopening() {
    let disk = SimDisk::new(1);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    for number in 1..=5 {
        spine.record(&draft(number), Level::Synced).unwrap();
    }
    let disk = disk.die(Death::Kill);
    drop(spine);
    let open = SegmentName::Records(SegmentIndex(1)).path(&thread());
    let torn = [&content(&disk, 1).unwrap()[..], b"{\"schema_ver"].concat();
    disk.tamper(&open, &torn);
    let again = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    check_meta(&disk, 1, (4, 5));
    assert!(disk.snapshot().iter().any(|(name, bytes)| name.contains(".torn-") && bytes == b"{\"schema_ver"));
    assert_eq!(again.record(&draft(6), Level::Synced).unwrap().get(), 6);
    assert_eq!(seqs(&disk), [vec![1, 2, 3], vec![4, 5], vec![6]]);
}

#[test]
fn kill_in_any_call_loses_no_record_and_the_spine_continues() {
    let calls = {
        let disk = SimDisk::new(1);
        write(&disk);
        disk.calls()
    };
    let mut cuts = 0;
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = SimDisk::new(call);
            disk.plan(Fault::DieAt { call });
            let (acknowledged, held) = write(&disk);
            assert_eq!(disk.fired(), 1, "call {call} of {calls}");
            let disk = disk.die(death);
            drop(held);
            let spine = match journal_on(&disk).and_then(|journal| journal.spine(&thread(), SMALL)) {
                Ok(spine) => spine,
                // Unsynced sectors may leave a hole before a good line.
                Err(Error::Damaged { .. }) if death == Death::PowerCut => {
                    cuts += 1;
                    continue;
                }
                Err(error) => panic!("call {call}, {death:?}: {error}"),
            };
            spine.record(&draft(0), Level::Synced).unwrap();
            spine.close().unwrap();
            let all: Vec<_> = seqs(&disk).concat();
            assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>(), "call {call}, {death:?}");
            assert!(all.len() as u64 > acknowledged, "call {call}, {death:?}: {all:?}");
            for (index, seqs) in seqs(&disk).iter().enumerate() {
                let index = u32::try_from(index).unwrap();
                let found = meta(&disk, index).unwrap();
                assert_eq!((found.min_seq, found.max_seq), (seqs[0], seqs[seqs.len() - 1]));
                assert_eq!(found.sha256, sha256(&content(&disk, index).unwrap()));
            }
        }
    }
    assert!(cuts < calls / 4, "{cuts} of {calls}");
}

/// Writes seven records, each synced; returns how many were acknowledged, and a writer that was still open.
fn write(disk: &SimDisk) -> (u64, Option<SpineWriter>) {
    let Ok(spine) = journal_on(disk).and_then(|journal| journal.spine(&thread(), SMALL)) else {
        return (0, None);
    };
    let mut acknowledged = 0;
    for number in 1..=7 {
        if spine.record(&draft(number), Level::Synced).is_err() {
            return (acknowledged, Some(spine));
        }
        acknowledged = number;
    }
    spine.close().ok();
    (acknowledged, None)
}

#[test]
fn second_spine_writer_is_refused() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let spine = journal.spine(&thread(), SMALL).unwrap();
    assert!(matches!(journal.spine(&thread(), SMALL).err(), Some(Error::Locked { .. })));
    drop(spine);
    assert!(journal.spine(&thread(), SMALL).is_ok());
}

#[test]
fn too_long_record_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(steno_disk::RealDisk::create(dir.path()).unwrap());
    let journal = Journal::new(Store::create(disk).unwrap(), options());
    let spine = journal.spine(&thread(), SMALL).unwrap();
    let of_text = |text: &str| {
        let payload = RawJson::parse(&format!("\"{text}\"")).unwrap();
        SpineDraft::new(SpineType::Event, time(), payload).unwrap()
    };
    let of_bytes = |bytes: usize| of_text(&"x".repeat(bytes - of_text("").line_bytes_max(&thread())));
    assert_eq!(spine.record(&of_bytes(LINE_BYTES_MAX), Level::Written).unwrap().get(), 1);
    let refused = spine.record(&of_bytes(LINE_BYTES_MAX + 1), Level::Written);
    assert!(matches!(refused, Err(Error::TooLong { bytes }) if bytes == LINE_BYTES_MAX as u64 + 1));
    assert_eq!(spine.record(&draft(2), Level::Written).unwrap().get(), 2, "and the spine goes on");
    drop(spine);
    let again = journal.spine(&thread(), SMALL).unwrap();
    assert_eq!(again.record(&draft(3), Level::Written).unwrap().get(), 3);
}

#[test]
fn emptied_segment_before_others_is_not_continued() {
    for left in [&b""[..], b"{\"schema_ver", &[0; 100]] {
        let disk = SimDisk::new(1);
        write(&disk);
        disk.delete(&SegmentName::Meta(SegmentIndex(1)).path(&thread()));
        disk.tamper(&SegmentName::Records(SegmentIndex(1)).path(&thread()), left);
        let files = || disk.snapshot().into_iter().filter(|(name, _)| name.starts_with("spine/"));
        let before: Vec<_> = files().collect();
        let opened = journal_on(&disk).unwrap().spine(&thread(), SMALL);
        assert!(matches!(opened.err(), Some(Error::SealBroken { .. })));
        assert_eq!(files().collect::<Vec<_>>(), before, "nothing was changed");
    }
}

#[test]
fn segment_with_lost_records_before_others_is_not_continued() {
    let disk = SimDisk::new(1);
    write(&disk);
    let path = SegmentName::Records(SegmentIndex(1)).path(&thread());
    let whole = disk.content(&path).unwrap();
    let first = whole.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    disk.delete(&SegmentName::Meta(SegmentIndex(1)).path(&thread()));
    disk.tamper(&path, first);
    let opened = journal_on(&disk).unwrap().spine(&thread(), SMALL);
    let later = SegmentName::Records(SegmentIndex(2)).path(&thread());
    assert!(matches!(opened.err(), Some(Error::SealBroken { path, .. }) if path == later));
}

fn noted(disk: &SimDisk) -> Vec<NoteKind> {
    read_notes(disk, &thread()).unwrap().into_iter().map(|note| note.what).collect()
}

#[test]
fn refusals_of_a_spine_are_noted_when_the_disk_has_space() {
    let disk = SimDisk::new(1);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    spine.record(&draft(1), Level::Written).unwrap();
    for _ in 0..2 {
        disk.plan(Fault::Fail { kind: Call::Write, nth: 1, error: ENOSPC });
        assert!(matches!(spine.record(&draft(0), Level::Written), Err(Error::NoRoom { .. })));
    }
    assert_eq!(disk.content(&StorePath::spine_notes(&thread())), None);
    for number in 2..=3 {
        assert_eq!(spine.record(&draft(number), Level::Written).unwrap().get(), number);
    }
    let notes = noted(&disk);
    let [NoteKind::Refused { count: 2, seq_last: 1, cause, .. }] = &notes[..] else { panic!("{notes:?}") };
    assert!(cause.contains("space"), "{cause}");
    // The fourth record needs a new segment, for which there is no space either.
    for kind in [Call::Create, Call::Write] {
        disk.plan(Fault::Fail { kind, nth: 1, error: ENOSPC });
        assert!(spine.record(&draft(0), Level::Written).is_err());
    }
    spine.close().unwrap();
    let notes = noted(&disk);
    assert!(matches!(notes[1..], [NoteKind::Refused { count: 2, seq_last: 3, .. }]), "{notes:?}");
    assert_eq!(disk.fired(), 4);
}

#[test]
fn killed_recovery_of_a_spine_is_noted_once() {
    let mut killed = 0;
    for call in 1..40 {
        let disk = SimDisk::new(1);
        let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
        spine.record(&draft(1), Level::Synced).unwrap();
        let disk = disk.die(Death::Kill);
        drop(spine);
        let path = SegmentName::Records(SegmentIndex(0)).path(&thread());
        let whole = content(&disk, 0).unwrap();
        disk.tamper(&path, &[&whole[..], b"{\"schema_ver"].concat());
        let before = disk.fired();
        disk.plan(Fault::DieAt { call });
        drop(journal_on(&disk).and_then(|journal| journal.spine(&thread(), SMALL)));
        killed += disk.fired() - before;
        let disk = disk.die(Death::Kill);
        drop(journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap());
        let notes = noted(&disk);
        let [NoteKind::Recovered { offset, bytes: 12, kept, seq_last: 1 }] = &notes[..] else {
            panic!("call {call}: {notes:?}")
        };
        assert_eq!(*offset, whole.len() as u64);
        let is_kept = |(name, bytes): &(String, Vec<u8>)| name.ends_with(kept) && bytes == b"{\"schema_ver";
        assert!(disk.snapshot().iter().any(is_kept));
    }
    assert!(killed > 10, "{killed}");
}

#[test]
fn too_long_meta_file_is_refused() {
    const META_BYTES_MAX: usize = 65_536;
    let disk = SimDisk::new(1);
    write(&disk);
    let path = SegmentName::Meta(SegmentIndex(0)).path(&thread());
    let text = disk.content(&path).unwrap();
    let padded = |bytes: usize| [&text[..], &vec![b' '; bytes - text.len()]].concat();
    disk.tamper(&path, &padded(META_BYTES_MAX));
    assert!(meta(&disk, 0).is_some());
    disk.tamper(&path, &padded(META_BYTES_MAX + 1));
    let refused = read_meta(&disk, &thread(), SegmentIndex(0));
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
}

#[test]
fn missing_segment_is_not_overwritten() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let spine = journal.spine(&thread(), SMALL).unwrap();
    for number in 1..=7 {
        spine.record(&draft(number), Level::Synced).unwrap();
    }
    spine.close().unwrap();
    disk.delete(&SegmentName::Records(SegmentIndex(1)).path(&thread()));
    assert!(matches!(journal.spine(&thread(), SMALL).err(), Some(Error::SealBroken { .. })));
    disk.delete(&SegmentName::Meta(SegmentIndex(1)).path(&thread()));
    assert!(matches!(journal.spine(&thread(), SMALL).err(), Some(Error::SealBroken { .. })));
    disk.tamper(&SegmentName::Meta(SegmentIndex(0)).path(&thread()), b"{}");
    assert!(matches!(journal.spine(&thread(), SMALL).err(), Some(Error::Damaged { .. })));
}
