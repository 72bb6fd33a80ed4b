//! What a spine holds is read alike wherever it lies, and artifacts only as records name them.

use std::sync::Arc;

use steno_disk::RealDisk;
use steno_model::{SpineRecord, SpineType, Word};
use steno_spine::{Artifacts, Snapshots, TarWriter, read_archive, read_directory};

use crate::kit::{Files, archive_of, bundle_files, disk_of, spine_files};

/// An archive of files, the last first.
fn reversed(files: &Files) -> Vec<u8> {
    use std::io::Write as _;
    let mut tar = TarWriter::new(Vec::new());
    for (name, bytes) in files.iter().rev() {
        tar.begin(name, bytes.len() as u64).unwrap();
        tar.write_all(bytes).unwrap();
    }
    tar.finish().unwrap()
}

/// Every record, and for each artifact that one names what is read of it.
fn read(read: impl FnOnce(&mut dyn FnMut(SpineRecord)) -> Artifacts) -> (Vec<String>, Vec<Option<Vec<u8>>>) {
    let mut records = Vec::new();
    let artifacts = read(&mut |record| records.push(record));
    let named = records.iter().filter(|record| record.record_type == Word::Known(SpineType::ArtifactRef));
    let contents = named.filter_map(|record| {
        let payload: serde_json::Value = record.payload.read().unwrap();
        let (path, sha256) = (payload["artifact_path"].as_str()?, payload["sha256"].as_str()?);
        assert_eq!(artifacts.read(path, &"0".repeat(64)), None, "another hash");
        assert_eq!(artifacts.read(&path.replace("artifacts/", "artifacts/../artifacts/"), sha256), None);
        assert_eq!(artifacts.read("bundle.json", sha256), None);
        Some(artifacts.read(path, sha256))
    });
    let contents = contents.collect();
    (records.iter().map(SpineRecord::to_line).collect(), contents)
}

#[test]
fn a_spine_is_read_alike_wherever_it_lies_and_in_whatever_order() {
    let (spine, bundle) = (spine_files(), bundle_files(Snapshots::Whole));
    assert!(bundle.contains_key("spine/segment-001.jsonl"), "more than one");
    let want = read(|each| read_directory(Arc::new(disk_of(&spine)), each).unwrap());
    assert!(want.0.len() > 3 && want.1.len() > 1, "{want:?}");
    assert!(want.1.iter().all(Option::is_some));
    assert_eq!(want, read(|each| read_directory(Arc::new(disk_of(&bundle)), each).unwrap()));
    assert_eq!(want, read(|each| read_archive(&archive_of(&bundle)[..], each).unwrap()));
    assert_eq!(want, read(|each| read_archive(&reversed(&bundle)[..], each).unwrap()));
}

#[test]
fn an_artifact_that_is_not_what_its_record_says_is_none() {
    let mut files = bundle_files(Snapshots::Whole);
    let artifact = files.iter_mut().find(|(name, _)| name.starts_with("artifacts/")).unwrap();
    artifact.1.push(b'x');
    let (_, on_disk) = read(|each| read_directory(Arc::new(disk_of(&files)), each).unwrap());
    let (_, in_archive) = read(|each| read_archive(&archive_of(&files)[..], each).unwrap());
    assert_eq!(on_disk, in_archive);
    assert_eq!(on_disk.iter().filter(|found| found.is_none()).count(), 1);
}

#[test]
fn an_artifact_is_never_read_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let files = bundle_files(Snapshots::Whole);
    for (name, bytes) in &files {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }
    let artifact = files.keys().find(|name| name.starts_with("artifacts/")).unwrap();
    let (path, elsewhere) = (dir.path().join(artifact), dir.path().join("elsewhere"));
    std::fs::rename(&path, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    let disk = RealDisk::open(dir.path()).unwrap().unwrap();
    let (_, found) = read(|each| read_directory(Arc::new(disk), each).unwrap());
    assert_eq!(found.iter().filter(|found| found.is_none()).count(), 1);
}
