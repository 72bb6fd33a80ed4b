//! Spines: rotation, meta files, recovery of what a crash left open.

use steno_journal::{Error, Level, Rotation, SegmentIndex, SegmentMeta, SegmentName, SpineWriter, read_meta};
use steno_model::json::RawJson;
use steno_model::{SPINE_SCHEMA_VERSION, SpineDraft, SpineRecord, SpineType, ThreadId};
use steno_testkit::sample::time;
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

use crate::kit::journal_on;

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
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
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
fn segments_rotate_by_records_and_numbers_go_on() {
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
fn an_unsealed_segment_is_repaired_and_sealed_on_reopen() {
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
fn a_kill_inside_every_call_loses_no_record_and_leaves_a_spine_that_goes_on() {
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
fn a_second_writer_is_held_off() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let spine = journal.spine(&thread(), SMALL).unwrap();
    assert!(matches!(journal.spine(&thread(), SMALL).err(), Some(Error::Held { .. })));
    drop(spine);
    assert!(journal.spine(&thread(), SMALL).is_ok());
}

#[test]
fn a_missing_segment_in_between_is_not_written_over() {
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
