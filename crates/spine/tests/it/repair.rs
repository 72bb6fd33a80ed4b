//! Repair seals segments that a crash left open, and changes nothing else. It does not change damaged spines.

use steno_disk::StorePath;
use steno_journal::{Error, Level, NoteKind, read_notes};
use steno_spine::{Repair, Rule, Snapshots, repair_directory, repair_spine, validate_directory};
use steno_testkit::sample_spine::{SMALL, clock, draft, journal_on, meta, records, thread};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};

use crate::kit::{Files, bundle_files, disk_of, replace, reseal, spine_files};

const TAIL: &[u8] = b"{\"schema_ver";

/// Returns the valid spine without the last two meta files and with a torn end.
fn left_by_a_crash() -> Files {
    let mut files = spine_files();
    files.remove(&meta(1));
    files.remove(&meta(2));
    files.get_mut(&records(2)).unwrap().extend_from_slice(TAIL);
    files
}

fn files_on(disk: &SimDisk) -> Files {
    disk.snapshot().into_iter().collect()
}

#[test]
fn repair_seals_segments_and_keeps_the_torn_end() {
    let good = spine_files();
    let disk = disk_of(&left_by_a_crash());
    let (report, repairs) = repair_directory(&disk, clock()).unwrap();
    assert!(report.is_valid());
    let [
        Repair::Sealed { file: first, records: 3 },
        Repair::SetAside { file: torn, bytes: 12, kept },
        Repair::Sealed { file: last, records: 2 },
    ] = &repairs[..]
    else {
        panic!("{repairs:?}")
    };
    assert_eq!([first, torn, last], [&records(1), &records(2), &records(2)]);
    let after = validate_directory(&disk).unwrap();
    assert_eq!((after.findings.len(), after.sealed, after.records), (0, 3, 8), "{:?}", after.findings);
    let mut files = files_on(&disk);
    assert_eq!(files.remove(kept).as_deref(), Some(TAIL));
    let notes = files.remove("notes.jsonl").unwrap();
    assert!(String::from_utf8(notes).unwrap().contains("\"kind\":\"recovered\""));
    // The clock of the tests does not move, so the new meta files equal the old ones.
    assert_eq!(files, good);
    let (_, nothing) = repair_directory(&disk, clock()).unwrap();
    assert_eq!(nothing, []);
}

#[test]
fn repair_accepts_gaps_and_bundles() {
    let mut files = left_by_a_crash();
    replace(&mut files, &records(2), "\"seq\":8", "\"seq\":11");
    let disk = disk_of(&files);
    assert_eq!(repair_directory(&disk, clock()).unwrap().1.len(), 3);
    let report = validate_directory(&disk).unwrap();
    assert_eq!((report.errors, report.warnings, report.infos), (0, 1, 0), "{:?}", report.findings);
    let mut files = bundle_files(Snapshots::Whole);
    files.remove("spine/segment-002.meta.json");
    let disk = disk_of(&files);
    assert_eq!(repair_directory(&disk, clock()).unwrap().1.len(), 1);
    assert_eq!(validate_directory(&disk).unwrap().findings, []);
}

#[test]
fn repair_does_not_change_a_damaged_spine() {
    for plant in [
        |files: &mut Files| replace(files, &records(0), "codex_trace", "codex_other"),
        |files: &mut Files| files.get_mut(&records(1)).unwrap().extend_from_slice(b"nonsense\n"),
        |files: &mut Files| drop(files.remove(&records(0))),
    ] {
        let mut files = left_by_a_crash();
        plant(&mut files);
        let disk = disk_of(&files);
        let (report, repairs) = repair_directory(&disk, clock()).unwrap();
        assert!(!report.is_valid());
        assert_eq!((repairs, files_on(&disk)), (Vec::new(), files));
    }
}

#[test]
fn repair_of_a_spine_in_the_store_needs_its_lock() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let spine = journal.spine(&thread(), SMALL).unwrap();
    for _ in 0..2 {
        let event = draft(steno_model::SpineType::Event, r#"{"id":"","msg":{}}"#);
        spine.record(&event, Level::Synced).unwrap();
    }
    assert!(matches!(repair_spine(journal.store(), &thread(), clock()).err(), Some(Error::Locked { .. })));
    let disk = disk.die(Death::Kill);
    drop(spine);
    let path = StorePath::spine_of(&thread()).below(records(0));
    disk.tamper(&path, &[&disk.content(&path).unwrap()[..], TAIL].concat());
    let (_, repairs) = repair_spine(journal_on(&disk).unwrap().store(), &thread(), clock()).unwrap();
    assert_eq!(repairs.len(), 2);
    let notes = read_notes(&disk, &thread()).unwrap();
    assert!(
        matches!(&notes[..], [note] if matches!(note.what, NoteKind::Recovered { bytes: 12, seq_last: 2, .. }))
    );
    // The next writer continues as after its own recovery.
    let again = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    let event = draft(steno_model::SpineType::Event, r#"{"id":"","msg":{}}"#);
    assert_eq!(again.record(&event, Level::Synced).unwrap().get(), 3);
}

#[test]
fn repair_killed_at_any_call_can_be_repeated() {
    let calls = {
        let disk = disk_of(&left_by_a_crash());
        let before = disk.calls();
        repair_directory(&disk, clock()).unwrap();
        disk.calls() - before
    };
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = disk_of(&left_by_a_crash());
            let fired = disk.fired();
            disk.plan(Fault::DieAt { call });
            assert!(repair_directory(&disk, clock()).is_err(), "call {call}");
            assert_eq!(disk.fired(), fired + 1);
            let disk = disk.die(death);
            repair_directory(&disk, clock()).unwrap();
            let report = validate_directory(&disk).unwrap();
            assert_eq!((report.findings, report.records), (Vec::new(), 8), "call {call}, {death:?}");
            let kept = files_on(&disk).into_iter().filter(|(name, _)| name.contains(".torn-"));
            let kept: Vec<_> = kept.filter(|(name, _)| !name.contains("tmp")).collect();
            assert!(kept.iter().any(|(_, bytes)| bytes == TAIL), "call {call}, {death:?}: {kept:?}");
            let notes = files_on(&disk).remove("notes.jsonl").unwrap();
            assert_eq!(crate::kit::newlines(&notes), 1, "call {call}, {death:?}");
        }
    }
}

#[test]
fn segment_without_whole_records_is_emptied_and_stays_unsealed() {
    let mut files = spine_files();
    files.insert(records(3), TAIL.to_vec());
    let disk = disk_of(&files);
    let (_, repairs) = repair_directory(&disk, clock()).unwrap();
    assert!(matches!(&repairs[..], [Repair::SetAside { bytes: 12, .. }]), "{repairs:?}");
    let report = validate_directory(&disk).unwrap();
    let rules: Vec<_> = report.findings.iter().map(|finding| finding.rule).collect();
    assert_eq!(rules, [Rule::SegmentUnsealed]);
    reseal(&mut files, "", 2);
}
