//! Copilot's captures against what the model really sent, and against the counts that were made by hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_adapters::{Source, copilot, sniff};
use steno_model::Provider;
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, made_of_lines};
use crate::codex_files::files_below;
use crate::codex_oracle::counts;
use crate::copilot_files::{all_samples, made_of};
use crate::reading::check_unknown_types;

/// The runs of the captured version.
const RUNS: [&str; 5] = ["acp", "denied", "main_completions", "main_responses", "resume"];

/// What the model sent in a run, or what was found of it.
#[derive(Debug, Default, PartialEq)]
struct Sent {
    /// Calls by id: the name, and the input as it was meant.
    calls: BTreeMap<String, (String, Value)>,
    texts: Vec<String>,
    thoughts: Vec<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

impl Sent {
    fn of_capture(capture: &Path) -> Self {
        let mut sent = Self::default();
        for line in places::read(capture.join("emitted.jsonl")).lines() {
            let response: Value = serde_json::from_str(line).unwrap();
            response["items"].as_array().unwrap().iter().for_each(|item| sent.take(item));
        }
        sent.sorted()
    }

    /// Takes an item of a response, of either API.
    fn take(&mut self, item: &Value) {
        let parsed = |arguments: &Value| serde_json::from_str(arguments.as_str().unwrap()).unwrap();
        match item["type"].as_str() {
            Some("message") => self.texts.push(text(&item["content"][0]["text"])),
            Some("reasoning") => self.thoughts.push(text(&item["summary"][0]["text"])),
            Some("function_call") => {
                let call = (text(&item["name"]), parsed(&item["arguments"]));
                self.calls.insert(text(&item["call_id"]), call);
            }
            Some("custom_tool_call") => {
                self.calls.insert(text(&item["call_id"]), (text(&item["name"]), item["input"].clone()));
            }
            Some("function") => {
                let call = &item["function"];
                self.calls.insert(text(&item["id"]), (text(&call["name"]), parsed(&call["arguments"])));
            }
            Some("custom") => {
                let call = &item["custom"];
                self.calls.insert(text(&item["id"]), (text(&call["name"]), call["input"].clone()));
            }
            Some(_) | None => {
                self.texts.extend(item["text"].as_str().map(str::to_owned));
                self.thoughts.extend(item["reasoning"].as_str().map(str::to_owned));
            }
        }
    }

    fn of_events(made: &Made) -> Self {
        let mut found = Self::default();
        for call in made.payloads("tool.call") {
            // Copilot puts this before the ids of freeform tools.
            let id = text(&call["call_id"]).trim_start_matches("custom_").to_owned();
            let known = found.calls.insert(id, (text(&call["name"]), call["input"].clone()));
            assert!(known.is_none(), "two calls {}", call["call_id"]);
        }
        found.texts.extend(made.said("text").iter().map(|block| text(&block["text"])));
        found.thoughts.extend(made.said("thinking").iter().map(|block| text(&block["thinking"])));
        found.sorted()
    }

    fn add(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.texts.extend(other.texts);
        self.thoughts.extend(other.thoughts);
    }

    fn sorted(mut self) -> Self {
        self.texts.sort();
        self.thoughts.sort();
        self
    }
}

fn session_file(capture: &Path) -> PathBuf {
    files_below(&capture.join("home/session-state"), "events.jsonl").remove(0)
}

#[test]
fn session_files_have_all_that_the_model_sent_and_nothing_else() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/copilot/1.0.102");
    for run in RUNS {
        let mut want = Sent::of_capture(&captures.join(run));
        if run == "resume" {
            // A resumed session's file holds the earlier run too.
            want.add(Sent::of_capture(&captures.join("main_responses")));
        }
        let got = Sent::of_events(&made_of(&session_file(&captures.join(run))));
        assert_eq!(got, want.sorted(), "{run}");
    }
}

#[test]
fn streams_have_all_that_the_model_sent_and_nothing_else() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/copilot/1.0.102");
    for run in RUNS.into_iter().filter(|run| *run != "acp") {
        let want = Sent::of_capture(&captures.join(run));
        let made = made_of(&captures.join(run).join("stream.ndjson"));
        assert_eq!(Sent::of_events(&made), want, "{run}");
        let retries = made.steps("step.completed", "retry").len();
        assert_eq!(retries, usize::from(run != "resume"), "{run}");
        let ends = made.payloads("run.completed");
        assert!(!ends.is_empty() && ends.iter().all(|end| end["exit_code"] == 0), "{run}");
    }
}

/// Returns calls with their results: name, input, output, outcome, exit code.
fn results(made: &Made) -> BTreeMap<String, Value> {
    let results = made.payloads("tool.result").into_iter().map(|result| {
        let told = ["name", "output", "error", "outcome", "exit_code", "class"].map(|name| &result[name]);
        (text(&result["call_id"]), serde_json::json!(told))
    });
    results.collect()
}

#[test]
fn both_surfaces_have_the_same_results_turns_and_runs() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/copilot/1.0.102");
    for run in ["denied", "main_completions", "main_responses"] {
        let disk = made_of(&session_file(&captures.join(run)));
        let stream = made_of(&captures.join(run).join("stream.ndjson"));
        assert_eq!(results(&disk), results(&stream), "{run}");
        let turns = |made: &Made| -> Vec<String> {
            made.steps("step.started", "turn").iter().map(|turn| text(&turn["turn_id"])).collect()
        };
        assert_eq!(turns(&disk), turns(&stream), "{run}");
        let started = |made: &Made, name: &str| -> Vec<String> {
            let runs = made.events.iter().filter(|event| event["type"] == "run.started");
            runs.map(|event| text(&event[name])).collect()
        };
        assert_eq!(started(&disk, "run_id"), started(&stream, "session_run_id"), "{run}");
        let prompts = |made: &Made| -> Vec<Value> {
            let prompts = made.payloads("message.user").into_iter();
            let prompts = prompts.filter(|prompt| prompt["blocks"][0]["label"].is_null());
            prompts.map(|prompt| serde_json::json!([prompt["id"], prompt["blocks"]])).collect()
        };
        assert_eq!(prompts(&disk), prompts(&stream), "{run}");
    }
}

#[test]
fn counts_are_those_that_were_made_by_hand() {
    let shared = needs!(shared_dir(), "there are no captures");
    let expected: Value = serde_json::from_str(&places::read(shared.join("captures/expected.json"))).unwrap();
    let mut compared = 0;
    for (path, expected) in expected.as_object().unwrap() {
        if !path.starts_with("copilot/") {
            continue;
        }
        let made = made_of(&shared.join("captures").join(path));
        let main = &made.events[0]["run_id"];
        for (run, want) in expected["runs"].as_object().unwrap() {
            let is_its =
                |event: &&Value| event["run_id"] == *run || (run == "main" && event["run_id"] == *main);
            let events: Vec<&Value> = made.events.iter().filter(is_its).collect();
            let mut got = counts(&events);
            got.insert("message_assistant_events", said(&events));
            for (name, got) in &got {
                let want = want.get(*name).unwrap_or(&want["approvals"][*name]);
                assert_eq!(want, got, "{path} {run}: {name}");
                compared += 1;
            }
            assert_eq!(got["tool_call"], got["tool_result"], "{path} {run}");
        }
    }
    assert_eq!(compared, 60);
}

/// Counts the messages of the model that have blocks.
fn said(events: &[&Value]) -> u64 {
    let messages = events.iter().filter(|event| event["type"] == "message.assistant");
    messages.filter(|event| event["payload"]["blocks"] != serde_json::json!([])).count() as u64
}

#[test]
fn usage_adds_up_to_what_was_used() {
    let shared = needs!(shared_dir(), "there are no captures");
    let mut compared = 0;
    for path in all_samples(&shared).into_iter().filter(|path| !is_stream(path)) {
        let made = made_of(&path);
        let messages = made.payloads("message.assistant");
        let (totals, responses): (Vec<&Value>, Vec<&Value>) = messages
            .into_iter()
            .filter(|message| !message["usage"].is_null())
            .partition(|message| message["usage_scope"] == "session");
        // Copilot adds up all processes and subagents.
        let Some(last) = totals.last() else { continue };
        for name in ["inputTokens", "outputTokens", "cacheReadTokens", "reasoningTokens"] {
            let count = |usage: &Value| usage[name].as_u64().unwrap_or(0);
            let sum: u64 = responses.iter().map(|message| count(&message["usage"])).sum();
            let total: u64 = last["usage"].as_object().unwrap().values().map(count).sum();
            assert!(sum == total && total > 0, "{}: {name} is {sum}, not {total}", path.display());
        }
        compared += 1;
    }
    assert_eq!(compared, 10);
}

fn is_stream(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ndjson")
}

#[test]
fn unknown_types_are_those_of_the_list() {
    let shared = needs!(shared_dir(), "there are no samples");
    let samples = all_samples(&shared);
    assert!(samples.len() >= 22, "{}", samples.len());
    check_unknown_types(&samples, |path| made_of(path).completeness);
}

#[test]
fn samples_are_recognised() {
    let shared = needs!(shared_dir(), "there are no samples");
    for path in all_samples(&shared) {
        let sniffed = sniff(&places::read_bytes(&path)).unwrap();
        assert_eq!(
            (sniffed.surface.provider(), sniffed.surface.name() == "stream"),
            (Some(Provider::Copilot), is_stream(&path)),
            "{}",
            path.display()
        );
    }
}

#[test]
fn every_type_of_the_schema_is_known() {
    let shared = needs!(shared_dir(), "there are no schemas");
    let schema = places::read(shared.join("schemas/copilot-session-events.schema.json"));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let definitions = schema["definitions"].as_object().unwrap().values();
    let is_event = |definition: &&Value| !definition["properties"]["parentId"].is_null();
    let kinds =
        definitions.filter(is_event).filter_map(|event| event["properties"]["type"]["const"].as_str());
    let kinds: Vec<&str> = kinds.collect();
    assert!(kinds.len() > 150, "{}", kinds.len());
    // What a type needs is there, so that only the type itself can be unknown.
    let data = r#"{"content":"x","toolCallId":"c1","requestId":"r1","sessionId":"s1","success":true,"result":{"kind":"approved"},"inputTokens":1,"usage":{"inputTokens":1}}"#;
    let line = |kind: &&str| format!(r#"{{"type":"{kind}","id":"{kind}","data":{data}}}"#);
    let start = line(&"session.start");
    let request = line(&"permission.requested");
    let lines: Vec<String> = [start, request].into_iter().chain(kinds.iter().map(line)).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let made = made_of_lines(copilot::events(Source::named("s1")), &lines);
    assert_eq!(made.completeness.unknown, BTreeMap::new());
}
