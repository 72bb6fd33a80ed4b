//! Changed, cut and torn spines: damage is found at any place and distinguished from leftovers of a crash.

use std::sync::Arc;

use steno_disk::{Disk as _, RealDisk};
use steno_journal::{Error, Level, Store};
use steno_model::limits::LINE_BYTES_MAX;
use steno_spine::{Report, Rule, Severity, Snapshots, validate_directory, validate_spine, validate_tar};
use steno_testkit::places;
use steno_testkit::sample_spine::{SMALL, draft, journal_on, meta, records, spine_on_disk, thread};
use steno_testkit::sim_disk::{Death, SimDisk};

use crate::kit::{Files, bundle_files, disk_of, replace, reseal, spine_files, tar_of};

/// Puts something in place of a file.
type Plant = fn(&std::path::Path);

fn validate(files: &Files) -> Report {
    validate_directory(&disk_of(files)).unwrap()
}

fn rules(report: &Report) -> Vec<Rule> {
    report.findings.iter().map(|finding| finding.rule).collect()
}

fn validate_store(disk: &SimDisk) -> Report {
    validate_spine(&Store::open(Arc::new(disk.clone())).unwrap(), &thread()).unwrap()
}

#[test]
fn every_flipped_byte_of_a_sealed_segment_is_found() {
    let good = spine_files();
    let name = records(1);
    for at in 0..good[&name].len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut files = good.clone();
            files.get_mut(&name).unwrap()[at] ^= bit;
            let report = validate(&files);
            assert!(rules(&report).contains(&Rule::MetaSha256), "byte {at}: {:?}", report.findings);
            assert!(!report.is_valid());
        }
    }
}

#[test]
fn sealed_segment_cut_at_any_byte_is_found() {
    let good = spine_files();
    for name in [records(1), records(2), meta(1)] {
        for len in 0..good[&name].len() {
            let mut files = good.clone();
            files.get_mut(&name).unwrap().truncate(len);
            let is_newline_alone = name == meta(1) && len + 1 == good[&name].len();
            assert_eq!(validate(&files).is_valid(), is_newline_alone, "{name} cut at {len}");
        }
    }
}

#[test]
fn every_changed_field_of_a_meta_file_is_found() {
    let good = spine_files();
    let about: serde_json::Value = serde_json::from_slice(&good[&meta(1)]).unwrap();
    let about = about.as_object().unwrap();
    assert_eq!(about.len(), 10);
    for (field, value) in about {
        for changed in [serde_json::json!(null), serde_json::json!(7_777), serde_json::json!("other")] {
            let mut other = about.clone();
            other.insert(field.clone(), changed.clone());
            let mut files = good.clone();
            files.insert(meta(1), serde_json::to_vec(&other).unwrap());
            assert!(!validate(&files).is_valid(), "{field}: {value} as {changed}");
        }
        let mut without = about.clone();
        without.remove(field);
        let mut files = good.clone();
        files.insert(meta(1), serde_json::to_vec(&without).unwrap());
        assert_eq!(rules(&validate(&files)), [Rule::MetaField], "{field}");
    }
}

#[test]
fn torn_end_is_not_damage() {
    let good = spine_files();
    let unsealed = |tail: &[u8]| {
        let mut files = good.clone();
        files.remove(&meta(2));
        files.get_mut(&records(2)).unwrap().extend_from_slice(tail);
        validate(&files)
    };
    let torn = [Rule::SegmentUnsealed, Rule::SegmentTorn];
    for tail in [&b"{\"schema_ver"[..], b"{", &[0; 700], b"{\"schema\0\0\0\0\n", b"\0\0\n\0\0\0\n{\"sch"] {
        let report = unsealed(tail);
        assert_eq!(rules(&report), torn, "{tail:?}");
        assert!(report.is_valid());
        assert_eq!(report.findings[1].place.offset, Some(good[&records(2)].len() as u64));
        assert_eq!(report.records, 8);
    }
    let line = good[&records(2)].split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let line = String::from_utf8(line.to_vec()).unwrap().replace("\"seq\":7", "\"seq\":9");
    for tail in [&b"{\"schema_ver\n"[..], b"nonsense\n", b"\n"] {
        assert_eq!(rules(&unsealed(tail)), [Rule::LineJson, Rule::SegmentUnsealed], "{tail:?}");
        // A crash leaves no good lines after the zeros.
        let report = unsealed(&[&b"\0\0\0\n"[..], line.as_bytes()].concat());
        assert_eq!(rules(&report), [Rule::LineJson, Rule::SegmentUnsealed]);
    }
    // In a sealed segment such an end is damage.
    let mut files = good.clone();
    files.get_mut(&records(2)).unwrap().extend_from_slice(b"{\"schema_ver");
    let report = validate(&files);
    assert_eq!(rules(&report), [Rule::SegmentCut, Rule::MetaSha256, Rule::MetaBytes]);
}

#[test]
fn empty_segment_before_others_is_an_error() {
    let mut files = spine_files();
    files.remove(&meta(1));
    assert_eq!(rules(&validate(&files)), [Rule::SegmentUnsealed]);
    files.insert(records(1), Vec::new());
    let found = rules(&validate(&files));
    assert!(found.starts_with(&[Rule::SegmentEmpty, Rule::SegmentUnsealed]), "{found:?}");
    let mut files = spine_files();
    files.insert(records(3), Vec::new());
    assert_eq!(rules(&validate(&files)), [Rule::SegmentUnsealed]);
    for gone in [vec![records(1)], vec![records(1), meta(1)]] {
        let mut files = spine_files();
        files.retain(|name, _| !gone.contains(name));
        let report = validate(&files);
        assert_eq!(rules(&report)[0], Rule::SegmentMissing, "{gone:?}");
        assert_eq!(report.errors, 1);
    }
}

#[test]
fn gap_is_an_error_in_the_store_and_a_warning_elsewhere() {
    let disk = spine_on_disk();
    assert_eq!(validate_store(&disk).findings, []);
    let mut files = spine_files();
    replace(&mut files, &records(2), "\"seq\":8", "\"seq\":9");
    reseal(&mut files, "", 2);
    let report = validate(&files);
    assert_eq!((rules(&report), report.is_valid()), (vec![Rule::SeqGap], true));
    for (name, bytes) in &files {
        disk.tamper(&steno_disk::StorePath::spine_of(&thread()).below(name), bytes);
    }
    let report = validate_store(&disk);
    assert_eq!(rules(&report), [Rule::SeqGap]);
    assert_eq!((report.findings[0].severity, report.is_valid()), (Severity::Error, false));
    // A spine of another writer begins later and skips numbers between segments.
    let mut files = spine_files();
    for gone in [records(0), meta(0)] {
        files.remove(&gone);
    }
    for index in 1..=2 {
        for name in [records, meta] {
            let bytes = files.remove(&name(index)).unwrap();
            files.insert(name(index - 1), bytes);
        }
        let (from, to) = (format!("\"segment_index\":{index}"), format!("\"segment_index\":{}", index - 1));
        replace(&mut files, &meta(index - 1), &from, &to);
    }
    let report = validate(&files);
    assert_eq!((rules(&report), report.is_valid()), (vec![Rule::SeqGap], true));
}

#[test]
fn spine_being_written_is_not_torn_and_must_match_its_thread() {
    let disk = SimDisk::new(1);
    let journal = journal_on(&disk).unwrap();
    let spine = journal.spine(&thread(), SMALL).unwrap();
    spine.record(&draft(steno_model::SpineType::Event, r#"{"id":"","msg":{}}"#), Level::Synced).unwrap();
    let path = steno_disk::StorePath::spine_of(&thread()).below(records(0));
    disk.tamper(&path, &[&disk.content(&path).unwrap()[..], b"{\"sche"].concat());
    let report = validate_store(&disk);
    assert_eq!(rules(&report), [Rule::SegmentUnsealed]);
    assert_eq!(report.findings[0].words, "it is being written");
    let disk = disk.die(Death::Kill);
    drop(spine);
    assert_eq!(rules(&validate_store(&disk)), [Rule::SegmentUnsealed, Rule::SegmentTorn]);
    let other = steno_model::ThreadId::parse("thread_124").unwrap();
    disk.tamper(&steno_disk::StorePath::spine_of(&other).below(records(0)), &disk.content(&path).unwrap());
    let report = validate_spine(&Store::open(Arc::new(disk)).unwrap(), &other).unwrap();
    assert_eq!(rules(&report)[0], Rule::ThreadId);
}

#[test]
fn too_long_line_is_found() {
    let mut files = spine_files();
    let long = "x".repeat(LINE_BYTES_MAX);
    replace(&mut files, &records(1), "hello", &long);
    reseal(&mut files, "", 1);
    let found = rules(&validate(&files));
    assert!(found.contains(&Rule::LineLength), "{found:?}");
}

#[test]
fn links_directories_and_pipes_are_reported_without_blocking() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let write = |files: &Files| {
        for (name, bytes) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
    };
    let files = bundle_files(Snapshots::Whole);
    write(&files);
    let disk = RealDisk::open(dir.path()).unwrap().unwrap();
    assert_eq!(validate_directory(&disk).unwrap().findings, []);
    let at = |name: &str| dir.path().join(name);
    let segment = at("spine/segment-001.jsonl");
    let plant: [(&str, Plant); 3] = [
        ("a symbolic link", |path| symlink("segment-000.jsonl", path).unwrap()),
        ("a directory", |path| std::fs::create_dir(path).unwrap()),
        ("a FIFO", |path| places::make_pipe(path)),
    ];
    for (what, plant) in plant {
        std::fs::remove_file(&segment).unwrap();
        plant(&segment);
        let report = validate_directory(&disk).unwrap();
        assert_eq!(report.findings[0].rule, Rule::FileKind, "{what}");
        assert_eq!(report.findings[0].words, format!("it is {what}"));
        if what == "a directory" { std::fs::remove_dir(&segment) } else { std::fs::remove_file(&segment) }
            .unwrap();
        write(&files);
    }
    std::fs::rename(at("artifacts"), at("elsewhere")).unwrap();
    symlink("elsewhere", at("artifacts")).unwrap();
    let found = rules(&validate_directory(&disk).unwrap());
    assert!(found.contains(&Rule::FileKind), "{found:?}");
    assert_eq!(disk.list(&steno_disk::StorePath::root()).unwrap().len(), 5);
}

#[test]
fn changes_in_a_tar_file_are_found_except_in_free_fields() {
    let files = bundle_files(Snapshots::Whole);
    let bytes = tar_of(&files);
    for len in (0..bytes.len() - 1024).step_by(61) {
        assert!(!validate_tar(&bytes[..len]).is_valid(), "cut at {len}");
    }
    let mut unnoticed = Vec::new();
    for at in (0..bytes.len()).step_by(7) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        if validate_tar(&changed[..]).is_valid() {
            unnoticed.push(at);
        }
    }
    // These may change: times of meta files and of the bundle, paths of rollouts, and padding.
    let is_free = |at: usize| {
        let text =
            String::from_utf8_lossy(&bytes[at.saturating_sub(40)..(at + 40).min(bytes.len())]).into_owned();
        ["created_at", "closed_at", "rollout_path", "\"path\"", "\0\0"].iter().any(|word| text.contains(word))
    };
    assert!(unnoticed.iter().all(|at| is_free(*at)), "{unnoticed:?}");
    assert!(unnoticed.len() * 3 < bytes.len() / 7, "{} of {}", unnoticed.len(), bytes.len() / 7);
}

/// A power cut can lose bytes inside the unsealed end. A recorder that has the source can write them again.
#[test]
fn damaged_unsealed_end_can_be_set_aside_and_written_again() {
    let disk = spine_on_disk();
    let journal = journal_on(&disk).unwrap();
    let spine = journal.spine(&thread(), SMALL).unwrap();
    let payload = r#"{"id":"u1","msg":{"type":"x"}}"#;
    for _ in 0..3 {
        spine.record(&draft(steno_model::SpineType::Event, payload), Level::Written).unwrap();
    }
    let disk = disk.die(Death::Kill);
    drop(spine);
    let path = steno_disk::StorePath::spine_of(&thread()).below(records(3));
    let good = disk.content(&path).unwrap();
    let first = good.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut bytes = good.clone();
    bytes[first..first + 40].fill(0);
    disk.tamper(&path, &bytes);
    let journal = journal_on(&disk).unwrap();
    assert!(matches!(journal.spine(&thread(), SMALL), Err(Error::Damaged { .. })));
    let spine = journal.spine_to_make_again(&thread(), SMALL).unwrap();
    assert_eq!(disk.content(&path).unwrap(), good[..first]);
    let aside = disk.snapshot().into_iter().find(|(name, _)| name.contains(".torn-")).unwrap();
    assert!(aside.1 == bytes[first..], "nothing is deleted");
    let seq = spine.record(&draft(steno_model::SpineType::Event, payload), Level::Synced).unwrap();
    assert_eq!(seq.get(), 10, "it goes on behind the last good record");
    spine.close().unwrap();
    assert!(validate_store(&disk).is_valid());
    // A damaged segment before others is not set aside.
    disk.delete(&steno_disk::StorePath::spine_of(&thread()).below(meta(1)));
    disk.tamper(&steno_disk::StorePath::spine_of(&thread()).below(records(1)), b"nothing\ngood\n");
    let before = disk.snapshot();
    assert!(matches!(
        journal_on(&disk).unwrap().spine_to_make_again(&thread(), SMALL),
        Err(Error::Damaged { .. })
    ));
    let without_locks = |files: Vec<(String, Vec<u8>)>| {
        files.into_iter().filter(|(name, _)| !name.starts_with("locks/")).collect::<Vec<_>>()
    };
    assert_eq!(without_locks(disk.snapshot()), without_locks(before));
}
