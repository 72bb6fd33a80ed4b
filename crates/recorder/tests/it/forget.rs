//! Forgotten sessions whose files still exist.

use std::fs;
use std::sync::Arc;

use steno_journal::{Journal, Options, Store};
use steno_recorder::sources::{SourceRecorder, SourceRecorderOptions};
use steno_testkit::sim_disk::SimDisk;
use steno_vault::{ForgetRequest, NameHash, Reason, Vault};

use crate::bench::{Bench, append, archive, sources, store, transcripts};
use crate::sessions::{SESSION, THREAD, codex_call, prompt, rollout, turn};

fn forget_all(store: &SimDisk) {
    let vault = Vault::create(Arc::new(store.clone())).unwrap();
    let sources = vault.sources().unwrap();
    let names = [SESSION, THREAD].map(NameHash::of_session);
    let what = ForgetRequest { sources: &sources, names: &names, ..ForgetRequest::default() };
    vault.forget_all(what, Reason::Session, "2026-06-08T08:14:42.123Z").unwrap();
    let store = Store::create(Arc::new(store.clone())).unwrap();
    for run in store.runs().unwrap() {
        store.remove_run(run, jiff::Timestamp::UNIX_EPOCH).unwrap();
    }
}

fn archive_again(store: &SimDisk) -> SourceRecorder {
    let journal = Journal::new(Store::create(Arc::new(store.clone())).unwrap(), Options::default());
    SourceRecorder::open(journal, SourceRecorderOptions { again: true, ..SourceRecorderOptions::default() })
        .unwrap()
}

#[test]
fn follower_continues_a_file_that_was_recorded_again() {
    let bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    fs::write(&path, turn(1, 2)).unwrap();
    let shared = store();
    bench.import(&shared);
    forget_all(&shared);
    let mut before = archive(&shared);
    assert_eq!(bench.import_with(&mut before).files_forgotten, 1);
    for _ in 0..2 {
        bench.import_with(&mut archive_again(&shared));
    }
    append(&path, &prompt(5));
    let health = bench.import_with(&mut before);
    assert_eq!((health.files_forgotten, health.files_new), (0, 1));
    assert_eq!(sources(&shared), [(path, vec![turn(1, 2) + &prompt(5)])]);
    assert_eq!(transcripts(&shared).len(), 1);
}

/// Codex moves the file of a thread when it archives it. The forgotten thread stays forgotten.
#[test]
fn moved_file_of_a_forgotten_session_is_not_recorded() {
    let bench = Bench::new();
    let name = format!("rollout-2026-01-02T03-04-05-{THREAD}.jsonl");
    let (now, archived) = (bench.codex("sessions/2026/01/02"), bench.codex("archived_sessions"));
    fs::create_dir_all(&now).unwrap();
    fs::create_dir_all(&archived).unwrap();
    fs::write(now.join(&name), rollout() + &codex_call(1)).unwrap();
    let shared = store();
    bench.import(&shared);
    forget_all(&shared);
    fs::rename(now.join(&name), archived.join(&name)).unwrap();
    let health = bench.import(&shared);
    assert_eq!((health.files_forgotten, health.files_new), (1, 0));
    assert_eq!(sources(&shared), []);
    bench.import_with(&mut archive_again(&shared));
    append(&archived.join(&name), &codex_call(2));
    bench.import(&shared);
    let thread = rollout() + &codex_call(1) + &codex_call(2);
    assert_eq!(sources(&shared), [(archived.join(&name), vec![thread])]);
}
