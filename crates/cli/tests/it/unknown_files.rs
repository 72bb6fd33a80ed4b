//! Files of no agent, missing files, and files that are readable only in part.

use std::os::unix::fs::symlink;

use serde_json::json;
use steno_testkit::places;

use crate::agents_files::{line, put, session, text};
use crate::kit::{RUN, Steno};

/// Checks that a command fails with this code and message.
#[track_caller]
fn check(steno: &Steno, args: &[&str], code: i32, says: &str) {
    let said = steno.run(args);
    assert_eq!((said.code, said.out.as_str()), (code, ""), "{args:?}: {}", said.err);
    assert!(said.err.contains(says), "{args:?}: {}", said.err);
    // The hint does not name the command that was just run.
    assert!(!said.err.contains("`steno events` shows the undamaged part"), "{args:?}: {}", said.err);
}

const READERS: [&str; 3] = ["events", "tree", "show"];

#[test]
fn file_of_no_agent_is_not_a_damaged_transcript() {
    let steno = Steno::new();
    let neither = "is neither a transcript nor a supported agent's file";
    let cases: [(&str, &[u8], &str); 7] = [
        ("text.txt", b"Dear reader\n", neither),
        ("binary", b"\x00\x01\xff\n\xfe", neither),
        ("blank", b"\n \n", neither),
        ("utf16", b"\xff\xfeh\x00i\x00", "it is UTF-16"),
        ("logs.gz", b"\x1f\x8b\x08\x00whatever", "is compressed with gzip"),
        ("own.json", b"{\"seq\":1,\"kind\":\"mine\"}\n", neither),
        ("events.json", b"{\n  \"type\": \"session.start\",\n  \"data\": {},\n  \"id\": \"i\"\n}\n", neither),
    ];
    for (name, bytes, says) in cases {
        put(&steno, name, bytes);
        for command in READERS {
            check(&steno, &[command, name], 1, says);
        }
        check(&steno, &["events", "--completeness", name], 1, says);
    }
}

#[test]
fn transcript_with_damaged_start_is_a_damaged_transcript() {
    let steno = Steno::new();
    steno.record(&[r#"{"type":"run.started"}"#, r#"{"type":"run.completed"}"#]);
    let good = steno.text(RUN);
    let torn = good.replacen("\"type\"", "type", 1);
    for bytes in [format!("noise\n{good}"), torn] {
        let file = put(&steno, "t.jsonl", bytes);
        check(&steno, &["events", &file], 1, "is damaged at byte 0");
    }
    let file = put(&steno, "empty.jsonl", "");
    check(&steno, &["events", &file], 1, "no matching events in `empty.jsonl`");
}

#[test]
fn unreadable_path_is_reported_as_a_path() {
    let steno = Steno::new();
    symlink("nowhere", steno.dir.path().join("link")).unwrap();
    places::make_pipe(steno.dir.path().join("pipe"));
    for command in READERS {
        check(&steno, &[command, "nosuch.jsonl"], 3, "cannot read `nosuch.jsonl`: No such file");
        check(&steno, &[command, "no/such"], 3, "cannot read `no/such`: No such file");
        check(&steno, &[command, "link"], 3, "cannot read `link`, a link to `nowhere`");
        check(&steno, &[command, "pipe"], 3, "`pipe` is not a regular file");
    }
}

#[test]
fn strict_fails_at_unknown_records() {
    let steno = Steno::new();
    let whole = put(&steno, "whole.jsonl", text(&session()));
    assert_eq!(steno.run(&["events", "--strict", &whole]).code, 0);
    let dream = line(9, json!({"type": "dream"})).to_string() + "\n";
    for (name, rest) in [("unknown.jsonl", dream.as_str()), ("unreadable.jsonl", "[1]\n")] {
        let file = put(&steno, name, text(&session()) + rest);
        let said = steno.run(&["events", "--strict", &file]);
        // Earlier events are shown.
        assert_eq!((said.code, said.out.lines().count()), (1, 8), "{said:?}");
        assert!(said.err.contains("error: event ") && said.err.contains(":8: "), "{said:?}");
        assert_eq!(steno.run(&["events", &file]).code, 0);
    }
    let said = steno.run(&["events", "--strict", "--type", "run.started", "unreadable.jsonl"]);
    assert!(said.code == 1 && said.err.contains("1 record could not be parsed"), "{said:?}");
}

#[test]
fn completeness_and_entries_report_a_torn_end() {
    let steno = Steno::new();
    let file = put(&steno, "s.jsonl", text(&session()) + "[1]\n{\"type\":\"user\",\"mess");
    let said = steno.run(&["events", "--completeness", &file]);
    assert!(said.out.contains("1 unreadable, the last 20 bytes not a whole record"), "{}", said.out);
    let said = steno.run(&["entries", &file]);
    for part in ["1 record could not be parsed", "the last 20 bytes are not a complete record"] {
        assert!(said.err.contains(part), "{part}: {}", said.err);
    }
}

/// The beginning of a tar with a session file in it.
fn archive() -> Vec<u8> {
    let line = r#"{"timestamp":"2026-01-31T08:15:24.123Z","type":"session_meta","payload":{"id":"0199aaaa-0000-7000-8000-000000000001","cwd":"/p","originator":"codex_exec","cli_version":"0.166.0","source":"exec"}}"#;
    format!("{:\0<257}ustar\0{:\0<249}{line}\n", "bundle/rollout/x.jsonl", "").into_bytes()
}

#[test]
fn tar_is_not_a_session_file() {
    let steno = Steno::new();
    let packed = zstd::encode_all(archive().as_slice(), 3).unwrap();
    for (name, bytes) in [("x.tar", archive()), ("x.tar.zst", packed)] {
        let file = put(&steno, name, bytes);
        for command in ["events", "tree", "show", "usage", "entries", "verify"] {
            check(&steno, &[command, &file], 1, "is a tar archive, not a session file");
        }
        let said = steno.run(&["export", "atif", &file, "-o", "out"]);
        assert!(
            said.code == 1
                && said.err.contains("`steno spine validate` and `steno spine distill` read bundles"),
            "{said:?}"
        );
        assert!(!steno.dir.path().join("out").exists());
        let said = steno.run(&["import", &file]);
        assert!(!said.out.contains("1 session"), "{said:?}");
        assert_eq!(steno.run(&["ls"]).out, "", "{said:?}");
    }
}

#[test]
fn only_the_rollout_of_a_bundle_is_a_session() {
    let steno = crate::spine::with_spine();
    let thread = crate::spine::THREAD;
    let said = steno.run(&["spine", "bundle", thread, "-o", "b"]);
    assert_eq!(said.code, 0, "{said:?}");
    let neither = "is neither a transcript nor a supported agent's file";
    check(&steno, &["events", "b"], 1, neither);
    let segment = "b/spine/segment-000.jsonl";
    check(&steno, &["events", segment], 1, "is a segment of a trace spine, not a session file");
    std::fs::create_dir_all(steno.dir.path().join("b/rollout")).unwrap();
    let rollout = archive().split_off(512);
    std::fs::write(steno.dir.path().join("b/rollout/rollout-x.jsonl"), rollout).unwrap();
    let said = steno.run(&["events", "b", "--json"]);
    assert_eq!(said.code, 0, "{said:?}");
    let runs: std::collections::BTreeSet<String> =
        said.json().iter().map(|event| event["run_id"].to_string()).collect();
    assert_eq!(runs.len(), 1, "{said:?}");
    assert_eq!(said.out.lines().count(), 1, "{said:?}");
}
