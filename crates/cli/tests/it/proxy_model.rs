//! The scripted model of the rig behind `steno proxy`, through all four APIs: what it sent is what was recorded, nothing
//! less and nothing more.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use steno_testkit::{needs, shared_dir};

use crate::kit::{Steno, wait_until};
use crate::proxy::RunningProxy;

/// How many requests a conversation may take.
const ROUNDS_MAX: usize = 60;

/// The scripted model. It is killed when the test ends.
struct ScriptedModel {
    child: Child,
    port: u16,
    log: PathBuf,
}

impl ScriptedModel {
    fn start(shared: &Path, dir: &Path) -> Self {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
        let (agents, log) = (shared.join("agents"), dir.join("log"));
        let child = Command::new("python3")
            .arg(agents.join("lib/model_server.py"))
            .arg(port.to_string())
            .args([agents.join("scenarios"), log.clone(), dir.to_owned()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_there = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        wait_until("the model listens", is_there);
        Self { child, port, log }
    }

    /// Returns what it has sent so far.
    fn emitted(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log.join("emitted.jsonl")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["items"][0]["http_error"].is_null()).collect()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// An API as a client uses it.
struct ClientApi {
    name: &'static str,
    scenario: &'static str,
    path: fn(bool) -> &'static str,
    /// Makes the body of a request from the conversation.
    body: fn(&[Value], bool) -> Value,
    prompt: fn(&str) -> Value,
    /// Adds an answer to the conversation, and a result for each of its calls; false if there are none.
    go_on: fn(&mut Vec<Value>, &[Value]) -> bool,
}

const APIS: [ClientApi; 4] = [
    ClientApi {
        name: "anthropic",
        scenario: "claude_main",
        path: |_| "/v1/messages",
        body: |messages, stream| json!({"model": "m", "system": "S", "max_tokens": 9, "tools": [{"name": "x"}], "messages": messages, "stream": stream}),
        prompt: |text| json!({"role": "user", "content": text}),
        go_on: |messages, items| {
            let clean = |item: &Value| {
                let mut item = item.clone();
                item.as_object_mut().unwrap().remove("message_id");
                item
            };
            messages
                .push(json!({"role": "assistant", "content": items.iter().map(clean).collect::<Vec<_>>()}));
            let calls = items.iter().filter(|item| item["type"] == "tool_use");
            let results: Vec<Value> = calls
                .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": format!("did {}", call["name"])}))
                .collect();
            let has_calls = !results.is_empty();
            if has_calls {
                messages.push(json!({"role": "user", "content": results}));
            }
            has_calls
        },
    },
    ClientApi {
        name: "responses",
        scenario: "codex_main",
        path: |_| "/v1/responses",
        body: |items, stream| json!({"model": "m", "instructions": "S", "input": items, "tools": [{}], "stream": stream}),
        prompt: |text| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
        go_on: |items, said| {
            let is_call = |item: &&Value| {
                item["type"].as_str().unwrap().ends_with("_call") && item["call_id"].is_string()
            };
            let results: Vec<Value> = said
                .iter()
                .filter(is_call)
                .map(|call| json!({"type": format!("{}_output", call["type"].as_str().unwrap()), "call_id": call["call_id"], "output": "done"}))
                .collect();
            items.extend(said.iter().cloned());
            items.extend(results.iter().cloned());
            !results.is_empty()
        },
    },
    ClientApi {
        name: "chat",
        scenario: "copilot_gpt",
        path: |_| "/v1/chat/completions",
        body: |messages, stream| json!({"model": "m", "messages": messages, "tools": [{}], "stream": stream, "stream_options": {"include_usage": true}}),
        prompt: |text| json!({"role": "user", "content": text}),
        go_on: |messages, items| {
            let text: Vec<&str> = items.iter().filter_map(|item| item["text"].as_str()).collect();
            let calls: Vec<Value> = items.iter().filter(|item| item["id"].is_string()).cloned().collect();
            let mut said = json!({"role": "assistant", "content": text.first()});
            if !calls.is_empty() {
                said["tool_calls"] = json!(calls);
            }
            messages.push(said);
            messages.extend(
                calls
                    .iter()
                    .map(|call| json!({"role": "tool", "tool_call_id": call["id"], "content": "done"})),
            );
            !calls.is_empty()
        },
    },
    ClientApi {
        name: "gemini",
        scenario: "gemini_main",
        path: |stream| {
            if stream {
                "/v1beta/models/g:streamGenerateContent?alt=sse"
            } else {
                "/v1beta/models/g:generateContent"
            }
        },
        body: |contents, _| json!({"contents": contents, "systemInstruction": {"parts": [{"text": "S"}]}}),
        prompt: |text| json!({"role": "user", "parts": [{"text": text}]}),
        go_on: |contents, parts| {
            let kept: Vec<&Value> = parts.iter().filter(|part| part["thought"].is_null()).collect();
            let calls = kept.iter().filter_map(|part| part["functionCall"]["name"].as_str());
            let results: Vec<Value> = calls
                .map(|name| json!({"functionResponse": {"name": name, "response": {"output": "done"}}}))
                .collect();
            contents.push(json!({"role": "model", "parts": kept}));
            let has_calls = !results.is_empty();
            if has_calls {
                contents.push(json!({"role": "user", "parts": results}));
            }
            has_calls
        },
    },
];

/// Returns what the model sent, each part in one form for all APIs.
fn sent(item: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let parsed = |value: &Value| serde_json::from_str::<Value>(value.as_str().unwrap()).unwrap();
    let call = |name: &Value, input: &Value| vec![format!("call {} {input}", text(name))];
    if let Some(name) = item["functionCall"].get("name") {
        return call(name, &item["functionCall"]["args"]);
    }
    if let Some(thought) = item.get("reasoning") {
        return vec![format!("thought {}", text(thought))];
    }
    match item["type"].as_str() {
        Some("thinking") => vec![format!("thought {}", text(&item["thinking"]))],
        Some("reasoning") => {
            let whole = item["content"].as_array().map(|parts| text(&parts[0]["text"]));
            vec![format!("thought {}", whole.unwrap_or_else(|| text(&item["summary"][0]["text"])))]
        }
        Some("message") => vec![format!("text {}", text(&item["content"][0]["text"]))],
        Some("tool_use" | "custom_tool_call") => call(&item["name"], &item["input"]),
        Some("function") => call(&item["function"]["name"], &parsed(&item["function"]["arguments"])),
        Some("custom") => call(&item["custom"]["name"], &item["custom"]["input"]),
        Some("function_call") => {
            let namespace = item["namespace"].as_str().filter(|name| name.starts_with("mcp__"));
            let name = namespace
                .map_or_else(|| text(&item["name"]), |space| format!("{space}__{}", text(&item["name"])));
            call(&json!(name), &parsed(&item["arguments"]))
        }
        Some("tool_search_call") => call(&json!("tool_search"), &item["arguments"]),
        Some("local_shell_call") => call(&json!("local_shell"), &item["action"]),
        Some("web_search_call") => call(&json!("web_search"), &item["action"]),
        _ if item["thought"] == true => vec![format!("thought {}", text(&item["text"]))],
        _ => vec![format!("text {}", text(&item["text"]))],
    }
}

/// Returns what was recorded, in the same form.
fn recorded(events: &[Value]) -> Vec<String> {
    let messages = events.iter().filter(|event| event["type"] == "message.assistant");
    let blocks = messages.flat_map(|event| event["payload"]["blocks"].as_array().unwrap());
    let shown = |block: &Value| match block["type"].as_str().unwrap() {
        "thinking" => format!("thought {}", block["thinking"].as_str().unwrap()),
        "text" => format!("text {}", block["text"].as_str().unwrap()),
        _ => format!("call {} {}", block["tool_name"].as_str().unwrap(), block["tool_input"]),
    };
    blocks.map(shown).collect()
}

/// Has one conversation with the model, and returns what it sent.
fn converse(api: &ClientApi, stream: bool, proxy: &RunningProxy, model: &ScriptedModel) -> Vec<Value> {
    let from = model.emitted().len();
    let mut history = vec![(api.prompt)(&format!("[[scenario:{}]] {} {stream}", api.scenario, api.name))];
    for _ in 0..ROUNDS_MAX {
        let before = model.emitted().len();
        let (status, _) = proxy.post((api.path)(stream), &[], &(api.body)(&history, stream));
        if status >= 400 {
            continue;
        }
        let emitted = model.emitted();
        assert_eq!(emitted.len(), before + 1);
        if !(api.go_on)(&mut history, emitted[before]["items"].as_array().unwrap()) {
            return emitted[from..].to_vec();
        }
    }
    panic!("{} does not end", api.name);
}

#[test]
fn what_the_model_sent_is_what_was_recorded() {
    let shared = needs!(shared_dir(), "../shared is absent");
    let (steno, dir) = (Steno::new(), tempfile::tempdir().unwrap());
    let model = ScriptedModel::start(&shared, dir.path());
    let proxy = RunningProxy::start(&steno, &format!("http://127.0.0.1:{}", model.port), &[]);
    let mut talks = Vec::new();
    for api in &APIS {
        for stream in [false, true] {
            talks.push((api.name, stream, converse(api, stream, &proxy, &model)));
        }
    }
    let said = proxy.stop();
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let runs = steno.run(&["ls", "--json"]).json();
    assert_eq!(runs.len(), talks.len());
    let (mut calls, mut errors) = (0, 0);
    for (name, stream, emitted) in talks {
        let prompt = format!("{name} {stream}");
        let events = runs.iter().map(|run| run["run_id"].as_str().unwrap()).find_map(|run| {
            let text = fs::read_to_string(steno.transcript(run)).unwrap();
            let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            let is_its =
                |event: &Value| event["type"] == "message.user" && event.to_string().contains(&prompt);
            events.iter().any(is_its).then_some(events)
        });
        let events = events.unwrap();
        let want: Vec<String> =
            emitted.iter().flat_map(|line| line["items"].as_array().unwrap()).flat_map(sent).collect();
        assert_eq!(recorded(&events), want, "{prompt}");
        let of_type = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
        let made = want.iter().filter(|part| part.starts_with("call ")).count();
        assert_eq!((of_type("tool.call"), of_type("tool.result")), (made, made), "{prompt}");
        // Re-sent history is not new: one prompt, one set of instructions.
        assert_eq!(of_type("message.user"), if name == "chat" { 1 } else { 2 }, "{prompt}");
        let finals: Vec<&Value> =
            events.iter().map(|event| &event["payload"]).filter(|payload| payload["final"] == true).collect();
        let usage: Vec<&Value> = finals.iter().map(|payload| &payload["usage"]).collect();
        let spent: Vec<&Value> = emitted.iter().map(|line| &line["usage"]).collect();
        assert_eq!(usage, spent, "{prompt}");
        calls += made;
        errors += events.iter().filter(|event| event["payload"]["kind"] == "retry").count();
    }
    assert!(calls > 40 && errors > 0, "{calls} calls, {errors} retries");
}
