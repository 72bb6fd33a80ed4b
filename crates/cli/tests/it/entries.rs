//! Transcript entries: of archived sessions, during recording, and of several commands in one file.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use steno_testkit::{needs, shared_dir};

use crate::app_server::{AppServerClient, SAID, SERVER};
use crate::kit::{CommandOutput, Steno, json, wait_until};

const SESSION: &str = "2f6b7a10-6d0c-4a53-9f5e-5a1be0c0ffee";

/// A record of a session.
fn line(number: u32, text: &str) -> String {
    format!(
        r#"{{"type":"user","uuid":"8d1f0c53-52a4-4b0e-a6a1-{number:012}","sessionId":"{SESSION}","version":"2.1.150","timestamp":"2026-06-08T08:14:{number:02}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    ) + "\n"
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Writes a session with a subagent's file, bookkeeping and a line that is not JSON.
fn write_session(steno: &Steno) {
    let project = steno.dir.path().join(".claude/projects/-srv-shop");
    let main = format!(
        "{{\"type\":\"file-history-snapshot\",\"messageId\":\"m\"}}\n{}garbage\n{}",
        line(1, "one"),
        line(2, "two")
    );
    write(&project.join(format!("{SESSION}.jsonl")), &main);
    let agent = line(3, "count").replace(r#""version""#, r#""isSidechain":true,"agentId":"a1","version""#);
    write(&project.join(format!("{SESSION}/subagents/agent-a1.jsonl")), &agent);
}

fn records_of(said: &CommandOutput) -> Vec<Value> {
    assert_eq!(said.code, 0, "{said:?}");
    said.out.lines().map(json).collect()
}

fn log_in(steno: &Steno) -> Vec<Value> {
    let text = fs::read_to_string(steno.dir.path().join("entries.jsonl")).unwrap_or_default();
    text.lines().map(json).collect()
}

fn of_event<'a>(records: &'a [Value], event: &str) -> Vec<&'a Value> {
    records.iter().filter(|record| record["event"] == event).map(|record| &record["context"]).collect()
}

/// Checks that numbers have no gaps, and that each session has one start and one stop with the counts of its entries;
/// returns how many sessions and entries there are.
#[track_caller]
fn check_collection(records: &[Value]) -> (usize, usize) {
    let entries = of_event(records, "transcript.entry");
    let mut last: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in &entries {
        let number = last
            .entry((entry["prompt_name"].as_str().unwrap(), entry["source"].as_str().unwrap()))
            .or_default();
        *number += 1;
        assert_eq!(entry["sequence_number"], *number, "{entry}");
        *counts.entry(entry["session_id"].as_str().unwrap_or_default()).or_default() += 1;
    }
    let session = |context: &&Value| context["session_id"].as_str().unwrap_or_default().to_owned();
    let starts: Vec<String> = of_event(records, "transcript.start").iter().map(session).collect();
    let stops = of_event(records, "transcript.stop");
    assert_eq!(stops.iter().map(session).collect::<Vec<_>>(), starts);
    assert_eq!(starts.iter().collect::<BTreeSet<_>>().len(), starts.len(), "one start a session");
    for stop in stops {
        assert_eq!(stop["total_entries"], counts[&*session(&stop)], "{stop}");
    }
    (starts.len(), entries.len())
}

/// Returns the entries, without start and stop.
fn told(records: &[Value]) -> Vec<Value> {
    of_event(records, "transcript.entry").into_iter().cloned().collect()
}

#[test]
fn entries_of_an_archived_session_do_not_need_its_file() {
    let steno = Steno::new();
    write_session(&steno);
    let project = ".claude/projects/-srv-shop";
    let main = format!("{project}/{SESSION}.jsonl");
    let agent = format!("{project}/{SESSION}/subagents/agent-a1.jsonl");
    let of_files = records_of(&steno.run(&["entries", &main, &agent]));
    assert_eq!(check_collection(&of_files), (1, 5));
    assert_eq!(steno.run(&["import"]).code, 0);
    fs::remove_dir_all(steno.dir.path().join(project)).unwrap();
    for run in [SESSION, &SESSION[..8], "ffee", "last"] {
        let archived = records_of(&steno.run(&["entries", run]));
        assert_eq!(told(&archived), told(&of_files), "{run}");
        assert_eq!(check_collection(&archived), (1, 5));
        let sources: Vec<&Value> =
            of_event(&archived, "transcript.entry").iter().map(|entry| &entry["source"]).collect();
        assert_eq!(sources, ["main", "main", "main", "main", "subagent:a1"]);
        let errors: Vec<&Value> =
            archived.iter().filter(|record| record["event"] == "transcript.error").collect();
        assert!(errors.len() == 1 && errors[0]["level"] == "WARNING", "{errors:?}");
    }
    // The run of a subagent belongs to its session.
    let runs = steno.run(&["ls", "--runs", "--json"]).json();
    assert_eq!(runs.len(), 2);
    for run in runs.iter().filter_map(|run| run["run_id"].as_str()) {
        assert_eq!(told(&records_of(&steno.run(&["entries", run]))), told(&of_files), "{run}");
    }
    let said = steno.run(&["entries", "0f0f0f0f-0000-4000-8000-000000000000"]);
    assert!(said.code != 0 && said.out.is_empty(), "{said:?}");
}

/// Also if the session's file is compressed.
#[test]
fn file_of_a_session_has_the_entries_of_its_subagents() {
    let steno = Steno::new();
    write_session(&steno);
    let project = steno.dir.path().join(".claude/projects/-srv-shop");
    let of = |path: &Path| told(&records_of(&steno.run(&["entries", path.to_str().unwrap()])));
    let whole = of(&project);
    assert_eq!(whole.len(), 5);
    let main = project.join(format!("{SESSION}.jsonl"));
    assert_eq!(of(&main), whole);
    let packed = project.join(format!("{SESSION}.jsonl.zst"));
    fs::write(&packed, zstd::encode_all(&fs::read(&main).unwrap()[..], 1).unwrap()).unwrap();
    fs::remove_file(&main).unwrap();
    assert_eq!(of(&packed), whole);
}

#[test]
fn invalid_json_is_an_error_entry_on_every_way_in() {
    for way in ["import", "up", "watch"] {
        let steno = Steno::new();
        write_session(&steno);
        let args: &[&str] = match way {
            "import" => &["import", "--entries", "entries.jsonl"],
            "up" => &["up", "--once", "--entries", "entries.jsonl"],
            _ => &["watch", "--entries", "entries.jsonl"],
        };
        if way == "watch" {
            let live = steno.start(args);
            wait_until("all entries", || of_event(&log_in(&steno), "transcript.entry").len() == 5);
            live.signal("INT");
            assert_eq!(live.ended().code, 0);
        } else {
            assert_eq!(steno.run(args).code, 0);
        }
        let records = log_in(&steno);
        assert_eq!(check_collection(&records), (1, 5), "{way}");
        let place = records.iter().position(|record| record["event"] == "transcript.error").unwrap();
        assert_eq!(records[place]["level"], "WARNING");
        let entry = &records[place - 1]["context"];
        assert_eq!((&entry["entry_type"], &entry["raw"]), (&"unknown".into(), &"garbage".into()), "{way}");
    }
}

#[test]
fn connection_is_logged_by_flag_or_setting() {
    let steno = Steno::new();
    for round in [1, 2] {
        let args: &[&str] = if round == 1 {
            &["app-server", "--entries", "entries.jsonl", "--", "sh", "-c", SERVER]
        } else {
            &["app-server", "--", "sh", "-c", SERVER]
        };
        let mut command = steno.command(args);
        if round == 2 {
            command.env("STENO_ENTRIES", "entries.jsonl");
        }
        let mut connected = AppServerClient::of(command);
        let before = of_event(&log_in(&steno), "transcript.entry").len();
        for said in SAID {
            connected.say(said);
            connected.hear();
        }
        connected.hear();
        connected.say("garbage");
        connected.hear();
        // All entries except the last can exist before the connection ends.
        wait_until("entries while it goes on", || {
            of_event(&log_in(&steno), "transcript.entry").len() >= before + 8
        });
        let stops = of_event(&log_in(&steno), "transcript.stop").len();
        assert_eq!(stops, round - 1, "it has not ended");
        let (_, code, talk) = connected.end();
        assert_eq!((code, talk.as_str()), (7, ""));
    }
    let records = log_in(&steno);
    let entries = of_event(&records, "transcript.entry");
    let numbers: Vec<u64> = entries.iter().map(|entry| entry["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    // Seven messages, a line that is not a message, and its answer; in both rounds.
    assert!(numbers.len() >= 18, "{numbers:?}");
    assert!(
        entries
            .iter()
            .all(|entry| entry["prompt_name"] == "Hello." && entry["adapter"] == "codex_app_server")
    );
    let prompts: Vec<_> = entries.iter().filter(|entry| entry["entry_type"] == "user_message").collect();
    assert!(prompts.len() == 2 && prompts[0]["detail"]["notification"]["threadId"] == "th1", "{prompts:?}");
    let count = |event: &str| of_event(&records, event).len();
    assert_eq!((count("transcript.start"), count("transcript.stop"), count("transcript.error")), (2, 2, 2));
    // The store gives the same entries, from both connections.
    let runs = steno.run(&["ls", "--runs", "--json"]).json();
    let run = runs[0]["run_id"].as_str().unwrap();
    let archived = records_of(&steno.run(&["entries", run]));
    assert_eq!(check_collection(&archived), (1, numbers.len()));
    let types = |records: &[Value]| -> Vec<Value> {
        of_event(records, "transcript.entry").iter().map(|entry| entry["entry_type"].clone()).collect()
    };
    assert_eq!(types(&archived), types(&records));
}

#[test]
fn unwritable_log_does_not_stop_the_server() {
    let steno = Steno::new();
    for log in ["nowhere/entries.jsonl", "/dev/full"] {
        let args = ["app-server", "--entries", log, "--", "sh", "-c", SERVER];
        let mut connected = AppServerClient::of(steno.command(&args));
        for said in SAID {
            connected.say(said);
            connected.hear();
        }
        connected.hear();
        let (_, code, talk) = connected.end();
        assert_eq!(code, 7, "{log}: {talk}");
        assert_eq!(talk.contains("no entries are logged"), log != "/dev/full", "{log}: {talk}");
    }
    assert_eq!(steno.run(&["ls", "--runs", "--json"]).json().len(), 2, "both are recorded");
    let said = steno.run(&["import", "--entries", "nowhere/entries.jsonl"]);
    assert!(said.code == 3 && said.err.contains("nowhere/entries.jsonl"), "{said:?}");
}

#[test]
fn log_file_is_not_archived() {
    let steno = Steno::new();
    write(&steno.dir.path().join("d/session.jsonl"), &line(1, "one"));
    for files_new in [1, 0] {
        let said = steno.run(&["import", "d", "--entries", "d/entries.jsonl", "--json"]);
        let report = json(said.out.trim());
        assert_eq!((&report["files"], &report["files_new"]), (&1.into(), &files_new.into()), "{said:?}");
    }
    assert!(steno.dir.path().join("d/entries.jsonl").is_file());
}

#[test]
fn live_entries_have_the_capture_time_and_imported_ones_their_own() {
    let steno = Steno::new();
    let file = steno.dir.path().join(format!(".claude/projects/-srv-shop/{SESSION}.jsonl"));
    write(&file, &line(1, "one"));
    let live = steno.start(&["watch", "--entries", "entries.jsonl"]);
    wait_until("the first entry", || of_event(&log_in(&steno), "transcript.entry").len() == 1);
    write(&file, &(line(1, "one") + &line(2, "two")));
    wait_until("the second entry", || of_event(&log_in(&steno), "transcript.entry").len() == 2);
    live.signal("INT");
    assert_eq!(live.ended().code, 0);
    let records = log_in(&steno);
    let times: Vec<&str> = of_event(&records, "transcript.entry")
        .iter()
        .map(|entry| entry["timestamp"].as_str().unwrap())
        .collect();
    assert_eq!(times[0], "2026-06-08T08:14:01.000Z");
    assert!(times[1] > "2026-06-09" && times[1].ends_with('Z'), "{times:?}");
    assert_eq!(check_collection(&records), (1, 2));
    assert_eq!(of_event(&records, "transcript.path_discovered").len(), 1, "it is found once");
}

#[test]
fn every_sample_has_numbers_and_one_start_and_stop_per_session() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let steno = Steno::new();
    let mut dirs = Vec::new();
    for kind in ["captures", "versions", "recordings"] {
        for agent in ["claude", "codex"] {
            dirs.push(shared.join(kind).join(agent).to_str().unwrap().to_owned());
        }
    }
    let mut args = vec!["entries"];
    args.extend(dirs.iter().map(String::as_str));
    let said = steno.run(&args);
    // Other files are next to the sessions.
    let records: Vec<Value> = said.out.lines().map(json).collect();
    let (sessions, entries) = check_collection(&records);
    assert!(sessions > 40 && entries > 4000, "{sessions} sessions, {entries} entries: {}", said.err);
}
