//! Files of every format version that was ever written: readable in the tree, and continued in a copy.
//!
//! `fixtures/vault-v1`, `fixtures/packs-v2` and `fixtures/manifests-v2` are not changed, whatever the code comes to write. `expected` has the bytes
//! that were recorded, by source and generation.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use steno_disk::RealDisk;
use steno_vault::{Reason, Remainder, Sighting, Vault};

use crate::kit::{NOW, id, read, write};

const FIRST: &str = "vault-v1";
/// With deltas of deltas.
const WITH_LINKS: &str = "packs-v2";
/// With the clock's time and the modification time.
const WITH_TIMES: &str = "manifests-v2";

fn fixtures(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Each source and generation with its bytes.
fn expected(name: &str) -> Vec<(String, u32, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(fixtures(name).join("expected")).unwrap() {
        let path = entry.unwrap().path();
        let (name, number) = path.file_name().unwrap().to_str().unwrap().rsplit_once('-').unwrap();
        found.push((name.to_owned(), number.parse().unwrap(), fs::read(&path).unwrap()));
    }
    found.sort();
    found
}

/// A copy to write to.
fn copy(name: &str) -> (tempfile::TempDir, Arc<Vault>) {
    let dir = tempfile::tempdir().unwrap();
    let mut dirs = vec![PathBuf::new()];
    while let Some(below) = dirs.pop() {
        fs::create_dir_all(dir.path().join("store").join(&below)).unwrap();
        for entry in fs::read_dir(fixtures(name).join("store").join(&below)).unwrap() {
            let entry = entry.unwrap();
            let path = below.join(entry.file_name());
            if entry.path().is_dir() {
                dirs.push(path);
            } else {
                fs::copy(entry.path(), dir.path().join("store").join(path)).unwrap();
            }
        }
    }
    fs::create_dir_all(dir.path().join("store/locks")).unwrap();
    let disk = RealDisk::open(&dir.path().join("store")).unwrap().unwrap();
    (dir, Vault::create(Arc::new(disk)).unwrap())
}

#[test]
fn version_1_is_readable() {
    let disk = RealDisk::open(&fixtures(FIRST).join("store")).unwrap().unwrap();
    let vault = Vault::open(Arc::new(disk));
    let expected = expected(FIRST);
    assert_eq!(expected.len(), 4);
    for (name, number, bytes) in expected {
        assert!(read(&vault, &name, number) == bytes, "{name}, generation {number}");
    }
    let verified = vault.verify(|_| ()).unwrap();
    assert_eq!((verified.findings.len(), verified.sources, verified.packs), (0, 3, 2));
    assert!(verified.garbage_bytes > 0 && verified.tail_bytes > 0, "{verified:?}");
    assert!(vault.usage().unwrap().saved_by_delta > 0);
    let tombstones = vault.tombstones().unwrap();
    assert_eq!(tombstones.iter().map(|tombstone| tombstone.source).collect::<Vec<_>>(), [id("gone")]);
    assert_eq!(vault.manifest(id("whole")).unwrap().unwrap().cursor.unwrap().get(), "{\"offset\":3000}");
}

#[test]
fn version_1_can_be_continued() {
    let (_dir, vault) = copy(FIRST);
    let mut writer = write(&vault, "growing");
    writer.append(b"more").unwrap();
    writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    drop(writer);
    vault.forget(&[id("whole")], Reason::Session, NOW).unwrap();
    for (name, number, bytes) in expected(FIRST) {
        match name.as_str() {
            "whole" => assert!(vault.manifest(id("whole")).unwrap().is_none()),
            "growing" => assert!(read(&vault, &name, number) == [&bytes[..], b"more"].concat()),
            _ => assert!(read(&vault, &name, number) == bytes, "{name}, generation {number}"),
        }
    }
    let verified = vault.verify(|_| ()).unwrap();
    assert_eq!((verified.findings.len(), verified.sources, verified.garbage_bytes), (0, 2, 0));
}

#[test]
fn packs_of_version_2_are_read_and_swept() {
    let disk = RealDisk::open(&fixtures(WITH_LINKS).join("store")).unwrap().unwrap();
    let vault = Vault::open(Arc::new(disk));
    let check = |vault: &Vault, left: usize| {
        let expected = expected(WITH_LINKS).into_iter().rev().take(left);
        expected.for_each(|(name, number, bytes)| assert!(read(vault, &name, number) == bytes, "{name}"));
        let verified = vault.verify(|_| ()).unwrap();
        assert_eq!((verified.findings.len(), verified.sources), (0, left));
    };
    check(&vault, 3);
    let (_dir, vault) = copy(WITH_LINKS);
    check(&vault, 3);
    for (left, name) in [(2, "1-first"), (1, "2-alike")] {
        vault.forget(&[id(name)], Reason::Session, NOW).unwrap();
        check(&vault, left);
    }
}

#[test]
fn manifests_of_version_2_have_both_times() {
    let disk = RealDisk::open(&fixtures(WITH_TIMES).join("store")).unwrap().unwrap();
    let vault = Vault::open(Arc::new(disk));
    let seen = |year: u32| Sighting {
        time: Some(NOW.to_owned()),
        modified: Some(format!("{year}-01-01T00:00:00.000Z")),
    };
    let check = |vault: &Vault| {
        let manifest = vault.manifest(id("seen")).unwrap().unwrap();
        let since = manifest.generations.iter().map(|generation| generation.since.clone());
        assert_eq!(
            (manifest.since.clone(), since.collect::<Vec<_>>()),
            (seen(2001), vec![seen(2001), seen(2002)])
        );
        for (name, number, bytes) in expected(WITH_TIMES) {
            assert!(read(vault, &name, number) == bytes, "{name}, generation {number}");
        }
    };
    check(&vault);
    let (_dir, vault) = copy(WITH_TIMES);
    write(&vault, "seen").save_state(None, None, "2027-01-01T00:00:00Z", Remainder::InChunks).unwrap();
    check(&vault);
}

#[test]
fn version_1_times_survive_a_rewrite() {
    let (_dir, vault) = copy(FIRST);
    let since = |name: &str| {
        let manifest = vault.manifest(id(name)).unwrap().unwrap();
        (manifest.since.clone(), manifest.generations[0].since.clone())
    };
    let before = since("whole");
    assert!(before.0.time.is_none() && before.0.modified.is_some(), "{before:?}");
    assert_eq!(before.0, before.1);
    write(&vault, "whole").save_state(None, None, NOW, Remainder::InChunks).unwrap();
    assert_eq!(since("whole"), before);
}
