//! A spine gives the same contents as a directory, a bundle or a tar file, and artifacts are read only by record.

use std::sync::Arc;

use steno_disk::RealDisk;
use steno_model::{SpineRecord, SpineType, Word};
use steno_spine::{Artifacts, Snapshots, TarWriter, read_directory, read_tar};

use crate::kit::{Files, bundle_files, disk_of, spine_files, tar_of};

/// Returns a tar file of files in reverse order.
fn reversed(files: &Files) -> Vec<u8> {
    use std::io::Write as _;
    let mut tar = TarWriter::new(Vec::new());
    for (name, bytes) in files.iter().rev() {
        tar.begin(name, bytes.len() as u64).unwrap();
        tar.write_all(bytes).unwrap();
    }
    tar.finish().unwrap()
}

/// Returns every record, and the content of each artifact that a record names.
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
fn spine_bundle_and_tar_file_give_the_same_contents() {
    let (spine, bundle) = (spine_files(), bundle_files(Snapshots::Whole));
    assert!(bundle.contains_key("spine/segment-001.jsonl"), "more than one");
    let want = read(|each| read_directory(Arc::new(disk_of(&spine)), each).unwrap());
    assert!(want.0.len() > 3 && want.1.len() > 1, "{want:?}");
    assert!(want.1.iter().all(Option::is_some));
    assert_eq!(want, read(|each| read_directory(Arc::new(disk_of(&bundle)), each).unwrap()));
    assert_eq!(want, read(|each| read_tar(&tar_of(&bundle)[..], each).unwrap()));
    assert_eq!(want, read(|each| read_tar(&reversed(&bundle)[..], each).unwrap()));
}

#[test]
fn artifact_with_a_wrong_hash_is_not_read() {
    let mut files = bundle_files(Snapshots::Whole);
    let artifact = files.iter_mut().find(|(name, _)| name.starts_with("artifacts/")).unwrap();
    artifact.1.push(b'x');
    let (_, on_disk) = read(|each| read_directory(Arc::new(disk_of(&files)), each).unwrap());
    let (_, in_tar) = read(|each| read_tar(&tar_of(&files)[..], each).unwrap());
    assert_eq!(on_disk, in_tar);
    assert_eq!(on_disk.iter().filter(|found| found.is_none()).count(), 1);
}

#[test]
fn artifact_is_not_read_through_a_link() {
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
