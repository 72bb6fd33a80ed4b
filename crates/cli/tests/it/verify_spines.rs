//! `steno verify` and spines: damage is found and named; leftovers of a crash are reported, and are not damage.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use steno_disk::RealDisk;
use steno_model::ThreadId;
use steno_vault::{ForgetRequest, Reason, Vault};

use crate::kit::{RUN, Steno, TIME};
use crate::spine::{THREAD, check, spine_dir, with_spine, write};
use crate::verify::verify;

#[track_caller]
fn verify_json(steno: &Steno) -> (i32, Value) {
    let said = verify(steno, &["--json"]);
    let [spine] = &said.json()[..] else { panic!("{said:?}") };
    (said.code, spine.clone())
}

#[test]
fn valid_spine_passes_without_runs() {
    let steno = with_spine();
    check(&verify(&steno, &[]), 0, &[&format!("ok       spine {THREAD}  3 records, 2 segments"), ", sealed"]);
    let segment =
        |index| fs::metadata(spine_dir(&steno).join(format!("segment-00{index}.jsonl"))).unwrap().len();
    let want = json!({ "kind": "spine", "thread_id": THREAD, "ok": true, "state": "sealed", "segments": 2, "sealed": 2,
        "records": 3, "bytes": segment(0) + segment(1), "unsealed_bytes": 0, "torn_bytes": 0, "errors": 0, "warnings": 0,
        "error": null, "rule": null, "file": null, "offset": null });
    assert_eq!(verify_json(&steno), (0, want));
    // With a run, only that run is checked.
    steno.record(&[r#"{"type":"run.started"}"#]);
    assert!(!verify(&steno, &[RUN]).out.contains("spine"));
    assert_eq!(verify(&steno, &[]).out.lines().count(), 2);
}

#[test]
fn flipped_byte_of_a_spine_is_found() {
    let steno = with_spine();
    let dir = spine_dir(&steno);
    let mut files: Vec<_> = ["segment-000.jsonl", "segment-001.jsonl", "segment-001.meta.json"]
        .map(|name| dir.join(name))
        .into_iter()
        .chain(fs::read_dir(dir.join("artifacts")).unwrap().map(|entry| entry.unwrap().path()))
        .collect();
    files.sort();
    assert_eq!(files.len(), 5, "{files:?}");
    for path in files {
        let bytes = fs::read(&path).unwrap();
        // Of a meta file, the hash: its times vouch for nothing.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let places = match text.find("\"sha256\":\"").filter(|_| text.contains("record_count")) {
            Some(hash) => vec![hash + 10, hash + 73],
            None => vec![0, bytes.len() / 2, bytes.len() - 1],
        };
        for at in places {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, &changed).unwrap();
            let said = verify(&steno, &[]);
            check(
                &said,
                1,
                &["DAMAGED  spine", THREAD, "1 of 1 spine failed the check", "steno spine validate"],
            );
            let (code, spine) = verify_json(&steno);
            assert_eq!(
                (code, &spine["ok"], &spine["state"]),
                (1, &json!(false), &json!("damaged")),
                "{path:?}"
            );
            assert!(spine["error"].is_string() && spine["file"].is_string(), "{spine}");
        }
        fs::write(&path, &bytes).unwrap();
    }
    check(&verify(&steno, &[]), 0, &["ok  "]);
}

#[test]
fn damage_to_spine_and_run_is_reported_for_both() {
    let steno = with_spine();
    steno.record(&[r#"{"type":"run.started"}"#]);
    let said = steno.run(&["ls", "--json"]);
    let run = said.json()[0]["run_id"].as_str().unwrap().to_owned();
    fs::write(steno.transcript(&run), "garbage\n{}\n").unwrap();
    fs::remove_file(spine_dir(&steno).join("segment-000.jsonl")).unwrap();
    let said = verify(&steno, &[]);
    check(
        &said,
        1,
        &["1 of 1 transcript and 1 of 1 spine failed the check", "segment.missing", "more error"],
    );
}

#[test]
fn file_in_place_of_a_spine_does_not_affect_others() {
    let steno = with_spine();
    fs::write(steno.store().join("spine/0000"), "not a directory").unwrap();
    let said = verify(&steno, &[]);
    check(&said, 1, &["DAMAGED  spine 0000", &format!("ok       spine {THREAD}"), "1 of 2 spines"]);
    let said = verify(&steno, &["--json"]).json();
    assert_eq!((&said[0]["ok"], &said[0]["state"]), (&json!(false), &json!("damaged")));
}

#[test]
fn leftovers_of_a_crash_are_reported_with_a_fix() {
    let steno = with_spine();
    let dir = spine_dir(&steno);
    fs::remove_file(dir.join("segment-001.meta.json")).unwrap();
    let whole = fs::read(dir.join("segment-001.jsonl")).unwrap();
    let repair = format!("`steno spine validate {THREAD} --repair` seals it");
    check(&verify(&steno, &[]), 0, &["ok   ", "unsealed", &repair]);
    fs::write(dir.join("segment-001.jsonl"), [&whole[..], b"{\"schema"].concat()).unwrap();
    check(&verify(&steno, &[]), 0, &["and a torn end of 8 B that was never acknowledged", &repair]);
    let (code, spine) = verify_json(&steno);
    let told = [&spine["state"], &spine["unsealed_bytes"], &spine["torn_bytes"]].map(Value::clone);
    assert_eq!((code, told), (0, [json!("unsealed"), json!(whole.len() + 8), json!(8)]));
    assert_eq!(steno.run(&["spine", "validate", THREAD, "--repair"]).code, 0);
    check(&verify(&steno, &[]), 0, &[", sealed"]);
}

/// An interrupted deletion: the rest counts as deleted, and the next command deletes it.
#[test]
fn rest_of_a_forgotten_spine_is_not_damage() {
    let steno = with_spine();
    let disk = Arc::new(RealDisk::open(&steno.store()).unwrap().unwrap());
    let vault = Vault::open(disk);
    let spines = [ThreadId::parse(THREAD).unwrap()];
    vault
        .forget_all(ForgetRequest { spines: &spines, ..ForgetRequest::default() }, Reason::Session, TIME)
        .unwrap();
    fs::remove_file(spine_dir(&steno).join("segment-000.jsonl")).unwrap();
    check(&verify(&steno, &[]), 0, &["forgotten; the next `steno forget`"]);
    let (code, told) = verify_json(&steno);
    assert_eq!(
        (code, told),
        (0, json!({ "kind": "spine", "thread_id": THREAD, "ok": true, "state": "forgotten" }))
    );
    check(&steno.run(&["forget", THREAD, "--yes"]), 0, &["deleted the rest of the forgotten spine"]);
    assert!(!spine_dir(&steno).exists());
    check(&verify(&steno, &[]), 1, &["nothing to verify"]);
}

#[test]
fn spine_being_written_is_recording() {
    let steno = Steno::new();
    let spine = write(&steno);
    let said = verify(&steno, &[]);
    check(&said, 0, &["3 records", "being recorded"]);
    assert!(!said.out.contains("--repair"), "{}", said.out);
    let (code, told) = verify_json(&steno);
    assert_eq!((code, &told["state"], &told["torn_bytes"]), (0, &json!("recording"), &json!(0)));
    spine.close().unwrap();
    check(&verify(&steno, &[]), 0, &[", sealed"]);
}

#[test]
fn waiting_connection_is_checked_line_by_line() {
    let steno = with_spine();
    let id = "0f000000-0000-4000-8000-0000000000aa";
    let path = steno.store().join(format!("connections/{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let line = |ticket: u64| format!("{{\"dir\":\"c2s\",\"t\":1.5,\"ticket\":{ticket},\"msg\":{{}}}}\n");
    let len = line(1).len();
    let good = line(1) + &line(2);
    for (text, want) in [
        (good.clone(), Ok(0)),
        (good.clone() + "{\"dir\":", Ok(7)),
        (good.clone() + "\0\0\0\0", Ok(4)),
        (line(1) + "garbage\n" + &line(2), Err(len)),
        (line(1) + "\0\0\0\0\n" + &line(2), Err(len)),
        (line(2) + &line(1), Err(len)),
        (line(1) + &line(1), Err(len)),
    ] {
        fs::write(&path, &text).unwrap();
        let said = verify(&steno, &["--json"]);
        let told = said.json().into_iter().find(|object| object["kind"] == "connection").unwrap();
        match want {
            Ok(torn) => {
                let want = json!({ "kind": "connection", "connection": id, "ok": true, "state": "waiting", "messages": 2,
                    "bytes": good.len(), "torn_bytes": torn });
                assert_eq!((said.code, told), (0, want), "{text}");
            }
            Err(offset) => {
                assert_eq!((said.code, &told["ok"], &told["state"]), (1, &json!(false), &json!("damaged")));
                let words = format!("DAMAGED  connection {id}  byte {offset}: ");
                check(&verify(&steno, &[]), 1, &[&words, "1 of 1 connection failed the check"]);
            }
        }
    }
}

/// A check of a run does not cover the spine of its thread, and says so.
#[test]
fn verify_run_says_that_its_spine_is_not_checked() {
    let steno = with_spine();
    steno.recorded(THREAD, &[serde_json::json!({"type": "run.started"})]);
    let said = steno.run(&["verify", THREAD]);
    check(&said, 0, &[&format!("the spine of {THREAD} was not checked: `steno spine validate {THREAD}`")]);
    steno.recorded(RUN, &[serde_json::json!({"type": "run.started"})]);
    let said = steno.run(&["verify", RUN]);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(steno.run(&["verify"]).err, "");
}

/// It is not known which of the two files was changed, so both are named.
#[test]
fn segment_that_differs_from_its_meta_file_is_named() {
    let steno = with_spine();
    let path = spine_dir(&steno).join("segment-000.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("2026", "2025", 1)).unwrap();
    let said = steno.run(&["spine", "validate", THREAD]);
    check(&said, 1, &["segment-000.meta.json: its `sha256` is ", ", but that of `segment-000.jsonl` is "]);
}
