//! Connections of ACP: what the captured agents said against what the model sent, and one side alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_adapters::{Source, Surface, acp, open, sniff};
use steno_testkit::{needs, places, shared_dir};

use crate::adapter_output::{Made, made_of_lines, outline};

/// The captures: the directory, the agent's own session, and the calls of the model that the channel does not show.
const CAPTURES: [(&str, &str, &[&str]); 2] = [
    ("gemini/0.61.0/acp", "f768b2a7-11bd-483b-a69b-02796bdf60b0", &["no_such_tool"]),
    ("copilot/1.0.102/acp", "f3942b60-7cc0-4452-9b03-b931b2110a6b", &[]),
];

fn read(path: &Path) -> Made {
    let text = places::read(path);
    let sniffed = sniff(text.as_bytes()).unwrap();
    assert_eq!(sniffed.surface, Surface::Acp);
    let lines: Vec<&str> = text.lines().collect();
    made_of_lines(open(&sniffed, Source::named("s1")).unwrap(), &lines)
}

/// What the model sent.
#[derive(Default)]
struct Sent {
    calls: Vec<(String, String)>,
    texts: Vec<String>,
    thoughts: Vec<String>,
}

/// Reads what the model sent, in the form of either provider.
fn sent(capture: &Path) -> Sent {
    let mut sent = Sent::default();
    for line in places::read(capture.join("emitted.jsonl")).lines() {
        let response: Value = serde_json::from_str(line).unwrap();
        let parts = ["items", "parts"].iter().filter_map(|name| response[*name].as_array()).flatten();
        parts.for_each(|part| sent.take(part));
    }
    sent
}

impl Sent {
    fn take(&mut self, part: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match part["type"].as_str() {
            Some("message") => self.texts.push(text(&part["content"][0]["text"])),
            Some("reasoning") => self.thoughts.push(text(&part["summary"][0]["text"])),
            Some(_) => self.calls.push((text(&part["call_id"]), text(&part["name"]))),
            None if part["functionCall"].is_object() => {
                self.calls.push((String::new(), text(&part["functionCall"]["name"])));
            }
            None if part["thought"] == true => self.thoughts.push(text(&part["text"])),
            None => self.texts.push(text(&part["text"])),
        }
    }
}

fn captures() -> Option<Vec<(PathBuf, &'static str, &'static [&'static str])>> {
    let shared = shared_dir()?;
    let capture = |(name, session, missing)| (shared.join("captures").join(name), session, missing);
    Some(CAPTURES.map(capture).into())
}

#[test]
fn connections_have_all_that_they_carry() {
    for (capture, session, missing) in needs!(captures(), "there are no captures") {
        let (made, sent) = (read(&capture.join("duplex.jsonl")), sent(&capture));
        assert_eq!(made.events[0]["session_run_id"], session);
        assert_eq!(made.completeness.unknown, BTreeMap::new(), "{}", capture.display());
        let calls = made.payloads("tool.call");
        assert_eq!(calls.len() + missing.len(), sent.calls.len(), "{}", capture.display());
        let ids: BTreeSet<String> =
            calls.iter().map(|call| call["call_id"].as_str().unwrap().to_owned()).collect();
        for (id, name) in sent.calls.iter().filter(|(_, name)| !missing.contains(&name.as_str())) {
            // Gemini's ids begin with the name of the tool, Copilot's may begin with `custom_`.
            let is_its = |known: &String| {
                if id.is_empty() { known.starts_with(&format!("{name}__")) } else { known.ends_with(id) }
            };
            assert!(ids.iter().any(is_its), "{name} {id}");
        }
        let words = |kind: &str| -> Vec<String> {
            made.said(kind).iter().map(|block| block[kind].as_str().unwrap().to_owned()).collect()
        };
        let has = |found: &[String], want: &str| found.iter().any(|text| text.ends_with(want));
        for text in &sent.texts {
            assert!(has(&words("text"), text), "{text}");
        }
        for thought in &sent.thoughts {
            assert!(has(&words("thinking"), thought.trim_start_matches('*')), "{thought}");
        }
        assert_eq!(words("thinking").len(), sent.thoughts.len(), "{}", capture.display());
    }
}

#[test]
fn counts_are_those_made_by_hand() {
    let shared = needs!(shared_dir(), "there are no captures");
    let name = "gemini/0.61.0/acp/duplex.jsonl";
    let expected: Value = serde_json::from_str(&places::read(shared.join("captures/expected.json"))).unwrap();
    let want = &expected[name]["runs"]["main"];
    let made = read(&shared.join("captures").join(name));
    let count = |number: usize| Value::from(number);
    assert_eq!(count(made.payloads("message.user").len()), want["message_user_prompts"]);
    assert_eq!(count(made.payloads("tool.call").len()), want["tool_call"]);
    assert_eq!(count(made.payloads("tool.result").len()), want["tool_result"]);
    assert_eq!(count(made.said("text").len()), want["text_blocks"]);
    assert_eq!(count(made.said("thinking").len()), want["thinking_blocks"]);
    assert_eq!(count(made.steps("step.started", "turn").len()), want["turns_started"]);
    let ends = made.steps("step.completed", "turn");
    let by_record = ends.iter().filter(|end| end["ended_by"] == "record").count();
    assert_eq!(count(by_record), want["turns_ended_by_a_record"]);
    assert_eq!(count(made.steps("step.started", "approval").len()), want["approvals"]["asked"]);
    for decision in ["allowed", "denied"] {
        let answers = made.steps("step.completed", "approval");
        let count = answers.iter().filter(|answer| answer["result"]["decision"] == decision).count();
        assert_eq!(Value::from(count), want["approvals"][decision], "{decision}");
    }
    let results = made.payloads("tool.result");
    let is_open = |call: &&&Value| !results.iter().any(|result| result["call_id"] == call["call_id"]);
    let calls = made.payloads("tool.call");
    let open: Vec<&Value> = calls.iter().filter(is_open).map(|call| &call["call_id"]).collect();
    assert_eq!(Value::from(open.into_iter().cloned().collect::<Vec<_>>()), want["calls_without_result"]);
    // A message without usage has one block: what the model said, or a call.
    let said = made.payloads("message.assistant").into_iter().filter(|message| {
        let blocks = message["blocks"].as_array().unwrap();
        !blocks.is_empty() && blocks.iter().all(|block| block["type"] != "tool_use")
    });
    assert_eq!(count(said.count()), want["message_assistant_events"]);
}

#[test]
fn agents_side_alone_has_turns_without_prompts() {
    for (capture, _, _) in needs!(captures(), "there are no captures") {
        let both = read(&capture.join("duplex.jsonl"));
        let one = read(&capture.join("duplex.raw.jsonl"));
        for kind in ["tool.call", "tool.result"] {
            assert_eq!(one.payloads(kind).len(), both.payloads(kind).len(), "{} {kind}", capture.display());
        }
        assert_eq!(one.said("text").len(), both.said("text").len(), "{}", capture.display());
        assert_eq!(one.payloads("message.user").len(), 0);
        assert_eq!(one.steps("step.started", "turn").len(), both.steps("step.started", "turn").len());
        assert_eq!(one.completeness.unknown, BTreeMap::new());
    }
}

#[test]
fn words_that_were_overtaken_are_written_later() {
    let update = |update: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        )
    };
    let prompt = r#">{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Hi"}]}}"#;
    let chunk = update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Ho"}}"#);
    let gauge = update(r#"{"sessionUpdate":"usage_update","used":1}"#);
    let end = r#"{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}"#;
    let made = made_of_lines(acp::connection(Source::named("s1")), &[prompt, &chunk, &gauge, end]);
    let want = [
        ": run",
        "turn-0001: turn turn-0001 begins",
        "turn-0001: user text Hi",
        r#"turn-0001: system usage_update {"sessionUpdate":"usage_update","used":1}"#,
        "turn-0001: assistant text Ho",
        r#"turn-0001: turn turn-0001 {"stop_reason":"end_turn"}"#,
    ];
    assert_eq!(outline(&made), want);
    let positions: Vec<(u64, u64)> = made
        .events
        .iter()
        .map(|event| {
            (event["evidence"]["offset"].as_u64().unwrap(), event["evidence"]["part"].as_u64().unwrap())
        })
        .collect();
    assert!(positions.is_sorted_by(|one, next| one < next), "{positions:?}");
}
