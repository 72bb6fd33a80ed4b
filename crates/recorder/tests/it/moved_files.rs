//! Files that are renamed, compressed or copied.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use steno_testkit::sim_disk::{Call, Fault, SimDisk};

use crate::bench::{Bench, Step, append, archive, copy, sources, store, transcript, transcripts};
use crate::sessions::{SESSION, THREAD, codex_call, prompt, rollout, turn};

/// Returns the path of a thread, and its path after it is archived.
fn places(bench: &Bench) -> (std::path::PathBuf, std::path::PathBuf) {
    let name = format!("rollout-2026-01-02T03-04-05-{THREAD}.jsonl");
    let (now, archived) = (bench.codex("sessions/2026/01/02"), bench.codex("archived_sessions"));
    fs::create_dir_all(&now).unwrap();
    fs::create_dir_all(&archived).unwrap();
    (now.join(&name), archived.join(&name))
}

/// Checks that a store has the events of a plain import of the thread. Source ids depend on the path and are not
/// compared.
#[track_caller]
fn assert_events(store: &SimDisk, thread: &str) {
    let bench = Bench::new();
    let (path, _) = places(&bench);
    fs::write(path, thread).unwrap();
    let plain = self::store();
    bench.import(&plain);
    let without_source = |store: &SimDisk| {
        let lines = transcript(store)
            .lines()
            .map(|line| line.split("\"evidence\"").next().unwrap().to_owned())
            .collect::<Vec<_>>();
        let steps = |line: &String| !line.contains(r#""name":"rewritten""#);
        lines
            .into_iter()
            .filter(steps)
            .map(|line| line.split_once(',').unwrap().1.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(without_source(store), without_source(&plain));
}

#[test]
fn archived_thread_continues_in_its_run() {
    let bench = Bench::new();
    let (path, archived) = places(&bench);
    fs::write(&path, rollout() + &codex_call(1)).unwrap();
    let imported = store();
    bench.import(&imported);
    fs::rename(&path, &archived).unwrap();
    append(&archived, &codex_call(2));
    bench.import(&imported);
    assert_eq!(sources(&imported), [(archived, vec![rollout() + &codex_call(1) + &codex_call(2)])]);
    assert_events(&imported, &(rollout() + &codex_call(1) + &codex_call(2)));
}

#[test]
fn thread_archived_while_followed_continues_in_its_run() {
    let bench = Bench::new();
    let (path, archived) = places(&bench);
    fs::write(&path, rollout() + &codex_call(1)).unwrap();
    let followed = store();
    let steps: [Step<'_>; 2] = [
        Box::new(|| {
            fs::rename(&path, &archived).unwrap();
            append(&archived, &codex_call(2));
        }),
        Box::new(|| append(&archived, &codex_call(3))),
    ];
    bench.follow(&followed, steps);
    let thread = rollout() + &codex_call(1) + &codex_call(2) + &codex_call(3);
    assert_eq!(sources(&followed), [(archived, vec![thread.clone()])]);
    assert_events(&followed, &thread);
}

/// The killed process did not save which file it had read.
#[test]
fn thread_archived_after_a_kill_continues_in_its_run() {
    let bench = Bench::new();
    let (path, archived) = places(&bench);
    fs::write(&path, rollout() + &codex_call(1)).unwrap();
    let (followed, killed) = (store(), store());
    bench.follow(&followed, [Box::new(|| copy(&followed, &killed)) as Step<'_>]);
    fs::rename(&path, &archived).unwrap();
    append(&archived, &codex_call(2));
    bench.follow(&killed, []);
    let thread = rollout() + &codex_call(1) + &codex_call(2);
    assert_eq!(sources(&killed), [(archived, vec![thread.clone()])]);
    assert_events(&killed, &thread);
}

#[test]
fn thread_archived_and_rewritten_continues_in_its_run() {
    let bench = Bench::new();
    let (path, archived) = places(&bench);
    let imported = store();
    fs::write(&path, rollout() + &codex_call(1)).unwrap();
    bench.import(&imported);
    fs::rename(&path, &archived).unwrap();
    fs::write(&archived, codex_call(2)).unwrap();
    bench.import(&imported);
    assert_eq!(sources(&imported), [(archived, vec![rollout() + &codex_call(1), codex_call(2)])]);
    assert_eq!(transcripts(&imported).len(), 1);
}

/// The same process fails with the renamed file and tries again.
#[test]
fn archived_thread_that_failed_first_continues_in_its_run() {
    const EIO: i32 = 5;
    let mut fired = 0;
    for kind in [Call::Create, Call::Write, Call::Sync, Call::SyncDir, Call::Rename, Call::OpenRead] {
        for nth in 1.. {
            let bench = Bench::new();
            let (path, archived) = places(&bench);
            fs::write(&path, rollout() + &codex_call(1)).unwrap();
            let imported = store();
            let mut archive = archive(&imported);
            bench.import_what_works(&mut archive);
            // A copy has another inode, so only the name identifies the thread.
            fs::copy(&path, &archived).unwrap();
            fs::remove_file(&path).unwrap();
            append(&archived, &codex_call(2));
            imported.plan(Fault::Fail { kind, nth, error: EIO });
            bench.import_what_works(&mut archive);
            if imported.fired() == 0 {
                break;
            }
            fired += 1;
            bench.import_what_works(&mut archive);
            let thread = rollout() + &codex_call(1) + &codex_call(2);
            assert_eq!(sources(&imported), [(archived, vec![thread.clone()])], "{kind:?} {nth}");
            assert_events(&imported, &thread);
        }
    }
    assert!(fired > 10, "only {fired} failures");
}

/// File systems may give the inode of a deleted file to the next file.
#[test]
fn session_with_a_reused_inode_is_a_new_source() {
    let bench = Bench::new();
    let (path, archived) = places(&bench);
    fs::write(&path, rollout()).unwrap();
    let number = fs::metadata(&path).unwrap().ino();
    let imported = store();
    bench.import(&imported);
    fs::remove_file(&path).unwrap();
    let session = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let takes_number = |path: &Path| {
        fs::write(path, prompt(1)).unwrap();
        fs::metadata(path).unwrap().ino() == number
    };
    if !takes_number(&session) {
        // If inodes are not reused at once, renaming a file gives the same situation.
        fs::remove_file(&session).unwrap();
        fs::write(&path, rollout()).unwrap();
        bench.import(&imported);
        fs::rename(&path, &session).unwrap();
        fs::write(&session, prompt(1)).unwrap();
    }
    bench.import(&imported);
    let found = sources(&imported);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(!archived.exists());
    assert_eq!(found[0], (session, vec![prompt(1)]));
}

/// Agents put the same small files beside every session. Such a file of a deleted session stays its own.
#[test]
fn equal_file_beside_another_session_is_a_new_source() {
    let bench = Bench::new();
    let imported = store();
    let at = |session: &str| bench.claude(&format!("projects/p/{session}/tool-results/a.txt"));
    let (one, other) = (at(SESSION), at("0b9ab1f3-2a2c-4d0e-9f0e-5a2f1c7d8e90"));
    for (path, next) in [(&one, &other), (&other, &one)] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::remove_file(next).ok();
        fs::write(path, "as in every session\n").unwrap();
        bench.import(&imported);
    }
    let text = vec!["as in every session\n".to_owned()];
    let mut found = sources(&imported);
    found.sort();
    let mut want = [(one, text.clone()), (other, text)];
    want.sort();
    assert_eq!(found, want);
}

/// Codex compresses old threads and unpacks them before it continues them; for a moment both files exist.
#[test]
fn compressed_and_unpacked_thread_has_each_event_once() {
    let bench = Bench::new();
    let (path, _) = places(&bench);
    let packed_path = path.with_extension("jsonl.zst");
    let thread = rollout() + &codex_call(1);
    fs::write(&path, &thread).unwrap();
    let imported = store();
    bench.import(&imported);
    let packed = zstd::encode_all(thread.as_bytes(), 3).unwrap();
    fs::write(&packed_path, &packed).unwrap();
    for _ in 0..3 {
        bench.import(&imported);
        assert_eq!(sources(&imported), [(path.clone(), vec![thread.clone()])]);
    }
    fs::remove_file(&path).unwrap();
    bench.import(&imported);
    fs::write(&path, &thread).unwrap();
    bench.import(&imported);
    fs::remove_file(&packed_path).unwrap();
    append(&path, &codex_call(2));
    bench.import(&imported);
    let found = sources(&imported);
    assert_eq!((found.len(), &found[0].0), (1, &path));
    assert_eq!(found[0].1.len(), 3);
    assert_events(&imported, &(thread + &codex_call(2)));
}

#[test]
fn thread_compressed_while_followed_has_each_event_once() {
    let bench = Bench::new();
    let (path, _) = places(&bench);
    let packed_path = path.with_extension("jsonl.zst");
    let thread = rollout() + &codex_call(1);
    fs::write(&path, &thread).unwrap();
    let followed = store();
    let steps: [Step<'_>; 2] = [
        Box::new(|| {
            fs::write(&packed_path, zstd::encode_all(thread.as_bytes(), 3).unwrap()).unwrap();
            fs::remove_file(&path).unwrap();
            fs::write(&path, &thread).unwrap();
            fs::remove_file(&packed_path).unwrap();
            append(&path, &codex_call(2));
        }),
        Box::new(|| {
            let whole = thread.clone() + &codex_call(2);
            fs::write(&packed_path, zstd::encode_all(whole.as_bytes(), 3).unwrap()).unwrap();
            fs::remove_file(&path).unwrap();
        }),
    ];
    bench.follow(&followed, steps);
    let found = sources(&followed);
    assert_eq!((found.len(), &found[0].0), (1, &packed_path));
    assert_events(&followed, &(thread.clone() + &codex_call(2)));
}

/// A copy is only evidence. When it diverges it gets its own run with the session's id; the run of the session has
/// every event once.
#[test]
fn copy_of_a_session_does_not_affect_it() {
    let mut bench = Bench::new();
    let path = bench.claude(&format!("projects/p/{SESSION}.jsonl"));
    let alone = store();
    fs::write(&path, turn(1, 2)).unwrap();
    bench.import(&alone);
    let backup = bench.path("backup");
    fs::create_dir_all(&backup).unwrap();
    fs::copy(&path, backup.join(format!("{SESSION}.jsonl"))).unwrap();
    bench.given = vec![backup.clone()];
    let both = store();
    bench.import(&both);
    assert_eq!((transcripts(&both), sources(&both).len()), (transcripts(&alone), 2));
    append(&backup.join(format!("{SESSION}.jsonl")), &prompt(5));
    append(&path, &prompt(6));
    bench.import(&both);
    bench.import(&alone);
    bench.given.clear();
    bench.import(&alone);
    let (all, want) = (transcripts(&both), transcripts(&alone));
    assert_eq!(all.len(), 2);
    assert!(all[SESSION].starts_with(transcript_of(&want, SESSION)));
    let copied = all.iter().find(|(run, _)| *run != SESSION).unwrap().1;
    assert!(copied.lines().next().unwrap().contains(&format!(r#""session_run_id":"{SESSION}""#)));
    assert_eq!(sources(&both).len(), 2);
}

fn transcript_of<'a>(all: &'a std::collections::BTreeMap<String, String>, run: &str) -> &'a str {
    all.get(run).map_or("", String::as_str)
}
