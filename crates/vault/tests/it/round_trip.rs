//! Bytes round-trip in every generation, and equal bytes are stored once.

use steno_testkit::sim_disk::SimDisk;
use steno_vault::{AdapterProgress, Error, Remainder};

use crate::kit::{NOW, cousin, disk, id, info, read, session, vault, write};
use crate::packs::deltas_of_deltas;

/// How many bytes the packs and tails have.
fn stored(disk: &SimDisk) -> usize {
    let counts = |path: &str| path.starts_with("vault/packs/") || path.starts_with("vault/tails/");
    disk.snapshot().iter().filter(|(path, _)| counts(path)).map(|(_, bytes)| bytes.len()).sum()
}

#[test]
fn bytes_round_trip_in_any_pieces() {
    let content = session(1, 1_500_000, "s1");
    for step in [content.len(), 700_000, 100_000, 9_973] {
        let disk = disk(1);
        let vault = vault(&disk);
        let mut writer = write(&vault, "a");
        for piece in content.chunks(step) {
            writer.append(piece).unwrap();
            writer.commit(Remainder::InTail).unwrap();
            assert_eq!(writer.safe_len(), writer.len());
        }
        assert!(read(&vault, "a", 0) == content, "in steps of {step}, still open");
        writer.save_state(None, None, NOW, Remainder::InTail).unwrap();
        drop(writer);
        assert!(read(&vault, "a", 0) == content, "in steps of {step}, closed");
        let mut writer = write(&vault, "a");
        writer.append(b"more").unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
        assert!(read(&vault, "a", 0) == [&content[..], b"more"].concat(), "in steps of {step}, grown");
    }
}

#[test]
fn reading_starts_at_any_offset() {
    let disk = disk(1);
    let vault = vault(&disk);
    let content = session(2, 400_000, "s1");
    let mut writer = write(&vault, "a");
    writer.append(&content).unwrap();
    writer.commit(Remainder::InTail).unwrap();
    let manifest = vault.manifest(id("a")).unwrap().unwrap();
    assert_eq!(vault.len(&manifest, 0).unwrap(), content.len() as u64);
    for offset in [0, 1, 16_384, 123_457, content.len() - 1, content.len()] {
        let mut bytes = Vec::new();
        let keep = |_, piece: &[u8]| {
            bytes.extend_from_slice(piece);
            true
        };
        vault.read(&manifest, 0, offset as u64, keep).unwrap();
        assert!(bytes == content[offset..], "from {offset}");
    }
}

#[test]
fn every_generation_is_kept() {
    let disk = disk(1);
    let vault = vault(&disk);
    let contents: Vec<Vec<u8>> = (0..5).map(|seed| session(seed, 200_000, "s1")).collect();
    let mut writer = write(&vault, "a");
    for (number, content) in (0..).zip(&contents) {
        if number > 0 {
            writer.begin_generation("rewritten", NOW).unwrap();
        }
        assert_eq!(writer.generation(), number);
        writer.append(content).unwrap();
    }
    writer.append_late(2, 200_000, b"late").unwrap();
    assert!(matches!(writer.append_late(2, 200_000, b"late"), Err(Error::NoSuchBytes { .. })));
    writer.save_state(None, None, NOW, Remainder::InTail).unwrap();
    for (number, content) in (0..).zip(&contents) {
        let late: &[u8] = if number == 2 { b"late" } else { b"" };
        assert!(read(&vault, "a", number) == [content, late].concat(), "generation {number}");
    }
}

#[test]
fn state_is_kept_with_the_source() {
    let disk = disk(1);
    let vault = vault(&disk);
    let cursor = serde_json::value::RawValue::from_string(r#"{"offset":3}"#.into()).unwrap();
    let runs = vec!["550e8400-e29b-41d4-a716-446655440000".to_owned()];
    let adapted = AdapterProgress {
        generation: 0,
        offset: 3,
        adapter: "claude/1".into(),
        runs,
        started: Some(NOW.into()),
    };
    let mut writer = write(&vault, "a");
    writer.append(b"abc").unwrap();
    writer.save_state(Some(cursor), Some(adapted.clone()), NOW, Remainder::InTail).unwrap();
    drop(writer);
    let manifest = vault.manifest(id("a")).unwrap().unwrap();
    assert_eq!(manifest.cursor.as_ref().map(|cursor| cursor.get()), Some(r#"{"offset":3}"#));
    assert_eq!((manifest.adapted, manifest.info), (Some(adapted), info("a")));
}

#[test]
fn source_has_one_owner() {
    let disk = disk(1);
    let vault = vault(&disk);
    let writer = write(&vault, "a");
    assert!(matches!(vault.write(id("a"), &info("a"), NOW), Err(Error::Locked { .. })));
    drop(writer);
    write(&vault, "a");
}

#[test]
fn copies_and_forks_take_almost_no_space() {
    let disk = disk(1);
    let vault = vault(&disk);
    let content = session(3, 3_000_000, "0b1e8c5e-7d5f-4c39-9d57-2f5b7c8a9e10");
    let fork = String::from_utf8(content.clone()).unwrap();
    let fork = fork.replace("0b1e8c5e-7d5f-4c39-9d57-2f5b7c8a9e10", "f17c2a44-91b0-4f2e-8a3d-6f0c1d2e3f40");
    let keep = |name: &str, content: &[u8]| {
        let before = stored(&disk);
        let mut writer = write(&vault, name);
        writer.append(content).unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
        stored(&disk) - before
    };
    let first = keep("a", &content);
    assert!(first < content.len() / 2, "{first}");
    assert_eq!(keep("copy", &content), 0);
    let more = keep("fork", fork.as_bytes());
    assert!(more < fork.len() / 20, "{more} of {}", fork.len());
    assert!(read(&vault, "copy", 0) == content && read(&vault, "fork", 0) == fork.as_bytes());
    // Also where the original is a delta.
    let alike = cousin(&content, 5);
    let lines = String::from_utf8(alike.clone()).unwrap();
    let renamed = lines.split_inclusive('\n').enumerate().map(|(number, line)| match number % 10 {
        0 => line.replace("0b1e8c5e-7d5f-4c39-9d57-2f5b7c8a9e10", "c3d8e5f0-2a4b-4f6e-9b1c-7d8e9fa0b1c2"),
        _ => line.to_owned(),
    });
    let alike_fork: String = renamed.collect();
    let once = keep("alike", &alike);
    let twice = keep("alike-fork", alike_fork.as_bytes());
    assert!(once < first / 2 && twice < alike.len() / 20, "{once}, {twice} of {}", alike.len());
    assert!(deltas_of_deltas(&disk) > 10, "{}", deltas_of_deltas(&disk));
    assert!(read(&vault, "alike", 0) == alike && read(&vault, "alike-fork", 0) == alike_fork.as_bytes());
    // The same from another process, which only has what is on the disk.
    vault.close_pack().unwrap();
    let other = crate::kit::vault(&disk);
    let before = stored(&disk);
    let mut writer = write(&other, "late copy");
    writer.append(&content).unwrap();
    writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    assert_eq!(stored(&disk) - before, 0);
}
