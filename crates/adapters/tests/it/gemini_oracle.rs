//! Gemini's captures against what the model really sent, and against the counts that were made by hand.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::Made;
use crate::codex_oracle::{counts, same, text};
use crate::gemini_files::{all_samples, chats_below, made_in_chunks, made_of};
use crate::reading::check_unknown_types;

/// What the model sent in a run. Its calls have no ids.
#[derive(Default)]
struct Sent {
    calls: Vec<String>,
    texts: Vec<String>,
    thoughts: Vec<String>,
    output_tokens: u64,
}

/// Shows a call by its name and input.
fn shown(name: &Value, input: &Value) -> String {
    format!("{} {input}", text(name))
}

/// Reads what the model sent, of some scenarios.
fn sent(capture: &Path, is_wanted: impl Fn(&str) -> bool) -> Sent {
    let mut sent = Sent::default();
    for line in places::read(capture.join("emitted.jsonl")).lines() {
        let response: Value = serde_json::from_str(line).unwrap();
        if !is_wanted(response["scenario"].as_str().unwrap_or_default()) {
            continue;
        }
        sent.output_tokens += response["usage"]["candidatesTokenCount"].as_u64().unwrap_or(0);
        for item in response["items"].as_array().unwrap() {
            match (&item["functionCall"], &item["text"], item["thought"].as_bool()) {
                (Value::Object(call), ..) => sent.calls.push(shown(&call["name"], &call["args"])),
                (_, words, Some(true)) => sent.thoughts.push(text(words)),
                (_, Value::String(words), _) => sent.texts.push(words.clone()),
                _ => {}
            }
        }
    }
    sent
}

impl Sent {
    fn add(&mut self, other: Self) {
        self.calls.extend(other.calls);
        self.texts.extend(other.texts);
        self.thoughts.extend(other.thoughts);
        self.output_tokens += other.output_tokens;
    }
}

/// What adapters found in the files of a run.
fn found(made: &[Made]) -> Sent {
    let mut found = Sent::default();
    for made in made {
        let calls = made.payloads("tool.call");
        found.calls.extend(calls.iter().map(|call| shown(&call["name"], &call["input"])));
        found.texts.extend(made.said("text").iter().map(|block| text(&block["text"])));
        found.thoughts.extend(made.said("thinking").iter().map(|block| text(&block["thinking"])));
        let used = made.payloads("message.assistant").into_iter();
        found.output_tokens += used.filter_map(|message| message["usage"]["output"].as_u64()).sum::<u64>();
    }
    found
}

#[test]
fn chat_files_have_all_that_the_model_sent_and_nothing_else() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/gemini/0.61.0");
    for run in ["main", "json_output", "resume", "acp"] {
        let mut want = sent(&captures.join(run), |_| true);
        if run == "resume" {
            // A resumed session's home holds the earlier run too.
            want.add(sent(&captures.join("main"), |_| true));
        }
        let made: Vec<Made> = chats_below(&captures.join(run)).iter().map(|path| made_of(path)).collect();
        let got = found(&made);
        if run == "acp" {
            // Two calls stand only in function responses, which have no input.
            let names = |calls: Vec<String>| -> Vec<String> {
                calls.iter().map(|call| call.split(' ').next().unwrap().to_owned()).collect()
            };
            let without = got.calls.iter().filter(|call| call.ends_with(" null")).count();
            assert_eq!(without, 2);
            same(run, names(got.calls), names(want.calls));
        } else {
            same(run, got.calls, want.calls);
        }
        same(run, got.texts, want.texts);
        same(run, got.thoughts, want.thoughts);
        assert_eq!(got.output_tokens, want.output_tokens, "{run}");
    }
}

#[test]
fn streams_have_all_that_they_carry() {
    let shared = needs!(shared_dir(), "there are no captures");
    let captures = shared.join("captures/gemini/0.61.0");
    for run in ["main", "resume"] {
        // Nothing that happens inside a subagent is in the stream, and no thought.
        let want = sent(&captures.join(run), |scenario| scenario != "gemini_sub");
        let made = made_of(&captures.join(run).join("stream.ndjson"));
        let results = made.payloads("tool.result").len();
        let got = found(&[made]);
        assert_eq!(results, got.calls.len());
        same(run, got.calls, want.calls);
        same(run, got.texts, want.texts);
        assert_eq!(got.thoughts, [""; 0]);
    }
}

#[test]
fn output_as_one_document_has_the_last_answer_and_all_usage() {
    let shared = needs!(shared_dir(), "there are no captures");
    let capture = shared.join("captures/gemini/0.61.0/json_output");
    let (want, main) = (sent(&capture, |_| true), sent(&capture, |scenario| scenario != "gemini_sub"));
    let made = made_of(&capture.join("stream.ndjson"));
    let said: Vec<String> = made.said("text").iter().map(|block| text(&block["text"])).collect();
    assert_eq!(said, [want.texts.last().unwrap().clone()]);
    let used = made.payloads("message.assistant");
    let used = used.iter().filter(|message| !message["usage"].is_null());
    let used: Vec<(String, Option<u64>)> = used
        .map(|message| (text(&message["usage_scope"]), message["usage"]["candidates"].as_u64()))
        .collect();
    let want =
        [("turn".to_owned(), Some(main.output_tokens)), ("process".to_owned(), Some(want.output_tokens))];
    assert_eq!(used, want);
}

#[test]
fn stream_and_its_chat_file_have_the_same_calls_by_id() {
    let shared = needs!(shared_dir(), "there are no captures");
    let capture = shared.join("captures/gemini/0.61.0/main");
    let ids = |made: &Made| -> BTreeSet<String> {
        made.payloads("tool.call").iter().map(|call| text(&call["call_id"])).collect()
    };
    let chats = chats_below(&capture);
    let main = chats.iter().find(|path| path.to_string_lossy().contains("session-")).unwrap();
    assert_eq!(ids(&made_of(main)), ids(&made_of(&capture.join("stream.ndjson"))));
}

#[test]
fn counts_of_gemini_are_those_that_were_made_by_hand() {
    let shared = needs!(shared_dir(), "there are no captures");
    let expected: Value = serde_json::from_str(&places::read(shared.join("captures/expected.json"))).unwrap();
    let mut compared = 0;
    for (path, expected) in expected.as_object().unwrap() {
        if !path.starts_with("gemini/") || path.ends_with("duplex.jsonl") {
            continue;
        }
        let made = made_of(&shared.join("captures").join(path));
        let events: Vec<&Value> = made.events.iter().collect();
        let mut got = counts(&events);
        let said = made.payloads("message.assistant");
        let responses: BTreeSet<String> = said.iter().map(|said| said["response"].to_string()).collect();
        got.insert("responses", responses.len() as u64);
        got.insert("message_assistant_events", said.len() as u64);
        let want = expected["runs"]["main"].as_object().unwrap();
        for (name, got) in &got {
            let want = want.get(*name).unwrap_or(&want["approvals"][*name]);
            assert!(want.is_null() || *want == *got, "{path}: {name} is {got}, not {want}");
            compared += u32::from(!want.is_null());
        }
        assert_eq!(got["tool_call"], got["tool_result"], "{path}");
    }
    assert!(compared >= 70, "{compared}");
}

#[test]
fn file_of_a_subagent_is_a_child_of_its_call() {
    let shared = needs!(shared_dir(), "there are no captures");
    let chats = chats_below(&shared.join("captures/gemini/0.61.0/main"));
    let (child, main): (Vec<_>, Vec<_>) =
        chats.iter().partition(|path| !path.to_string_lossy().contains("session-"));
    let (child, main) = (made_of(child[0]), made_of(main[0]));
    let begun = main.events.iter().find(|event| event["type"] == "step.call_workflow.started").unwrap();
    assert_eq!(begun["child_run_id"], child.events[0]["run_id"]);
    assert!(child.events.iter().all(|event| event["parent_run_id"] == main.events[0]["run_id"]));
    let call = &begun["payload"]["tool_call_id"];
    let made = main.payloads("tool.call").into_iter().find(|made| made["call_id"] == *call).unwrap();
    assert_eq!((&made["class"], &made["name"]), (&"agent".into(), &"invoke_agent".into()));
}

#[test]
fn unknown_types_are_those_of_the_list() {
    let shared = needs!(shared_dir(), "there are no samples");
    let samples = all_samples(&shared);
    assert!(samples.len() >= 23, "{}", samples.len());
    check_unknown_types(&samples, |path| made_of(path).completeness);
}

#[test]
fn samples_of_gemini_give_the_same_however_they_are_cut() {
    let shared = needs!(shared_dir(), "there are no samples");
    for path in all_samples(&shared) {
        let whole = made_of(&path);
        for chunk in [1, 7, 4096] {
            let cut = made_in_chunks(&path, chunk);
            assert_eq!(cut.events, whole.events, "{} in pieces of {chunk}", path.display());
        }
    }
}
