//! Artifacts of a spine are complete or absent, named by their hash, and never overwritten. Also tests reading a spine.

use std::sync::{Arc, Mutex};

use steno_disk::StorePath;
use steno_journal::{
    ARTIFACT_BYTES_MAX, ArtifactFile, Error, KeptArtifact, Level, SpineReader, SpineState, SpineWriter,
    Store, spine_overview,
};
use steno_model::SpineType;
use steno_spine::{Rule, repair_spine, validate_spine};
use steno_testkit::sample_spine::{PATCH, SMALL, clock, draft, records, spine_on_disk, thread};
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};

use crate::kit::{journal_on, sha256};
use crate::watched_disk::{Doing, WatchedDisk};

fn dir() -> StorePath {
    StorePath::spine_of(&thread())
}

fn kept(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let is_whole = |name: &str| name.contains("/artifacts/") && !name.contains(".tmp-");
    disk.snapshot().into_iter().filter(|(name, _)| is_whole(name)).collect()
}

#[test]
fn artifact_is_named_by_its_hash_and_written_once() {
    let disk = SimDisk::new(1);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    let first = spine.keep_artifact(ArtifactFile::GitDiff, PATCH).unwrap();
    let want = KeptArtifact {
        artifact_path: format!("artifacts/git_diff-{}.patch", sha256(PATCH)),
        sha256: sha256(PATCH),
    };
    assert_eq!(first, want);
    let path = dir().below(&first.artifact_path);
    let inode = |disk: &SimDisk| steno_disk::Disk::identity(disk, &path).unwrap().unwrap().inode;
    let before = inode(&disk);
    drop(spine);
    let again = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    assert_eq!(again.keep_artifact(ArtifactFile::GitDiff, PATCH).unwrap(), first);
    assert_eq!((inode(&disk), kept(&disk).len()), (before, 1));
    let other = again.keep_artifact(ArtifactFile::ShellSnapshot, b"").unwrap();
    assert!(other.artifact_path.starts_with("artifacts/shell_snapshot-e3b0c442"), "{other:?}");
    again.close().unwrap();
    assert!(matches!(again.keep_artifact(ArtifactFile::GitDiff, PATCH), Err(Error::Closed)));
}

#[test]
fn artifact_with_other_content_is_not_overwritten() {
    let disk = SimDisk::new(1);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    let path = dir().below(spine.keep_artifact(ArtifactFile::GitDiff, PATCH).unwrap().artifact_path);
    for other in [&b""[..], b"other", &[PATCH, b"x"].concat()] {
        disk.tamper(&path, other);
        let refused = spine.keep_artifact(ArtifactFile::GitDiff, PATCH);
        assert!(matches!(refused, Err(Error::SealBroken { .. })), "{refused:?}");
        assert_eq!(disk.content(&path).unwrap(), other);
    }
    let long = vec![0; ARTIFACT_BYTES_MAX + 1];
    assert!(matches!(spine.keep_artifact(ArtifactFile::GitDiff, &long), Err(Error::TooLong { .. })));
}

/// Keeps two artifacts with a record for each; returns the acknowledged artifacts, the number of acknowledged records,
/// and the writer if it is still open.
fn write(disk: &SimDisk) -> (Vec<KeptArtifact>, u64, Option<SpineWriter>) {
    let Ok(spine) = journal_on(disk).and_then(|journal| journal.spine(&thread(), SMALL)) else {
        return (Vec::new(), 0, None);
    };
    let (mut all, mut records) = (Vec::new(), 0);
    for bytes in [PATCH, b"another"] {
        let Ok(kept) = spine.keep_artifact(ArtifactFile::GitDiff, bytes) else {
            return (all, records, Some(spine));
        };
        let payload = format!(
            r#"{{"kind":"git_diff","base_sha":"a","artifact_path":"{}","sha256":"{}"}}"#,
            kept.artifact_path, kept.sha256
        );
        all.push(kept);
        if spine.record(&draft(SpineType::ArtifactRef, &payload), Level::Synced).is_err() {
            return (all, records, Some(spine));
        }
        records += 1;
    }
    spine.close().ok();
    (all, records, None)
}

#[test]
fn kill_in_any_call_leaves_whole_artifacts_for_every_record() {
    let calls = {
        let disk = SimDisk::new(1);
        write(&disk);
        disk.calls()
    };
    let mut refused = 0;
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = SimDisk::new(call);
            disk.plan(Fault::DieAt { call });
            let (acknowledged, records, held) = write(&disk);
            assert_eq!(disk.fired(), 1, "call {call} of {calls}");
            let disk = disk.die(death);
            drop(held);
            for (name, bytes) in kept(&disk) {
                assert!(name.contains(&sha256(&bytes)), "call {call}, {death:?}: {name} is torn");
            }
            for kept in &acknowledged {
                let found = disk.content(&dir().below(&kept.artifact_path));
                let found = found.map(|bytes| sha256(&bytes));
                assert_eq!(found.as_ref(), Some(&kept.sha256), "call {call}, {death:?}");
            }
            let Ok(store) = Store::open(Arc::new(disk.clone())) else { continue };
            let report = validate_spine(&store, &thread()).unwrap();
            let is_absent = report.findings.iter().any(|finding| finding.rule == Rule::ArtifactMissing);
            assert!(!is_absent, "call {call}, {death:?}: {:?}", report.findings);
            match journal_on(&disk).and_then(|journal| repair_spine(journal.store(), &thread(), clock())) {
                Ok((report, _)) if report.is_valid() => assert!(report.records >= records, "call {call}"),
                // Unsynced sectors may leave a hole before a good line, and a kill at the start may leave no store.
                Ok(_) if death == Death::PowerCut => refused += 1,
                Err(_) if acknowledged.is_empty() => refused += 1,
                Ok((report, _)) => panic!("call {call}: {:?}", report.findings),
                Err(error) => panic!("call {call}, {death:?}: {error}"),
            }
            if death == Death::Kill && records > 0 {
                let (again, ..) = write(&disk);
                assert_eq!(again.len(), 2, "call {call}: a resumed session keeps them anew");
            }
        }
    }
    assert!(refused < calls / 4, "{refused} of {calls}");
}

#[test]
fn failed_write_of_an_artifact_is_not_acknowledged() {
    const EIO: i32 = 5;
    for (kind, nth) in [(Call::Sync, 1), (Call::SyncDir, 1), (Call::Rename, 1), (Call::Write, 1)] {
        let disk = SimDisk::new(1);
        let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
        disk.plan(Fault::Fail { kind, nth, error: EIO });
        assert!(spine.keep_artifact(ArtifactFile::GitDiff, PATCH).is_err(), "{kind:?}");
        assert_eq!(disk.fired(), 1);
    }
}

#[test]
fn spine_reader_reads_all_segments_up_to_a_torn_end() {
    let disk = spine_on_disk();
    let read = || {
        let mut reader = SpineReader::new(Arc::new(disk.clone()), dir());
        let mut seqs = Vec::new();
        loop {
            match reader.read_next() {
                Ok(Some(record)) => seqs.push(record.seq.get()),
                Ok(None) => return Ok(seqs),
                Err(error) => return Err((seqs, error)),
            }
        }
    };
    assert_eq!(read().unwrap(), (1..=8).collect::<Vec<_>>());
    let last = dir().below(records(2));
    let whole = disk.content(&last).unwrap();
    disk.tamper(&last, &[&whole[..], b"{\"sche"].concat());
    assert_eq!(read().unwrap().len(), 8);
    disk.tamper(&last, &[b"{\"sche\n", &whole[..]].concat());
    let Err((seqs, Error::Damaged { path, offset: 0, .. })) = read() else { panic!("it was read") };
    assert_eq!((seqs.len(), path), (6, last));
}

#[test]
fn look_at_spine_returns_its_state() {
    let disk = spine_on_disk();
    let overview = || spine_overview(&Store::open(Arc::new(disk.clone())).unwrap(), &thread()).unwrap();
    let good = overview();
    assert_eq!((good.segments, good.sealed, good.records), (3, 3, 8));
    assert_eq!(good.state, SpineState::Sealed);
    assert_eq!(Store::open(Arc::new(disk.clone())).unwrap().spines().unwrap(), [thread()]);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    assert_eq!(overview().state, SpineState::Recording);
    drop(spine);
    let meta = dir().below(steno_testkit::sample_spine::meta(2));
    let text = disk.content(&meta).unwrap();
    disk.delete(&meta);
    assert_eq!((overview().state, overview().records), (SpineState::Unsealed, 8));
    disk.tamper(&meta, b"{");
    assert_eq!(overview().state, SpineState::Damaged);
    disk.tamper(&meta, &text);
    assert_eq!(overview(), good);
    disk.delete(&dir().below(records(1)));
    assert_eq!(overview().state, SpineState::Damaged);
}

/// An artifact is written before its record, so a check that reads the record finds the artifact.
#[test]
fn artifact_added_during_a_check_is_not_reported_missing() {
    let disk = SimDisk::new(1);
    let spine = journal_on(&disk).unwrap().spine(&thread(), SMALL).unwrap();
    for _ in 0..=SMALL.records_max {
        spine.record(&draft(SpineType::SessionMeta, r#"{"id":"thread_123"}"#), Level::Synced).unwrap();
    }
    let watched = WatchedDisk::new(&disk);
    let spine = Mutex::new(Some(spine));
    watched.set_hook(move |doing, path| {
        // The next segment is read after this one.
        let is_segment = doing == Doing::Look && path.as_str().ends_with("segment-000.jsonl");
        if let Some(spine) = spine.lock().unwrap().take_if(|_| is_segment) {
            let kept = spine.keep_artifact(ArtifactFile::GitDiff, PATCH).unwrap();
            let payload = format!(
                r#"{{"kind":"git_diff","base_sha":"abc","artifact_path":"{}","sha256":"{}"}}"#,
                kept.artifact_path, kept.sha256
            );
            spine.record(&draft(SpineType::ArtifactRef, &payload), Level::Synced).unwrap();
        }
        Ok(())
    });
    let report = validate_spine(&Store::open(Arc::new(watched)).unwrap(), &thread()).unwrap();
    assert_eq!((report.errors, report.records), (0, SMALL.records_max + 2), "{:?}", report.findings);
}
