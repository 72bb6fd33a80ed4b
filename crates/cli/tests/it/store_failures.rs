//! Failures of a store during writing: a full disk, deleted files. They are reported, and acknowledged events are
//! kept.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use steno_testkit::{needs, tool};

use crate::kit::{RUN, RunningSteno, Steno, TIME, answer, json, wait_until};

fn event() -> String {
    json!({ "type": "run.started", "timestamp": TIME }).to_string()
}

fn line(seq: usize) -> String {
    format!(
        r#"{{"seq":{seq},"run_id":"{RUN}","type":"run.started","path":"","iteration":0,"timestamp":"{TIME}","payload":null}}"#
    ) + "\n"
}

#[test]
fn full_disk_refuses_the_event_and_keeps_the_rest() {
    let prlimit = needs!(tool("prlimit"), "prlimit is not installed");
    // Room for five lines, and for a few bytes of the sixth.
    let room = line(1).len() * 5 + 20;
    for level in ["synced", "written"] {
        let steno = Steno::new();
        let inner = steno.command(&["record", "--run", RUN, "--level", level]);
        let mut command = Command::new(&prlimit);
        command.arg(format!("--fsize={room}")).arg(inner.get_program()).args(inner.get_args());
        command.env_clear().env("HOME", steno.dir.path()).env("STENO_HOME", steno.store());
        let mut live = RunningSteno::start(command);
        for seq in 1..=5 {
            live.send(&event());
            assert_eq!(live.line(), answer(seq, level));
        }
        for _ in 0..3 {
            live.send(&event());
            let refusal = json(&live.line());
            assert!(refusal["error"].as_str().is_some_and(|why| why.contains(RUN)), "{level}: {refusal}");
        }
        let good: String = (1..=5).map(line).collect();
        assert_eq!(steno.text(RUN), good, "{level}: nothing of it stays behind");
        assert_eq!(live.finish().code, 3, "{level}");
        assert_eq!(steno.run(&["verify", RUN]).code, 0, "{level}");
        let notes = fs::read_to_string(steno.beside(RUN, "notes.jsonl")).unwrap();
        let counts: Vec<_> = notes.lines().map(|note| json(note)["count"].clone()).collect();
        assert_eq!(counts, [json!(3)], "{level}: what was refused is counted: {notes}");
        assert_eq!(steno.record(&[&event()]).out, answer(6, "synced"), "{level}: a refusal takes no number");
        assert_eq!(steno.text(RUN), good + &line(6), "{level}");
    }
}

#[test]
fn deleted_transcript_is_reported_to_its_writer() {
    for how in ["deleted", "replaced"] {
        let steno = Steno::new();
        let mut live = steno.start(&["record", "--run", RUN]);
        for seq in 1..=3 {
            live.send(&event());
            assert_eq!(live.line(), answer(seq, "synced"));
        }
        let file = steno.transcript(RUN);
        let other = steno.dir.path().join("other");
        if how == "deleted" {
            fs::remove_file(&file).unwrap();
        } else {
            fs::write(&other, "somebody else's\n").unwrap();
            fs::rename(&other, &file).unwrap();
        }
        live.send(&event());
        let refusal = json(&live.line());
        assert!(refusal["error"].as_str().is_some_and(|why| why.contains(RUN)), "{how}: {refusal}");
        assert_eq!(live.finish().code, 3, "{how}");
        let acknowledged: String = (1..=3).map(line).collect();
        let kept = steno.look().into_values().any(|seen| seen.bytes.starts_with(acknowledged.as_bytes()));
        assert!(kept, "{how}: what was acknowledged is nowhere in the store");
    }
}

#[test]
fn event_is_not_acknowledged_after_its_file_was_changed() {
    for how in ["deleted", "replaced", "moved", "cut", "written to"] {
        let steno = Steno::new();
        let mut live = steno.start(&["record", "--run", RUN, "--level", "written"]);
        for seq in 1..=3 {
            live.send(&event());
            assert_eq!(live.line(), answer(seq, "written"));
        }
        let file = steno.transcript(RUN);
        let other = steno.dir.path().join("other");
        match how {
            "deleted" => fs::remove_file(&file).unwrap(),
            "replaced" => {
                fs::write(&other, "somebody else's\n").unwrap();
                fs::rename(&other, &file).unwrap();
            }
            "moved" => fs::rename(&file, &other).unwrap(),
            "cut" => fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(100).unwrap(),
            _ => steno.write_by_hand(RUN, "mine\n"),
        }
        live.send(&event());
        let refusal = json(&live.line());
        let is_changed = ["cut", "written to"].contains(&how);
        let why = if is_changed { "was changed by another program" } else { "was deleted or replaced" };
        assert!(refusal["error"].as_str().is_some_and(|said| said.contains(why)), "{how}: {refusal}");
        assert_eq!(live.finish().code, 3, "{how}");
        let acknowledged: String = (1..=3).map(line).collect();
        let kept = steno.look().into_iter().any(|(name, seen)| {
            name.contains(".jsonl.orphan-") && seen.bytes.starts_with(acknowledged.as_bytes())
        });
        assert_eq!(kept, !is_changed, "{how}: what was acknowledged is kept");
    }
}

#[test]
fn idle_run_is_sealed() {
    let steno = Steno::new();
    let mut command = steno.command(&["record", "--run", RUN]);
    command.env("STENO_SEAL_IDLE", "1");
    let mut live = RunningSteno::start(command);
    for seq in 1..=2 {
        live.send(&event());
        live.line();
        let (seals, bytes) = (steno.beside(RUN, "seals.jsonl"), steno.text(RUN).len());
        wait_until("a seal over all that was recorded", || {
            let text = fs::read_to_string(&seals).unwrap_or_default();
            text.lines().count() == seq && json(text.lines().last().unwrap())["bytes"] == json!(bytes)
        });
    }
    assert!(live.is_alive());
    live.finish();
    let seals = fs::read_to_string(steno.beside(RUN, "seals.jsonl")).unwrap();
    assert_eq!(seals.lines().count(), 2, "closing adds no seal where there is one: {seals}");
}

#[test]
fn readers_of_a_recorded_run_see_a_valid_prefix() {
    let steno = Steno::new();
    let mut live = steno.start(&["record", "--run", RUN]);
    let step = json!({ "name": "x".repeat(2_000), "kind": "k" });
    let long = json!({ "type": "step.completed", "timestamp": TIME, "payload": step }).to_string();
    live.send(&long);
    live.line();
    let (enough, mut seen) = (AtomicBool::new(false), Vec::new());
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            // Bounded: a reader that is slower than the writer would make the file grow without end.
            for _ in 0..3_000 {
                if enough.load(Ordering::SeqCst) {
                    break;
                }
                live.send(&long);
                live.line();
            }
            live.finish()
        });
        for _ in 0..6 {
            let said = steno.run(&["events", RUN, "--raw"]);
            seen.push((said.code, said.out));
            for args in [&["verify"][..], &["tree", RUN, "--json"], &["ls"]] {
                let said = steno.run(args);
                seen.push((said.code, String::new()));
            }
        }
        enough.store(true, Ordering::SeqCst);
        assert_eq!(sending.join().unwrap().code, 0);
    });
    let whole = steno.text(RUN);
    assert!(
        seen.iter().all(|(code, part)| *code == 0 && whole.starts_with(part.as_str())),
        "a reader failed"
    );
    let lengths: BTreeSet<_> = seen.iter().map(|(_, part)| part.len()).collect();
    assert!(lengths.len() > 2, "the run did not grow while it was read: {lengths:?}");
}
