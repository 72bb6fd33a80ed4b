//! Forgotten content is deleted permanently, whatever happens meanwhile, and nothing else is.

use std::collections::HashMap;
use std::sync::Arc;

use steno_disk::{Disk as _, StorePath};
use steno_model::ThreadId;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};
use steno_vault::{
    ChunkHash, Error, ForgetRequest, NameHash, Reason, Remainder, RestoreError, SweepReport, Vault, VaultFile,
};

use crate::kit::{NOW, cousin, disk, files, id, info, read, session, small_vault, vault, write};
use crate::packs::{Frame, all_chunks, all_frames, deltas_of_deltas};

/// Words that occur in the content of one source only.
const SECRET: &str = "the-secret-of-this-session";
const WHY: Reason = Reason::Session;

fn keep(vault: &Arc<Vault>, name: &str, content: &[u8]) {
    let mut writer = write(vault, name);
    writer.append(content).unwrap();
    writer.save_state(None, None, NOW, Remainder::InTail).unwrap();
}

/// The content of each source: one to forget, its fork, a similar one, a fork of that, a copy of part of the first, and
/// an unrelated one.
fn contents() -> [(&'static str, Vec<u8>); 6] {
    let secret = session(1, 60_000, SECRET);
    let renamed = |content: &[u8], from: &str, to: &str| {
        String::from_utf8(content.to_vec()).unwrap().replace(from, to).into_bytes()
    };
    let fork = renamed(&secret, SECRET, "the-name-of-the-other-fork");
    let alike = cousin(&fork, 5);
    let alike_fork = renamed(&alike, "the-name-of-the-other-fork", "the-name-of-the-third-fork");
    let shared = session(7, 20_000, "shared");
    let secret = [&shared[..], &secret].concat();
    [
        ("secret", secret),
        ("fork", fork),
        ("alike", alike),
        ("alike-fork", alike_fork),
        ("shared", shared),
        ("stranger", session(9, 30_000, "stranger")),
    ]
}

/// A vault with all sources; their packs are closed.
fn filled(disk: &SimDisk) {
    let vault = small_vault(disk).unwrap();
    for (name, content) in contents() {
        keep(&vault, name, &content);
    }
    vault.close_pack().unwrap();
}

/// The others read back as they were.
fn check_others(vault: &Vault) {
    for (name, content) in contents().into_iter().skip(1) {
        assert!(read(vault, name, 0) == content, "{name}");
    }
}

/// Nothing of the forgotten content is anywhere on the disk, plain or packed.
fn check_gone(disk: &SimDisk) {
    let has_secret = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    for (path, bytes) in disk.snapshot() {
        assert!(!has_secret(&bytes), "`{path}` has the secret as it is");
        assert!(!path.contains(&id("secret").to_string()) || path.starts_with("locks/"), "`{path}` is there");
    }
    let chunks: HashMap<ChunkHash, Vec<u8>> = all_chunks(disk);
    assert!(chunks.len() > 10, "{}", chunks.len());
    assert!(!chunks.values().any(|chunk| has_secret(chunk)), "a chunk has the secret");
}

/// Two processes that do not see each other's packs store two contents as deltas of each other.
#[test]
fn sweep_keeps_the_duplicate_without_a_base() {
    let one = session(1, 8_000, "first-session");
    let other =
        String::from_utf8(one.clone()).unwrap().replace("first-session", "other-session").into_bytes();
    for seed in 0..12 {
        let disk = disk(seed);
        let keep = |vault: &Arc<Vault>, name: &str, content: &[u8]| {
            let mut writer = write(vault, name);
            writer.append(content).unwrap();
            writer.save_state(None, None, NOW, Remainder::InChunks).unwrap();
        };
        let vaults = [small_vault(&disk).unwrap(), small_vault(&disk).unwrap()];
        // Each loads its index before the other has closed a pack.
        keep(&vaults[0], "stranger", &session(9, 5_000, "stranger"));
        keep(&vaults[1], "another", &session(10, 5_000, "another"));
        for (vault, contents) in vaults.iter().zip([[&one, &other], [&other, &one]]) {
            for content in contents {
                let number = usize::from(*content == one) + 2 * usize::from(Arc::ptr_eq(vault, &vaults[0]));
                keep(vault, &format!("copy-{number}"), content);
                vault.close_pack().unwrap();
            }
        }
        drop(vaults);
        let (differing, alone): (Vec<Frame>, Vec<Frame>) =
            all_frames(&disk).into_iter().partition(|frame| frame.base.is_some());
        let twice =
            differing.iter().filter(|frame| alone.iter().any(|other| other.hash == frame.hash)).count();
        assert!(twice > 3, "{twice} chunks stand by themselves and as different from others");
        let vault = small_vault(&disk).unwrap();
        vault.forget(&[id("stranger")], WHY, NOW).unwrap();
        assert!(vault.verify(|_| ()).unwrap().findings.is_empty(), "seed {seed}");
    }
}

#[test]
fn forget_deletes_bytes_and_leaves_a_tombstone() {
    let disk = disk(1);
    filled(&disk);
    let vault = small_vault(&disk).unwrap();
    let before: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    let differing = all_frames(&disk).iter().filter(|frame| frame.base.is_some()).count();
    assert!(differing > 5, "the fork is stored as different from what is to go: {differing}");
    assert!(deltas_of_deltas(&disk) > 5, "{}", deltas_of_deltas(&disk));
    assert!(!vault.is_forgotten(id("secret")).unwrap());
    let forgotten = vault.forget(&[id("secret")], WHY, NOW).unwrap();
    let swept = forgotten.swept.clone().unwrap();
    assert!(swept.packs_rewritten > 0 && swept.packs_removed >= swept.packs_rewritten, "{swept:?}");
    assert!(swept.chunks_removed > 10 && swept.packs_busy == 0, "{swept:?}");
    let after: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(after < before, "{after} of {before}");
    check_others(&vault);
    check_others(&small_vault(&disk).unwrap());
    check_gone(&disk);
    assert_eq!(vault.manifest(id("secret")).unwrap().map(|manifest| manifest.id), None);
    let tombstones = vault.tombstones().unwrap();
    assert_eq!(tombstones, forgotten.tombstones);
    let tombstone = &tombstones[0];
    assert_eq!((tombstone.source, tombstone.generations, tombstone.bytes), (id("secret"), 1, 80_000));
    assert_eq!((tombstone.why, tombstone.time.as_str(), tombstone.is_swept), (WHY, NOW, true));
    assert!(vault.is_forgotten(id("secret")).unwrap());
    assert!(matches!(vault.write(id("secret"), &info("secret"), NOW), Err(Error::Forgotten { .. })));
    // A second call changes nothing.
    let again = vault.forget(&[id("secret")], Reason::Age, NOW).unwrap();
    assert_eq!(again.tombstones, forgotten.tombstones);
    assert_eq!(again.swept, Some(SweepReport::default()));
}

#[test]
fn forget_refuses_open_and_missing_sources() {
    let disk = disk(1);
    filled(&disk);
    let vault = small_vault(&disk).unwrap();
    let writer = write(&vault, "stranger");
    let before = disk.snapshot();
    let held = vault.forget(&[id("secret"), id("stranger")], WHY, NOW);
    assert!(matches!(held, Err(Error::Locked { .. })), "{held:?}");
    let missing = vault.forget(&[id("secret"), id("nobody")], WHY, NOW);
    assert!(matches!(missing, Err(Error::NoSuchSource { .. })), "{missing:?}");
    let is_lock = |(path, _): &(String, Vec<u8>)| path.starts_with("locks/");
    let files = |all: Vec<_>| all.into_iter().filter(|file| !is_lock(file)).collect::<Vec<_>>();
    assert!(files(disk.snapshot()) == files(before), "nothing has changed");
    assert!(read(&vault, "secret", 0) == contents()[0].1);
    drop(writer);
}

#[test]
fn killed_forget_is_completed_later() {
    let calls = {
        let disk = disk(1);
        filled(&disk);
        let vault = small_vault(&disk).unwrap();
        let before = disk.calls();
        vault.forget(&[id("secret")], WHY, NOW).unwrap();
        disk.calls() - before
    };
    let mut fired = 0;
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let disk = disk(call);
            filled(&disk);
            let vault = small_vault(&disk).unwrap();
            let before = disk.fired();
            disk.plan(Fault::DieAt { call });
            let done = vault.forget(&[id("secret")], WHY, NOW);
            fired += disk.fired() - before;
            let disk = disk.die(death);
            drop((vault, done));
            check_others(&Vault::open(Arc::new(disk.clone())));
            // Opening completes it, if it had begun at all; a second call does in any case.
            let vault = small_vault(&disk).unwrap();
            if !vault.is_forgotten(id("secret")).unwrap() {
                assert!(read(&vault, "secret", 0) == contents()[0].1, "nothing had been deleted");
                vault.forget(&[id("secret")], WHY, NOW).unwrap();
            }
            check_others(&vault);
            check_gone(&disk);
            assert!(vault.tombstones().unwrap()[0].is_swept);
        }
    }
    assert_eq!(fired, calls * 2);
    assert!(calls > 30, "{calls}");
}

#[test]
fn failed_forget_is_completed_later() {
    let mut fired = 0;
    for kind in [Call::Sync, Call::SyncDir, Call::Write, Call::Create, Call::Rename, Call::Remove] {
        for (nth, error) in (1..40).flat_map(|nth| [(nth, 5), (nth, 28)]) {
            let disk = disk(nth);
            filled(&disk);
            let vault = small_vault(&disk).unwrap();
            disk.plan(Fault::Fail { kind, nth, error });
            vault.forget(&[id("secret")], WHY, NOW).ok();
            if disk.fired() == 0 {
                break;
            }
            fired += 1;
            check_others(&vault);
            drop(vault);
            // Completed by the next open, or by a second call.
            let vault = small_vault(&disk).unwrap();
            if nth % 2 == 0 {
                vault.forget(&[id("secret")], WHY, NOW).unwrap();
            }
            let is_promised = vault.tombstones().unwrap().iter().any(|tombstone| tombstone.is_swept);
            drop(vault);
            let disk = disk.die(Death::PowerCut);
            let vault = small_vault(&disk).unwrap();
            check_others(&vault);
            if is_promised || vault.is_forgotten(id("secret")).unwrap() {
                check_gone(&disk);
            } else {
                assert!(read(&vault, "secret", 0) == contents()[0].1, "nothing had been deleted");
            }
        }
    }
    assert!(fired > 40, "{fired}");
}

#[test]
fn writers_reload_the_index_after_a_sweep() {
    let disk = disk(1);
    filled(&disk);
    let running = small_vault(&disk).unwrap();
    // It knows all chunks, and has recorded.
    assert!(read(&running, "secret", 0) == contents()[0].1);
    keep(&running, "its own", &session(20, 9_000, "own"));
    running.close_pack().unwrap();
    let mut waiting = write(&running, "waiting");
    waiting.append(&contents()[1].1[..3_000]).unwrap();
    small_vault(&disk).unwrap().forget(&[id("secret")], WHY, NOW).unwrap();
    check_gone(&disk);
    // The very same bytes come again, in another source, and so does the rest of what has waited.
    keep(&running, "again", &contents()[0].1);
    waiting.append(&contents()[1].1[3_000..]).unwrap();
    waiting.commit(Remainder::InChunks).unwrap();
    drop((running, waiting));
    let disk = disk.die(Death::PowerCut);
    let vault = small_vault(&disk).unwrap();
    assert!(read(&vault, "again", 0) == contents()[0].1);
    assert!(read(&vault, "waiting", 0) == contents()[1].1);
    check_others(&vault);
}

#[test]
fn first_write_after_a_sweep_reloads_the_index() {
    let disk = disk(1);
    filled(&disk);
    let running = small_vault(&disk).unwrap();
    assert!(read(&running, "secret", 0) == contents()[0].1);
    small_vault(&disk).unwrap().forget(&[id("secret")], WHY, NOW).unwrap();
    // Moved chunks are found again by readers and writers.
    check_others(&running);
    keep(&running, "again", &contents()[0].1);
    drop(running);
    let vault = small_vault(&disk.die(Death::PowerCut)).unwrap();
    assert!(read(&vault, "again", 0) == contents()[0].1);
}

#[test]
fn open_packs_wait_for_the_next_sweep() {
    let disk = disk(1);
    filled(&disk);
    let running = small_vault(&disk).unwrap();
    // Its pack has deltas of chunks that will be deleted, and chunks that will be deleted themselves.
    let later = String::from_utf8(contents()[0].1.clone())
        .unwrap()
        .replace(SECRET, "another-fork-of-them")
        .into_bytes();
    keep(&running, "later", &later[..30_000]);
    let other = small_vault(&disk).unwrap();
    let forgotten = other.forget(&[id("secret")], WHY, NOW).unwrap();
    assert_eq!(forgotten.swept.map(|swept| swept.packs_busy), Some(1));
    assert!(!other.tombstones().unwrap()[0].is_swept);
    check_others(&other);
    assert!(read(&other, "later", 0) == later[..30_000]);
    // It continues with its old index.
    keep(&running, "more", &later[..50_000]);
    drop(running);
    let vault = small_vault(&disk).unwrap();
    assert!(vault.tombstones().unwrap()[0].is_swept);
    check_gone(&disk);
    check_others(&vault);
    assert!(read(&vault, "later", 0) == later[..30_000]);
    assert!(read(&vault, "more", 0) == later[..50_000]);
}

#[test]
fn sweep_waits_for_writers_that_rely_on_chunks() {
    let disk = disk(1);
    filled(&disk);
    let running = small_vault(&disk).unwrap();
    let mut writer = write(&running, "copy");
    // It relies on chunks of the forgotten source, and no manifest names them yet.
    writer.append(&contents()[0].1).unwrap();
    let other = small_vault(&disk).unwrap();
    let forgotten = other.forget(&[id("secret")], WHY, NOW).unwrap();
    assert_eq!(forgotten.swept, None);
    assert!(other.manifest(id("secret")).unwrap().is_none());
    writer.commit(Remainder::InChunks).unwrap();
    drop(writer);
    running.close_pack().unwrap();
    assert!(other.sweep_if_needed().unwrap().is_some());
    assert!(read(&other, "copy", 0) == contents()[0].1, "it is somebody else's now");
    assert!(other.tombstones().unwrap()[0].is_swept);
    assert_eq!(other.sweep_if_needed().unwrap(), None);
}

#[test]
fn sweep_removes_crash_leftovers() {
    let disk = disk(1);
    filled(&disk);
    let left = [VaultFile::Tail(id("secret")), VaultFile::Manifest(id("fork")), VaultFile::Tombstones]
        .map(|file| file.path().temporary());
    for path in &left {
        disk.tamper(path, SECRET.as_bytes());
    }
    disk.tamper(&VaultFile::Tail(id("nobody")).path(), SECRET.as_bytes());
    let foreign = StorePath::new("vault/notes.txt".into());
    disk.tamper(&foreign, b"not ours");
    let vault = small_vault(&disk).unwrap();
    vault.forget(&[id("secret")], WHY, NOW).unwrap();
    check_gone(&disk);
    check_others(&vault);
    assert!(disk.content(&foreign).is_some(), "what is not ours stays");
}

#[test]
fn unreadable_manifest_stops_a_sweep_until_it_is_forgotten() {
    let disk = disk(1);
    filled(&disk);
    let path = VaultFile::Manifest(id("stranger")).path();
    let mut text = disk.content(&path).unwrap();
    text[40] ^= 1;
    disk.tamper(&path, &text);
    let vault = small_vault(&disk).unwrap();
    let packs = files(&disk, "vault/packs/");
    assert!(matches!(vault.forget(&[id("secret")], WHY, NOW), Err(Error::Damaged { .. })));
    assert_eq!(files(&disk, "vault/packs/"), packs, "no chunk is deleted that it may name");
    assert!(matches!(vault.write(id("secret"), &info("secret"), NOW), Err(Error::Forgotten { .. })));
    let forgotten = vault.forget(&[id("stranger")], WHY, NOW).unwrap();
    assert!(matches!(forgotten.swept, Some(SweepReport { packs_busy: 0, .. })));
    assert_eq!((&forgotten.tombstones[0].role, forgotten.tombstones[0].bytes), (&None, 0));
    check_gone(&disk);
}

#[test]
fn damaged_tombstones_do_not_stop_recording() {
    let disk = disk(1);
    filled(&disk);
    let vault = small_vault(&disk).unwrap();
    vault.forget(&[id("secret")], WHY, NOW).unwrap();
    let path = VaultFile::Tombstones.path();
    let whole = disk.content(&path).unwrap();
    for at in [whole.len() / 2, whole.len() - 2] {
        let mut text = whole.clone();
        text[at] ^= 1;
        disk.tamper(&path, &text);
        let vault = small_vault(&disk).unwrap();
        assert!(matches!(vault.tombstones(), Err(Error::Damaged { .. })));
        assert!(matches!(vault.forget(&[id("fork")], WHY, NOW), Err(Error::Damaged { .. })));
        assert!(matches!(vault.write(id("secret"), &info("secret"), NOW), Err(Error::Forgotten { .. })));
        keep(&vault, "fork", b"more");
        assert!(disk.content(&path).unwrap() == text);
    }
    disk.tamper(&path, b"");
    assert!(matches!(small_vault(&disk).unwrap().tombstones(), Err(Error::Damaged { .. })));
    disk.remove(&path).unwrap();
    assert_eq!(small_vault(&disk).unwrap().tombstones().unwrap(), []);
}

/// The restore has read the manifest before it was forgotten.
#[test]
fn restore_of_a_forgotten_source_leaves_no_partial_file() {
    let disk = disk(1);
    let vault = vault(&disk);
    let mut writer = write(&vault, "a");
    writer.append(b"all of it is in the tail").unwrap();
    writer.commit(Remainder::InTail).unwrap();
    drop(writer);
    let manifest = vault.manifest(id("a")).unwrap().unwrap();
    vault.forget(&[id("a")], WHY, NOW).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let outcome = vault.restore(&manifest, 0, &dir.path().join("a"));
    assert!(matches!(outcome, Err(RestoreError::Vault(Error::Forgotten { .. }))), "{outcome:?}");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn names_are_excluded_until_they_are_included_again() {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    let (one, other) = (NameHash::of_session("one"), NameHash::of_session("other"));
    let excluded = || {
        let [one, other] = [one, other].map(|name| vault.leaves_out(name).unwrap());
        (vault.leaves_out_anything().unwrap(), one, other)
    };
    assert_eq!(excluded(), (false, false, false));
    vault.leave_out(&[one], WHY, NOW).unwrap();
    assert_eq!(excluded(), (true, true, false));
    vault.take_in(other).unwrap();
    assert_eq!(excluded(), (true, true, false));
    vault.take_in(one).unwrap();
    assert_eq!(excluded(), (false, false, false));
}

#[test]
fn sweep_is_due_until_it_is_done() {
    let disk = disk(1);
    filled(&disk);
    let vault = small_vault(&disk).unwrap();
    assert_eq!((vault.is_sweep_due().unwrap(), vault.sweep_if_needed().unwrap()), (false, None));
    vault.sweep_later(NOW).unwrap();
    assert!(vault.is_sweep_due().unwrap());
    assert_eq!(vault.sweep_if_needed().unwrap(), Some(SweepReport::default()));
    assert!(!vault.is_sweep_due().unwrap());
}

#[test]
fn forgetting_names_alone_sweeps_only_if_a_sweep_is_due() {
    let disk = disk(1);
    filled(&disk);
    let vault = small_vault(&disk).unwrap();
    let unused = VaultFile::Tail(id("nobody")).path();
    disk.tamper(&unused, SECRET.as_bytes());
    let names = [NameHash::of_session("one")];
    let forget =
        || vault.forget_all(ForgetRequest { names: &names, ..ForgetRequest::default() }, WHY, NOW).unwrap();
    assert_eq!(forget().swept, Some(SweepReport::default()));
    assert!(disk.content(&unused).is_some(), "nothing was swept");
    vault.sweep_later(NOW).unwrap();
    assert!(forget().swept.is_some());
    assert!(disk.content(&unused).is_none(), "the sweep that was due is done");
    assert!(!vault.is_sweep_due().unwrap());
}

#[test]
fn files_of_forgotten_runs_and_spines_are_due_until_they_are_deleted() {
    let disk = disk(1);
    let vault = small_vault(&disk).unwrap();
    let runs = ["one", "other"].map(NameHash::of_session);
    let spines = ["thread-1", "thread-2"].map(|id| ThreadId::parse(id).unwrap());
    vault
        .forget_all(ForgetRequest { runs: &runs, spines: &spines, ..ForgetRequest::default() }, WHY, NOW)
        .unwrap();
    assert_eq!(vault.runs_due().unwrap(), runs);
    vault.runs_gone(&runs[..1]).unwrap();
    assert_eq!(vault.runs_due().unwrap(), runs[1..]);
    let swept = || vault.spine_tombstones().unwrap().iter().map(|spine| spine.is_swept).collect::<Vec<_>>();
    assert_eq!(swept(), [false, false]);
    vault.spines_swept(&[vault.spine_tombstones().unwrap()[0].thread]).unwrap();
    assert_eq!(swept(), [true, false]);
    vault.spines_swept(&[vault.spine_tombstones().unwrap()[1].thread]).unwrap();
    assert_eq!(swept(), [true, true]);
}
