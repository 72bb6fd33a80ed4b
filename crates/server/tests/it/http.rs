//! The answers of the API.

use serde_json::{Value, json};
use steno_journal::{Journal, Options};
use steno_model::RunId;
use steno_server::http::{Defences, Limits, ROUTES, openapi};

use crate::test_server::{RUN, TestServer, event, open_store};

/// Returns the events of the session without their numbers, as an array.
fn session() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/receipts/session.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let drafts: Vec<String> =
        text.lines().map(|line| format!("{{{}", line.split_once(',').unwrap().1)).collect();
    format!("[{}]", drafts.join(","))
}

/// Starts a server whose store has the session.
fn filled() -> TestServer {
    let served = TestServer::start();
    let answer = served.post(&format!("/v1/runs/{RUN}/events"), &session());
    let acks = answer.json()["acks"].as_array().unwrap().clone();
    assert_eq!(acks.len(), 32, "{answer:?}");
    assert_eq!(acks[31], json!({"seq": 32, "level": "written"}));
    served
}

#[test]
fn events_are_read_back_in_pages() {
    let served = filled();
    let health = served.get("/v1/health").json();
    assert_eq!((&health["status"], &health["runs_recorded"]), (&json!("ok"), &json!(1)));
    let runs = served.get("/v1/runs").json();
    let run = served.get(&format!("/v1/runs/{RUN}")).json();
    assert_eq!((&run["state"], &run["events"]), (&json!("recording"), &json!(32)), "{run}");
    assert_eq!(runs, json!({"runs": [run], "next": null}));
    let (mut since, mut seqs) = (0, Vec::new());
    loop {
        let page = served.get(&format!("/v1/runs/{RUN}/events?since_seq={since}&limit=10")).json();
        seqs.extend(page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()));
        match page["next_since_seq"].as_u64() {
            Some(next) => since = next,
            None => break,
        }
    }
    assert_eq!(seqs, (1..=32).collect::<Vec<_>>());
}

#[test]
fn search_finds_what_was_recorded() {
    let served = TestServer::start();
    let prompt = json!({"type": "message.user", "payload": {"role": "user",
        "blocks": [{"type": "text", "fidelity": "agent_emitted", "text": "Where is the zebra?"}]}});
    let events = json!([{"type": "run.started", "payload": {"name": "claude", "kind": "session"}}, prompt]);
    assert_eq!(served.post(&format!("/v1/runs/{RUN}/events"), &events.to_string()).status, 200);
    let found = served.get("/v1/search?q=zebra").json();
    assert_eq!(found["hits"].as_array().map(Vec::len), Some(1), "{found}");
    let hit = &found["hits"][0];
    assert_eq!((&hit["run_id"], &hit["seq"], &hit["kind"]), (&json!(RUN), &json!(2), &json!("prompt")));
    assert_eq!((&hit["text"], &hit["places"]), (&json!("Where is the zebra?"), &json!([[13, 18]])));
    assert_eq!((&found["searched"]["hits"], &found["searched"]["prompts"]), (&json!(1), &json!(1)));
    let none = served.get("/v1/search?q=Zebra&exact=true&agent=codex").json();
    assert_eq!((&none["hits"], &none["searched"]["sessions"]), (&json!([]), &json!(0)));
    for wrong in ["q=!!", "q=/a(/", "q=x&limit=0", "q=x&hits=1001", "q=x&since=soon", ""] {
        assert_eq!(served.get(&format!("/v1/search?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn sessions_and_search_take_the_same_filters() {
    let served = TestServer::start();
    let prompt = json!({"type": "message.user", "payload": {"role": "user",
        "blocks": [{"type": "text", "fidelity": "agent_emitted", "text": "Where is the zebra?"}]}});
    let events = json!([{"type": "run.started", "payload": {"name": "claude", "kind": "session"}}, prompt]);
    assert_eq!(served.post(&format!("/v1/runs/{RUN}/events"), &events.to_string()).status, 200);
    let sessions = |filter: &str| {
        let listed = served.get(&format!("/v1/sessions?{filter}")).json();
        let searched = served.get(&format!("/v1/search?q=zebra&{filter}")).json();
        let listed = listed["sessions"].as_array().unwrap().len();
        assert_eq!(searched["searched"]["sessions"], json!(listed), "{filter}: {searched}");
        assert_eq!(searched["hits"].as_array().unwrap().len(), listed, "{filter}: {searched}");
        listed
    };
    for (filter, want) in [
        ("live=false&gone=false", 1),
        // The server is recording it.
        ("live=true", 1),
        // It has no file of an agent that could be gone.
        ("gone=true", 0),
        ("live=true&gone=true", 0),
        ("live=true&failed=true", 0),
        ("live=true&touched=src", 0),
        ("live=true&since=2999-01-01T00:00:00Z", 0),
        ("live=true&until=2999-01-01T00:00:00Z", 1),
    ] {
        assert_eq!(sessions(filter), want, "{filter}");
    }
    for wrong in ["live=2", "gone=maybe", "since=soon", "until=2026"] {
        for route in ["sessions?", "search?q=zebra&"] {
            assert_eq!(served.get(&format!("/v1/{route}{wrong}")).status, 400, "{route}{wrong}");
        }
    }
}

#[test]
fn thread_is_found_by_session_id_and_by_run_id() {
    let served = filled();
    let session = "0199aaaa-0000-7000-8000-00000000beef";
    let shown = "550e8400-e29b-41d4-a716-4466554400aa";
    let events = [
        json!({"type": "run.started", "session_run_id": session, "payload": {"name": "codex", "kind": "session"}}),
        json!({"type": "step.started", "path": "turn-0001", "payload": {"name": "turn-0001", "kind": "turn"}}),
    ];
    let record = |run: &str| served.post(&format!("/v1/runs/{run}/events"), &json!(events).to_string());
    let recorded = record(shown);
    assert_eq!(recorded.status, 200, "{}", recorded.body);
    for name in [session, shown] {
        let thread = served.get(&format!("/v1/threads/{name}")).json();
        assert_eq!(thread["turns"].as_array().unwrap().len(), 1, "{name}: {thread}");
    }
    assert_eq!(record("550e8400-e29b-41d4-a716-4466554400bb").status, 200);
    // Several runs of a session are one thread.
    let several = served.get(&format!("/v1/threads/{session}"));
    assert_eq!((several.status, &several.json()["thread"]["id"]), (200, &json!(session)));
}

#[test]
fn threads_turns_receipts_and_usage_match_the_views() {
    let served = filled();
    let thread = served.get(&format!("/v1/threads/{RUN}")).json();
    assert_eq!(thread["turns"].as_array().unwrap().len(), 3, "{thread}");
    let turn = served.get(&format!("/v1/threads/{RUN}/turns/turn-0002")).json();
    assert_eq!(
        (&turn["turn"]["status"], turn["items"].as_array().unwrap().len()),
        (&json!("failed"), 4),
        "{turn}"
    );
    let receipt = served.get(&format!("/v1/threads/{RUN}/turns/turn-0001/receipt"));
    let expected = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/receipts/expected");
    let expected = std::fs::read_to_string(expected.join("run-completed.json")).unwrap();
    let expected = expected.split(",\n  \"integrity\"").next().unwrap().to_owned() + "\n}\n";
    assert_eq!(receipt.body, expected);
    let proven = served.get(&format!("/v1/threads/{RUN}/turns/turn_a/receipt?integrity=true")).json();
    assert_eq!(proven["integrity"][0]["tree_size"], 32);
    let usage = served.get("/v1/usage?by=model").json();
    assert_eq!(
        (&usage["rows"][0]["model"], &usage["rows"][0]["output_tokens"]),
        (&json!("gpt-x"), &json!(35)),
        "{usage}"
    );
}

#[test]
fn failed_requests_get_problem_details() {
    let served = filled();
    let none = "00000000-0000-4000-8000-000000000000";
    for (path, status) in [
        ("/nothing".to_owned(), 404),
        (format!("/v1/runs/{none}"), 404),
        (format!("/v1/runs/{none}/events"), 404),
        (format!("/v1/threads/{none}"), 404),
        (format!("/v1/threads/{RUN}/turns/turn-0009"), 404),
        (format!("/v1/threads/{RUN}/turns/turn-0009/receipt"), 404),
        ("/v1/runs/x".to_owned(), 400),
        ("/v1/runs?limit=0".to_owned(), 400),
        ("/v1/runs?limit=x".to_owned(), 400),
        ("/v1/runs?after=x".to_owned(), 400),
        (format!("/v1/runs/{RUN}/events?since_seq=-1"), 400),
        ("/v1/usage?by=colour".to_owned(), 400),
    ] {
        let answer = served.get(&path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        let problem = answer.json();
        assert!(answer.head.contains("content-type: application/problem+json"), "{path}: {answer:?}");
        assert!(problem["type"].as_str().unwrap().starts_with("urn:steno:problem:"), "{path}: {problem}");
        assert_eq!(problem["status"], status, "{path}");
    }
    for method in ["DELETE", "PUT", "PATCH", "TRACE"] {
        assert_eq!(served.ask(method, "/v1/health", &[], "").status, 405, "{method}");
    }
}

#[test]
fn invalid_ndjson_lines_are_reported_one_by_one() {
    let served = TestServer::start();
    let path = format!("/v1/runs/{RUN}/events");
    let mixed = format!("[{},5]", event(1));
    for body in ["", "no", "[", "{", "5", r#"{"type":"nothing"}"#, mixed.as_str()] {
        assert_eq!(served.post(&path, body).status, 400, "{body}");
    }
    assert_eq!(served.post(&path, "[]").json(), json!({"acks": []}));
    let refused = served.ask("POST", &path, &[("Content-Type", "application/x-ndjson")], "5\n{}\n").json();
    assert!(refused["acks"].as_array().unwrap().iter().all(|ack| ack["error"].is_string()), "{refused}");
    assert_eq!(served.get(&format!("/v1/runs/{RUN}")).status, 404, "no run begins so");
    let lines = format!("{}\n\nno\n{}\n", event(1), event(2));
    let answer = served
        .ask("POST", &format!("{path}?level=synced"), &[("Content-Type", "application/x-ndjson")], &lines)
        .json();
    assert_eq!(
        (&answer["acks"][0], &answer["acks"][2]),
        (&json!({"seq":1,"level":"synced"}), &json!({"seq":2,"level":"synced"}))
    );
    assert!(answer["acks"][1]["error"].is_string(), "{answer}");
    assert_eq!(served.post(&format!("{path}?level=carved"), &event(3)).status, 400);
    let small = TestServer::with(Defences::default(), Limits { body_bytes: 1000, ..Limits::default() });
    let answer = small.post(&path, &event(1).replace("event 1", &"x".repeat(2000)));
    assert_eq!(answer.status, 413, "{answer:?}");
}

#[test]
fn hostile_bodies_are_rejected() {
    let served = TestServer::start();
    let path = format!("/v1/runs/{RUN}/events");
    let with = |value: &str| {
        format!(
            "{{\"type\":\"tool.call\",\"payload\":{{\"name\":\"x\",\"call_id\":\"c\",\"input\":{value},\"output\":null,\"fidelity\":\"router\"}}}}"
        )
    };
    let deep = |open: &str, close: &str| open.repeat(100_000) + &close.repeat(100_000);
    for body in [
        deep("[", "]"),
        with(&deep("[", "]")),
        with(&(r#"{"a":"#.repeat(100_000) + "1" + &"}".repeat(100_000))),
        "\0".to_owned(),
        "\u{feff}{}".to_owned(),
        with("1").replacen("\"type\"", "\"type\":\"run.started\",\"type\"", 1),
    ] {
        let answer = served.post(&path, &body);
        assert_eq!(
            answer.status,
            400,
            "{} bytes: {}",
            body.len(),
            &answer.body[..answer.body.len().min(300)]
        );
    }
    assert_eq!(served.get(&format!("/v1/runs/{RUN}")).status, 404, "nothing of it is recorded");
    // Unusual but valid values come back unchanged.
    for value in ["1e400", r#""\ud800""#, r#"{"a":1,"a":2}"#, r#""\u0000""#, "123456789012345678901234567890"]
    {
        assert_eq!(served.post(&path, &with(value)).status, 200, "{value}");
        let page = served.get(&format!("/v1/runs/{RUN}/events"));
        assert!(page.body.contains(&format!("\"input\":{value}")), "{value}");
    }
}

#[test]
fn run_recorded_by_another_process_gives_409() {
    let served = TestServer::start();
    let journal = Journal::new(open_store(&served.dir), Options::default());
    let recorder = journal.record(RunId::parse(RUN).unwrap()).unwrap();
    let answer = served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    assert_eq!(answer.status, 409, "{answer:?}");
    recorder.close().unwrap();
    drop(recorder);
    assert_eq!(served.post(&format!("/v1/runs/{RUN}/events"), &event(1)).status, 200);
}

#[test]
fn openapi_lists_every_route_and_matches_docs() {
    let document: Value = serde_json::from_str(&openapi()).unwrap();
    let mut named: Vec<String> = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        named.extend(
            methods.as_object().unwrap().keys().map(|method| format!("{} {path}", method.to_uppercase())),
        );
    }
    let mut routes: Vec<String> =
        ROUTES.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    named.sort();
    routes.sort();
    assert_eq!(named, routes);
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let golden = std::fs::read_to_string(golden).unwrap_or_default();
    assert!(
        golden == openapi(),
        "docs/openapi.json is not what the handlers say: `steno serve --openapi` prints it"
    );
}

#[test]
fn api_page_lists_all_routes() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api.md");
    let page = std::fs::read_to_string(page).unwrap();
    let cell = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let mut listed: Vec<String> = page
        .lines()
        .filter_map(cell)
        .filter(|cell| cell.split(' ').nth(1).is_some_and(|path| path.starts_with("/v1/")))
        .collect();
    // Its description of itself is named in the text above the table.
    assert!(page.contains("`/v1/openapi.json`"), "docs/api.md");
    let routes = ROUTES.iter().filter(|route| route.path != "/v1/openapi.json");
    let mut routes: Vec<String> = routes.map(|route| format!("{} {}", route.method, route.path)).collect();
    listed.sort();
    routes.sort();
    assert_eq!(listed, routes, "docs/api.md");
}
