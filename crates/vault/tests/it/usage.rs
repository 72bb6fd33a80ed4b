//! The disk usage of sources matches the disk, and what forgetting frees.

use steno_testkit::sim_disk::SimDisk;
use steno_vault::{Reason, Remainder, Usage};

use crate::kit::{NOW, disk, id, session, small_vault, write};
use crate::packs::{PREAMBLE_BYTES, all_frames};

fn contents() -> [(&'static str, Vec<u8>); 4] {
    let first = session(1, 40_000, "first-session");
    let fork =
        String::from_utf8(first.clone()).unwrap().replace("first-session", "other-session").into_bytes();
    [("first", first.clone()), ("copy", first), ("fork", fork), ("own", session(2, 30_000, "own"))]
}

fn filled() -> SimDisk {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    for (name, content) in contents() {
        let mut writer = write(&vault, name);
        writer.append(&content).unwrap();
        writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
        if name == "own" {
            writer.begin_generation("rewritten", NOW).unwrap();
            writer.append(&content[..10_000]).unwrap();
            writer.commit(Remainder::InTail).unwrap();
        }
    }
    let mut abandoned = write(&vault, "abandoned");
    abandoned.append(&session(7, 20_000, "abandoned")).unwrap();
    drop(abandoned);
    vault.close_pack().unwrap();
    disk
}

fn size(disk: &SimDisk, prefix: &str, end: &str) -> u64 {
    let files =
        disk.snapshot().into_iter().filter(|(path, _)| path.starts_with(prefix) && path.ends_with(end));
    files.map(|(_, bytes)| bytes.len() as u64).sum()
}

fn usage(disk: &SimDisk) -> Usage {
    small_vault(disk).unwrap().usage().unwrap()
}

#[test]
fn usage_matches_the_disk() {
    let disk = filled();
    let calls = disk.calls();
    let vault = steno_vault::Vault::open(std::sync::Arc::new(disk.clone()));
    let usage = vault.usage().unwrap();
    assert_eq!(disk.calls(), calls, "who weighs changes nothing");
    let of = |name: &str| usage.sources.iter().find(|source| source.source == id(name)).unwrap();
    assert_eq!(usage.sources.len(), 4, "what was abandoned is no source");
    assert_eq!(usage.bytes, 40_000 * 3 + 30_000 + 10_000);
    assert_eq!((of("own").bytes, of("own").generations), (40_000, 2));
    assert_eq!(usage.stored_bytes + usage.garbage_bytes, size(&disk, "vault/packs/", ".pack"));
    assert_eq!(usage.manifest_bytes, size(&disk, "vault/sources/", ""));
    assert_eq!(usage.tail_bytes, size(&disk, "vault/tails/", ""));
    assert!(usage.garbage_bytes > 1_000, "{usage:?}");
    // Chunks shared with a copy are not counted as own, and a chunk that occurs twice in one source is counted once.
    assert_eq!((of("first").own_chunk_bytes, of("copy").own_chunk_bytes), (0, 0));
    assert_eq!(of("own").own_chunk_bytes, 30_000);
    // A chunk without a session's id is shared with the fork.
    let fork = of("fork").own_chunk_bytes;
    assert!((35_000..=40_000).contains(&fork), "{fork}");
    assert_eq!((usage.chunk_bytes, usage.saved_by_sharing), (70_000 + fork, 80_000 - fork));
    assert!(of("fork").own_stored_bytes < of("own").own_stored_bytes);
    // No saving is counted twice, and none is missing.
    let frames = all_frames(&disk);
    let packs = frames.iter().map(|frame| &frame.path).collect::<std::collections::BTreeSet<_>>().len();
    let headers: u64 = usage.stored_bytes
        - (usage.chunk_bytes - usage.saved_by_delta - usage.saved_by_compression)
        - (packs * PREAMBLE_BYTES) as u64;
    let chunks = frames.len() as u64;
    assert!(headers > 0 && headers < chunks * 120, "{headers} for {chunks}");
    assert!(usage.saved_by_delta > 20_000 && usage.saved_by_compression > 20_000, "{usage:?}");
}

#[test]
fn forgetting_frees_the_reported_bytes() {
    let disk = filled();
    let before = usage(&disk);
    let own = before.sources.iter().find(|source| source.source == id("own")).unwrap();
    let vault = small_vault(&disk).unwrap();
    vault.forget(&[id("own")], Reason::Session, NOW).unwrap();
    let after = usage(&disk);
    assert_eq!(after.garbage_bytes, 0, "a sweep takes what was abandoned along");
    assert!(before.stored_bytes - after.stored_bytes >= own.own_stored_bytes);
    assert_eq!(
        before.manifest_bytes + before.tail_bytes - after.manifest_bytes - after.tail_bytes,
        own.own_file_bytes
    );
    assert_eq!(after.bytes, before.bytes - own.bytes);
    // Without the first and its copy, the fork has no base.
    vault.forget(&[id("first"), id("copy")], Reason::Session, NOW).unwrap();
    let last = usage(&disk);
    assert_eq!((last.sources.len(), last.garbage_bytes, last.chunk_bytes), (1, 0, 40_000));
    assert!(last.saved_by_delta < after.saved_by_delta / 2, "{last:?}");
}

#[test]
fn empty_vault_uses_nothing() {
    assert_eq!(usage(&disk(1)), Usage::default());
}
