//! `steno index`, and an index that is killed, damaged, deleted or in use: every answer stays right.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use steno_testkit::{is_root, needs, skip, tool};

use crate::full_disks::MountedDisk;
use crate::kit::{RunningSteno, Steno, id, run, wait_until};

const SESSION: &str = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";
const FILES: [&str; 4] = ["index.db", "index.db-wal", "index.db-shm", "index.db-sum"];

fn prompt(text: &str) -> Value {
    json!({ "type": "message.user", "path": "turn-0001", "payload": { "role": "user",
        "blocks": [{ "type": "text", "fidelity": "agent_emitted", "text": text }] } })
}

/// Records a session with one prompt.
fn record_one(steno: &Steno, number: u8) {
    let begin = json!({ "type": "run.started", "payload": { "name": "claude", "kind": "session" } });
    steno.recorded(&id(number), &[begin, prompt(&format!("login number{number} zebra"))]);
}

fn record(steno: &Steno, sessions: u8) {
    (1..=sessions).for_each(|number| record_one(steno, number));
}

/// Returns the runs that have a word, in order.
#[track_caller]
fn found(steno: &Steno, word: &str) -> Vec<String> {
    let said = steno.run(&["search", word, "--json", "--limit", "0", "--hits", "0"]);
    assert!(said.code < 2, "{said:?}");
    let hits = said.json().into_iter().filter(|object| object["type"] == "hit");
    let mut runs: Vec<String> = hits.map(|hit| hit["run_id"].as_str().unwrap().to_owned()).collect();
    runs.sort();
    runs
}

fn status(steno: &Steno) -> Value {
    let said = steno.run(&["index", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    said.json().remove(0)
}

fn ids(sessions: u8) -> Vec<String> {
    (1..=sessions).map(id).collect()
}

#[test]
fn index_tells_its_state_and_is_made_again() {
    let steno = Steno::new();
    record(&steno, 2);
    let said = steno.run(&["index"]);
    assert!(said.out.starts_with("index     none"), "{said:?}");
    assert_eq!(found(&steno, "zebra"), ids(2));
    let now = status(&steno);
    assert_eq!((&now["sessions"], &now["texts"], &now["runs_behind"]), (&json!(2), &json!(2), &json!(0)));
    record_one(&steno, 3);
    assert_eq!(status(&steno)["runs_behind"], 1);
    assert!(steno.run(&["index"]).out.contains("1 run behind"));
    let said = steno.run(&["index", "rebuild"]);
    assert!(said.code == 0 && said.out.contains("up to date"), "{said:?}");
    assert_eq!(status(&steno)["sessions"], 3);
}

#[test]
fn up_keeps_the_index_up_to_date() {
    let steno = Steno::new();
    let project = steno.dir.path().join(".claude/projects/-srv-tokenizer");
    fs::create_dir_all(&project).unwrap();
    let live = RunningSteno::start(steno.command(&["up", "--no-serve"]));
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    fs::copy(sample, project.join(format!("{SESSION}.jsonl"))).unwrap();
    wait_until("the session in the index", || {
        steno.transcript(SESSION).is_file()
            && steno.store().join("index.db").is_file()
            && status(&steno)["sessions"] == 1
            && status(&steno)["runs_behind"] == 0
    });
    live.signal("INT");
    assert_eq!(live.ended().code, 0);
}

/// Copies the files of the index between its directory and another one; those that are not there are deleted.
fn copy_index(from: &Path, to: &Path) {
    for name in FILES {
        if fs::copy(from.join(name), to.join(name)).is_err() {
            fs::remove_file(to.join(name)).ok();
        }
    }
}

#[test]
fn kill_in_any_call_leaves_a_right_answer() {
    needs!(tool("strace"), "strace is not installed");
    let steno = Steno::new();
    let saved = steno.dir.path().join("saved");
    fs::create_dir(&saved).unwrap();
    record(&steno, 2);
    assert_eq!(found(&steno, "zebra"), ids(2));
    copy_index(&steno.store(), &saved);
    record_one(&steno, 3);
    let empty = steno.dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for (before, kills_min) in [(&empty, 10), (&saved, 3)] {
        let mut kills = 0;
        loop {
            copy_index(before, &steno.store());
            let calls = "pwrite64,ftruncate,unlink,fsync,fdatasync,write";
            let script = format!(
                "exec strace -f -qq -o /dev/null -e trace={calls} -e inject={calls}:signal=KILL:when={} \"$0\" \"$@\"",
                kills + 1
            );
            let said = run(steno.shell(&script, &["search", "zebra", "--json"]), b"");
            let is_killed = said.code != 0;
            assert_eq!(found(&steno, "zebra"), ids(3), "after {kills} calls");
            assert_eq!(found(&steno, "number2"), [id(2)], "after {kills} calls");
            if !is_killed {
                break;
            }
            kills += 1;
        }
        assert!(kills >= kills_min, "{kills} kills");
    }
}

#[test]
fn changed_byte_in_any_file_is_noticed() {
    let steno = Steno::new();
    let saved = steno.dir.path().join("saved");
    fs::create_dir(&saved).unwrap();
    record(&steno, 2);
    assert_eq!(found(&steno, "zebra"), ids(2));
    // With a log: the second update is not moved into the database yet.
    record_one(&steno, 3);
    assert_eq!(found(&steno, "zebra"), ids(3));
    copy_index(&steno.store(), &saved);
    for name in FILES {
        let Ok(whole) = fs::read(saved.join(name)) else { continue };
        let step = (whole.len() / 24).max(1);
        for place in (7..whole.len()).step_by(step) {
            copy_index(&saved, &steno.store());
            let mut bytes = whole.clone();
            bytes[place] ^= 0x41;
            fs::write(steno.store().join(name), bytes).unwrap();
            assert_eq!(found(&steno, "zebra"), ids(3), "{name}, byte {place}");
            assert_eq!(found(&steno, "number1"), [id(1)], "{name}, byte {place}");
        }
    }
}

#[test]
fn searches_and_rebuilds_at_once_do_not_disturb_each_other() {
    let steno = Steno::new();
    record(&steno, 4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..3 {
                    assert_eq!(found(&steno, "zebra"), ids(4));
                }
            });
            scope.spawn(|| {
                for _ in 0..3 {
                    assert_eq!(steno.run(&["index", "rebuild"]).code, 0);
                }
            });
        }
    });
    assert_eq!(status(&steno)["runs_behind"], 0);
}

#[test]
fn search_without_a_file_for_the_index_is_complete() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    let steno = Steno::new();
    let mounted = needs!(MountedDisk::at(steno.store()), "root may not mount a tmpfs here");
    record(&steno, 2);
    mounted.fill();
    assert_eq!(found(&steno, "zebra"), ids(2), "the disk is full");
    mounted.empty();
    mounted.protect();
    assert_eq!(found(&steno, "zebra"), ids(2), "the disk is read-only");
    assert!(steno.run(&["search", "zebra"]).err.contains("in memory"));
}

#[test]
fn changed_seals_are_noticed() {
    let steno = Steno::new();
    record(&steno, 2);
    let states = || -> Vec<(Value, Value)> {
        let rows = steno.run(&["ls", "--json"]).json();
        rows.iter().map(|row| (row["run_id"].clone(), row["state"].clone())).collect()
    };
    let state_of = |run: &str| states().into_iter().find(|(id, _)| id == run).unwrap().1;
    let before = state_of(&id(1));
    assert_ne!(before, "damaged");
    let path = steno.beside(&id(1), "seals.jsonl");
    let seals = fs::read_to_string(&path).unwrap();
    // The seal is of more than the transcript has.
    let mut seal: Value = serde_json::from_str(seals.lines().last().unwrap()).unwrap();
    seal["bytes"] = json!(seal["bytes"].as_u64().unwrap() + 1_000);
    fs::write(&path, format!("{seal}\n")).unwrap();
    assert_eq!(state_of(&id(1)), "damaged");
    assert_ne!(state_of(&id(2)), "damaged");
    fs::write(&path, &seals).unwrap();
    assert_eq!(state_of(&id(1)), before);
    // Taking the seals away is a change too.
    assert_eq!(status(&steno)["runs_behind"], 0);
    fs::remove_file(&path).unwrap();
    assert_eq!(status(&steno)["runs_behind"], 1);
}
