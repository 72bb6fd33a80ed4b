//! Forgetting sessions with their spines, also with a kill inside every disk call: everything is deleted or nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use steno_disk::StorePath;
use steno_journal::{ArtifactFile, Journal, Options, Rotation, SpineState, Store};
use steno_model::{Provider, ThreadId, Word};
use steno_recorder::connection::RecordedConnection;
use steno_recorder::forget::{
    ForgetError, ForgetTargets, finish, forget, is_connection_forgotten, spines_to_forget,
};
use steno_recorder::sources::{SourceRecorder, SourceRecorderOptions};
use steno_recorder::spines::{self, ForgottenRule, RolloutDirs, SessionFile, record_rollout};
use steno_spine::validate_spine;
use steno_testkit::sim_disk::{Call, Death, Fault, SimDisk};
use steno_vault::{HostPath, Manifest, Reason, Remainder, Role, SourceId, SourceInfo, Vault};

use crate::bench::{Bench, archive, copy_of, store, transcripts};
use crate::sessions::{THREAD, codex_call, rollout};

const OTHER: &str = "01a1de00-0000-7000-8000-000000000131";
const CONNECTION: &str = "0f000000-0000-4000-8000-0000000000aa";
const STORE_DIR: &str = "/store";
const EIO: i32 = 5;

fn thread(text: &str) -> ThreadId {
    ThreadId::parse(text).unwrap()
}

fn journal(disk: &SimDisk) -> Journal {
    Journal::new(Store::create(Arc::new(disk.clone())).unwrap(), Options::default())
}

fn spooled() -> RecordedConnection {
    RecordedConnection { id: CONNECTION.parse().unwrap() }
}

fn record(disk: &SimDisk, thread: &str, forgotten: ForgottenRule) -> Result<u64, spines::Error> {
    let (text, name) =
        ((rollout() + &codex_call(1)).replace(THREAD, thread), format!("rollout-x-{thread}.jsonl"));
    let file = SessionFile { path: Path::new(&name), bytes: &mut text.as_bytes(), unpacked: None };
    let recorded = record_rollout(&journal(disk), file, &mut RolloutDirs::default(), forgotten);
    recorded.map(|(_, written)| written.records)
}

/// Returns a store with a connection and two sessions of Codex, each with a run and a spine with an artifact.
fn filled() -> SimDisk {
    let (bench, disk) = (Bench::new(), store());
    let dir = bench.codex("sessions/2026/01/02");
    fs::create_dir_all(&dir).unwrap();
    for name in [THREAD, OTHER] {
        let text = (rollout() + &codex_call(1)).replace(THREAD, name);
        fs::write(dir.join(format!("rollout-2026-01-02T03-04-05-{name}.jsonl")), text).unwrap();
        let writer = journal(&disk).spine(&thread(name), Rotation::default()).unwrap();
        writer.keep_artifact(ArtifactFile::ShellSnapshot, name.as_bytes()).unwrap();
        writer.close().unwrap();
        assert!(record(&disk, name, ForgottenRule::Stays).unwrap() > 3);
    }
    bench.import(&disk);
    let vault = Vault::create(Arc::new(disk.clone())).unwrap();
    let path = Path::new(STORE_DIR).join(spooled().path().as_str());
    let info = SourceInfo {
        provider: Some(Word::Known(Provider::Codex)),
        role: Role::Transcript,
        home: None,
        path: HostPath(path.clone()),
        session: None,
        project: None,
        is_filtered: false,
    };
    let mut writer = vault.write(SourceId::derive(&path, 0), &info, "2026-06-08T08:14:42Z").unwrap();
    writer.append(b"{}\n").unwrap();
    writer.commit(Remainder::InTail).unwrap();
    drop(writer);
    disk.tamper(&spooled().path(), b"{}\n");
    vault.close_pack().unwrap();
    copy_of(&disk)
}

/// Returns the manifests of the first session and of the connection.
fn manifests(vault: &Vault) -> Vec<Manifest> {
    let all = vault.sources().unwrap().into_iter().filter_map(|id| vault.manifest(id).unwrap());
    all.filter(|manifest| !manifest.info.path.0.to_string_lossy().contains(OTHER)).collect()
}

fn doomed(store: &Store, vault: &Vault) -> ForgetTargets {
    let manifests = manifests(vault);
    let spines = spines_to_forget(store, vault, &manifests).unwrap();
    assert!(spines.staying.is_empty());
    ForgetTargets {
        sources: manifests.iter().map(|manifest| manifest.id).collect(),
        runs: store.runs().unwrap().into_iter().filter(|run| run.to_string() == THREAD).collect(),
        threads: spines.going,
        connections: vec![spooled()],
        ..ForgetTargets::default()
    }
}

fn forget_it(disk: &SimDisk) -> Result<(), ForgetError> {
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let vault = Vault::open(Arc::new(disk.clone()));
    let doomed = doomed(&store, &vault);
    assert_eq!(doomed.threads, [thread(THREAD)]);
    forget(&store, &vault, &doomed, Reason::Session, jiff::Timestamp::UNIX_EPOCH).map(|_| ())
}

/// Returns the files that are named after a session, except locks.
fn named(disk: &SimDisk, name: &str) -> Vec<String> {
    let files = disk.snapshot().into_iter().map(|(path, _)| path);
    files.filter(|path| path.contains(name) && !path.starts_with("locks/")).collect()
}

/// Checks that a session is complete.
fn check_whole(disk: &SimDisk, name: &str, context: &str) {
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let report = validate_spine(&store, &thread(name)).unwrap();
    assert_eq!((report.errors, report.state()), (0, SpineState::Sealed), "{context}: {:?}", report.findings);
    assert!(report.records > 3 && named(disk, name).len() > 3, "{context}: {:?}", named(disk, name));
    let vault = Vault::open(Arc::new(disk.clone()));
    let findings = vault.verify(|_| ()).unwrap().findings;
    assert!(findings.is_empty(), "{context}: {findings:?}");
    assert!(transcripts(disk).contains_key(name), "{context}");
}

/// Checks a store after a kill or a failure: the session is unchanged, or it is forgotten and the next opening
/// completes that. Returns whether it is forgotten.
fn check_after(disk: &SimDisk, context: &str) -> bool {
    check_whole(disk, OTHER, context);
    let vault = Vault::open(Arc::new(disk.clone()));
    let is_forgotten = !vault.spine_tombstones().unwrap().is_empty();
    let connection = is_connection_forgotten(&vault, Path::new(STORE_DIR), spooled()).unwrap();
    assert_eq!(is_forgotten, connection, "{context}: one is forgotten without the other");
    if !is_forgotten {
        check_whole(disk, THREAD, context);
        assert!(disk.content(&spooled().path()).is_some(), "{context}");
        forget_it(disk).unwrap();
        return false;
    }
    // Recording it again first completes the deletion and is then refused.
    let again = record(disk, THREAD, ForgottenRule::Stays);
    assert!(matches!(again, Err(spines::Error::Forgotten { .. })), "{context}: {again:?}");
    let left = named(disk, THREAD);
    assert!(left.iter().all(|path| path.starts_with("transcripts/")), "{context}: {left:?}");
    drop(archive(disk));
    // The next forgetting deletes the transcript; the vault knows that its source is forgotten.
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let doomed = ForgetTargets {
        runs: store.runs().unwrap().into_iter().filter(|run| run.to_string() == THREAD).collect(),
        connections: vec![spooled()],
        ..ForgetTargets::default()
    };
    forget(&store, &vault, &doomed, Reason::Session, jiff::Timestamp::UNIX_EPOCH).unwrap();
    true
}

/// Checks that everything is deleted and stays deleted.
fn check_gone(disk: &SimDisk, context: &str) {
    assert_eq!(named(disk, THREAD), [""; 0], "{context}");
    assert_eq!(named(disk, CONNECTION), [""; 0], "{context}");
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    assert_eq!(store.spines().unwrap(), [thread(OTHER)], "{context}");
    let vault = Vault::open(Arc::new(disk.clone()));
    assert!(vault.spine_tombstones().unwrap().iter().all(|tombstone| tombstone.is_swept), "{context}");
    assert_eq!(finish(&store, &vault, jiff::Timestamp::UNIX_EPOCH).unwrap(), [], "{context}");
    check_whole(disk, OTHER, context);
}

#[test]
fn crash_in_any_call_forgets_all_or_nothing() {
    let before = filled();
    let calls = {
        let disk = copy_of(&before);
        let from = disk.calls();
        forget_it(&disk).unwrap();
        check_gone(&disk, "without a fault");
        disk.calls() - from
    };
    let (mut fired, mut forgotten) = (0, 0);
    for call in 1..=calls {
        for death in [Death::Kill, Death::PowerCut] {
            let context = format!("{death:?} at call {call} of {calls}");
            let disk = copy_of(&before);
            disk.plan(Fault::DieAt { call });
            forget_it(&disk).unwrap_err();
            assert_eq!(disk.fired(), 1, "{context}");
            fired += 1;
            let disk = disk.die(death);
            forgotten += u64::from(check_after(&disk, &context));
            let disk = disk.die(Death::PowerCut);
            check_gone(&disk, &context);
        }
    }
    assert!(fired == calls * 2 && calls > 30, "{fired} of {calls}");
    assert!(forgotten > fired / 3 && forgotten < fired, "{forgotten} of {fired}");
}

#[test]
fn crash_while_completing_changes_nothing() {
    let before = filled();
    // Killed after the tombstones are written and before anything is deleted.
    let (store, vault) =
        (Store::open(Arc::new(before.clone())).unwrap(), Vault::open(Arc::new(before.clone())));
    let doomed = doomed(&store, &vault);
    let tombstones = {
        let disk = copy_of(&before);
        let vault = Vault::open(Arc::new(disk.clone()));
        let what = steno_vault::ForgetRequest {
            sources: &doomed.sources,
            spines: &doomed.threads,
            ..Default::default()
        };
        vault.forget_all(what, Reason::Session, "1970-01-01T00:00:00.000Z").unwrap();
        disk
    };
    let open = |disk: &SimDisk| {
        SourceRecorder::open(
            Journal::new(Store::open(Arc::new(disk.clone())).unwrap(), Options::default()),
            SourceRecorderOptions::default(),
        )
    };
    for call in 1.. {
        let disk = copy_of(&tombstones);
        disk.plan(Fault::DieAt { call });
        open(&disk).ok();
        if disk.fired() == 0 {
            assert!(call > 10, "{call}");
            break;
        }
        let disk = disk.die(if call % 2 == 0 { Death::Kill } else { Death::PowerCut });
        check_after(&disk, &format!("completing died at call {call}"));
        check_gone(&disk, &format!("completing died at call {call}"));
    }
}

#[test]
fn failed_call_is_reported_and_completed_later() {
    let before = filled();
    let mut fired = 0;
    for kind in [Call::Sync, Call::SyncDir, Call::Write, Call::Create, Call::Rename, Call::Remove] {
        for nth in 1.. {
            let disk = copy_of(&before);
            disk.plan(Fault::Fail { kind, nth, error: EIO });
            let outcome = forget_it(&disk);
            if disk.fired() == 0 {
                break;
            }
            fired += 1;
            let context = format!("{kind:?} {nth} failed: {outcome:?}");
            let disk = disk.die(Death::PowerCut);
            check_after(&disk, &context);
            check_gone(&disk, &context);
        }
    }
    assert!(fired > 20, "{fired}");
}

#[test]
fn held_spine_prevents_forgetting_anything() {
    let before = filled();
    let disk = copy_of(&before);
    let writer = journal(&disk).spine(&thread(THREAD), Rotation::default()).unwrap();
    let outcome = forget_it(&disk);
    assert!(
        matches!(&outcome, Err(ForgetError::SpineHeld { thread }) if thread.as_str() == THREAD),
        "{outcome:?}"
    );
    assert!(outcome.unwrap_err().is_held());
    drop(writer);
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let guard = spooled().lock(&store).unwrap().unwrap();
    assert!(matches!(forget_it(&disk), Err(ForgetError::ConnectionHeld { .. })));
    drop(guard);
    assert!(disk.content(&StorePath::new("vault/forgotten.jsonl".to_owned())).is_none());
    check_whole(&disk, THREAD, "held");
    forget_it(&disk).unwrap();
    check_gone(&disk, "no longer held");
}

#[test]
fn forgotten_thread_can_be_recorded_again_on_request() {
    let disk = filled();
    forget_it(&disk).unwrap();
    assert!(matches!(record(&disk, THREAD, ForgottenRule::Stays), Err(spines::Error::Forgotten { .. })));
    let written = record(&disk, THREAD, ForgottenRule::Again).unwrap();
    assert!(written > 3);
    assert_eq!(record(&disk, THREAD, ForgottenRule::Stays).unwrap(), 0);
    // The session is no longer forgotten.
    drop(archive(&disk));
    check_whole_spine(&disk, written);
}

fn check_whole_spine(disk: &SimDisk, records: u64) {
    let store = Store::open(Arc::new(disk.clone())).unwrap();
    let report = validate_spine(&store, &thread(THREAD)).unwrap();
    assert_eq!((report.errors, report.records), (0, records));
}
