//! What passed a proxy without naming a session, and the files of the agent that sent it: one session, in any order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steno_model::RunId;
use steno_session::Content;

use super::answers::UsageAnswer;
use super::check_all;
use super::orders::{all_used, is_less, orders};
use super::stores::MemoryStore;

const MAIN: &str = "5a000000-0000-4000-8000-000000000001";
const AGENT: &str = "5a000000-0000-4000-8000-00000000000a";

/// The lines of a recording.
#[derive(Default)]
struct Recording(Vec<Value>);

impl Recording {
    fn new() -> Self {
        let begun =
            json!({"method": "steno/http", "params": {"version": 1, "upstream": "https://api.example.com"}});
        let mut recording = Self::default();
        recording.line("recorder", &begun);
        recording
    }

    fn line(&mut self, dir: &str, message: &Value) {
        let ticket = self.0.len() + 1;
        let time = 1_780_906_500 + ticket;
        self.0.push(json!({"dir": dir, "t": time, "ticket": ticket, "msg": message}));
    }

    /// Adds a request with its answer.
    fn exchange(&mut self, path: &str, headers: &Value, body: &Value, answer: &Value) {
        let number = self.0.len();
        self.line(
            "c2s",
            &json!({"http": "request", "exchange": number, "method": "POST", "path": path,
            "headers": headers, "body": body}),
        );
        self.line("s2c", &json!({"http": "response", "exchange": number, "status": 200, "headers": {}}));
        self.line("s2c", &json!({"http": "body", "exchange": number, "body": answer}));
        self.line("s2c", &json!({"http": "end", "exchange": number, "outcome": "complete"}));
    }

    /// Adds a request of Gemini CLI with an API key, and an answer with 10 tokens.
    fn gemini(&mut self, contents: &[Value], id: &str, parts: &Value) {
        let answer = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "totalTokenCount": 110},
            "modelVersion": "gem-1", "responseId": id});
        let body = json!({"contents": contents, "tools": [{"functionDeclarations": []}]});
        let headers = json!({"user_agent": "GeminiCLI/0.61.0"});
        self.exchange("/v1beta/models/gem-1:generateContent", &headers, &body, &answer);
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"text": text}]})
}

fn function_call(name: &str, args: &Value) -> Value {
    json!({"functionCall": {"name": name, "args": args}})
}

/// What a request has of a call and its result: the calls of the model have the client's ids there.
fn called(words: Option<&str>, name: &str, id: &str, args: &Value) -> [Value; 2] {
    let text = words.map(|text| json!({"text": text}));
    let parts: Vec<Value> =
        text.into_iter().chain([json!({"functionCall": {"name": name, "id": id, "args": args}})]).collect();
    let answer = json!({"functionResponse": {"name": name, "id": id, "response": {"output": "done"}}});
    [json!({"role": "model", "parts": parts}), json!({"role": "user", "parts": [answer]})]
}

/// The proxy's recording of a session with a subagent, and of a question without calls.
fn requests() -> Vec<Value> {
    let mut recording = Recording::new();
    let mut main = vec![user("Go.")];
    let list = json!({"dir": "."});
    recording.gemini(&main, "g1", &json!([{"text": "I look."}, function_call("list", &list)]));
    main.extend(called(Some("I look."), "list", "list_100_0", &list));
    // The same call again.
    recording.gemini(&main, "g2", &json!([function_call("list", &list)]));
    main.extend(called(None, "list", "list_101_1", &list));
    recording.gemini(&main, "g3", &json!([function_call("invoke_agent", &json!({"prompt": "Count."}))]));
    let mut agent = vec![user("Count.")];
    recording.gemini(&agent, "g4", &json!([function_call("list", &list)]));
    agent.extend(called(None, "list", &format!("{AGENT}#0-0"), &list));
    recording.gemini(&agent, "g5", &json!([function_call("complete_task", &json!({"result": 3}))]));
    main.extend(called(None, "invoke_agent", "invoke_agent_102_2", &json!({"prompt": "Count."})));
    recording.gemini(&main, "g6", &json!([{"text": "Done."}]));
    recording.gemini(&[user("Name a colour.")], "g7", &json!([{"text": "Blue."}]));
    recording.0
}

fn chat_head(id: &str, kind: &str) -> Value {
    json!({"sessionId": id, "projectHash": "h", "startTime": "2026-06-08T08:15:00.000Z",
        "lastUpdated": "2026-06-08T08:15:00.000Z", "kind": kind})
}

fn chat_prompt(id: &str, text: &str) -> Value {
    json!({"id": id, "timestamp": "2026-06-08T08:15:01.000Z", "type": "user", "content": [{"text": text}]})
}

/// A message of the model in a chat file: first alone, and again with its call.
fn chat_message(id: &str, text: &str, call: Option<(&str, &str, &Value)>) -> Vec<Value> {
    let mut message = json!({"id": id, "timestamp": "2026-06-08T08:15:02.000Z", "type": "gemini", "content": text,
        "thoughts": [], "model": "gem-1",
        "tokens": {"input": 100, "output": 10, "cached": 0, "thoughts": 0, "tool": 0, "total": 110}});
    let first = message.clone();
    let Some((name, id, args)) = call else { return vec![first] };
    let result = json!([{"functionResponse": {"id": id, "name": name, "response": {"output": "done"}}}]);
    message["toolCalls"] = json!([{"id": id, "name": name, "args": args, "result": result, "status": "success",
        "timestamp": "2026-06-08T08:15:03.000Z"}]);
    vec![first, message]
}

fn chat() -> Vec<Value> {
    let list = json!({"dir": "."});
    let agent = json!({"prompt": "Count."});
    [
        vec![chat_head(MAIN, "main"), chat_prompt("u1", "Go.")],
        chat_message("m1", "I look.", Some(("list", "list__list_100_0", &list))),
        chat_message("m2", "", Some(("list", "list__list_101_1", &list))),
        chat_message("m3", "", Some(("invoke_agent", "invoke_agent__invoke_agent_102_2", &agent))),
        chat_message("m4", "Done.", None),
    ]
    .concat()
}

fn agents_chat() -> Vec<Value> {
    let call = |number: u32| format!("{AGENT}#{number}-0");
    [
        vec![chat_head(AGENT, "subagent"), chat_prompt("u2", "Count.")],
        chat_message("a1", "", Some(("list", &call(0), &json!({"dir": "."})))),
        chat_message("a2", "", Some(("complete_task", &call(1), &json!({"result": 3})))),
    ]
    .concat()
}

/// Another session with an equal prompt, equal words and equal calls, but ids of its own.
fn equal_chat() -> Vec<Value> {
    let list = json!({"dir": "."});
    [
        vec![chat_head("5a000000-0000-4000-8000-000000000002", "main"), chat_prompt("u9", "Go.")],
        chat_message("e1", "I look.", Some(("list", "list__list_200_0", &list))),
        chat_message("e2", "", Some(("list", "list__list_101_1", &list))),
    ]
    .concat()
}

fn put(dir: &Path, name: &str, lines: &[Value]) -> PathBuf {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, lines.concat()).unwrap();
    path
}

/// The files of the session, and one of another session.
fn gemini_files(dir: &Path) -> Vec<PathBuf> {
    let chats = |name: &str| format!(".gemini/tmp/shop/chats/{name}.jsonl");
    vec![
        put(dir, "requests.jsonl", &requests()),
        put(dir, &chats("session-2026-06-08T08-15-5a000000"), &chat()),
        put(dir, &chats(&format!("{MAIN}/{AGENT}")), &agents_chat()),
        put(dir, &chats("session-2026-06-08T08-16-5a000000"), &equal_chat()),
    ]
}

/// The ids of the calls of each session that has any, and its runs.
fn sessions(store: &MemoryStore) -> BTreeMap<RunId, (usize, Vec<String>)> {
    let library = store.library();
    let relations = library.relations().unwrap();
    let mut sessions = BTreeMap::new();
    for id in relations.ids().map(|(_, session)| session).collect::<BTreeSet<_>>() {
        let session = library.session(id, Content::Whole).unwrap();
        let ids = session.calls.iter().map(|call| call.id.as_ref().unwrap().to_text().into_owned());
        sessions.insert(id, (session.runs.len(), ids.collect()));
    }
    sessions
}

fn counted(store: &MemoryStore) -> UsageAnswer {
    let mut counted = UsageAnswer::none();
    let everything = store.everything();
    everything["usage"].as_array().unwrap().iter().for_each(|row| counted.add(&UsageAnswer::of_row(row)));
    counted
}

#[test]
fn requests_without_a_session_join_the_chat_file_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let files = gemini_files(dir.path());
    let mut want = None;
    for order in orders(files.len()) {
        let (store, mut known) = (MemoryStore::new(), UsageAnswer::none());
        for file in &order {
            store.import(&files[*file]);
            let now = all_used(&store.conversations());
            assert!(!is_less(&known, &now), "{order:?}: {known:?} becomes {now:?}");
            assert_eq!(counted(&store), now, "{order:?}");
            known = now;
        }
        // Six responses of the session, one to the question, two of the other session.
        assert_eq!((known.responses, known.output, known.is_exact), (9, 90, true), "{order:?}");
        let sessions = sessions(&store);
        let calls = |session: &str| sessions[&RunId::parse(session).unwrap()].clone();
        let ids = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let main = ids(&["list__list_100_0", "list__list_101_1", "invoke_agent__invoke_agent_102_2"]);
        assert_eq!(calls(MAIN), (2, main), "{order:?}");
        assert_eq!(calls(AGENT), (2, ids(&[&format!("{AGENT}#0-0"), &format!("{AGENT}#1-0")])), "{order:?}");
        assert_eq!(sessions.len(), 4, "{order:?}: {sessions:?}");
        let everything = store.everything();
        assert_eq!(&everything, want.get_or_insert_with(|| everything.clone()), "{order:?}");
    }
}

#[test]
fn requests_join_a_chat_file_that_is_behind() {
    let dir = tempfile::tempdir().unwrap();
    let files = gemini_files(dir.path());
    let behind = put(dir.path(), "behind/session-2026-06-08T08-15-5a000000.jsonl", &chat()[..4]);
    let store = MemoryStore::new();
    store.import(&files[0]);
    let alone = counted(&store);
    store.import(&behind);
    let main = RunId::parse(MAIN).unwrap();
    let (runs, calls) = &sessions(&store)[&main];
    assert_eq!((*runs, calls.len()), (2, 3), "{calls:?}");
    assert_eq!(counted(&store), alone);
}

#[test]
fn requests_do_not_join_a_session_with_equal_words_and_one_of_their_ids() {
    let dir = tempfile::tempdir().unwrap();
    let files = gemini_files(dir.path());
    let store = MemoryStore::new();
    store.import(&files[0]);
    store.import(&files[3]);
    assert!(sessions(&store).values().all(|(runs, _)| *runs == 1));
}

/// The first request of a session of Copilot CLI, and those of its subagent, which name the session but not the subagent.
fn subagents_requests() -> Vec<Value> {
    let mut recording = Recording::new();
    let folder = "Session folder: /srv/.copilot/session-state/3c000000-0000-4000-8000-000000000001\n";
    let user = |text: &str| json!({"role": "user", "content": [{"type": "input_text", "text": text}]});
    let mut ask = |begin: &str, input: &[Value], id: &str, output: &[Value]| {
        let instructions = format!("{begin}\n{folder}");
        let body = json!({"model": "gpt-x", "instructions": instructions, "input": input,
            "tools": [{"type": "function"}]});
        let answer = json!({"id": id, "object": "response", "model": "gpt-x", "status": "completed",
            "output": output, "usage": {"input_tokens": 50, "output_tokens": 2, "total_tokens": 52}});
        recording.exchange("/v1/responses", &json!({}), &body, &answer);
    };
    let call = |item: &str, id: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": item, "call_id": id, "name": name, "arguments": arguments});
    let task = r#"{"prompt":"Count","agent_type":"explore","mode":"sync"}"#;
    let main = "You are the GitHub Copilot CLI, a terminal assistant.";
    ask(main, &[user("Delegate")], "resp_1", &[call("fc_0", "call_1", "task", task)]);
    let calls = [
        call("fc_1", "call_2", "bash", r#"{"command":"wc -l a"}"#),
        call("fc_2", "call_3", "task", r#"{"prompt":"Deeper"}"#),
    ];
    let mut input = vec![user("Count")];
    ask("As a sub-agent, count.", &input, "resp_2", &calls);
    input.extend(calls);
    for call in ["call_2", "call_3"] {
        input.push(json!({"type": "function_call_output", "call_id": call, "output": "3 a"}));
    }
    let said = json!({"type": "message", "id": "msg_1", "role": "assistant",
        "content": [{"type": "output_text", "text": "3 lines"}]});
    ask("As a sub-agent, count.", &input, "resp_4", &[said]);
    recording.0
}

#[test]
fn requests_of_a_subagent_join_the_events_of_its_session_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let golden = steno_testkit::places::workspace_root().join("crates/adapters/tests/golden/copilot");
    let events = std::fs::read_to_string(golden.join("subagents.in.jsonl")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let files =
        [put(dir.path(), "requests.jsonl", &subagents_requests()), put(dir.path(), "events.jsonl", &events)];
    let agent = RunId::parse("3c000000-0000-4000-8000-00000000000a").unwrap();
    let mut want = None;
    for order in orders(files.len()) {
        let store = MemoryStore::new();
        for file in &order {
            store.import(&files[*file]);
        }
        let sessions = sessions(&store);
        assert_eq!(sessions[&agent], (2, vec!["call_2".to_owned(), "call_3".to_owned()]), "{order:?}");
        assert_eq!(sessions.len(), 3, "{order:?}: {sessions:?}");
        let everything = store.everything();
        assert_eq!(&everything, want.get_or_insert_with(|| everything.clone()), "{order:?}");
    }
}

#[test]
fn every_view_gives_the_same_answer_for_requests_and_chat_files() {
    let dir = tempfile::tempdir().unwrap();
    gemini_files(dir.path());
    check_all(&[dir.path().to_owned()], 4);
}

#[test]
fn requests_of_a_subagent_join_only_its_own_session() {
    let dir = tempfile::tempdir().unwrap();
    let golden = steno_testkit::places::workspace_root().join("crates/adapters/tests/golden/copilot");
    let events = std::fs::read_to_string(golden.join("subagents.in.jsonl")).unwrap();
    // A copy of the session under another id, with the same calls.
    let copy = events.replace("-000000000001\"", "-000000000002\"").replace("-00000000000a", "-00000000000b");
    let store = MemoryStore::new();
    for (name, text) in [("copy/events.jsonl", copy), ("events.jsonl", events)] {
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        store.import(&put(dir.path(), name, &lines));
    }
    store.import(&put(dir.path(), "requests.jsonl", &subagents_requests()));
    let sessions = sessions(&store);
    let runs = |agent: &str| sessions[&RunId::parse(agent).unwrap()].0;
    assert_eq!(runs("3c000000-0000-4000-8000-00000000000a"), 2);
    assert_eq!(runs("3c000000-0000-4000-8000-00000000000b"), 1);
}
