//! `steno run` with a recorder that is stopped or killed, and with a full disk: the command notices nothing.

use std::fs;

use serde_json::Value;
use steno_testkit::{is_root, needs, skip, tool};

use crate::full_disks::MountedDisk;
use crate::kit::{RunningSteno, Steno, wait_until};
use crate::run::{events, lane, lane_of, verify, wait_for_archive, wait_for_spool};

/// Returns the process that records into a store.
fn recorder_of(steno: &Steno) -> Option<u32> {
    let store = steno.store().display().to_string();
    let processes =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    processes.into_iter().find(|pid: &u32| {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words).into_owned();
        words.contains("\0__wrap-recorder\0") && words.contains(&store)
    })
}

#[track_caller]
fn signal_recorder(steno: &Steno, signal: &str) -> u32 {
    let mut found = None;
    wait_until("recorder", || {
        found = recorder_of(steno);
        found.is_some()
    });
    let pid = found.unwrap();
    let done = std::process::Command::new("kill").arg(format!("-{signal}")).arg(pid.to_string()).status();
    assert!(done.unwrap().success());
    pid
}

/// Sends lines and waits for each to come back.
fn talk(live: &mut RunningSteno, count: usize) -> String {
    (0..count)
        .map(|number| {
            live.send(&format!("line {number}"));
            live.line()
        })
        .collect()
}

#[test]
fn stopped_recorder_delays_nothing_and_loses_nothing() {
    let steno = Steno::new();
    let mut live = steno.start(&["run", "--", "cat"]);
    let mut said = talk(&mut live, 10);
    let pid = signal_recorder(&steno, "STOP");
    said.push_str(&talk(&mut live, 1000));
    let ended = live.finish();
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    std::process::Command::new("kill").args(["-CONT", &pid.to_string()]).status().unwrap();
    wait_for_archive(&steno);
    assert_eq!(lane(&steno, "out"), (said.into_bytes(), 0));
    verify(&steno);
}

#[test]
fn what_a_killed_recorder_leaves_is_archived_by_the_next_command() {
    for next in [&["import"][..], &["up", "--once", "--no-serve"], &["run", "--", "true"]] {
        let steno = Steno::new();
        let mut live = steno.start(&["run", "--", "cat"]);
        let mut said = talk(&mut live, 10);
        signal_recorder(&steno, "KILL");
        said.push_str(&talk(&mut live, 100));
        let ended = live.finish();
        assert_eq!((ended.code, ended.err.as_str()), (0, ""));
        let left = fs::read_dir(steno.store().join("wraps")).unwrap().next().unwrap().unwrap().path();
        let wrap = fs::read(&left).unwrap();
        assert_eq!(lane_of(&wrap, "out"), (said.clone().into_bytes(), 0));
        steno.run(next);
        wait_for_archive(&steno);
        let id = left.file_stem().unwrap().to_str().unwrap();
        let read = steno.run(&["events", id, "--json"]).json();
        assert_eq!(read.last().unwrap()["payload"]["exit_code"], 0);
        assert_eq!(read[read.len() - 2]["payload"]["result"]["stdout_bytes"], said.len());
        verify(&steno);
    }
}

#[test]
fn killed_forwarder_leaves_a_run_without_an_end() {
    let steno = Steno::new();
    let mut live = steno.start(&["run", "--", "cat"]);
    let said = talk(&mut live, 10);
    wait_for_spool(&steno, &said);
    live.signal("KILL");
    drop(live);
    wait_for_archive(&steno);
    assert_eq!(lane(&steno, "out"), (said.into_bytes(), 0));
    let events = events(&steno);
    assert!(!events.iter().any(|event| event["type"] == "run.completed"), "{events:?}");
    verify(&steno);
}

#[test]
fn full_disk_delays_nothing_and_every_byte_is_there_or_counted() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    let steno = Steno::new();
    let mounted = needs!(MountedDisk::at(steno.store()), "root may not mount a tmpfs here");
    let mut live = steno.start(&["run", "--", "cat"]);
    let mut said = talk(&mut live, 10);
    wait_for_spool(&steno, &said);
    mounted.fill();
    said.push_str(&talk(&mut live, 2000));
    // The disk is still full at the end of the command.
    let ended = live.finish();
    assert_eq!(ended.code, 0);
    assert!(ended.err.contains("forwarded but not recorded: No space left on device"), "{}", ended.err);
    mounted.empty();
    steno.run(&["import"]);
    wait_for_archive(&steno);
    let (bytes, lost) = lane(&steno, "out");
    assert!(lost > 0, "the disk was full");
    assert_eq!(bytes.len() as u64 + lost, said.len() as u64);
    assert!(said.as_bytes().starts_with(&bytes));
    let end: Value = events(&steno).pop().unwrap();
    assert_eq!((&end["payload"]["exit_code"], &end["payload"]["lost_bytes"]), (&0.into(), &lost.into()));
    verify(&steno);
}
