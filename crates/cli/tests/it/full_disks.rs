//! A file system that is full for a while: `steno app-server` continues to record as soon as it can, and events that
//! `record` and `serve` refused are noted, even if they ended before there was room.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};
use steno_testkit::{is_root, needs, skip, tool};

use crate::app_server::{AppServerClient, spine};
use crate::kit::{RUN, RunningSteno, Steno, TIME, json as parsed, wait_until};
use crate::serve::send;

/// A small mounted file system for one test.
pub struct MountedDisk(PathBuf);

impl MountedDisk {
    pub fn at(point: PathBuf) -> Option<Self> {
        fs::create_dir_all(&point).unwrap();
        let mut mount = Command::new("mount");
        let done = mount.args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&point).output().ok()?;
        done.status.success().then_some(Self(point))
    }

    /// Takes up all of its room.
    pub fn fill(&self) {
        let mut ballast = fs::File::create(self.0.join("demo")).unwrap();
        let full = std::io::copy(&mut std::io::repeat(0), &mut ballast).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    }

    /// Makes it larger.
    pub fn grow(&self) {
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", "remount,size=64m"]).arg(&self.0).status().unwrap().success());
    }

    /// Refuses every further change.
    pub fn protect(&self) {
        let mut mount = Command::new("mount");
        assert!(mount.args(["-o", "remount,ro"]).arg(&self.0).status().unwrap().success());
    }

    pub fn empty(&self) {
        fs::remove_file(self.0.join("demo")).unwrap();
    }
}

impl Drop for MountedDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

/// A server that knows one thread and says everything again.
const ECHO: &str = r#"
IFS= read -r line; printf '%s\n' '{"id":2,"result":{"thread":{"id":"th1"}}}'
exec cat
"#;

#[test]
fn full_disk_leaves_a_gap_with_every_message_counted() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    let steno = Steno::new();
    let mounted = needs!(MountedDisk::at(steno.store()), "root may not mount a tmpfs here");
    let mut connected = AppServerClient::begin(&steno, &["sh", "-c", ECHO]);
    connected.say(r#"{"method":"thread/start","id":2,"params":{}}"#);
    connected.hear();
    let spool = || {
        let entries = fs::read_dir(steno.store().join("connections")).unwrap();
        entries.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect::<String>()
    };
    let mut said = 2;
    // Whether the recorder has met the full disk shows only afterwards.
    while !spool().contains(r#""dir":"recorder""#) {
        mounted.fill();
        for number in 0..100 {
            connected
                .say(&format!(r#"{{"method":"item/updated","params":{{"threadId":"th1","n":{number}}}}}"#));
            connected.hear();
        }
        mounted.empty();
        let last = format!(r#"{{"method":"warning","params":{{"threadId":"th1","after":{said}}}}}"#);
        connected.say(&last);
        connected.hear();
        wait_until("it goes on", || spool().lines().filter(|line| line.contains(&last)).count() == 2);
        said += 202;
    }
    let (_, code, talk) = connected.end();
    assert_eq!(code, 0, "{talk}");
    assert!(talk.contains("not recorded: ") && talk.contains("No space left on device"), "{talk}");
    let records = spine(&steno, "th1");
    let number = |value: &Value| value.as_u64();
    let mut tickets: Vec<u64> =
        records.iter().filter_map(|record| number(&record["payload"]["rpc"]["ticket"])).collect();
    let there = tickets.len();
    for record in &records {
        let said = &record["payload"]["msg"];
        if said["type"] == "missing" {
            let (first, last) = (number(&said["first_ticket"]), number(&said["last_ticket"]));
            tickets.extend(first.unwrap()..=last.unwrap());
        }
    }
    tickets.sort_unstable();
    assert_eq!(tickets, (1..=said).collect::<Vec<_>>(), "each message is there or said to be missing");
    assert!((there as u64) < said, "{there} of {said}");
    let valid = steno.run(&["spine", "validate", "th1"]);
    assert!(valid.code == 0 && valid.out.starts_with("valid"), "{valid:?}");
}

/// An event that does not fit behind another one into the page that a file has.
fn long_event() -> String {
    json!({ "type": "step.completed", "timestamp": TIME, "payload": { "name": "x".repeat(3_000), "kind": "k" } })
        .to_string()
}

/// The `refused` notes of the run: how many events, and after which.
fn refused(steno: &Steno) -> Vec<(u64, u64)> {
    let notes = fs::read_to_string(steno.beside(RUN, "notes.jsonl")).unwrap_or_default();
    let notes = notes.lines().map(parsed).filter(|note| note["kind"] == "refused");
    notes.map(|note| (note["count"].as_u64().unwrap(), note["seq_last"].as_u64().unwrap())).collect()
}

/// Opens the run twice without an event, and checks that refusals after event `seq_last` are noted once.
#[track_caller]
fn assert_noted_by_the_next(steno: &Steno, count: u64, seq_last: u64) {
    for _ in 0..2 {
        let said = steno.run(&["record", "--run", RUN]);
        assert_eq!(said.code, 0, "{said:?}");
        assert_eq!(refused(steno), [(count, seq_last)]);
    }
    let said = steno.run(&["verify", RUN]);
    assert_eq!(said.code, 0, "{said:?}");
}

/// Sends events until five were refused; returns the last that was recorded.
fn record_until_refused(live: &mut RunningSteno) -> u64 {
    let (mut recorded, mut refused) = (0, 0);
    while refused < 5 {
        live.send(&long_event());
        let answer = parsed(&live.line());
        if let Some(seq) = answer["seq"].as_u64() {
            assert_eq!(refused, 0, "nobody has made room");
            recorded = seq;
        } else {
            assert!(answer["error"].as_str().unwrap().contains("No space left on device"), "{answer}");
            refused += 1;
        }
    }
    recorded
}

#[test]
fn events_refused_before_the_end_are_noted_by_the_next_process() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    for (end, level) in
        [("end of stdin", "synced"), ("TERM", "written"), ("KILL", "synced"), ("KILL", "written")]
    {
        let steno = Steno::new();
        let mounted = needs!(MountedDisk::at(steno.store()), "root may not mount a tmpfs here");
        let mut live = steno.start(&["record", "--run", RUN, "--level", level]);
        live.send(&long_event());
        live.line();
        mounted.fill();
        let last = record_until_refused(&mut live).max(1);
        let said = if end == "end of stdin" {
            live.finish()
        } else {
            live.signal(end);
            live.ended()
        };
        assert_ne!(said.code, 0, "{end}: {said:?}");
        assert_eq!(refused(&steno), [], "{end}: there was no room for a note");
        mounted.empty();
        assert_noted_by_the_next(&steno, 5, last);
    }
}

#[test]
fn events_refused_by_a_server_are_noted_by_the_next_writer() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    for signal in ["TERM", "KILL"] {
        let steno = Steno::new();
        let mounted = needs!(MountedDisk::at(steno.store()), "root may not mount a tmpfs here");
        let mut live = steno.start(&["serve", "--port", "0", "--json"]);
        let file = PathBuf::from(parsed(&live.line())["token_file"].as_str().unwrap());
        let path = format!("/v1/runs/{RUN}/events");
        assert!(send(&file, &path, &long_event()).starts_with("HTTP/1.1 200"));
        mounted.fill();
        let (mut last, mut refused_len) = (1, 0);
        while refused_len < 5 {
            let answer = send(&file, &path, &long_event());
            if answer.starts_with("HTTP/1.1 200") {
                last += 1;
            } else {
                assert!(answer.starts_with("HTTP/1.1 507"), "{answer}");
                refused_len += 1;
            }
        }
        live.signal(signal);
        live.ended();
        assert_eq!(refused(&steno), [], "{signal}: there was no room for a note");
        mounted.empty();
        assert_noted_by_the_next(&steno, 5, last);
    }
}
