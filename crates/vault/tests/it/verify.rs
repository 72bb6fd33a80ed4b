//! Every byte that matters is checked, damage is reported with the affected sources, and others stay readable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use steno_disk::StorePath;
use steno_testkit::sim_disk::{Death, Fault, SimDisk};
use steno_vault::{ChunkHash, Error, Limits, Reason, Remainder, SourceId, Vault, VaultFile, VerifyReport};

use crate::kit::{NOW, cousin, disk, files, id, info, read, read_all, session, small_vault, write};
use crate::packs::{Frame, PREAMBLE_BYTES, all_frames, deltas_of_deltas};

const TINY: Limits = Limits { chunk_bytes_max: 1024, pack_bytes_max: 1 << 20 };
const NAMES: [&str; 4] = ["whole", "fork", "growing", "stranger"];

fn tiny_vault(disk: &SimDisk) -> Arc<Vault> {
    Vault::create_with(Arc::new(disk.clone()), TINY).unwrap()
}

fn fork(content: &[u8]) -> Vec<u8> {
    String::from_utf8_lossy(content).replace("first-session", "other-session").into_bytes()
}

fn content(name: &str) -> Vec<u8> {
    let whole = session(1, 3_000, "first-session");
    match name {
        "whole" => whole,
        "fork" => fork(&whole),
        "growing" => session(2, 1_700, "growing"),
        _ => session(3, 900, "stranger"),
    }
}

fn keep(vault: &Arc<Vault>, name: &str, keep: Remainder) {
    let content = content(name);
    let mut writer = write(vault, name);
    writer.append(&content[..content.len() / 2]).unwrap();
    writer.commit(keep).unwrap();
    writer.append(&content[content.len() / 2..]).unwrap();
    writer.save_state(None, None, NOW, keep).unwrap();
}

/// Two closed packs, one of a process that died, garbage in both, a tail, and a tombstone.
fn filled() -> SimDisk {
    let disk = disk(1);
    let vault = tiny_vault(&disk);
    let mut gone = write(&vault, "gone");
    gone.append(b"forgotten").unwrap();
    gone.save_state(None, None, NOW, Remainder::InTail).unwrap();
    drop(gone);
    vault.forget(&[id("gone")], Reason::Session, NOW).unwrap();
    keep(&vault, "whole", Remainder::InChunks);
    abandon(&vault, 30);
    keep(&vault, "fork", Remainder::InChunks);
    vault.close_pack().unwrap();
    keep(&vault, "stranger", Remainder::InChunks);
    abandon(&vault, 31);
    keep(&vault, "growing", Remainder::InTail);
    drop(vault);
    disk
}

/// Leaves chunks that no manifest names.
fn abandon(vault: &Arc<Vault>, seed: u64) {
    let mut writer = write(vault, "abandoned");
    writer.append(&session(seed, 5_000, "abandoned")).unwrap();
}

fn verify(disk: &SimDisk) -> VerifyReport {
    Vault::open(Arc::new(disk.clone())).verify(|_| ()).unwrap()
}

/// The sources that findings touch, and how many findings there are.
fn affected(verified: &VerifyReport) -> (usize, BTreeSet<SourceId>) {
    let sources =
        verified.findings.iter().flat_map(|finding| &finding.affects).map(|affected| affected.source);
    (verified.findings.len(), sources.collect())
}

/// Which sources a chunk's loss affects.
fn needed_by(disk: &SimDisk, frames: &[Frame], names: &[&str]) -> BTreeMap<ChunkHash, BTreeSet<SourceId>> {
    let vault = Vault::open(Arc::new(disk.clone()));
    let mut needed: BTreeMap<ChunkHash, BTreeSet<SourceId>> = BTreeMap::new();
    for name in names {
        let manifest = vault.manifest(id(name)).unwrap().unwrap();
        for chunk in manifest.generations.iter().flat_map(|generation| &generation.chunks) {
            needed.entry(chunk.hash).or_default().insert(id(name));
            let base_of = |hash| frames.iter().find(|frame| frame.hash == hash).and_then(|frame| frame.base);
            for base in std::iter::successors(base_of(chunk.hash), |base| base_of(*base)) {
                needed.entry(base).or_default().insert(id(name));
            }
        }
    }
    needed
}

/// Sources that are not affected read back as they were; the others do not, or only up to what is damaged.
fn check_reading(disk: &SimDisk, affected: &BTreeSet<SourceId>) {
    let vault = Vault::open(Arc::new(disk.clone()));
    for name in NAMES {
        let found = vault.manifest(id(name)).and_then(|manifest| read_all(&vault, &manifest.unwrap(), 0));
        match found {
            Ok(bytes) => assert!(bytes == content(name) && !affected.contains(&id(name)), "{name}"),
            Err(error) => assert!(affected.contains(&id(name)), "{name}: {error}"),
        }
    }
}

#[test]
fn undamaged_vault_has_no_findings() {
    let disk = filled();
    let before = disk.snapshot();
    let mut steps = Vec::new();
    let verified = Vault::open(Arc::new(disk.clone())).verify(|progress| steps.push(progress)).unwrap();
    assert!(disk.snapshot() == before, "who checks changes nothing");
    assert_eq!(affected(&verified), (0, BTreeSet::new()), "{:?}", verified.findings);
    let frames = all_frames(&disk);
    let needed = needed_by(&disk, &frames, &NAMES);
    let len = |frame: &Frame| (frame.header_len + frame.stored.len()) as u64;
    let garbage = frames.iter().filter(|frame| !needed.contains_key(&frame.hash)).map(len).sum::<u64>();
    assert!(garbage > 1_000, "{garbage}");
    assert_eq!((verified.sources, verified.packs, verified.chunks), (4, 2, needed.len()));
    assert_eq!((verified.garbage_bytes, verified.unfinished), (garbage, 0));
    assert_eq!(verified.stored_bytes, frames.iter().map(len).sum::<u64>() + 2 * PREAMBLE_BYTES as u64);
    let last = *steps.last().unwrap();
    assert_eq!(
        (steps.len(), last.bytes_done, last.bytes_total),
        (2, verified.stored_bytes, verified.stored_bytes)
    );
}

#[test]
fn every_flipped_byte_of_a_pack_is_found_with_its_sources() {
    let disk = filled();
    let frames = all_frames(&disk);
    assert!(frames.iter().any(|frame| frame.base.is_some()), "something is stored as different");
    let needed = needed_by(&disk, &frames, &NAMES);
    let (mut found, mut in_garbage) = (0, 0);
    for (path, bytes) in disk.snapshot() {
        if !matches!(VaultFile::parse(&path), Some(VaultFile::Pack(_))) {
            continue;
        }
        let path = StorePath::new(path);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << (at % 8);
            disk.tamper(&path, &flipped);
            let frame = frames.iter().rfind(|frame| frame.path == path.as_str() && frame.offset <= at);
            let want = frame.map(|frame| needed.get(&frame.hash).cloned().unwrap_or_default());
            let verified = verify(&disk);
            let (findings, sources) = affected(&verified);
            match want {
                // The preamble: everything can still be read.
                None => assert_eq!((findings, sources.len()), (1, 0), "{path} at {at}"),
                Some(want) if want.is_empty() => {
                    assert_eq!(findings, 0, "{path} at {at}");
                    in_garbage += 1;
                }
                Some(want) => {
                    assert!(findings == 1 && sources == want, "{path} at {at}: {:?}", verified.findings);
                    found += 1;
                }
            }
            if at % 11 == 0 {
                check_reading(&disk, &affected(&verified).1);
            }
        }
        disk.tamper(&path, &bytes);
    }
    assert!(found > 3_000 && in_garbage > 1_000, "{found} {in_garbage}");
}

#[test]
fn damage_affects_deltas_of_deltas() {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    let first = session(1, 20_000, "first-session");
    let alike = cousin(&first, 4);
    let names = ["first", "alike", "alike-fork"];
    for (name, content) in names.into_iter().zip([&first, &alike, &fork(&alike)]) {
        let mut writer = write(&vault, name);
        writer.append(content).unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    }
    vault.close_pack().unwrap();
    drop(vault);
    let frames = all_frames(&disk);
    assert!(deltas_of_deltas(&disk) > 1, "{}", deltas_of_deltas(&disk));
    let needed = needed_by(&disk, &frames, &names);
    assert!(needed.values().any(|sources| sources.len() == names.len()), "all hang on one chunk");
    for frame in &frames {
        let path = StorePath::new(frame.path.clone());
        let bytes = disk.content(&path).unwrap();
        for at in [frame.offset + 50, frame.offset + frame.header_len] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 4;
            disk.tamper(&path, &flipped);
            assert_eq!(affected(&verify(&disk)), (1, needed[&frame.hash].clone()), "{path} at {at}");
            let vault = Vault::open(Arc::new(disk.clone()));
            for name in names {
                let found = read_all(&vault, &vault.manifest(id(name)).unwrap().unwrap(), 0);
                assert_eq!(found.is_err(), needed[&frame.hash].contains(&id(name)), "{name}, {path} at {at}");
            }
        }
        disk.tamper(&path, &bytes);
    }
}

#[test]
fn bases_that_only_deltas_need_are_kept_and_counted() {
    let disk = disk(1);
    let first = session(1, 20_000, "first-session");
    let alike = cousin(&first, 4);
    let last = fork(&alike);
    {
        let vault = small_vault(&disk).unwrap();
        for (name, content) in [("first", &first), ("alike", &alike)] {
            write(&vault, name).append(content).unwrap();
        }
        let mut writer = write(&vault, "last");
        writer.append(&last).unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    }
    let disk = disk.die(Death::PowerCut);
    let frames = all_frames(&disk);
    let bases: BTreeSet<ChunkHash> = frames.iter().filter_map(|frame| frame.base).collect();
    let is_middle = |frame: &Frame| frame.base.is_some() && bases.contains(&frame.hash);
    assert!(frames.iter().any(is_middle), "something named hangs on two that are not");
    // Before and after the pack is settled.
    for _ in 0..2 {
        let needed = needed_by(&disk, &frames, &["last"]);
        let garbage = frames.iter().filter(|frame| !needed.contains_key(&frame.hash));
        let garbage = garbage.map(|frame| (frame.header_len + frame.stored.len()) as u64).sum::<u64>();
        let verified = verify(&disk);
        let usage = Vault::open(Arc::new(disk.clone())).usage().unwrap();
        assert_eq!((verified.findings.len(), verified.garbage_bytes), (0, garbage));
        assert_eq!((usage.garbage_bytes, usage.tail_bytes), (garbage, 0));
        assert!(read(&small_vault(&disk).unwrap(), "last", 0) == last);
    }
}

#[test]
fn every_flipped_byte_of_manifests_tails_and_tombstones_is_found() {
    let disk = filled();
    let mut found = 0;
    for (path, bytes) in disk.snapshot() {
        let source = match VaultFile::parse(&path) {
            Some(VaultFile::Manifest(source) | VaultFile::Tail(source)) => Some(source),
            Some(VaultFile::Tombstones) => None,
            _ => continue,
        };
        let path = StorePath::new(path);
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= [0x01, 0x04, 0x10, 0x80][at % 4];
            disk.tamper(&path, &flipped);
            let verified = verify(&disk);
            let want = source.into_iter().collect::<BTreeSet<_>>();
            assert_eq!(affected(&verified), (1, want.clone()), "{path} at {at}");
            found += 1;
            if at % 11 == 0 {
                check_reading(&disk, &want);
            }
        }
        disk.tamper(&path, &bytes);
    }
    assert!(found > 2_000, "{found}");
}

#[test]
fn findings_name_location_and_source() {
    let disk = filled();
    let path = VaultFile::Manifest(id("stranger")).path();
    let mut text = disk.content(&path).unwrap();
    let last = text.len() - 30;
    text[last] ^= 1;
    disk.tamper(&path, &text);
    let verified = verify(&disk);
    let finding = &verified.findings[0];
    assert!(
        matches!(&finding.error, Error::Damaged { path: found, offset, .. } if *found == path && *offset > 0)
    );
    assert_eq!(finding.affects[0].info, Some(info("stranger")), "its first line can be read");
}

#[test]
fn cut_and_missing_packs_affect_the_sources_that_need_them() {
    let disk = filled();
    let frames = all_frames(&disk);
    let needed = needed_by(&disk, &frames, &NAMES);
    let packs: BTreeSet<&String> = frames.iter().map(|frame| &frame.path).collect();
    for pack in packs {
        let path = StorePath::new(pack.clone());
        let bytes = disk.content(&path).unwrap();
        for cut in (0..bytes.len()).step_by(97).map(Some).chain([None]) {
            let kept = cut.unwrap_or(0);
            let is_lost = |frame: &&Frame| {
                frame.path == *pack && frame.offset + frame.header_len + frame.stored.len() > kept
            };
            let want: BTreeSet<SourceId> = frames
                .iter()
                .filter(is_lost)
                .filter_map(|frame| needed.get(&frame.hash))
                .flatten()
                .copied()
                .collect();
            match cut {
                Some(cut) => disk.tamper(&path, &bytes[..cut]),
                None => disk.delete(&path),
            }
            let sources = affected(&verify(&disk)).1;
            assert!(sources == want, "{pack} cut at {cut:?}");
            check_reading(&disk, &want);
        }
        disk.tamper(&path, &bytes);
    }
}

#[test]
fn damaged_index_files_are_not_findings() {
    let disk = filled();
    for name in files(&disk, "vault/packs/") {
        if let Some(VaultFile::PackIndex(_)) = VaultFile::parse(&name) {
            let path = StorePath::new(name);
            let bytes = disk.content(&path).unwrap();
            disk.tamper(&path, &bytes[..bytes.len() - 1]);
            assert_eq!(affected(&verify(&disk)).0, 0);
            disk.delete(&path);
            assert_eq!(affected(&verify(&disk)).0, 0);
        }
    }
    check_reading(&disk, &BTreeSet::new());
}

#[test]
fn duplicate_chunks_are_lost_only_when_both_are_damaged() {
    let disk = disk(1);
    // Neither sees the other's chunks before they are closed.
    let (one, other) = (tiny_vault(&disk), tiny_vault(&disk));
    keep(&one, "stranger", Remainder::InChunks);
    let mut writer = write(&other, "whole");
    writer.append(&content("stranger")).unwrap();
    writer.commit(Remainder::InChunks).unwrap();
    drop(writer);
    one.close_pack().unwrap();
    other.close_pack().unwrap();
    let frames = all_frames(&disk);
    let twice = frames
        .iter()
        .find(|frame| frames.iter().filter(|other| other.hash == frame.hash).count() == 2)
        .unwrap();
    for (number, frame) in (1..).zip(frames.iter().filter(|frame| frame.hash == twice.hash)) {
        let path = StorePath::new(frame.path.clone());
        let mut bytes = disk.content(&path).unwrap();
        bytes[frame.offset + frame.header_len] ^= 1;
        disk.tamper(&path, &bytes);
        let verified = verify(&disk);
        let (findings, sources) = affected(&verified);
        assert_eq!((findings, sources.is_empty()), (number, number == 1));
        let reader = Vault::open(Arc::new(disk.clone()));
        let manifest = reader.manifest(id("whole")).unwrap().unwrap();
        assert_eq!(read_all(&reader, &manifest, 0).is_ok(), number == 1);
    }
}

#[test]
fn crash_leftovers_are_counted_and_not_findings() {
    let mut unfinished = 0;
    for call in 1..120 {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = filled();
            disk.plan(Fault::DieAt { call });
            let vault = Vault::create_with(Arc::new(disk.clone()), TINY);
            if let Ok(vault) = &vault
                && let Ok(mut writer) = vault.write(id("growing"), &info("growing"), NOW)
            {
                for _ in 0..6 {
                    writer.append(&session(call, 700, "more")).ok();
                    writer.commit(Remainder::InTail).ok();
                }
            }
            let disk = disk.die(death);
            drop(vault);
            let verified = verify(&disk);
            assert_eq!(affected(&verified).0, 0, "call {call}, {death:?}: {:?}", verified.findings);
            unfinished += verified.unfinished;
        }
    }
    assert!(unfinished > 5, "{unfinished}");
}

#[test]
fn tail_without_its_earlier_chunks_is_found() {
    let disk = disk(1);
    let vault = tiny_vault(&disk);
    let mut writer = write(&vault, "growing");
    writer.append(&content("growing")).unwrap();
    writer.commit(Remainder::InChunks).unwrap();
    let text = disk.content(&VaultFile::Manifest(id("growing")).path()).unwrap();
    writer.append(&session(5, 6_000, "growing")).unwrap();
    writer.commit(Remainder::InTail).unwrap();
    writer.append(b"the end").unwrap();
    writer.commit(Remainder::InTail).unwrap();
    drop(writer);
    assert!(read(&vault, "growing", 0).ends_with(b"the end"));
    disk.tamper(&VaultFile::Manifest(id("growing")).path(), &text);
    assert_eq!(affected(&verify(&disk)).1, BTreeSet::from([id("growing")]));
    disk.delete(&VaultFile::Manifest(id("growing")).path());
    assert_eq!(affected(&verify(&disk)).1, BTreeSet::from([id("growing")]));
}
