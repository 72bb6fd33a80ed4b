//! `steno spine record`: sessions of Codex become valid spines that grow with them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use steno_testkit::{needs, shared_dir, tool};

use crate::kit::{RUN, Steno, program};

const META: &str = r#"{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{"id":"t1","cwd":"/w","git":{"commit_hash":"c0"}}}"#;
const STARTED: &str = r#"{"timestamp":"2026-05-01T10:00:01.000Z","type":"event_msg","payload":{"type":"task_started","turn_id":"u1"}}"#;
const COMPACTED: &str = r#"{"timestamp":"2026-05-01T10:00:02.000Z","type":"compacted","payload":{"message":"S","replacement_history":[]}}"#;

#[test]
fn session_file_becomes_a_spine_that_grows_with_it() {
    let steno = Steno::new();
    let file = steno.dir.path().join("rollout-2026-05-01T10-00-00-t1.jsonl");
    fs::write(&file, format!("{META}\n{STARTED}\n")).unwrap();
    let path = file.to_str().unwrap();
    let said = steno.run(&["spine", "record", path]);
    assert_eq!((said.code, said.out.as_str()), (0, "recorded  t1  3 new records\n"), "{said:?}");
    fs::write(&file, format!("{META}\n{STARTED}\n{COMPACTED}\n")).unwrap();
    let said = steno.run(&["spine", "record", "--json", path]);
    assert_eq!(said.out, "{\"known\":3,\"records\":2,\"refused\":0,\"threads\":[\"t1\"]}\n");
    let said = steno.run(&["spine", "validate"]);
    assert!(said.code == 0 && said.out.contains("5 records"), "{said:?}");
}

/// The files of a thread that was rolled back twice: each continues the beginning of the one before.
#[test]
fn all_stored_files_of_a_thread_become_its_spine() {
    const ID: &str = "0199aaaa-0000-7000-8000-00000000000";
    let steno = Steno::new();
    let dir = steno.dir.path().join(".codex/sessions/2026/05/01");
    fs::create_dir_all(&dir).unwrap();
    let item = |number: u32| {
        let payload = format!(r#"{{"type":"message","role":"user","content":[],"n":{number}}}"#);
        format!(r#"{{"timestamp":"2026-05-01T10:00:01.000Z","type":"response_item","payload":{payload}}}"#)
    };
    let meta = |base: &str| {
        format!(
            r#"{{"timestamp":"2026-05-01T10:00:00.000Z","type":"session_meta","payload":{{"id":"{ID}1","timestamp":"2026-05-01T10:00:00.000Z","cwd":"/w","originator":"x","cli_version":"0.166.0","source":"exec"{base}}}}}"#
        )
    };
    let base = |id: u32, text: &str| {
        let end = text.lines().take(2).map(|line| line.len() + 1).sum::<usize>();
        format!(r#","history_base":{{"thread_id":"{ID}{id}","end_byte_offset":{end}}}"#)
    };
    let first = format!("{}\n{}\n{}\n", meta(""), item(1), item(2));
    let second = format!("{}\n{}\n{}\n", meta(&base(1, &first)), item(3), item(4));
    let third = format!("{}\n{}\n{COMPACTED}\n", meta(&base(2, &second)), item(5));
    let files = [(0, String::new(), first), (1, format!("_{ID}2"), second), (2, format!("_{ID}3"), third)];
    for (second, own, text) in files {
        fs::write(dir.join(format!("rollout-2026-05-01T10-00-0{second}-{ID}1{own}.jsonl")), text).unwrap();
    }
    assert_eq!(steno.run(&["import"]).code, 0);
    for (new, known) in [(10, 0), (0, 10)] {
        let said = steno.run(&["spine", "record", "--json", &format!("{ID}1")]);
        let want = format!(r#"{{"known":{known},"records":{new},"refused":0,"threads":["{ID}1"]}}"#);
        assert_eq!((said.code, said.out.trim_end()), (0, want.as_str()), "{said:?}");
    }
    let spine = fs::read_dir(steno.store().join("spine").join(format!("{ID}1"))).unwrap();
    let texts = spine.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect::<String>();
    let boundary = texts.lines().find(|line| line.contains(r#""type":"compaction_boundary""#)).unwrap();
    let numbers: Vec<&str> = boundary.split(r#""n":"#).skip(1).map(|rest| &rest[..1]).collect();
    assert_eq!(numbers, ["1", "3", "5"], "{boundary}");
}

#[test]
fn sources_other_than_codex_are_refused() {
    let steno = Steno::new();
    let dir = steno.dir.path();
    let write = |name: &str, text: &str| {
        fs::write(dir.join(name), text).unwrap();
        dir.join(name).to_str().unwrap().to_owned()
    };
    let empty = write("empty.jsonl", "");
    let other = write("other.jsonl", "{\"type\":\"user\"}\n");
    for (source, wanted) in [
        (empty.as_str(), "does not name a thread"),
        (&other, "does not name a thread"),
        (dir.to_str().unwrap(), "has no session files of Codex, and is not a trace"),
        ("00000000-0000-4000-8000-000000000000", "is neither a file nor a thread of the store"),
        ("../nothing", "is neither a file nor a thread of the store"),
    ] {
        let said = steno.run(&["spine", "record", source]);
        assert!(
            said.code != 0 && said.err.contains(wanted) && said.err.contains("hint:"),
            "{source}: {said:?}"
        );
    }
    assert!(!steno.store().join("spine").exists());
    // Of several, one that cannot be recorded takes nothing from the others.
    let good = write("rollout-t1.jsonl", &format!("{META}\n"));
    let said = steno.run(&["spine", "record", &empty, &good]);
    assert!(said.code == 3 && said.out.contains("t1"), "{said:?}");
}

#[test]
fn every_session_of_a_directory_or_the_store_is_recorded() {
    let steno = Steno::new();
    let dir = steno.dir.path().join(".codex/sessions/2026/05/01");
    fs::create_dir_all(&dir).unwrap();
    let id = |number: u32| format!("0199aaaa-0000-7000-8000-00000000000{number}");
    let session = |number: u32| {
        META.replace("t1", &id(number)).replace("\"cwd\"", r#""timestamp":"2026-05-01T10:00:00.000Z","originator":"x","cli_version":"0.166.0","source":"exec","cwd""#)
    };
    let name = |number: u32| format!("rollout-2026-05-01T10-00-0{number}-{}.jsonl", id(number));
    fs::write(dir.join(name(1)), session(1) + "\n").unwrap();
    let packed = zstd::encode_all((session(2) + "\n").as_bytes(), 3).unwrap();
    fs::write(dir.join(format!("{}.zst", name(2))), packed).unwrap();
    fs::write(dir.join("other.jsonl"), "{\"type\":\"user\"}\n").unwrap();
    let said = steno.run(&["spine", "record", ".codex/sessions"]);
    let want = format!("recorded  {}  2 new records\nrecorded  {}  2 new records\n", id(1), id(2));
    assert_eq!((said.code, said.out.as_str()), (0, want.as_str()), "{said:?}");
    // One that cannot be recorded takes nothing from the others.
    fs::write(dir.join("rollout-2026-05-01T10-00-00-x.jsonl"), "{}\n").unwrap();
    let said = steno.run(&["spine", "record", ".codex"]);
    assert_eq!((said.code, said.out.matches("2 known").count()), (3, 2), "{said:?}");
    assert!(said.err.contains("does not name a thread") && said.err.contains("1 of 3 sources"), "{said:?}");
    fs::remove_file(dir.join("rollout-2026-05-01T10-00-00-x.jsonl")).unwrap();
    assert_eq!(steno.run(&["spine", "record", "--all"]).code, 1, "nothing is archived yet");
    assert_eq!(steno.run(&["import"]).code, 0);
    fs::remove_dir_all(steno.store().join("spine")).unwrap();
    let said = steno.run(&["spine", "record", "--all"]);
    assert_eq!((said.code, said.out.as_str()), (0, want.as_str()), "{said:?}");
    assert_eq!(steno.run(&["spine", "record"]).code, 2);
    // Forgotten sessions are skipped, and are not failures of the directory.
    assert_eq!(steno.run(&["forget", &id(1), "--yes"]).code, 0);
    let said = steno.run(&["spine", "record", ".codex"]);
    assert!(said.code == 0 && said.err.contains("was forgotten") && said.out.contains(&id(2)), "{said:?}");
}

#[test]
fn ambiguous_or_unknown_thread_is_an_error() {
    let steno = Steno::new();
    let dir = steno.dir.path().join(".codex/sessions/2026/05/01");
    fs::create_dir_all(&dir).unwrap();
    for number in 1..=3 {
        let id = format!("0199aaaa-0000-7000-8000-00000000000{number}");
        let path = dir.join(format!("rollout-2026-05-01T10-00-0{number}-{id}.jsonl"));
        fs::write(path, META.replace("t1", &id) + "\n").unwrap();
    }
    assert_eq!(steno.run(&["import"]).code, 0);
    let said = steno.run(&["spine", "record", "0199aaaa"]);
    assert!(said.code == 2 && said.err.contains("`0199aaaa` names 3 threads"), "{said:?}");
    let said = steno.run(&["spine", "record", "0199aaaa-0000-7000-8000-000000000003"]);
    assert!(said.code == 0 && said.out.contains("000000000003"), "{said:?}");
    steno.record(&[r#"{"type":"run.started"}"#]);
    let said = steno.run(&["spine", "record", &RUN[..8]]);
    let told = said.err.contains("was not derived from a session file of Codex")
        && said.err.contains("only sessions of Codex become spines");
    assert!(said.code == 1 && told, "{said:?}");
    steno.recorded(&RUN.replace("440000", "440001"), &[serde_json::json!({"type": "run.started"})]);
    let said = steno.run(&["spine", "record", &RUN[..8]]);
    assert!(said.code == 2 && said.err.contains("names 2 runs"), "{said:?}");
}

#[test]
fn session_file_imported_by_path_is_recorded_too() {
    let steno = Steno::new();
    let id = "0199aaaa-0000-7000-8000-00000000beef";
    let meta = META.replace("t1", id).replace("\"cwd\"", r#""timestamp":"2026-05-01T10:00:00.000Z","originator":"x","cli_version":"0.166.0","source":"exec","cwd""#);
    fs::write(steno.dir.path().join("kept.jsonl"), meta + "\n").unwrap();
    let exec = r#"{"type":"thread.started","thread_id":"0199aaaa-0000-7000-8000-00000000cafe"}"#;
    fs::write(steno.dir.path().join("stream.jsonl"), format!("{exec}\n{{\"type\":\"turn.started\"}}\n"))
        .unwrap();
    assert_eq!(steno.run(&["import", "kept.jsonl", "stream.jsonl"]).code, 0);
    // The stream is not the own file of a thread.
    let want = format!("recorded  {id}  2 new records\n");
    for args in [&["spine", "record", "--all"][..], &["spine", "record", "beef"]] {
        let said = steno.run(args);
        assert_eq!(
            (said.code, said.out.replace("0 new records, 2 known", "2 new records")),
            (0, want.clone()),
            "{said:?}"
        );
    }
    let said = steno.run(&["forget", "beef", "--yes"]);
    assert!(said.code == 0 && said.err.contains("forgot 1 file, 1 run and 1 spine"), "{said:?}");
}

#[test]
fn spine_of_a_file_that_the_vault_cannot_give_back_is_not_called_recorded() {
    let steno = Steno::new();
    let id = "0199aaaa-0000-7000-8000-00000000beef";
    let file = steno
        .dir
        .path()
        .join(".codex/sessions/2026/05/01")
        .join(format!("rollout-2026-05-01T10-00-00-{id}.jsonl"));
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    // Longer than one chunk, and not compressible.
    let mut text = META.replace("t1", id) + "\n";
    for number in 0..40_000_u64 {
        let word = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        text.push_str(&format!(
            r#"{{"timestamp":"2026-05-01T10:00:01.000Z","type":"response_item","payload":{{"type":"message","role":"user","content":[],"n":"{word:x}"}}}}"#
        ));
        text.push('\n');
    }
    fs::write(&file, &text).unwrap();
    assert_eq!(steno.run(&["import"]).code, 0);
    let packs = steno.store().join("vault/packs");
    for pack in fs::read_dir(packs).unwrap() {
        let file = fs::OpenOptions::new().write(true).open(pack.unwrap().path()).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    }
    let said = steno.run(&["spine", "record", id]);
    assert!(said.code == 1 && said.err.contains("error: "), "{said:?}");
}

/// Session files below a directory.
fn rollouts(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_dir() {
            rollouts(&path, found);
        } else if name.contains("rollout") && name.contains(".jsonl") {
            found.push(path);
        }
    }
}

#[test]
fn every_real_session_of_codex_becomes_a_valid_spine() {
    let shared = needs!(shared_dir(), "the sample sessions are absent");
    let mut found = Vec::new();
    for dir in ["captures/codex", "recordings/codex", "versions/codex"] {
        rollouts(&shared.join(dir), &mut found);
    }
    assert!(found.len() > 15, "{}", found.len());
    for path in found {
        let steno = Steno::new();
        let path = path.to_str().unwrap();
        let said = steno.run(&["spine", "record", path]);
        assert_eq!(said.code, 0, "{path}: {said:?}");
        let said = steno.run(&["spine", "validate"]);
        assert!(said.code == 0 && said.out.lines().all(|line| line.starts_with("valid")), "{path}: {said:?}");
        let said = steno.run(&["spine", "record", path]);
        assert!(said.out.contains("  0 new records, "), "{path}: {said:?}");
    }
}

/// Returns how often a command opens each manifest of the vault.
fn manifest_reads(steno: &Steno, args: &[&str]) -> Vec<usize> {
    let trace = steno.dir.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "trace=openat,openat2", "-o"]).arg(&trace).arg(program());
    command.arg("--store").arg(steno.store()).args(args).env("HOME", steno.dir.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let mut reads = BTreeMap::new();
    for call in fs::read_to_string(&trace).unwrap().lines() {
        if let Some((_, path)) = call.split_once("\"vault/sources/") {
            *reads.entry(path.split('"').next().unwrap().to_owned()).or_default() += 1;
        }
    }
    reads.into_values().collect()
}

#[test]
fn each_manifest_is_read_once_for_all_threads() {
    const THREADS: usize = 4;
    needs!(tool("strace"), "strace shows which files are opened");
    let steno = Steno::new();
    let dir = steno.dir.path().join(".codex/sessions/2026/05/01");
    fs::create_dir_all(&dir).unwrap();
    for number in 0..THREADS {
        let id = format!("0199aaaa-0000-7000-8000-00000000000{number}");
        let text = format!("{}\n{STARTED}\n", META.replace(r#""t1""#, &format!("\"{id}\"")));
        fs::write(dir.join(format!("rollout-2026-05-01T10-00-00-{id}.jsonl")), text).unwrap();
    }
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(manifest_reads(&steno, &["spine", "record", "--all"]), [1; THREADS]);
    assert_eq!(manifest_reads(&steno, &["spine", "record", "--all"]), [1; THREADS]);
    // Spines that were forgotten with their sessions come back with them.
    for number in 0..THREADS {
        let id = format!("0199aaaa-0000-7000-8000-00000000000{number}");
        let said = steno.run(&["forget", &id, "--yes"]);
        assert_eq!(said.code, 0, "{said:?}");
    }
    let said = steno.run(&["import", "--again", dir.to_str().unwrap()]);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(manifest_reads(&steno, &["spine", "record", "--all"]), [1; THREADS]);
    assert_eq!(steno.run(&["spine", "ls"]).out.lines().count(), THREADS);
}
