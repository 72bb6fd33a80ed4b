//! Several files of one run are one session: copies, backups, a file and its compressed copy.

use serde_json::json;

use crate::agents_files::{line, lines, put, session, session_with_subagent, text};
use crate::kit::{RUN, Steno};

/// A session, a shorter copy of it, and a compressed one.
fn with_copies() -> Steno {
    let steno = Steno::new();
    put(&steno, "d/a-backup.jsonl", text(&session()[..2]));
    put(&steno, "d/b.jsonl", text(&session()));
    put(&steno, "d/b.jsonl.zst", zstd::encode_all(text(&session()).as_bytes(), 1).unwrap());
    steno
}

#[test]
fn copies_are_one_session_in_the_order_of_the_longest() {
    let steno = with_copies();
    let alone = steno.run(&["tree", "d/b.jsonl"]);
    let said = steno.run(&["tree", "d"]);
    // The compressed copy says the same word for word, and happened once.
    assert_eq!((said.code, said.out), (0, alone.out.replace("7 events", "11 events")), "{}", said.err);
    assert_eq!((said.err.as_str(), alone.err.as_str()), ("", ""));
    let shown = &steno.run(&["show", "d", "--json"]).json()[0];
    let events: Vec<_> = shown["runs"].as_array().unwrap().iter().map(|run| &run["events"]).collect();
    assert_eq!(events, [&json!(7), &json!(4)], "{shown}");
    assert_eq!(shown["run_id"], RUN);
}

#[test]
fn copy_adds_what_other_copies_lack() {
    let steno = Steno::new();
    let whole = session();
    // One copy has lost its last line, the other one its second.
    put(&steno, "d/a.jsonl", text(&whole[..whole.len() - 1]));
    put(&steno, "d/b.jsonl", text(&[&whole[..1], &whole[2..]].concat()));
    put(&steno, "whole.jsonl", text(&whole));
    let count = |path: &str| {
        let tree = &steno.run(&["tree", path, "--json"]).json()[0];
        let turn = &tree["children"][0];
        ["messages", "calls", "results"].map(|name| turn[name].clone())
    };
    assert_eq!(count("d"), count("whole.jsonl"));
}

#[test]
fn events_are_numbered_per_file_and_copies_name_their_file() {
    let steno = with_copies();
    let events = lines(&steno.run(&["events", "d", "--json"]));
    let numbers: Vec<_> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    let want: Vec<u64> = (1..=4).chain(1..=7).chain(1..=7).collect();
    assert_eq!(numbers, want);
    let shown = steno.run(&["events", "d"]).out;
    let heads: Vec<_> = shown.lines().filter(|line| line.starts_with("run ")).collect();
    let head = format!("run {RUN}  claude disk");
    let again = |file: &str| format!("{head}  copy in d/{file}");
    assert_eq!(heads, [head.clone(), again("b.jsonl"), again("b.jsonl.zst")]);
}

#[test]
fn session_and_subagent_are_not_copies() {
    let steno = Steno::new();
    session_with_subagent(&steno);
    for command in ["tree", "show", "events"] {
        let said = steno.run(&[command, "p"]);
        assert!(said.code == 0 && said.err.is_empty() && !said.out.contains("again"), "{said:?}");
    }
}

#[test]
fn alternating_runs_in_one_file_are_not_copies() {
    let steno = Steno::new();
    let mut all = session();
    let other = "660e8400-e29b-41d4-a716-446655440000";
    let said = json!({"type": "user", "sessionId": other, "message": {"role": "user", "content": "x"}});
    all.push(line(5, said));
    all.push(line(6, json!({"type": "user", "message": {"role": "user", "content": "y"}})));
    let file = put(&steno, "s.jsonl", text(&all));
    let shown = steno.run(&["events", &file]).out;
    assert!(!shown.contains("again"), "{shown}");
}
