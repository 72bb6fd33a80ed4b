//! Trajectories of hand-written runs, compared with checked-in documents, and the rules one by one.

mod arbitrary_events;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steno_model::{Evidence, ExchangeEvent, RunId};
use steno_session::{Content, SessionBuilder};
use steno_testkit::{golden, places};

use super::{Family, MediaSink, NoFiles, NoMedia, NoRecords, Records, Run, Trajectory, validate};

const FIXTURES: &str = "crates/exports/src/atif/fixtures";
const RUN: &str = "11111111-0000-4000-8000-000000000001";

/// Records with one picture for every mark.
struct OnePicture;

impl Records for OnePicture {
    fn record(&mut self, _evidence: &Evidence) -> Option<Vec<u8>> {
        let record = r#"{"message":{"content":[{"type":"text","text":"Fix this:"},{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"Zm9vYg=="}}]}}"#;
        Some(record.into())
    }
}

#[derive(Default)]
struct Kept(BTreeMap<String, Vec<u8>>);

impl MediaSink for Kept {
    fn keep(&mut self, path: &str, bytes: &[u8]) -> bool {
        self.0.insert(path.to_owned(), bytes.to_owned());
        true
    }
}

fn fold(lines: &str, records: &mut dyn Records) -> (RunId, Run) {
    let events: Vec<_> = lines.lines().map(|line| ExchangeEvent::parse(line.as_bytes()).unwrap()).collect();
    let mut builder = SessionBuilder::new(events[0].run_id, Content::Whole);
    for event in &events {
        builder.push(event);
    }
    (events[0].run_id, Run::of(builder.finish(), records))
}

fn fixture(name: &str) -> (RunId, Run) {
    fold(&places::read(format!("{FIXTURES}/{name}.in.jsonl")), &mut OnePicture)
}

#[track_caller]
fn check_golden(names: &[&str], media: &[&str]) {
    let runs: BTreeMap<RunId, Run> = names.iter().map(|name| fixture(name)).collect();
    let (root, _) = fixture(names[0]);
    let family = Family::new(runs);
    assert_eq!(family.roots(), [root]);
    let mut kept = Kept::default();
    let trajectory = family.trajectory(root, &mut kept).unwrap();
    assert_eq!(validate(&trajectory.json, &mut NoFiles), []);
    // One step per line shows differences; the bytes are otherwise the same.
    let lines = trajectory.json.replace("{\"step_id\":", "\n{\"step_id\":");
    golden::check(format!("src/atif/fixtures/{}.out.json", names[0]), &format!("{lines}\n"));
    assert_eq!(kept.0.keys().collect::<Vec<_>>(), media);
}

#[test]
fn session_with_subagents_matches_the_golden_file() {
    check_golden(
        &["session", "child", "grandchild"],
        &[
            "media/2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae.png",
            "media/a7452118bfc838ee7b2aac14a8bc88c50a1ae4620903c4f8cdd327bb79961899.jpg",
        ],
    );
}

#[test]
fn session_with_separate_usage_matches_the_golden_file() {
    check_golden(&["codex"], &[]);
}

#[test]
fn same_events_give_the_same_bytes() {
    let json = || {
        let family = Family::new(["session", "child", "grandchild"].map(fixture).into());
        family.trajectory(RunId::parse(RUN).unwrap(), &mut NoMedia).unwrap().json
    };
    assert_eq!(json(), json());
}

/// Returns the trajectory of events, given as type, path and payload.
fn trajectory(events: &[(&str, &str, Value)]) -> Option<Trajectory> {
    let line = |(index, (kind, path, payload)): (usize, &(&str, &str, Value))| {
        let time = format!("2026-06-08T08:14:{:02}Z", index % 60);
        let event = json!({"seq": index + 1, "run_id": RUN, "type": kind, "path": path, "iteration": 0, "timestamp": time, "payload": payload});
        event.to_string()
    };
    let lines: Vec<String> = events.iter().enumerate().map(line).collect();
    let (root, run) = fold(&lines.join("\n"), &mut NoRecords);
    Family::new(BTreeMap::from([(root, run)])).trajectory(root, &mut NoMedia)
}

fn value(events: &[(&str, &str, Value)]) -> Value {
    let trajectory = trajectory(events).unwrap();
    assert_eq!(validate(&trajectory.json, &mut NoFiles), [], "{}", trajectory.json);
    serde_json::from_str(&trajectory.json).unwrap()
}

fn text(text: &str) -> Value {
    json!({"type": "text", "fidelity": "agent_emitted", "text": text})
}

fn call(id: &str) -> Value {
    json!({"name": "x", "call_id": id, "input": {"a": id}, "output": null, "fidelity": "agent_emitted"})
}

fn result(id: &str, output: &str) -> Value {
    json!({"name": "x", "call_id": id, "input": null, "output": output, "fidelity": "agent_emitted"})
}

fn used(id: &str) -> Value {
    json!({"type": "tool_use", "fidelity": "agent_emitted", "tool_name": "x", "tool_id": id, "tool_input": {"a": id}})
}

#[test]
fn run_without_steps_has_no_trajectory() {
    assert!(trajectory(&[("run.started", "", json!({"name": "claude", "kind": "session"}))]).is_none());
}

#[test]
fn unknown_fields_are_omitted() {
    let got = value(&[("message.user", "", json!({"role": "user", "blocks": [text("Hi.")]}))]);
    let want = json!({
        "schema_version": "ATIF-v1.8",
        "session_id": RUN,
        "trajectory_id": RUN,
        "agent": {"name": "unknown", "version": "unknown"},
        "steps": [{"step_id": 1, "timestamp": "2026-06-08T08:14:00Z", "source": "user", "message": "Hi.", "extra": {"run_id": RUN, "seq": 1}}],
        "final_metrics": {"total_steps": 1},
        "extra": {"mapping": "steno/1"},
    });
    assert_eq!(got, want);
}

#[test]
fn reused_call_id_gets_a_suffix() {
    let said =
        |id: &str, response: &str| json!({"role": "assistant", "blocks": [used(id)], "response": response});
    let got = value(&[
        ("message.assistant", "", said("1", "a")),
        ("tool.call", "", call("1")),
        ("tool.result", "", result("1", "first")),
        ("message.assistant", "", said("1", "b")),
        ("tool.call", "", call("1")),
        ("tool.result", "", result("1", "second")),
    ]);
    let [one, two] = [&got["steps"][0], &got["steps"][1]];
    assert_eq!(one["tool_calls"][0]["tool_call_id"], "1");
    assert_eq!(one["observation"]["results"][0]["content"], "first");
    assert_eq!(two["tool_calls"][0]["tool_call_id"], "1#2");
    assert_eq!(two["tool_calls"][0]["extra"]["provider_call_id"], "1");
    assert_eq!(two["observation"]["results"][0]["source_call_id"], "1#2");
    assert_eq!(two["observation"]["results"][0]["content"], "second");
}

#[test]
fn late_result_is_in_the_step_of_its_call() {
    let got = value(&[
        ("message.assistant", "turn-1", json!({"role": "assistant", "blocks": [used("1")], "response": "a"})),
        ("tool.call", "turn-1", call("1")),
        ("message.user", "turn-2", json!({"role": "user", "blocks": [text("And?")]})),
        (
            "message.assistant",
            "turn-2",
            json!({"role": "assistant", "blocks": [text("Wait.")], "response": "b"}),
        ),
        ("tool.result", "turn-2", result("1", "late")),
    ]);
    assert_eq!(got["steps"][0]["observation"]["results"][0]["content"], "late");
    assert_eq!(got["steps"][2].get("observation"), None);
    assert_eq!(got.get("notes"), None);
}

#[test]
fn call_without_a_response_is_its_own_step() {
    let got = value(&[("tool.call", "", call("1")), ("tool.result", "", result("2", "alone"))]);
    let counts: Vec<_> =
        got["steps"].as_array().unwrap().iter().map(|step| &step["llm_call_count"]).collect();
    assert_eq!(counts, [0, 0]);
    assert_eq!(got["steps"][1]["tool_calls"][0]["arguments"], json!({}));
    assert_eq!(got["steps"][1]["tool_calls"][0]["extra"]["input_available"], false);
    assert_eq!(got["notes"], "1 call without a result.");
}

#[test]
fn call_before_its_response_is_one_call() {
    let got = value(&[
        ("tool.call", "", call("1")),
        ("message.assistant", "", json!({"role": "assistant", "blocks": [used("1")], "response": "a"})),
    ]);
    assert_eq!(got["steps"].as_array().unwrap().len(), 1);
    assert_eq!(got["final_metrics"]["total_steps"], 1);
}

#[test]
fn metrics_have_the_largest_counts_of_a_response() {
    let said = |output: u64, is_final: bool| {
        let usage = json!({"input_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1, "output_tokens": output});
        json!({"role": "assistant", "blocks": [text("a")], "response": "r", "usage": usage, "usage_scope": "response", "final": is_final})
    };
    let got = value(&[("message.assistant", "", said(9, true)), ("message.assistant", "", said(4, false))]);
    let metrics = &got["steps"][0]["metrics"];
    assert_eq!((&metrics["prompt_tokens"], &metrics["completion_tokens"]), (&json!(8), &json!(9)));
    assert_eq!((&metrics["cached_tokens"], metrics["extra"].get("lower_bound")), (&json!(5), None));
    assert_eq!(got["final_metrics"]["total_prompt_tokens"], 8);
    assert_eq!(got["final_metrics"]["extra"]["exact"], true);
    let got = value(&[("message.assistant", "", said(4, false))]);
    assert_eq!(got["steps"][0]["metrics"]["extra"]["lower_bound"], true);
    assert_eq!(got["final_metrics"]["extra"]["exact"], false);
}

#[test]
fn usage_of_copied_steps_is_not_counted() {
    let line = |seq: u64, from: &Value, response: &str| {
        let usage = json!({"input_tokens": 2, "output_tokens": 3});
        let payload = json!({"role": "assistant", "blocks": [text("a")], "response": response, "usage": usage, "usage_scope": "response", "final": true});
        json!({"seq": seq, "run_id": RUN, "type": "message.assistant", "path": "", "iteration": 0, "timestamp": "", "payload": payload, "copied_from": from})
    };
    // Our adapters name a run; other writers may name a session.
    let session = json!({"session_id": "s", "id": "r"});
    let lines = [line(1, &json!(RUN), "a"), line(2, &session, "b"), line(3, &Value::Null, "c")];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let (root, run) = fold(&lines.join("\n"), &mut NoRecords);
    let got = Family::new(BTreeMap::from([(root, run)])).trajectory(root, &mut NoMedia).unwrap().json;
    assert_eq!(validate(&got, &mut NoFiles), []);
    let got: Value = serde_json::from_str(&got).unwrap();
    let steps = got["steps"].as_array().unwrap();
    let copied: Vec<_> = steps.iter().map(|step| step["extra"]["copied_from"].as_str()).collect();
    assert_eq!(copied, [Some(RUN), Some("s"), None]);
    let marked: Vec<_> = steps.iter().map(|step| step.get("is_copied_context").is_some()).collect();
    assert_eq!(marked, [true, true, false]);
    let counted: Vec<_> = steps.iter().map(|step| step.get("metrics").is_some()).collect();
    assert_eq!(counted, [false, false, true]);
    assert_eq!(steps[1]["extra"]["copied_usage"]["output_tokens"], 3);
    assert_eq!(got["final_metrics"]["total_completion_tokens"], 3);
}

#[test]
fn session_total_counts_only_without_other_usage() {
    let total = json!({"role": "assistant", "blocks": [], "usage": {"input_tokens": 7, "output_tokens": 2}, "usage_scope": "session"});
    let said = json!({"role": "assistant", "blocks": [text("a")]});
    let got = value(&[("message.assistant", "", said), ("message.assistant", "", total)]);
    assert_eq!(got["final_metrics"]["total_prompt_tokens"], 7);
    assert_eq!(got["steps"][0].get("metrics"), None);
    assert_eq!(got["steps"][0].get("llm_call_count"), None);
    assert_eq!(got["final_metrics"]["extra"]["exact"], false);
}

#[test]
fn picture_without_its_record_is_described() {
    let mark =
        json!({"type": "text", "fidelity": "agent_emitted", "text": "", "label": "image", "size_bytes": 9});
    let got = value(&[("message.user", "", json!({"role": "user", "blocks": [mark]}))]);
    assert_eq!(got["steps"][0]["message"], "[image, 9 bytes]");
    assert_eq!(got["notes"], "1 medium described only by type and size.");
}

#[test]
fn runs_with_circular_parents_are_exported() {
    let link = |number: u32, parent: u32| {
        let run = |number: u32| format!("{number:08x}-0000-4000-8000-000000000000");
        let event = json!({"seq": 1, "run_id": run(number), "parent_run_id": run(parent), "type": "message.user", "path": "", "iteration": 0, "timestamp": "", "payload": {"role": "user", "blocks": [text("a")]}});
        fold(&event.to_string(), &mut NoRecords)
    };
    let family = Family::new([link(1, 2), link(2, 3), link(3, 1), link(4, 4), link(5, 9)].into());
    let written: Vec<u64> = family
        .roots()
        .into_iter()
        .map(|root| family.trajectory(root, &mut NoMedia).unwrap().counted.trajectories)
        .collect();
    assert_eq!(written, [3, 1, 1]);
}
