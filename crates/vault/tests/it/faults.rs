//! Full disks, failing disks, files that change while they are written: a clear error, and nothing lost.

use std::sync::Arc;

use steno_disk::StorePath;
use steno_testkit::dice::Dice;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};
use steno_vault::{Error, Remainder, Vault, VaultFile};

use crate::kit::{NOW, cursor, disk, files, id, info, read, session, small_vault, vault, write};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

fn manifest_path(name: &str) -> StorePath {
    VaultFile::Manifest(id(name)).path()
}

/// Appends to a file directly, without the vault.
fn append(disk: &SimDisk, path: &StorePath, bytes: &[u8]) {
    let content = disk.content(path).unwrap();
    disk.tamper(path, &[&content[..], bytes].concat());
}

#[test]
fn full_disk_loses_nothing_and_a_retry_succeeds() {
    let mut refused = 0;
    for room in (0..60_000).step_by(977) {
        let disk = disk(room);
        let vault = small_vault(&disk).unwrap();
        let (first, second) = (session(1, 3_000, "s1"), session(2, 30_000, "s1"));
        let mut writer = write(&vault, "a");
        writer.append(&first).unwrap();
        writer.commit(Remainder::InTail).unwrap();
        let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
        disk.set_room(Some(used as u64 + room));
        let mut retry = |mut work: Box<dyn FnMut() -> Result<(), Error> + '_>| {
            while let Err(error) = work() {
                assert!(matches!(error, Error::NoRoom { .. }), "{error}");
                refused += 1;
                disk.set_room(None);
            }
        };
        for piece in second.chunks(7_000) {
            // The bytes were taken all the same.
            writer.append(piece).ok();
            retry(Box::new(|| writer.commit(Remainder::InTail)));
        }
        retry(Box::new(|| writer.begin_generation("rewritten", NOW)));
        retry(Box::new(|| writer.append_late(0, 33_000, b"late")));
        writer.append(b"new").ok();
        retry(Box::new(|| writer.save_state(Some(cursor("1")), None, NOW, Remainder::InChunks)));
        drop(writer);
        let disk = disk.die(Death::PowerCut);
        let vault = small_vault(&disk).unwrap();
        assert!(read(&vault, "a", 0) == [&first[..], &second, b"late"].concat(), "with room for {room}");
        assert!(read(&vault, "a", 1) == b"new");
    }
    assert!(refused > 40, "{refused}");
}

#[test]
fn failed_pack_creation_leaves_no_files() {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    let mut writer = write(&vault, "a");
    writer.append(b"some bytes").unwrap();
    for _ in 0..3 {
        disk.plan(Fault::Fail { kind: Call::Write, nth: 1, error: ENOSPC });
        assert!(matches!(writer.commit(Remainder::InChunks), Err(Error::NoRoom { .. })));
    }
    assert_eq!(files(&disk, "vault/packs/").len(), 0);
    assert_eq!(files(&disk, "locks/pack-").len(), 0);
    writer.commit(Remainder::InChunks).unwrap();
    assert_eq!(read(&vault, "a", 0), b"some bytes");
}

#[test]
fn torn_line_after_a_saved_state_is_harmless() {
    for torn in
        [&b"{\"chunks\":{\"gener"[..], b"{\"chunks\":\0\0\0\0", b"\0\0\0\0\n", b"{\"chunks\":\0\0\"}\n"]
    {
        let disk = disk(1);
        let vault = vault(&disk);
        let mut writer = write(&vault, "a");
        writer.append(b"first").unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
        drop(writer);
        append(&disk, &manifest_path("a"), torn);
        for piece in ["-second", "-third"] {
            let mut writer = write(&vault, "a");
            writer.append(piece.as_bytes()).unwrap();
            writer.commit(Remainder::InChunks).unwrap();
        }
        assert_eq!(read(&vault, "a", 0), b"first-second-third");
    }
}

#[test]
fn unsynced_bytes_of_a_previous_owner_are_not_used() {
    // Each sync of the first owner's last step fails in turn; the second owner sees what the disk does not have.
    let mut fired = 0;
    for nth in 1..8 {
        let disk = disk(nth);
        let vault = small_vault(&disk).unwrap();
        let mut writer = write(&vault, "a");
        writer.append(b"one-").unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
        disk.plan(Fault::Fail { kind: Call::Sync, nth, error: EIO });
        writer.append(b"two-").unwrap();
        let saved = writer.save_state(None, None, NOW, Remainder::InChunks).is_ok();
        drop(writer);
        let mut writer = write(&vault, "a");
        let known = if saved { "one-two-" } else { &"one-two-"[..usize::try_from(writer.len()).unwrap()] };
        writer.append(b"three").unwrap();
        if writer.commit(Remainder::InTail).is_err() {
            continue;
        }
        fired += disk.fired();
        drop(writer);
        let disk = disk.die(Death::PowerCut);
        let found = read(&small_vault(&disk).unwrap(), "a", 0);
        assert_eq!(String::from_utf8_lossy(&found), format!("{known}three"), "sync {nth}");
    }
    assert!(fired >= 2, "{fired}");
}

#[test]
fn chunks_lost_in_a_shared_sync_are_not_named() {
    let disk = disk(3);
    let vault = small_vault(&disk).unwrap();
    let content = session(1, 40_000, "s1");
    let (mut one, mut other, mut third) = (write(&vault, "a"), write(&vault, "b"), write(&vault, "c"));
    one.append(&content[..18_000]).unwrap();
    // The same bytes, which are not stored twice, and others.
    other.append(&content[..18_000]).unwrap();
    third.append(&content[20_000..]).unwrap();
    disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: EIO });
    assert!(matches!(one.commit(Remainder::InTail), Err(Error::NotSynced { .. })));
    assert!(matches!(other.commit(Remainder::InTail), Err(Error::NotSynced { .. })));
    assert!(matches!(third.commit(Remainder::InTail), Err(Error::NotSynced { .. })));
    assert_eq!(disk.fired(), 1);
    drop((one, other, third));
    // After reopening, each continues in a new pack.
    for name in ["a", "b", "c"] {
        let mut writer = write(&vault, name);
        let known = usize::try_from(writer.len()).unwrap();
        writer.append(&content[known..]).unwrap();
        writer.commit(Remainder::InChunks).unwrap();
    }
    let disk = disk.die(Death::PowerCut);
    let vault = small_vault(&disk).unwrap();
    assert!(["a", "b", "c"].iter().all(|name| read(&vault, name, 0) == content));
}

#[test]
fn lost_chunks_stay_invalid_even_if_a_delta_needs_them() {
    let content = session(1, 20_000, "first-session");
    let fork =
        String::from_utf8(content.clone()).unwrap().replace("first-session", "other-session").into_bytes();
    // Which pack is read first is random.
    for seed in 0..12 {
        let disk = disk(seed);
        let vault = small_vault(&disk).unwrap();
        let (mut one, mut other) = (write(&vault, "a"), write(&vault, "b"));
        one.append(&content).unwrap();
        other.append(&fork).unwrap();
        disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: EIO });
        assert!(one.commit(Remainder::InChunks).is_err() && other.commit(Remainder::InChunks).is_err());
        drop((one, other));
        // The fork is stored again without a base. The page cache still shows it as a delta of the lost chunk.
        let mut other = write(&vault, "b");
        other.append(&fork).unwrap();
        other.commit(Remainder::InChunks).unwrap();
        drop((other, vault));
        let vault = small_vault(&disk).unwrap();
        let mut one = write(&vault, "a");
        one.append(&content).unwrap();
        one.commit(Remainder::InChunks).unwrap();
        drop((one, vault));
        let vault = small_vault(&disk.die(Death::PowerCut)).unwrap();
        assert!(read(&vault, "a", 0) == content && read(&vault, "b", 0) == fork, "seed {seed}");
    }
}

#[test]
fn deleted_and_replaced_files_are_noticed() {
    let (manifest, tail) = (manifest_path("a"), VaultFile::Tail(id("a")).path());
    let cases = [(Remainder::InChunks, &manifest), (Remainder::InTail, &tail)];
    for ((keep, path), is_replaced) in cases.into_iter().flat_map(|case| [(case, false), (case, true)]) {
        let disk = disk(1);
        let vault = vault(&disk);
        let mut writer = write(&vault, "a");
        writer.append(b"one").unwrap();
        writer.commit(Remainder::InTail).unwrap();
        disk.delete(path);
        if is_replaced {
            disk.tamper(path, b"something else");
        }
        writer.append(b"two").unwrap();
        assert!(matches!(writer.commit(keep), Err(Error::Vanished { .. })));
        assert!(matches!(writer.commit(keep), Err(Error::Poisoned { .. })));
    }
    let disk = disk(1);
    let vault = vault(&disk);
    let mut writer = write(&vault, "a");
    writer.append(b"one").unwrap();
    writer.commit(Remainder::InChunks).unwrap();
    let pack = files(&disk, "vault/packs/").remove(0);
    disk.delete(&StorePath::new(pack));
    writer.append(b"two").unwrap();
    assert!(matches!(writer.commit(Remainder::InChunks), Err(Error::Vanished { .. })));
}

#[test]
fn damaged_manifest_stops_only_its_source() {
    for change in [|text: &mut Vec<u8>| text[30] ^= 1, |text: &mut Vec<u8>| text.clear()] {
        let disk = disk(1);
        let before = vault(&disk);
        for name in ["a", "b"] {
            let mut writer = write(&before, name);
            writer.append(name.repeat(50_000).as_bytes()).unwrap();
            writer.commit(Remainder::InChunks).unwrap();
        }
        // The pack has no index file, so the next process has to read all manifests.
        let disk = disk.die(Death::Kill);
        let mut text = disk.content(&manifest_path("a")).unwrap();
        change(&mut text);
        disk.tamper(&manifest_path("a"), &text);
        let vault = vault(&disk);
        assert!(matches!(vault.manifest(id("a")), Err(Error::Damaged { .. })));
        assert!(matches!(vault.write(id("a"), &info("a"), NOW), Err(Error::Damaged { .. })));
        let mut writer = write(&vault, "b");
        writer.append(b"more").unwrap();
        writer.commit(Remainder::InChunks).unwrap();
        assert!(read(&vault, "b", 0) == format!("{}more", "b".repeat(50_000)).as_bytes());
        assert!(disk.content(&manifest_path("a")).unwrap() == text, "what is damaged stays as it is");
    }
}

#[test]
fn damaged_tail_is_reported_and_not_overwritten() {
    let disk = disk(1);
    let vault = vault(&disk);
    let mut writer = write(&vault, "a");
    writer.append(b"one").unwrap();
    writer.commit(Remainder::InTail).unwrap();
    writer.append(b"two").unwrap();
    writer.commit(Remainder::InTail).unwrap();
    drop(writer);
    let path = VaultFile::Tail(id("a")).path();
    let mut bytes = disk.content(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    disk.tamper(&path, &bytes);
    assert!(matches!(vault.write(id("a"), &info("a"), NOW), Err(Error::Damaged { .. })));
    let manifest = vault.manifest(id("a")).unwrap().unwrap();
    let mut found = Vec::new();
    let keep = |_, piece: &[u8]| {
        found.extend_from_slice(piece);
        true
    };
    assert!(matches!(vault.read(&manifest, 0, 0, keep), Err(Error::Damaged { .. })));
    assert_eq!(found, b"one", "what comes before is handed over");
    assert!(disk.content(&path).unwrap() == bytes);
}

#[test]
fn lines_of_unknown_kinds_are_kept_and_newer_versions_refused() {
    let disk = disk(1);
    let vault = vault(&disk);
    let mut writer = write(&vault, "a");
    writer.append(b"one").unwrap();
    writer.commit(Remainder::InChunks).unwrap();
    drop(writer);
    append(&disk, &manifest_path("a"), checked("{\"colour\":{\"is\":\"blue\"}").as_bytes());
    let mut writer = write(&vault, "a");
    writer.append(b"two").unwrap();
    writer.commit(Remainder::InChunks).unwrap();
    drop(writer);
    let text = String::from_utf8(disk.content(&manifest_path("a")).unwrap()).unwrap();
    assert!(text.contains("\"colour\":{\"is\":\"blue\"}"), "{text}");
    assert_eq!(read(&vault, "a", 0), b"onetwo");
    append(&disk, &manifest_path("a"), checked("{\"chunks\":{\"colour\":1}").as_bytes());
    assert!(matches!(vault.manifest(id("a")), Err(Error::Damaged { .. })), "a known kind without its fields");
    let newer = text.replacen("\"version\":2", "\"version\":3", 1);
    let first = newer.lines().next().unwrap();
    let (object, _) = first.rsplit_once(",\"crc\"").unwrap();
    disk.tamper(&manifest_path("a"), checked(object).as_bytes());
    assert!(matches!(vault.manifest(id("a")), Err(Error::TooNew { found: 3, .. })));
    assert!(matches!(vault.write(id("a"), &info("a"), NOW), Err(Error::TooNew { .. })));
}

/// Adds checksum and end to an object that lacks its last brace.
fn checked(object: &str) -> String {
    format!("{object},\"crc\":\"{:08x}\"}}\n", crc32fast::hash(object.as_bytes()))
}

#[test]
fn index_files_can_be_deleted_without_loss() {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    let content = session(1, 90_000, "s1");
    let mut writer = write(&vault, "a");
    writer.append(&content).unwrap();
    writer.commit(Remainder::InChunks).unwrap();
    let fork = String::from_utf8(content.clone()).unwrap().replace("s1", "s2").into_bytes();
    let mut other = write(&vault, "b");
    other.append(&fork).unwrap();
    other.commit(Remainder::InChunks).unwrap();
    vault.close_pack().unwrap();
    let is_beside = |path: &String| matches!(VaultFile::parse(path), Some(VaultFile::PackIndex(_)));
    let beside: Vec<String> = files(&disk, "vault/packs/").into_iter().filter(is_beside).collect();
    assert!(beside.len() > 1, "{beside:?}");
    drop((writer, other));
    let mut dice = Dice::new(1);
    for name in &beside {
        let path = StorePath::new(name.clone());
        let bytes = disk.content(&path).unwrap();
        if dice.once_in(2) {
            disk.delete(&path);
        } else {
            disk.tamper(&path, &bytes[..bytes.len() / 2]);
        }
        let reader = Vault::open(Arc::new(disk.clone()));
        assert!(read(&reader, "a", 0) == content && read(&reader, "b", 0) == fork, "without `{name}`");
        let again = small_vault(&disk).unwrap();
        assert!(disk.content(&path).unwrap() == bytes, "`{name}` is made again");
        assert!(read(&again, "a", 0) == content && read(&again, "b", 0) == fork);
    }
}

#[test]
fn empty_source_exists_after_saving_its_state() {
    let disk = disk(1);
    let vault = vault(&disk);
    let mut writer = write(&vault, "a");
    writer.commit(Remainder::InChunks).unwrap();
    assert!(vault.manifest(id("a")).unwrap().is_none(), "nothing is worth a file yet");
    writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    drop(writer);
    let disk = disk.die(Death::PowerCut);
    let vault = crate::kit::vault(&disk);
    assert_eq!(read(&vault, "a", 0), b"");
    let mut writer = write(&vault, "a");
    assert!(writer.is_empty());
    writer.begin_generation("rewritten", NOW).unwrap();
    writer.begin_generation("rewritten", NOW).unwrap();
    assert_eq!(vault.manifest(id("a")).unwrap().unwrap().generations.len(), 3);
}

#[test]
fn saving_states_does_not_grow_the_manifest() {
    let disk = disk(1);
    let vault = vault(&disk);
    let mut writer = write(&vault, "a");
    for number in 0..500 {
        writer.append(b"x").unwrap();
        writer.save_state(Some(cursor(&number.to_string())), None, NOW, Remainder::InTail).unwrap();
    }
    let lines = disk.content(&manifest_path("a")).unwrap().split(|byte| *byte == b'\n').count();
    assert!(lines < 100, "{lines}");
    assert_eq!(read(&vault, "a", 0), vec![b'x'; 500]);
}
