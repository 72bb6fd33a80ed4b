//! Evidence as a stranger reads it: when a file was seen.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::kit::{RUN, Said, Steno};

const DAY: Duration = Duration::from_hours(24);

fn line(number: u32, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"8d1f0c53-52a4-4b0e-a6a1-{number:012}","sessionId":"{RUN}","version":"2.1.150","timestamp":"2026-06-08T08:14:{number:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Sets the time of a file, as `touch -d` does, in days since 1970.
fn touch(path: &Path, days: u32) {
    let file = fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + days * DAY).unwrap();
}

/// The time of the disk, whose clock is never ahead, as manifests have it.
fn now(steno: &Steno) -> String {
    let path = steno.dir.path().join("now");
    fs::write(&path, "").unwrap();
    let now = jiff::Timestamp::try_from(fs::metadata(&path).unwrap().modified().unwrap()).unwrap();
    format!("{now:.3}")
}

#[track_caller]
fn done(said: &Said) {
    assert_eq!(said.code, 0, "{said:?}");
}

/// The lines of the one manifest in the store: plain JSON, a line each.
fn manifest(steno: &Steno) -> Vec<Value> {
    let mut paths: Vec<PathBuf> = fs::read_dir(steno.store().join("vault/sources"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(paths.len(), 1);
    let text = fs::read_to_string(paths.pop().unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_manifest_has_the_time_of_the_clock_and_that_of_the_file() {
    let steno = Steno::new();
    let path = steno.dir.path().join(format!(".claude/projects/p/{RUN}.jsonl"));
    let before = now(&steno);
    // 2001-01-01, then 2002-01-01.
    for (days, text) in [(11_323, line(1, "one")), (11_688, line(2, "two, and not the same at all"))] {
        write(&path, text.as_bytes());
        touch(&path, days);
        done(&steno.run(&["import"]));
    }
    let lines = manifest(&steno);
    let sightings: Vec<&Value> =
        lines.iter().filter_map(|line| line.get("source").or_else(|| line.get("generation"))).collect();
    let modified: Vec<&str> = sightings.iter().map(|seen| seen["modified"].as_str().unwrap()).collect();
    assert_eq!(
        modified,
        ["2001-01-01T00:00:00.000Z", "2001-01-01T00:00:00.000Z", "2002-01-01T00:00:00.000Z"]
    );
    for seen in sightings {
        let time = seen["time"].as_str().unwrap();
        assert!(before.as_str() <= time, "{before} {time}");
    }
    assert_eq!(lines[0]["source"]["version"], 2);
    // Who asks for the generations is told the same.
    let listed = steno.run(&["restore", RUN, "--list", "--json"]).json();
    assert_eq!(listed[0]["generations"][1]["modified"], "2002-01-01T00:00:00.000Z");
    assert!(listed[0]["generations"][0]["since"].as_str().unwrap() >= before.as_str());
}
