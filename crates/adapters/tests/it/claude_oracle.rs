//! Compares what the scripted model sent with what the adapter found on each channel.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use steno_testkit::{needs, places, shared_dir};

use crate::reading::{Reading, claude_file, is_named, read};

/// The captured runs, each with the earlier runs that its session files contain.
const CAPTURES: [(&str, &[&str]); 7] = [
    ("2.1.197/main", &[]),
    ("2.1.325/main", &[]),
    ("2.1.325/denied", &[]),
    ("2.1.325/err400", &[]),
    ("2.1.325/resume", &["2.1.325/main"]),
    ("2.1.325/compact", &["2.1.325/main", "2.1.325/resume"]),
    ("2.1.325/control", &[]),
];

/// What a channel lacks: run, channel, scenario of the script, kind of item, reason.
const NOT_SHOWN: [(&str, &str, &str, &str, &str); 10] = [
    ("2.1.197/main", "stream", "claude_sub", "thought", SUBAGENT),
    ("2.1.197/main", "stream", "claude_sub", "text", SUBAGENT),
    ("2.1.325/main", "stream", "claude_sub", "thought", SUBAGENT),
    ("2.1.325/main", "stream", "claude_sub", "text", SUBAGENT),
    ("2.1.325/denied", "stream", "claude_sub", "thought", SUBAGENT),
    ("2.1.325/denied", "stream", "claude_sub", "text", SUBAGENT),
    ("2.1.325/control", "control", "claude_sub", "thought", SUBAGENT),
    ("2.1.325/control", "control", "claude_sub", "text", SUBAGENT),
    ("2.1.325/compact", "disk", "claude_loop", "text", COMPACTION),
    ("2.1.325/compact", "stream", "claude_loop", "text", COMPACTION),
];

const SUBAGENT: &str =
    "a foreground subagent's thinking and last words are not printed; the call's result has the words";
const COMPACTION: &str =
    "the responses that make a summary leave no record, only their cost in the session's total";

/// What a channel has that the script of its run did not send: run, channel, text, reason.
const NOT_SENT: [(&str, &str, &str, &str); 2] = [
    ("2.1.325/compact", "disk", "Just greet the user.", FORK),
    ("2.1.325/compact", "disk", "Hello from the scripted model.", FORK),
];

const FORK: &str = "the home holds a fork that another run has left, with one response of its own";

/// The output of a tool, by a word in the call's input.
const PRINTED: [(&str, &str); 8] = [
    ("printf 'alpha", "alpha\nbeta\nto-stderr\n"),
    ("wc -l notes.txt", "3 notes.txt"),
    ("echo partial", "Exit code 3\npartial\nboom"),
    ("echo before", "before"),
    ("\"echo 2\"", "2"),
    ("via MCP", "echo: via MCP"),
    ("NoSuchTool", "No such tool available: NoSuchTool"),
    ("missing.txt", "File does not exist."),
];

/// A text, thought or call that the model sent or an adapter found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    kind: String,
    /// The id of the response or the call.
    id: String,
    /// The text; for a call its name and input.
    text: String,
    scenario: String,
}

#[test]
#[expect(clippy::print_stderr, reason = "how much was found is what the test is worth")]
fn every_channel_has_what_the_model_sent() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let captures = shared.join("captures/claude");
    let mut wrong = Vec::new();
    for (run, earlier) in CAPTURES {
        let sent = emitted(&captures.join(run));
        let before: Vec<Item> = earlier.iter().flat_map(|run| emitted(&captures.join(run))).collect();
        for (channel, files) in channels(&captures.join(run)) {
            let readings: Vec<Reading> = files
                .iter()
                .map(|file| {
                    let (adapter, pieces) = claude_file(file.as_ref());
                    read(adapter, &pieces)
                })
                .collect();
            let found: Vec<Item> = readings.iter().flat_map(items).collect();
            let figures = |kind: &str, items: &[Item]| items.iter().filter(|item| item.kind == kind).count();
            for kind in ["call", "text", "thought"] {
                let (made, seen) = (figures(kind, &sent), figures(kind, &found));
                eprintln!(
                    "{run} {channel}: {kind}: sent {made}, found {seen} (with {} earlier)",
                    figures(kind, &before)
                );
            }
            missing(run, channel, &sent, &found, &mut wrong);
            invented(run, channel, &[&sent[..], &before].concat(), &found, &mut wrong);
            for (reading, file) in readings.iter().zip(&files) {
                results(run, reading, file.as_ref(), &mut wrong);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the channels of a run, with their files.
fn channels(run: &Path) -> Vec<(&'static str, Vec<String>)> {
    let files = places::files_below(run);
    let path = |name: &String| run.join(name).to_string_lossy().into_owned();
    let of = |fits: &dyn Fn(&str) -> bool| -> Vec<String> {
        files.iter().filter(|name| fits(name)).map(path).collect()
    };
    let found = [
        ("disk", of(&|name| name.starts_with("home/projects/") && is_named(name, "jsonl"))),
        ("stream", of(&|name| name == "stream.ndjson")),
        ("control", of(&|name| name == "duplex.jsonl")),
    ];
    found.into_iter().filter(|(_, files)| !files.is_empty()).collect()
}

fn emitted(run: &Path) -> Vec<Item> {
    let text = places::read(run.join("emitted.jsonl"));
    let mut sent = Vec::new();
    for line in text.lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let scenario = record["scenario"].as_str().unwrap_or_default();
        for item in record["items"].as_array().unwrap() {
            let id = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            let (kind, id, text) = match item["type"].as_str() {
                Some("text") => ("text", id("message_id"), id("text")),
                Some("thinking") => ("thought", id("message_id"), id("thinking")),
                Some("tool_use") => ("call", id("id"), call_text(&item["name"], &item["input"])),
                _ => continue,
            };
            sent.push(Item { kind: kind.to_owned(), id, text, scenario: scenario.to_owned() });
        }
    }
    sent
}

/// Returns a call's name and input as one text. Claude Code adds the default of `replace_all` to an edit.
fn call_text(name: &Value, input: &Value) -> String {
    let mut input = input.clone();
    if name == "Edit" && input["replace_all"] == false {
        input.as_object_mut().unwrap().remove("replace_all");
    }
    format!("{} {input}", name.as_str().unwrap())
}

/// Returns the model's texts, thoughts and calls that an adapter found.
fn items(reading: &Reading) -> Vec<Item> {
    let mut found = Vec::new();
    let mut push = |kind: &str, id: &Value, text: String| {
        let id = id.as_str().unwrap_or_default().to_owned();
        found.push(Item { kind: kind.to_owned(), id, text, scenario: String::new() });
    };
    for event in &reading.events {
        let payload = &event["payload"];
        if event["type"] == "tool.call" {
            push("call", &payload["call_id"], call_text(&payload["name"], &payload["input"]));
        }
        for block in
            payload["blocks"].as_array().into_iter().flatten().filter(|_| payload["role"] == "assistant")
        {
            match block["type"].as_str().unwrap() {
                "text" => push("text", &payload["response"], block["text"].as_str().unwrap().to_owned()),
                "thinking" => {
                    push("thought", &payload["response"], block["thinking"].as_str().unwrap().to_owned());
                }
                "tool_use" => {}
                other => panic!("a block of type {other}"),
            }
        }
    }
    found
}

fn missing(run: &str, channel: &str, sent: &[Item], found: &[Item], wrong: &mut Vec<String>) {
    for item in sent {
        let is_found =
            found.iter().any(|one| (&one.kind, &one.id, &one.text) == (&item.kind, &item.id, &item.text));
        let is_listed = NOT_SHOWN.iter().any(|(in_run, on, scenario, kind, _)| {
            (*in_run, *on, *scenario, *kind) == (run, channel, item.scenario.as_str(), item.kind.as_str())
        });
        if is_found == is_listed {
            let what = if is_found { "is shown and listed as not shown" } else { "is not shown" };
            wrong.push(format!("{run} {channel}: {what}: {item:?}"));
        }
    }
}

fn invented(run: &str, channel: &str, sent: &[Item], found: &[Item], wrong: &mut Vec<String>) {
    let mut left: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for item in sent {
        *left.entry((&item.kind, &item.id, &item.text)).or_default() += 1;
    }
    for item in found {
        let is_sent = left.contains_key(&(&item.kind, &item.id, &item.text));
        let is_listed =
            NOT_SENT.iter().any(|(in_run, on, text, _)| (*in_run, *on, *text) == (run, channel, &item.text));
        if !is_sent && !is_listed {
            wrong.push(format!("{run} {channel}: was not sent: {item:?}"));
        }
    }
}

/// Compares each result with its record and with the known output of the tools.
fn results(run: &str, reading: &Reading, file: &Path, wrong: &mut Vec<String>) {
    let text = places::read(file);
    let mut reported = BTreeMap::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let record = if record["msg"].is_object() { record["msg"].take() } else { record };
        if record["type"] != "user" {
            continue;
        }
        for block in record["message"]["content"].as_array().into_iter().flatten() {
            if block["type"] == "tool_result" {
                reported.insert(block["tool_use_id"].as_str().unwrap().to_owned(), block["content"].clone());
            }
        }
    }
    let found: BTreeMap<String, Value> = reading
        .of_type("tool.result")
        .map(|event| {
            let id = event["payload"]["call_id"].as_str().unwrap();
            (id.to_owned(), event["payload"]["output"].clone())
        })
        .collect();
    if found != reported {
        wrong.push(format!("{run}: the results of {} are not those of the file", file.display()));
    }
    for call in reading.of_type("tool.call") {
        let payload = &call["payload"];
        let text = call_text(&payload["name"], &payload["input"]);
        let Some((_, printed)) = PRINTED.iter().find(|(word, _)| text.contains(word)) else { continue };
        let result =
            reading.of_type("tool.result").find(|one| one["payload"]["call_id"] == payload["call_id"]);
        let result = &result.unwrap()["payload"];
        let is_printed = text_of(&result["output"]).contains(printed);
        if !is_printed && result["outcome"] != "denied" {
            wrong.push(format!("{run}: `{text}` printed {}", result["output"]));
        }
    }
}

fn text_of(output: &Value) -> String {
    match output {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => output.to_string(),
    }
}
