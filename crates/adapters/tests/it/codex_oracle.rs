//! Compares Codex's captures with what the model sent, and with counts made by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;
use steno_adapters::{Source, codex};
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, made_of_lines};
use crate::codex_files::{all_samples, files_below, made_of};
use crate::reading::check_unknown_types;

/// The runs of the captured version.
const RUNS: [&str; 4] = ["app_server", "exec_cut", "exec_main", "exec_resume"];

/// The run whose text was cut off before it was complete, so that no channel has it.
const CUT: &str = "exec_cut";

/// What the model sent in a run.
#[derive(Default)]
struct Sent {
    /// Calls by id: name and parsed input.
    calls: BTreeMap<String, (String, Value)>,
    texts: Vec<String>,
    thoughts: Vec<String>,
}

fn read_json(path: &Path) -> Value {
    serde_json::from_str(&places::read(path)).unwrap()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Reads what the model sent, of one scenario or of all.
fn sent(capture: &Path, only: Option<&str>) -> Sent {
    let mut sent = Sent::default();
    for line in places::read(capture.join("emitted.jsonl")).lines() {
        let response: Value = serde_json::from_str(line).unwrap();
        if only.is_some_and(|only| response["scenario"] != only) {
            continue;
        }
        for item in response["items"].as_array().unwrap() {
            sent.take(item);
        }
    }
    sent
}

impl Sent {
    fn take(&mut self, item: &Value) {
        match item["type"].as_str() {
            Some("message") => self.texts.push(text(&item["content"][0]["text"])),
            Some("reasoning") => self.thoughts.push(text(&item["summary"][0]["text"])),
            Some(kind) => {
                let input = match (&item["arguments"], &item["input"]) {
                    (Value::String(arguments), _) => serde_json::from_str(arguments).unwrap(),
                    (Value::Null, input) => input.clone(),
                    (arguments, _) => arguments.clone(),
                };
                let name = item["name"].as_str().unwrap_or(kind.trim_end_matches("_call"));
                let name = match item["namespace"].as_str() {
                    Some(namespace) if namespace.starts_with("mcp__") => format!("{namespace}__{name}"),
                    _ => name.to_owned(),
                };
                self.calls.insert(text(&item["call_id"]), (name, input));
            }
            None => {}
        }
    }

    fn add(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.texts.extend(other.texts);
        self.thoughts.extend(other.thoughts);
    }
}

/// Returns what adapters found in the files of a run.
fn found(made: &[Made]) -> Sent {
    let mut found = Sent::default();
    for made in made {
        for call in made.payloads("tool.call") {
            let input = call["input"].clone();
            let known = found.calls.insert(text(&call["call_id"]), (text(&call["name"]), input));
            assert!(known.is_none(), "two calls {}", call["call_id"]);
        }
        found.texts.extend(made.said("text").iter().map(|block| text(&block["text"])));
        found.thoughts.extend(made.said("thinking").iter().map(|block| text(&block["thinking"])));
    }
    found
}

#[track_caller]
pub(crate) fn same(what: &str, mut got: Vec<String>, mut want: Vec<String>) {
    got.sort();
    want.sort();
    assert_eq!(got, want, "{what}");
}

fn rollouts(capture: &Path) -> Vec<Made> {
    files_below(&capture.join("home/sessions"), ".jsonl").iter().map(|path| made_of(path)).collect()
}

#[test]
fn rollouts_have_exactly_what_the_model_sent() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/codex/0.166.0");
    for run in RUNS {
        let mut want = sent(&captures.join(run), None);
        match run {
            CUT => want.texts.clear(),
            // The home of a resumed session contains the earlier run too.
            "exec_resume" => want.add(sent(&captures.join("exec_main"), None)),
            _ => {}
        }
        let got = found(&rollouts(&captures.join(run)));
        assert_eq!(got.calls, want.calls, "calls of {run}");
        same(run, got.texts, want.texts);
        same(run, got.thoughts, want.thoughts);
    }
}

#[test]
fn connection_has_what_the_model_sent_except_listed_calls() {
    let shared = needs!(shared_dir(), "there are no captures");
    let capture = shared.join("captures/codex/0.166.0/app_server");
    let (want, got) = (sent(&capture, None), found(&[made_of(&capture.join("duplex.jsonl"))]));
    let missing = want.calls.iter().filter(|(id, _)| !got.calls.contains_key(*id));
    let missing: Vec<&str> = missing.map(|(_, (name, _))| name.as_str()).collect();
    let missing: BTreeSet<&str> = missing.into_iter().collect();
    // According to `captures/README.md` the channel lacks these. Of the patches it lacks one, which was refused unread.
    assert_eq!(missing, BTreeSet::from(["apply_patch", "no_such_tool", "tool_search", "write_stdin"]));
    assert_eq!((want.calls.len(), got.calls.len()), (21, 16));
    for (id, (name, input)) in &got.calls {
        let (sent_name, sent_input) = &want.calls[id];
        assert!(
            is_same_call((name, input), (sent_name, sent_input)),
            "{id}: {name} {input} is not {sent_name} {sent_input}"
        );
    }
    same("thoughts", got.thoughts, want.thoughts);
    // A connection does not carry the response of a compaction.
    same("texts", got.texts, want.texts.into_iter().filter(|text| text != "Slept.").collect());
}

/// Compares a call of an item with the call that was sent. The item has only the tool's own fields.
fn is_same_call((name, input): (&str, &Value), (sent_name, sent): (&str, &Value)) -> bool {
    match name {
        "commandExecution" | "command_execution" => {
            let command = text(&input["command"]);
            let plain = text(&sent["cmd"]).replace('\\', "\\\\");
            sent_name == "exec_command" && command.contains(&plain)
        }
        "fileChange" | "file_change" => {
            let path = text(&input["changes"][0]["path"]);
            let file = path.rsplit('/').next().unwrap().to_owned();
            sent_name == "apply_patch" && text(sent).contains(&file)
        }
        "spawnAgent" | "spawn_agent" => sent_name == "spawn_agent" && input["prompt"] == sent["message"],
        "wait" => sent_name == "wait_agent" && input["receiver_thread_ids"] == sent["targets"],
        "closeAgent" | "close_agent" => {
            sent_name == "close_agent" && input["receiver_thread_ids"][0] == sent["target"]
        }
        _ => name == sent_name && input == sent,
    }
}

#[test]
fn exec_streams_have_what_the_model_sent_except_listed_calls() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/codex/0.166.0");
    for (run, scenario) in [("exec_main", "codex_main"), ("exec_cut", "cut"), ("exec_resume", "codex_err400")]
    {
        let made = made_of(&captures.join(run).join("stream.ndjson"));
        // The stream has nothing of what happens inside a subagent.
        let mut want = sent(&captures.join(run), Some(scenario));
        if run == CUT {
            want.texts.clear();
        }
        let got = found(&[made]);
        let calls: Vec<&(String, Value)> = got.calls.values().collect();
        let is_found = |call: &(String, Value)| {
            let fits = |got: &&&(String, Value)| is_same_call((&got.0, &got.1), (&call.0, &call.1));
            calls.iter().any(|got| fits(&got))
        };
        let missing: Vec<&str> =
            want.calls.values().filter(|call| !is_found(call)).map(|(name, _)| name.as_str()).collect();
        let missing: BTreeSet<&str> = missing.into_iter().collect();
        let carried_not = BTreeSet::from(["apply_patch", "no_such_tool", "tool_search", "write_stdin"]);
        assert!(missing.is_subset(&carried_not), "{run}: {missing:?}");
        let lost = if run == "exec_main" { 5 } else { 0 };
        assert_eq!(got.calls.len() + lost, want.calls.len(), "{run}");
        same(run, got.texts, want.texts);
        same(run, got.thoughts, want.thoughts);
    }
}

#[test]
fn results_have_the_tool_output_on_every_channel() {
    let shared = needs!(shared_dir(), "there are no captures");
    let capture = shared.join("captures/codex/0.166.0/exec_main");
    let printed = |made: &Made| -> BTreeMap<String, Value> {
        let calls = made.payloads("tool.call").into_iter().filter(|call| call["class"] == "command");
        let result = |call: &Value| {
            let results = made.payloads("tool.result");
            let result = *results.iter().find(|result| result["call_id"] == call["call_id"]).unwrap();
            let amended = made.steps("step.completed", "amend");
            let amended = amended.iter().find(|step| step["tool_call_id"] == call["call_id"]);
            let output = amended.map_or(&result["output"], |step| &step["result"]["output"]);
            let code = amended.map_or(&result["exit_code"], |step| &step["result"]["exit_code"]);
            serde_json::json!([output, code])
        };
        let command = |call: &Value| {
            let command = call["input"]["command"].as_str().unwrap_or_default();
            let sent = call["input"]["cmd"].as_str().map(|sent| sent.replace('\\', "\\\\"));
            sent.unwrap_or_else(|| command.replace("/bin/bash -lc ", "").trim_matches(['\'', '"']).to_owned())
        };
        calls.filter(|call| call["name"] != "write_stdin").map(|call| (command(call), result(call))).collect()
    };
    let stream = printed(&made_of(&capture.join("stream.ndjson")));
    let disk = files_below(&capture.join("home/sessions"), "0a1a.jsonl");
    assert_eq!(printed(&made_of(&disk[0])), stream);
    assert_eq!(stream["cat notes.txt"], serde_json::json!(["one\ntwo\nthree\n", 0]));
    assert_eq!(stream["echo partial; echo boom >&2; exit 3"], serde_json::json!(["partial\nboom\n", 3]));
}

/// Returns the counts of `expected.json` for one run.
pub(crate) fn counts(events: &[&Value]) -> BTreeMap<&'static str, u64> {
    let of = |event_type: &str| events.iter().filter(|event| event["type"] == event_type).count() as u64;
    let payload = |event: &&&Value, key: &str, value: &str| event["payload"][key] == value;
    let step = |event_type: &str, kind: &str| {
        let steps = events.iter().filter(|event| event["type"] == event_type);
        steps.filter(|event| payload(event, "kind", kind)).count() as u64
    };
    let blocks = |block_type: &str| {
        let messages = events.iter().filter(|event| event["type"] == "message.assistant");
        let blocks = messages.flat_map(|event| event["payload"]["blocks"].as_array().unwrap());
        blocks.filter(|block| block["type"] == block_type).count() as u64
    };
    let prompts = events.iter().filter(|event| event["type"] == "message.user");
    let prompts = prompts.filter(|event| event["payload"]["blocks"][0]["label"] != "system_prompt");
    let responses: BTreeSet<String> = events
        .iter()
        .filter(|event| event["payload"]["usage_scope"] == "response")
        .map(|event| event["payload"]["response"].to_string())
        .collect();
    let decided = |decision: &str| {
        let steps = events
            .iter()
            .filter(|event| event["type"] == "step.completed" && payload(event, "kind", "approval"));
        steps.filter(|event| event["payload"]["result"]["decision"] == decision).count() as u64
    };
    BTreeMap::from([
        ("message_user_prompts", prompts.count() as u64),
        ("responses", responses.len() as u64),
        ("tool_call", of("tool.call")),
        ("tool_result", of("tool.result")),
        ("turns_started", step("step.started", "turn")),
        ("turns_ended_by_a_record", step("step.completed", "turn")),
        ("child_runs", of("step.call_workflow.started")),
        ("thinking_blocks", blocks("thinking")),
        ("text_blocks", blocks("text")),
        ("compactions", step("step.completed", "compaction")),
        ("retries", step("step.completed", "retry")),
        ("asked", step("step.started", "approval")),
        ("allowed", decided("allowed")),
        ("denied", decided("denied")),
    ])
}

#[test]
fn counts_match_expected_json() {
    let shared = needs!(shared_dir(), "there are no captures");
    let expected = read_json(&shared.join("captures/expected.json"));
    let mut compared = 0;
    for (path, expected) in expected.as_object().unwrap() {
        if !path.starts_with("codex/") {
            continue;
        }
        let made = made_of(&shared.join("captures").join(path));
        for (run, want) in expected["runs"].as_object().unwrap() {
            let is_its = |event: &&Value| run == "main" || is_of_thread(&made, event, run);
            let events: Vec<&Value> = made.events.iter().filter(is_its).collect();
            let got = counts(&events);
            let want = want.as_object().unwrap();
            for (name, got) in &got {
                let want = want.get(*name).unwrap_or(&want["approvals"][*name]);
                assert!(want.is_null() || *want == *got, "{path} {run}: {name} is {got}, not {want}");
                compared += u32::from(!want.is_null());
            }
            let open = want["calls_without_result"].as_array().unwrap().len() as u64;
            assert_eq!(got["tool_call"] - got["tool_result"], open, "{path} {run}");
        }
    }
    assert!(compared > 80, "{compared}");
}

/// Returns true if an event belongs to the run of a thread.
fn is_of_thread(made: &Made, event: &Value, thread: &str) -> bool {
    let started = made.events.iter().filter(|event| event["type"] == "run.started");
    let of_thread = |started: &&Value| started["session_run_id"] == thread;
    started.into_iter().find(of_thread).is_some_and(|started| started["run_id"] == event["run_id"])
}

#[test]
fn usage_adds_up_on_disk_and_on_a_connection() {
    let shared = needs!(shared_dir(), "there are no captures");
    let capture = shared.join("captures/codex/0.166.0/app_server");
    let total = |made: &Made, run: &str| -> u64 {
        let messages = made.events.iter().filter(|event| event["type"] == "message.assistant");
        let of_run = messages.filter(|event| run.is_empty() || is_of_thread(made, event, run));
        let usage = |event: &Value| {
            let usage = &event["payload"]["usage"];
            usage["total_tokens"].as_u64().or(usage["totalTokens"].as_u64()).unwrap_or(0)
        };
        of_run.map(usage).sum()
    };
    let wire = made_of(&capture.join("duplex.jsonl"));
    for (thread, want) in [
        ("01a1de16-d6d8-71c3-8327-0cacf4bdcc9a", 234_772),
        ("01a1de16-e2fc-7ae3-89f7-73ac941f9414", 20_789),
        ("01a1de16-ed44-7571-9124-a837fd320127", 10_350),
    ] {
        let disk = files_below(&capture.join("home/sessions"), &format!("{thread}.jsonl"));
        assert_eq!(total(&made_of(&disk[0]), ""), want, "{thread} on disk");
        assert_eq!(total(&wire, thread), want, "{thread} on the wire");
    }
}

#[test]
fn unknown_types_are_those_of_the_list() {
    let shared = needs!(shared_dir(), "there are no samples");
    let samples = all_samples(&shared);
    assert!(samples.len() >= 40, "{}", samples.len());
    check_unknown_types(&samples, |path| made_of(path).completeness);
}

/// Returns the values that a schema allows in a field of a definition's variants.
fn words(schema: &Value, variants: &Value, field: &str) -> Vec<String> {
    let variants = variants["oneOf"].as_array().unwrap();
    let word = |variant: &Value| variant["properties"][field]["enum"][0].as_str().map(str::to_owned);
    let words: Vec<String> = variants.iter().filter_map(word).collect();
    assert!(!words.is_empty(), "{}", schema["title"]);
    words
}

#[test]
fn every_method_and_item_of_the_schema_is_known() {
    let shared = needs!(shared_dir(), "there are no schemas");
    let notices = read_json(&shared.join("schemas/codex-server-notification.schema.json"));
    let requests = read_json(&shared.join("schemas/codex-server-request.schema.json"));
    let mut lines = Vec::new();
    let params = |item: &str| {
        format!(
            r#"{{"threadId":"t1","conversationId":"t1","turn":{{"id":"u1"}},"thread":{{"id":"t1"}},"item":{{"type":"{item}","id":"{item}"}}}}"#
        )
    };
    for method in words(&notices, &notices, "method") {
        lines.push(format!(r#"{{"method":"{method}","params":{}}}"#, params("agentMessage")));
    }
    for item in words(&notices, &notices["definitions"]["ThreadItem"], "type") {
        lines.push(format!(r#"{{"method":"item/completed","params":{}}}"#, params(&item)));
    }
    for method in words(&requests, &requests, "method") {
        lines.push(format!(r#"{{"method":"{method}","id":1,"params":{}}}"#, params("agentMessage")));
    }
    assert!(lines.len() > 100, "{}", lines.len());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let made = made_of_lines(codex::app_server(Source::named("s1")), &lines);
    assert_eq!(made.completeness.unknown, BTreeMap::new());
}
