//! `steno watch`: everything that agents write while it runs is in the store when it ends.

use std::fs;

use crate::kit::{RunningSteno, Steno, wait_until};

const SESSION: &str = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";
/// How many events the session has.
const EVENTS: u64 = 8;

/// Starts `watch`, and waits until all files are recorded and it follows or waits for another follower.
fn watching(steno: &Steno, name: &str) -> RunningSteno {
    let talk = steno.dir.path().join(name);
    let live =
        RunningSteno::start(steno.shell(&format!("exec \"$0\" \"$@\" 2>{name}"), &["watch", "--json"]));
    wait_until("word of it", || fs::read_to_string(&talk).is_ok_and(|said| said.contains("Ctrl-C")));
    live
}

/// Writes a session as Claude Code does, below a home that may not be there yet.
fn write_session(steno: &Steno) {
    let project = steno.dir.path().join(".claude/projects/-srv-tokenizer");
    fs::create_dir_all(&project).unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    fs::copy(sample, project.join(format!("{SESSION}.jsonl"))).unwrap();
}

/// Ends a `watch` with SIGINT; returns the number of recorded events, and of changed files.
#[track_caller]
fn end(live: RunningSteno) -> (u64, u64, u64) {
    live.signal("INT");
    let said = live.ended();
    assert_eq!(said.code, 0, "{}", said.err);
    let number = |name: &str| said.json().last().unwrap()[name].as_u64().unwrap();
    (number("events"), number("files"), number("files_new"))
}

fn runs(steno: &Steno) -> Vec<String> {
    let listed = steno.run(&["ls", "--json"]).json();
    listed.iter().map(|run| run["run_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn home_that_appears_later_is_recorded() {
    let steno = Steno::new();
    let live = watching(&steno, "talk");
    write_session(&steno);
    wait_until("transcript", || steno.transcript(SESSION).is_file());
    end(live);
    assert_eq!(runs(&steno), [SESSION]);
    assert_eq!(steno.run(&["verify", SESSION]).code, 0);
}

#[test]
fn last_writes_before_the_end_are_recorded() {
    let steno = Steno::new();
    let live = watching(&steno, "talk");
    write_session(&steno);
    let done = end(live);
    assert_eq!((runs(&steno), done), (vec![SESSION.to_owned()], (EVENTS, 1, 1)));
}

#[test]
fn files_of_another_recorder_are_skipped() {
    let steno = Steno::new();
    fs::create_dir_all(steno.dir.path().join(".claude/projects")).unwrap();
    // Neither knows of the session when it begins, and each looks around once more when it ends.
    let (one, other) = (watching(&steno, "one"), watching(&steno, "other"));
    write_session(&steno);
    let (one, other) = (end(one), end(other));
    assert_eq!((runs(&steno), one.0 + other.0), (vec![SESSION.to_owned()], EVENTS));
}

#[test]
fn second_watcher_says_when_it_takes_over() {
    let steno = Steno::new();
    fs::create_dir_all(steno.dir.path().join(".claude/projects")).unwrap();
    let said = |name: &str| fs::read_to_string(steno.dir.path().join(name)).unwrap();
    for (one, other, signal) in [("first", "second", "INT"), ("third", "fourth", "KILL")] {
        let (live, waiting) = (watching(&steno, one), watching(&steno, other));
        assert_eq!(said(one), "following; press Ctrl-C to stop\n");
        let pid = format!("another `steno` (pid {}) is recording into this store", live.pid());
        assert!(said(other).starts_with(&pid) && !said(other).contains("following"), "{}", said(other));
        live.signal(signal);
        wait_until("word of taking over", || said(other).contains("has ended; following"));
        live.ended();
        write_session(&steno);
        wait_until("what is written then", || steno.transcript(SESSION).is_file());
        end(waiting);
        assert_eq!(said(other).lines().count(), 2, "{}", said(other));
    }
}

#[test]
fn early_stop_reports_unread_files() {
    // More than all lanes record in their first rounds.
    const FILES: u64 = 700;
    let steno = Steno::new();
    let project = steno.dir.path().join(".claude/projects/-srv-tokenizer");
    fs::create_dir_all(&project).unwrap();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/claude-session.jsonl");
    let sample = fs::read_to_string(sample).unwrap();
    for number in 0..FILES {
        let session = format!("2f6b7a10-6d0c-4a53-9f5e-{number:012}");
        fs::write(project.join(format!("{session}.jsonl")), sample.replace(SESSION, &session)).unwrap();
    }
    let live = steno.start(&["watch", "--json"]);
    let transcripts = steno.store().join("transcripts");
    wait_until("the first", || fs::read_dir(&transcripts).is_ok_and(|mut dir| dir.next().is_some()));
    live.signal("TERM");
    let said = live.ended();
    let reports = said.json();
    let (new, left) = (&reports[0]["files_new"], &reports[1]["files_unread"]);
    assert_eq!((said.code, new.as_u64().unwrap() + left.as_u64().unwrap()), (0, FILES), "{reports:?}");
    assert_ne!(*left, 0, "it was stopped too late");
    assert_eq!(said.err, format!("{left} files have unread bytes; the next start continues there\n"));
    assert_eq!(steno.run(&["import"]).code, 0);
    assert_eq!(runs(&steno).len() as u64, FILES);
}
