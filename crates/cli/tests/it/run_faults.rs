//! `steno run` with a recorder that is stopped or killed, and with a full disk: the command notices nothing.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use steno_testkit::{is_root, needs, skip, tool};

use crate::full_disks::MountedDisk;
use crate::kit::{RunningSteno, Steno, wait_until};
use crate::run::{events, lane, lane_of, unpack, verify, wait_for_archive, wait_for_spool};

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
    self::signal(pid, signal);
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

/// Returns the state of a process as `ps` shows it: `T` is stopped.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

#[track_caller]
fn stop_recorder(steno: &Steno) -> u32 {
    let pid = signal_recorder(steno, "STOP");
    wait_until("stop", || state(pid) == Some('T'));
    pid
}

#[track_caller]
fn signal(pid: u32, name: &str) {
    let done = Command::new("kill").arg(format!("-{name}")).arg(pid.to_string()).status();
    assert!(done.unwrap().success());
}

/// Returns true for the long form of the tests, which `just nightly` runs.
fn is_long() -> bool {
    std::env::var_os("STENO_TEST_LONG").is_some()
}

/// How many seconds a recorder is stopped.
fn stopped_secs() -> usize {
    if is_long() { 30 } else { 2 }
}

/// How many bytes a command prints meanwhile: more than our pipes and queues hold.
const PRINTED_BYTES: usize = 48_000_000;

/// Runs a command while its recorder is stopped, from its first line to its end. Returns what it printed, and the
/// recorder, which is still stopped.
#[track_caller]
fn while_stopped(steno: &Steno) -> (Vec<u8>, u32) {
    let path = steno.dir.path().join("printed");
    let (secs, each) = (stopped_secs(), PRINTED_BYTES / stopped_secs());
    let second = format!("yes 0123456789 | head -c {each}; sleep 1");
    let script = format!("echo begun; read -r go; for i in $(seq {secs}); do {second}; done; exit 7");
    let mut command = steno.command(&["run", "--", "sh", "-c", &script]);
    let printed = fs::File::create(&path).unwrap();
    let mut live = command.stdin(Stdio::piped()).stdout(printed).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_spool(steno, "begun\n");
    let pid = stop_recorder(steno);
    live.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let ended = live.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(7), &b""[..]));
    assert_eq!(state(pid), Some('T'), "the recorder was stopped all the time");
    let printed = fs::read(&path).unwrap();
    let second: Vec<u8> = b"0123456789\n".iter().copied().cycle().take(each).collect();
    let want: Vec<u8> = [b"begun\n".to_vec(), second.repeat(secs)].concat();
    assert!(printed == want, "{} bytes of {}", printed.len(), want.len());
    (printed, pid)
}

/// Checks that the only run with output has all of it.
#[track_caller]
fn check_archived(steno: &Steno, wrap: &Path, printed: &[u8]) {
    let id = wrap.file_stem().unwrap().to_str().unwrap();
    wait_until("archive", || !wrap.exists());
    let read = steno.run(&["events", id, "--json"]).json();
    assert_eq!(read.last().unwrap()["payload"]["exit_code"], 7);
    assert_eq!(read[read.len() - 2]["payload"]["result"]["stdout_bytes"], printed.len());
    let to = steno.dir.path().join(format!("restored-{id}"));
    assert_eq!(steno.run(&["restore", id, "--to", to.to_str().unwrap()]).code, 0);
    let restored = fs::read_dir(&to).unwrap().next().unwrap().unwrap().path();
    assert!(lane_of(&fs::read(restored).unwrap(), "out") == (printed.to_vec(), 0));
    verify(steno);
}

/// Returns the file of the only command that is not archived yet.
#[track_caller]
fn only_wrap(steno: &Steno) -> PathBuf {
    let files = fs::read_dir(steno.store().join("wraps")).unwrap().map(|entry| entry.unwrap().path());
    let wraps: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "wrap")).collect();
    assert_eq!(wraps.len(), 1, "{wraps:?}");
    wraps[0].clone()
}

#[test]
fn stopped_recorder_delays_nothing_and_loses_nothing() {
    let steno = Steno::new();
    let (printed, pid) = while_stopped(&steno);
    let wrap = only_wrap(&steno);
    signal(pid, "CONT");
    check_archived(&steno, &wrap, &printed);
}

#[test]
fn what_a_stopped_recorder_leaves_is_archived_by_the_next_command() {
    let all = [&["import"][..], &["up", "--once", "--no-serve"], &["run", "--", "true"]];
    for next in &all[..if is_long() { 3 } else { 1 }] {
        let steno = Steno::new();
        let (printed, pid) = while_stopped(&steno);
        let wrap = only_wrap(&steno);
        // It has its locks as long as it exists.
        signal(pid, "KILL");
        wait_until("end", || state(pid).is_none_or(|state| state == 'Z'));
        steno.run(next);
        check_archived(&steno, &wrap, &printed);
    }
}

#[test]
fn what_a_killed_recorder_leaves_is_archived_by_the_next_command() {
    for next in [&["import"][..], &["up", "--once", "--no-serve"], &["run", "--", "true"]] {
        let steno = Steno::new();
        let mut live = steno.start(&["run", "--", "cat"]);
        let mut said = talk(&mut live, 10);
        let pid = signal_recorder(&steno, "KILL");
        wait_until("end", || state(pid).is_none_or(|state| state == 'Z'));
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

/// Checks that each frame of a lane is where it belongs, between the bytes that are counted as lost. Returns how many
/// bytes are kept and lost.
#[track_caller]
fn check_places(wrap: &[u8], lane: &str, said: &[u8]) -> (usize, usize) {
    let wrap = unpack(wrap);
    let mut wrap = &wrap[..];
    let (mut kept, mut lost) = (0, 0);
    while let Some(end) = wrap.iter().position(|byte| *byte == b'\n') {
        let control: Value = serde_json::from_slice(&wrap[..end]).unwrap();
        wrap = &wrap[end + 1..];
        let number = |value: &Value| usize::try_from(value.as_u64().unwrap_or(0)).unwrap();
        let len = number(&control["len"]);
        if control["lane"] == lane {
            assert!(said.get(kept + lost..kept + lost + len) == Some(&wrap[..len]), "at {kept} + {lost}");
            kept += len;
        }
        if control["lost"]["lane"] == lane {
            lost += number(&control["lost"]["bytes"]);
        }
        wrap = &wrap[len + usize::from(len > 0)..];
    }
    assert_eq!(kept + lost, said.len());
    (kept, lost)
}

#[test]
fn bytes_that_a_full_disk_refuses_are_counted_where_they_belong() {
    needs!(tool("mount"), "mount is not installed");
    if !is_root() {
        skip!("mounting needs root");
    }
    let steno = Steno::new();
    let mounted = needs!(MountedDisk::at(steno.store()), "root may not mount a tmpfs here");
    // The numbers show where a byte belongs. The first print fills the disk, the second finds room again.
    let script = "seq 1000000; echo full >&2; read -r go; seq 9000000 9001000; exit 3";
    let mut command = steno.command(&["run", "--", "sh", "-c", script]);
    let path = steno.dir.path().join("printed");
    command.stdin(Stdio::piped()).stdout(fs::File::create(&path).unwrap()).stderr(Stdio::piped());
    let mut live = command.spawn().unwrap();
    let mut err = BufReader::new(live.stderr.take().unwrap());
    let mut said = String::new();
    err.read_line(&mut said).unwrap();
    assert_eq!(said, "full\n");
    let id = only_wrap(&steno);
    // What is forwarded may still wait in the queue.
    wait_until("full disk", || fs::write(steno.store().join("demo"), [0; 8192]).is_err());
    mounted.grow();
    live.stdin.take().unwrap().write_all(b"go\n").unwrap();
    err.read_to_string(&mut said).unwrap();
    assert_eq!(live.wait().unwrap().code(), Some(3));
    assert!(said.contains("forwarded but not recorded: No space left on device"), "{said}");
    let printed = fs::read(&path).unwrap();
    let want = Command::new("sh").args(["-c", "seq 1000000; seq 9000000 9001000"]).output().unwrap();
    assert!(printed == want.stdout);
    steno.run(&["import"]);
    wait_for_archive(&steno);
    let restored = steno.dir.path().join("restored");
    let id = id.file_stem().unwrap().to_str().unwrap();
    assert_eq!(steno.run(&["restore", id, "--to", restored.to_str().unwrap()]).code, 0);
    let wrap = fs::read(fs::read_dir(&restored).unwrap().next().unwrap().unwrap().path()).unwrap();
    let (kept, lost) = check_places(&wrap, "out", &printed);
    assert!(kept > 0 && lost > 0, "{kept} kept, {lost} lost");
    assert!(wrap.windows(8).any(|part| part == b"9001000\n"), "it is recorded again when there is room");
    // The word on stderr came when the disk was full.
    let lost = lost as u64 + lane_of(&wrap, "err").1;
    let end: Value = events(&steno).pop().unwrap();
    assert_eq!((&end["payload"]["exit_code"], &end["payload"]["lost_bytes"]), (&3.into(), &lost.into()));
    assert!(said.contains(&format!("{lost} bytes")), "{said}");
    verify(&steno);
}
