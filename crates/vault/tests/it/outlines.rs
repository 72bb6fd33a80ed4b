//! Outlines say what manifests say, whatever happens to their file.

use std::sync::Arc;

use steno_disk::{Disk as _, StorePath};
use steno_testkit::sim_disk::{Death, Fault, SimDisk};
use steno_vault::{AdapterProgress, Outlines, Reason, Remainder, SourceId, Vault, VaultFile};

use crate::kit::{NOW, cursor, disk, files, id, session, small_vault, write};

const NAMES: [&str; 3] = ["first", "grown", "tailed"];

fn progress(offset: u64) -> AdapterProgress {
    let runs = vec!["550e8400-e29b-41d4-a716-446655440000".to_owned()];
    AdapterProgress { generation: 0, offset, adapter: "claude/1".into(), runs, started: Some(NOW.into()) }
}

fn fill(vault: &Arc<Vault>) {
    for (seed, name) in (1..).zip(NAMES) {
        let mut writer = write(vault, name);
        writer.append(&session(seed, 10_000, name)).unwrap();
        let state = Some(cursor(&format!("{{\"at\":{seed}}}")));
        writer.save_state(state, Some(progress(seed)), NOW, Remainder::InChunks).unwrap();
    }
    let mut writer = write(vault, "tailed");
    writer.begin_generation("rewritten", NOW).unwrap();
    writer.append(b"the end").unwrap();
    writer.commit(Remainder::InTail).unwrap();
}

fn filled() -> (SimDisk, Arc<Vault>) {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    fill(&vault);
    (disk, vault)
}

fn file() -> StorePath {
    VaultFile::Outlines.path()
}

fn save(vault: &Vault) {
    let mut outlines = vault.outlines().unwrap();
    vault.save_outlines(&mut outlines).unwrap();
}

/// Everything that outlines say, as text.
fn text_of(outlines: &Outlines) -> String {
    let of = |outline: &steno_vault::ManifestOutline| {
        let cursor = outline.cursor.as_ref().map(|cursor| cursor.get().to_owned());
        format!(
            "{} {:?} {cursor:?} {:?} {:?}",
            outline.id, outline.info, outline.adapted, outline.generation_lens
        )
    };
    outlines.sources.iter().map(of).collect::<Vec<_>>().join("\n")
}

/// Everything that the manifests say, read one by one.
fn text_of_manifests(vault: &Vault) -> String {
    let of = |id: SourceId| {
        let manifest = vault.manifest(id).unwrap().unwrap();
        let cursor = manifest.cursor.as_ref().map(|cursor| cursor.get().to_owned());
        let lens: Vec<u64> = manifest.generations.iter().map(|generation| generation.len).collect();
        format!("{id} {:?} {cursor:?} {:?} {lens:?}", manifest.info, manifest.adapted)
    };
    vault.sources().unwrap().into_iter().map(of).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(vault: &Vault, when: &str) {
    assert_eq!(text_of(&vault.outlines().unwrap()), text_of_manifests(vault), "{when}");
}

#[test]
fn outlines_equal_the_manifests_after_every_change() {
    let (disk, vault) = filled();
    check(&vault, "without a file");
    save(&vault);
    check(&vault, "with a file");
    let mut writer = write(&vault, "grown");
    writer.append(&session(9, 6_000, "more")).unwrap();
    writer.save_state(None, Some(progress(16_000)), NOW, Remainder::InChunks).unwrap();
    drop(writer);
    check(&vault, "after a source grew");
    let mut writer = write(&vault, "new");
    writer.append(b"new").unwrap();
    writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    drop(writer);
    check(&vault, "with a new source");
    disk.delete(&VaultFile::Manifest(id("first")).path());
    check(&vault, "without a manifest");
}

#[test]
fn bytes_of_sources_include_tails() {
    let (_, vault) = filled();
    let outlines = vault.outlines().unwrap();
    assert_eq!(vault.source_bytes(&outlines).unwrap(), 30_000 + 7);
    assert_eq!(outlines.sources.iter().map(|outline| outline.generation_lens.len()).max(), Some(2));
}

#[test]
fn damaged_file_of_outlines_is_not_believed() {
    let (disk, vault) = filled();
    save(&vault);
    let bytes = disk.content(&file()).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= [0x01, 0x04, 0x10, 0x80][at % 4];
        disk.tamper(&file(), &flipped);
        check(&vault, &format!("byte {at} flipped"));
        disk.tamper(&file(), &bytes[..at]);
        check(&vault, &format!("cut at byte {at}"));
    }
}

#[test]
fn damaged_manifest_is_reported_with_and_without_a_file() {
    let (disk, vault) = filled();
    let path = VaultFile::Manifest(id("first")).path();
    save(&vault);
    let mut bytes = disk.content(&path).unwrap();
    bytes[20] ^= 1;
    bytes.extend_from_slice(b"\n");
    disk.tamper(&path, &bytes);
    let check = |when: &str| {
        let outlines = vault.outlines().unwrap();
        let unreadable: Vec<SourceId> = outlines.unreadable.iter().map(|(id, _)| *id).collect();
        assert_eq!((unreadable, outlines.sources.len()), (vec![id("first")], 2), "{when}");
    };
    check("with the file from before");
    save(&vault);
    let content = String::from_utf8(disk.content(&file()).unwrap()).unwrap();
    assert!(!content.contains("projects/p/first") && content.contains("projects/p/grown"), "{content}");
    check("with a new file");
    disk.delete(&file());
    check("without a file");
}

#[test]
fn file_of_outlines_is_written_only_after_a_change() {
    let (disk, vault) = filled();
    save(&vault);
    let calls = disk.calls();
    save(&vault);
    assert_eq!(disk.calls(), calls);
    disk.delete(&VaultFile::Manifest(id("first")).path());
    save(&vault);
    assert!(disk.calls() > calls);
    assert!(!contains(&disk, "projects/p/first"));
}

fn contains(disk: &SimDisk, text: &str) -> bool {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    disk.snapshot().iter().any(|(_, bytes)| has(bytes))
}

#[test]
fn forgotten_source_is_in_no_outline() {
    let (disk, vault) = filled();
    save(&vault);
    leave_temporary(&disk);
    disk.delete(&file());
    assert!(contains(&disk, "projects/p/first"));
    let mut before = vault.outlines().unwrap();
    vault.forget(&[id("first")], Reason::Session, NOW).unwrap();
    assert!(!contains(&disk, "projects/p/first"), "{:?}", disk.content(&file()));
    // A process that looked before something was forgotten saves after that.
    vault.save_outlines(&mut before).unwrap();
    assert!(!contains(&disk, "projects/p/first"));
    save(&vault);
    check(&vault, "after forgetting");
}

/// Leaves a temporary file with the content of the file, as a process that is killed does.
fn leave_temporary(disk: &SimDisk) {
    let content = disk.content(&file()).unwrap();
    disk.create(&file().temporary()).unwrap().append(&content).unwrap();
}

/// How many calls that change something a save makes.
fn calls_of_a_save() -> u64 {
    let (disk, vault) = filled();
    let before = disk.calls();
    save(&vault);
    let calls = disk.calls() - before;
    assert!(calls > 3, "{calls}");
    calls
}

#[test]
fn source_forgotten_after_a_killed_save_is_in_no_file() {
    for call in 1..=calls_of_a_save() {
        for death in [Death::Kill, Death::PowerCut] {
            let (disk, vault) = filled();
            let mut outlines = vault.outlines().unwrap();
            disk.plan(Fault::DieAt { call });
            vault.save_outlines(&mut outlines).ok();
            assert_eq!(disk.fired(), 1, "call {call}");
            let disk = disk.die(death);
            let vault = small_vault(&disk).unwrap();
            check(&vault, &format!("{death:?} in call {call}"));
            vault.forget(&[id("first")], Reason::Session, NOW).unwrap();
            let disk = disk.die(Death::PowerCut);
            assert!(!contains(&disk, "projects/p/first"), "{death:?} in call {call}");
        }
    }
}

#[test]
fn outlines_are_not_saved_while_something_is_forgotten() {
    let (disk, vault) = filled();
    let mut outlines = vault.outlines().unwrap();
    let lock = disk.try_lock(&VaultFile::TombstonesLock.path()).unwrap().unwrap();
    vault.save_outlines(&mut outlines).unwrap();
    assert_eq!(disk.content(&file()), None);
    drop(lock);
    vault.sweep_later(NOW).unwrap();
    vault.save_outlines(&mut outlines).unwrap();
    assert_eq!(disk.content(&file()), None, "a sweep is due");
    vault.sweep_if_needed().unwrap();
    vault.save_outlines(&mut outlines).unwrap();
    assert!(contains(&disk, "\"outlines\""));
}

#[test]
fn outlines_of_changed_manifests_are_not_saved() {
    let (disk, vault) = filled();
    let mut outlines = vault.outlines().unwrap();
    let mut writer = write(&vault, "grown");
    writer.append(b"more").unwrap();
    writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
    drop(writer);
    vault.save_outlines(&mut outlines).unwrap();
    assert_eq!(disk.content(&file()), None);
}

#[test]
fn save_deletes_what_dead_processes_left() {
    let (disk, vault) = filled();
    save(&vault);
    leave_temporary(&disk);
    leave_temporary(&disk);
    disk.delete(&file());
    assert_eq!(files(&disk, "vault/outlines").len(), 2);
    save(&vault);
    assert_eq!(files(&disk, "vault/outlines"), [file().as_str()]);
}

#[test]
fn outlines_do_not_count_as_evidence() {
    let (disk, vault) = filled();
    vault.forget(&[id("first")], Reason::Session, NOW).unwrap();
    let bytes = vault.disk_bytes().unwrap();
    save(&vault);
    leave_temporary(&disk);
    assert_eq!(vault.disk_bytes().unwrap(), bytes);
    let of = |prefix: &str| files(&disk, prefix).len();
    assert_eq!((of("vault/outlines"), of("vault/forgotten")), (2, 1));
    let size = |(path, bytes): &(String, Vec<u8>)| {
        let is_counted = path.starts_with("vault/") && !path.starts_with("vault/outlines");
        if is_counted { bytes.len() as u64 } else { 0 }
    };
    assert_eq!(disk.snapshot().iter().map(size).sum::<u64>(), bytes);
}
