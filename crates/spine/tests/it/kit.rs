//! The sample spine as files, as a bundle and as a tar file, and ways to damage it.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_spine::{
    BundleContent, BundleWish, RolloutFile, Snapshots, TarWriter, plan_bundle, validate_spine,
};
use steno_testkit::sample_spine::{meta, records, spine_on_disk, thread};
use steno_testkit::sim_disk::SimDisk;

pub const ROLLOUT: &[u8] = b"{\"type\":\"session_meta\"}\n";
pub const ROLLOUT_FILE: &str = "rollout/rollout-2026-06-08T08-14-42-thread_123.jsonl";

/// The files of a spine or a bundle, by name.
pub type Files = std::collections::BTreeMap<String, Vec<u8>>;

/// Returns the files of the valid spine.
pub fn spine_files() -> Files {
    let below = |(name, bytes): (String, Vec<u8>)| {
        name.strip_prefix("spine/thread_123/").map(|name| (name.to_owned(), bytes.clone()))
    };
    spine_on_disk().snapshot().into_iter().filter_map(below).collect()
}

/// Returns the files of its bundle.
pub fn bundle_files(snapshots: Snapshots) -> Files {
    let disk = spine_on_disk();
    let store = steno_journal::Store::open(Arc::new(disk.clone())).unwrap();
    let report = validate_spine(&store, &thread()).unwrap();
    let rollout = RolloutFile {
        file: ROLLOUT_FILE.to_owned(),
        path: "/h/r.jsonl".to_owned(),
        thread_id: None,
        bytes: ROLLOUT.len() as u64,
        sha256: sha256(ROLLOUT),
    };
    let wish = BundleWish {
        rollouts: vec![rollout],
        rollout_path: Some("/h/r.jsonl".into()),
        snapshots,
        left_out: Vec::new(),
    };
    let entries = plan_bundle(&thread(), &report, wish).unwrap().entries;
    let names: Vec<_> = entries.iter().map(|entry| entry.name.clone()).collect();
    assert!(names.is_sorted(), "{names:?}");
    let file = |content| match content {
        BundleContent::Bytes(bytes) => bytes,
        BundleContent::Stored(path) => disk.content(&path).unwrap(),
        BundleContent::Rollout(_) => ROLLOUT.to_vec(),
    };
    let files = entries.into_iter().map(|entry| {
        let bytes = file(entry.content);
        assert_eq!(bytes.len() as u64, entry.size_bytes, "{}", entry.name);
        (entry.name, bytes)
    });
    files.collect()
}

/// Returns a disk with only these files.
pub fn disk_of(files: &Files) -> SimDisk {
    let disk = SimDisk::new(1);
    for (name, bytes) in files {
        disk.tamper(&StorePath::new(name.clone()), bytes);
    }
    disk
}

/// Returns a tar file of files in one directory.
pub fn tar_of(files: &Files) -> Vec<u8> {
    use std::io::Write as _;
    let mut tar = TarWriter::new(Vec::new());
    for (name, bytes) in files {
        tar.begin(&format!("bundle/{name}"), bytes.len() as u64).unwrap();
        tar.write_all(bytes).unwrap();
    }
    tar.finish().unwrap()
}

/// Replaces text in a file; fails if it does not occur.
#[track_caller]
pub fn replace(files: &mut Files, name: &str, from: &str, to: &str) {
    let text = String::from_utf8(files[name].clone()).unwrap();
    assert!(text.contains(from), "`{from}` in {text}");
    files.insert(name.to_owned(), text.replacen(from, to, 1).into_bytes());
}

/// Writes the meta file of a segment again, so that it matches the current bytes.
pub fn reseal(files: &mut Files, dir: &str, index: u32) {
    let bytes = files[&format!("{dir}{}", records(index))].clone();
    let name = format!("{dir}{}", meta(index));
    let mut about: serde_json::Value = serde_json::from_slice(&files[&name]).unwrap();
    let seqs: Vec<u64> = bytes
        .split(|byte| *byte == b'\n')
        .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok()?["seq"].as_u64())
        .collect();
    about["bytes"] = bytes.len().into();
    about["sha256"] = sha256(&bytes).into();
    about["record_count"] = newlines(&bytes).into();
    about["min_seq"] = seqs.iter().min().copied().unwrap_or(0).into();
    about["max_seq"] = seqs.iter().max().copied().unwrap_or(0).into();
    files.insert(name, about.to_string().into_bytes());
}

pub fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    data_encoding::HEXLOWER.encode(&Sha256::digest(bytes))
}

/// Counts the lines of a file.
pub fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}
