//! `steno forget` and trace spines: spines are deleted with their session, and come back only on request.

use std::fs;
use std::path::PathBuf;

use crate::app_server::{AppServerClient, SAID, SERVER};
use crate::kit::{RUN, Steno, wait_until};
use crate::spine::{KEY, THREAD, check, spine_dir, with_spine, write};

const SECRET: &str = "the-secret-of-this-session";

/// A session of Codex with a prompt, in its agent's home, archived and recorded as a spine.
fn session(steno: &Steno) -> PathBuf {
    let dir = steno.dir.path().join(".codex/sessions/2026/01/31");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(format!("rollout-2026-01-31T08-15-24-{THREAD}.jsonl"));
    let meta = format!(
        r#"{{"timestamp":"2026-01-31T08:15:24.123Z","type":"session_meta","payload":{{"id":"{THREAD}","timestamp":"2026-01-31T08:15:24.123Z","cwd":"/p","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}}}"#
    );
    let prompt = format!(
        r#"{{"timestamp":"2026-01-31T08:15:25.123Z","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{SECRET}"}}]}}}}"#
    );
    fs::write(&path, format!("{meta}\n{prompt}\n")).unwrap();
    check(&steno.run(&["import"]), 0, &[]);
    check(&steno.run(&["spine", "record", THREAD]), 0, &["recorded"]);
    path
}

/// The files of the store that have a text in them, compressed ones aside.
fn files_with(steno: &Steno, text: &str) -> Vec<String> {
    let has = |bytes: &[u8]| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    steno.look().into_iter().filter(|(_, seen)| has(&seen.bytes)).map(|(name, _)| name).collect()
}

fn spines(steno: &Steno) -> Vec<String> {
    let listed = fs::read_dir(steno.store().join("spine")).into_iter().flatten().flatten();
    listed.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn forget_shows_and_deletes_the_spine_of_a_session() {
    let steno = Steno::new();
    let file = session(&steno);
    let before = steno.look();
    let said = steno.run(&["forget", THREAD, "--dry-run"]);
    check(&said, 0, &[&format!("spine {THREAD}"), "total: 1 file, 1 run and 1 spine"]);
    let shown = steno.run(&["forget", THREAD, "--dry-run", "--json"]).json();
    let spine = shown.iter().find(|object| object["kind"] == "spine").unwrap();
    assert_eq!(spine["thread_id"], THREAD);
    assert!(spine["bytes"].as_u64().unwrap() > 500, "{spine}");
    steno.assert_unchanged(&before, "forget --dry-run");
    let said = steno.run(&["forget", "0199", "--yes"]);
    check(
        &said,
        0,
        &[
            "forgot 1 file, 1 run and 1 spine",
            "the agent still has one of these files (",
            "to archive it again, run `steno import --again PATH`",
        ],
    );
    assert_eq!((files_with(&steno, SECRET), spines(&steno)), (Vec::new(), Vec::new()));
    // As with `import`, it comes back only on request.
    let path = file.to_str().unwrap();
    check(&steno.run(&["spine", "record", path]), 1, &["was forgotten", "steno spine record --again"]);
    assert_eq!((files_with(&steno, SECRET), spines(&steno)), (Vec::new(), Vec::new()));
    check(&steno.run(&["spine", "record", "--again", path]), 0, &["2 new records"]);
    check(&steno.run(&["spine", "record", path]), 0, &["0 new records, 2 known"]);
    // It can be forgotten again.
    check(&steno.run(&["forget", THREAD, "--yes"]), 0, &["forgot 0 files, 0 runs and 1 spine"]);
    assert_eq!((files_with(&steno, SECRET), spines(&steno)), (Vec::new(), Vec::new()));
    check(&steno.run(&["spine", "record", path]), 1, &["was forgotten"]);
    // After an import it can be recorded from the store.
    check(&steno.run(&["import", "--again", path]), 0, &[]);
    check(&steno.run(&["spine", "record", THREAD]), 0, &["2 new records"]);
    check(&steno.run(&["verify"]), 0, &[]);
}

#[test]
fn forgotten_session_gets_no_spine_from_its_file() {
    let steno = Steno::new();
    let file = session(&steno);
    fs::remove_dir_all(spine_dir(&steno)).unwrap();
    check(&steno.run(&["forget", "--project", "/p", "--yes"]), 0, &["forgot 1 file and 1 run"]);
    check(&steno.run(&["spine", "record", file.to_str().unwrap()]), 1, &["was forgotten"]);
    assert_eq!(spines(&steno), [""; 0]);
}

#[test]
fn forget_older_than_deletes_only_old_spines() {
    let steno = Steno::new();
    let file = session(&steno);
    check(&steno.run(&["forget", "--older-than", "30d", "--yes"]), 1, &["no matching session in the store"]);
    assert_eq!(spines(&steno), [THREAD]);
    let old = fs::File::options().append(true).open(&file).unwrap();
    old.set_modified(std::time::SystemTime::now() - std::time::Duration::from_hours(24 * 100)).unwrap();
    check(&steno.run(&["import"]), 0, &[]);
    check(&steno.run(&["forget", "--older-than", "30d", "--yes"]), 0, &["and 1 spine"]);
    assert_eq!(spines(&steno), [""; 0]);
}

#[test]
fn forget_deletes_a_lone_spine_with_its_artifacts() {
    let steno = with_spine();
    let dir = spine_dir(&steno);
    fs::write(dir.join("notes.jsonl"), "{}\n").unwrap();
    fs::write(dir.join("segment-001.jsonl.torn-1-0123456789abcdef"), KEY).unwrap();
    check(&steno.run(&["forget", "0199", "--yes"]), 0, &["and 1 spine"]);
    assert_eq!((files_with(&steno, KEY), spines(&steno)), (Vec::new(), Vec::new()));
    assert!(steno.store().join(format!("locks/spine-{THREAD}.lock")).exists());
    check(&steno.run(&["verify"]), 1, &["nothing to verify"]);
    check(&steno.run(&["forget", "0199", "--yes"]), 1, &["hint"]);
}

#[test]
fn forget_deletes_nothing_while_a_spine_is_written() {
    let steno = Steno::new();
    session(&steno);
    let spine = write(&steno);
    let before = files_with(&steno, SECRET);
    let said = steno.run(&["forget", THREAD, "--yes"]);
    check(&said, 4, &[&format!("the spine of thread {THREAD} is being written"), "nothing was forgotten"]);
    assert_eq!(files_with(&steno, SECRET), before);
    assert!(!steno.store().join("vault/forgotten.jsonl").exists());
    drop(spine);
    check(&steno.run(&["forget", THREAD, "--yes"]), 0, &["1 spine"]);
    assert_eq!(files_with(&steno, SECRET), [""; 0]);
}

/// Runs a conversation over a connection.
fn connect(steno: &Steno) {
    let mut connected = AppServerClient::begin(steno, &["sh", "-c", SERVER]);
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    connected.hear();
    assert_eq!(connected.end().1, 7);
}

/// The runs of the store, the newest last.
fn runs(steno: &Steno) -> Vec<String> {
    let listed = steno.run(&["ls", "--runs", "--json"]).json();
    listed.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn forget_deletes_spines_of_a_connection_if_nothing_else_is_in_them() {
    let steno = Steno::new();
    connect(&steno);
    connect(&steno);
    let planned = steno.run(&["forget", "th1", "--dry-run", "--json"]).json();
    let paths: Vec<&str> = planned.iter().filter_map(|line| line["path"].as_str()).collect();
    let runs = runs(&steno);
    assert_eq!((paths.len(), runs.len()), (2, 2), "{planned:?}");
    // A run names its session, a path the connection alone.
    let said = steno.run(&["forget", &runs[0], "--dry-run", "--json"]);
    assert_eq!(said.json(), planned);
    let said = steno.run(&["forget", paths[0], "--yes"]);
    check(&said, 0, &["the spine of `th1` also has records of other connections, and is kept"]);
    assert_eq!(spines(&steno), ["th1"]);
    check(&steno.run(&["forget", paths[1], "--yes"]), 0, &["forgot 1 file, 1 run and 1 spine"]);
    assert_eq!((files_with(&steno, "Hello."), spines(&steno)), (Vec::new(), Vec::new()));
    // Continuing the thread does not bring it back.
    connect(&steno);
    assert!(!spines(&steno).contains(&"th1".to_owned()));
    assert_eq!(files_with(&steno, "Hello."), [""; 0]);
    check(&steno.run(&["verify"]), 0, &["ok "]);
}

#[test]
fn leftovers_of_a_killed_recorder_are_forgotten_too() {
    let steno = Steno::new();
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", SERVER]);
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    let dir = steno.store().join("connections");
    let lines = || {
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        entries.map(|entry| fs::read_to_string(entry.path()).unwrap().lines().count()).sum::<usize>()
    };
    wait_until("all is written", || lines() >= 6);
    wait_until("the spine", || spines(&steno) == ["th1"]);
    check(&steno.run(&["forget", "th1", "--yes"]), 4, &["the spine of thread th1 is being written"]);
    connected.child.kill().unwrap();
    connected.child.wait().unwrap();
    // Forgetting first archives waiting connections.
    check(&steno.run(&["forget", RUN, "--yes"]), 1, &["hint"]);
    let run = runs(&steno).remove(0);
    check(&steno.run(&["forget", &run, "--yes"]), 0, &["1 spine"]);
    check(&steno.run(&["import"]), 0, &[]);
    assert_eq!((files_with(&steno, "Hello."), spines(&steno)), (Vec::new(), Vec::new()));
}

/// The file of a connection that was forgotten and that a crash has left is not made into spines again.
#[test]
fn forgotten_connection_gets_no_spines_again() {
    let steno = Steno::new();
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", SERVER]);
    for line in SAID {
        connected.say(line);
        connected.hear();
    }
    let dir = steno.store().join("connections");
    let file = || fs::read_dir(&dir).ok()?.next()?.ok().map(|entry| entry.path());
    wait_until("its file", || {
        file().is_some_and(|path| fs::read_to_string(path).unwrap().contains("Hello."))
    });
    let path = file().unwrap();
    let copy = fs::read(&path).unwrap();
    connected.hear();
    assert_eq!(connected.end().1, 7);
    let run = runs(&steno).remove(0);
    check(&steno.run(&["forget", &run, "--yes"]), 0, &["1 spine"]);
    fs::write(&path, copy).unwrap();
    check(&steno.run(&["import"]), 0, &[]);
    assert_eq!((files_with(&steno, "Hello."), spines(&steno)), (Vec::new(), Vec::new()));
    assert!(!path.exists());
}
