//! What the API answers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};
use steno_journal::{Journal, Level, Options};
use steno_model::{Draft, RunId};
use steno_server::http::{Defences, Limits, ROUTES, openapi};

use crate::api_kit::{Served, open_store, read_head, request};

const RUN: &str = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";

/// The events of the session without their numbers, as an array.
fn session() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/receipts/session.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let drafts: Vec<String> =
        text.lines().map(|line| format!("{{{}", line.split_once(',').unwrap().1)).collect();
    format!("[{}]", drafts.join(","))
}

/// A server whose store has the session.
fn filled() -> Served {
    let served = Served::start();
    let answer = served.post(&format!("/v1/runs/{RUN}/events"), &session());
    let acks = answer.json()["acks"].as_array().unwrap().clone();
    assert_eq!(acks.len(), 32, "{answer:?}");
    assert_eq!(acks[31], json!({"seq": 32, "level": "written"}));
    served
}

fn event(number: u64) -> String {
    json!({"type": "message.user", "payload": {"role": "user", "blocks": [{"type": "text", "fidelity": "router", "text": format!("event {number}")}]}}).to_string()
}

#[test]
fn what_is_recorded_is_read_back_in_pages() {
    let served = filled();
    let health = served.get("/v1/health").json();
    assert_eq!((&health["status"], &health["runs_recorded"]), (&json!("ok"), &json!(1)));
    let runs = served.get("/v1/runs").json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
    let run = served.get(&format!("/v1/runs/{RUN}")).json();
    assert_eq!((&run["state"], &run["summary"]["events"]), (&json!("recording"), &json!(32)), "{run}");
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
fn threads_turns_receipts_and_usage_are_those_of_the_views() {
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
    assert_eq!(proven["integrity"]["tree_size"], 32);
    let usage = served.get("/v1/usage?by=model").json();
    assert_eq!(
        (&usage["rows"][0]["model"], &usage["rows"][0]["output_tokens"]),
        (&json!("gpt-x"), &json!(35)),
        "{usage}"
    );
}

#[test]
fn what_cannot_be_answered_is_a_problem() {
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
    let answer = served.ask("DELETE", "/v1/health", &[("Content-Type", "application/json")], "");
    assert_eq!(answer.status, 405, "{answer:?}");
}

#[test]
fn events_that_are_none_are_told_one_by_one_and_take_nothing_from_the_others() {
    let served = Served::start();
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
    let small = Served::with(Defences::default(), Limits { body_bytes: 1000, ..Limits::default() });
    let answer = small.post(&path, &event(1).replace("event 1", &"x".repeat(2000)));
    assert_eq!(answer.status, 413, "{answer:?}");
}

#[test]
fn hostile_bodies_are_refused_and_the_server_goes_on() {
    let served = Served::start();
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
    // Odd, and good: it comes back as it was.
    for value in ["1e400", r#""\ud800""#, r#"{"a":1,"a":2}"#, r#""\u0000""#, "123456789012345678901234567890"]
    {
        assert_eq!(served.post(&path, &with(value)).status, 200, "{value}");
        let page = served.get(&format!("/v1/runs/{RUN}/events"));
        assert!(page.body.contains(&format!("\"input\":{value}")), "{value}");
    }
}

#[test]
fn a_run_that_another_process_records_is_left_to_it() {
    let served = Served::start();
    let journal = Journal::new(open_store(&served.dir), Options::default());
    let recorder = journal.record(RunId::parse(RUN).unwrap()).unwrap();
    let answer = served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    assert_eq!(answer.status, 409, "{answer:?}");
    recorder.close().unwrap();
    drop(recorder);
    assert_eq!(served.post(&format!("/v1/runs/{RUN}/events"), &event(1)).status, 200);
}

/// A stream of live events, line by line.
struct Live {
    stream: BufReader<std::net::TcpStream>,
    /// What was read of chunks and not yet of lines.
    waiting: Vec<u8>,
}

impl Live {
    fn open(served: &Served, query: &str, headers: &[(&str, &str)]) -> Self {
        let (host, bearer) = (format!("127.0.0.1:{}", served.port), format!("Bearer {}", served.token));
        let mut all =
            vec![("Host", host.as_str()), ("Authorization", &bearer), ("Accept", "text/event-stream")];
        all.extend_from_slice(headers);
        let mut stream = served.connect();
        stream
            .write_all(request("GET", &format!("/v1/runs/{RUN}/events{query}"), &all, "").as_bytes())
            .unwrap();
        let mut stream = BufReader::new(stream);
        let (status, head) = read_head(&mut stream);
        assert!(status == 200 && head.contains("text/event-stream"), "{head}");
        Self { stream, waiting: Vec::new() }
    }

    /// The next line; `None` when the stream has ended.
    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.waiting.drain(..=end).collect();
                return Some(String::from_utf8(line).unwrap());
            }
            let mut size = String::new();
            self.stream.read_line(&mut size).ok().filter(|read| *read > 0)?;
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            self.stream.read_exact(&mut chunk).ok()?;
            if size == 0 {
                return None;
            }
            self.waiting.extend_from_slice(&chunk[..size]);
        }
    }

    /// The next field of a frame, comments passed over.
    fn field(&mut self, name: &str) -> String {
        loop {
            let line = self.line().expect("the stream goes on");
            if let Some(value) = line.strip_prefix(&format!("{name}: ")) {
                return value.trim_end().to_owned();
            }
        }
    }

    fn seq(&mut self) -> u64 {
        let id = self.field("id");
        let data: Value = serde_json::from_str(&self.field("data")).unwrap();
        assert!(id.starts_with(&format!("{}.", data["seq"])), "{id}");
        data["seq"].as_u64().unwrap()
    }
}

#[test]
fn a_stream_replays_and_then_goes_on_live_whoever_records() {
    let served = Served::start();
    let journal = Journal::new(open_store(&served.dir), Options::default());
    let run = RunId::parse(RUN).unwrap();
    // Somebody else than the server.
    let recorder = journal.record(run).unwrap();
    let record = |number: u64| {
        recorder.record(Draft::parse(event(number).as_bytes(), run).unwrap(), Level::Written).unwrap();
    };
    (1..=5).for_each(record);
    let (mut all, mut some, mut new) = (
        Live::open(&served, "", &[]),
        Live::open(&served, "?since_seq=3", &[]),
        Live::open(&served, "?since_seq=5", &[]),
    );
    (6..=1200).for_each(record);
    for (live, from) in [(&mut all, 1), (&mut some, 4), (&mut new, 6)] {
        for want in from..=1200 {
            assert_eq!(live.seq(), want);
        }
    }
    // Whoever comes again goes on after what it has.
    let mut again = Live::open(&served, "", &[]);
    (1..=6).for_each(|_| drop(again.field("id")));
    let id = again.field("id");
    assert!(id.starts_with("7."), "{id}");
    let mut resumed = Live::open(&served, "?since_seq=1100", &[("Last-Event-ID", &id)]);
    assert_eq!(resumed.seq(), 8);
    // An id of something else than what the file has now: everything comes anew.
    let mut reset = Live::open(&served, "", &[("Last-Event-ID", "7.00000000")]);
    assert_eq!((reset.field("event"), reset.seq()), ("reset".to_owned(), 1));
    let mut beyond = Live::open(&served, "", &[("Last-Event-ID", "99999.00000000")]);
    assert_eq!((beyond.field("event"), beyond.seq()), ("reset".to_owned(), 1));
}

#[test]
fn a_quiet_stream_says_that_it_is_there_and_ends_with_the_server() {
    let limits = Limits { heartbeat: Duration::from_millis(50), ..Limits::default() };
    let mut served = Served::with(Defences::default(), limits);
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    let mut stream = Live::open(&served, "?since_seq=1", &[]);
    while !stream.line().expect("the stream goes on").contains(": still here") {}
    served.end();
}

#[test]
fn a_listener_that_does_not_read_is_dropped_and_told_where_to_catch_up() {
    let limits = Limits { stall: Duration::from_millis(300), working: 2, ..Limits::default() };
    let served = Served::with(Defences::default(), limits);
    let path = format!("/v1/runs/{RUN}/events");
    // More than the sockets take, of which some is there already.
    let body = |from: u64| {
        let line = |number: u64| event(number).replace("event", &"x".repeat(20_000)) + "\n";
        (from..from + 500).map(line).collect::<String>()
    };
    let post =
        |from: u64| served.ask("POST", &path, &[("Content-Type", "application/x-ndjson")], &body(from));
    assert_eq!(post(1).status, 200);
    // More than may work at once: they hold nobody up.
    let mut slow: Vec<Live> = (0..6).map(|_| Live::open(&served, "", &[])).collect();
    let mut quick = Live::open(&served, "?since_seq=500", &[]);
    assert_eq!(post(501).status, 200);
    for want in 501..=1000 {
        assert_eq!(quick.seq(), want);
    }
    wait_for(|| served.get("/v1/health").json()["listeners"] == 1);
    for stream in &mut slow {
        let (mut last, mut is_told) = (0, false);
        // One that stood still inside of a line ends there, which is no frame.
        while let Some(line) = stream.line() {
            is_told |= line.starts_with("event: lagged");
            let Some(data) = line.strip_prefix("data: ") else { continue };
            let data: Value = serde_json::from_str(data).unwrap();
            if is_told {
                assert_eq!(data, json!({"since_seq": last}));
            } else {
                assert_eq!(data["seq"].as_u64(), Some(last + 1), "nothing is left out before");
                last += 1;
            }
        }
        assert!(last < 1000, "{last}");
    }
}

/// Waits until something is so.
fn wait_for(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "it did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn listeners_that_are_gone_give_their_place_back_at_once() {
    let served = Served::with(Defences::default(), Limits { listeners: 2, ..Limits::default() });
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    for _ in 0..6 {
        drop(Live::open(&served, "", &[]));
        wait_for(|| served.get("/v1/health").json()["listeners"] == 0);
    }
}

#[test]
fn a_run_that_was_replaced_is_told_anew() {
    let served = Served::start();
    let run = RunId::parse(RUN).unwrap();
    let record = |count: u64| {
        let journal = Journal::new(open_store(&served.dir), Options::default());
        let recorder = journal.record(run).unwrap();
        for number in 1..=count {
            recorder.record(Draft::parse(event(number).as_bytes(), run).unwrap(), Level::Written).unwrap();
        }
        recorder.close().unwrap();
    };
    record(5);
    let mut old = Live::open(&served, "", &[]);
    (1..=5).for_each(|want| assert_eq!(old.seq(), want));
    for file in [format!("{RUN}.jsonl"), format!("{RUN}.seals.jsonl")] {
        std::fs::remove_file(served.dir.path().join("transcripts").join(file)).unwrap();
    }
    record(8);
    let mut new = Live::open(&served, "", &[]);
    (1..=8).for_each(|want| assert_eq!(new.seq(), want));
    // The old one ends, and can come again.
    while let Some(line) = old.line() {
        assert!(!line.contains("data:"), "{line}");
    }
}

#[test]
fn as_many_listen_as_may() {
    let served = Served::with(Defences::default(), Limits { listeners: 2, ..Limits::default() });
    served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    let streams = [Live::open(&served, "", &[]), Live::open(&served, "", &[])];
    let refused =
        served.ask("GET", &format!("/v1/runs/{RUN}/events"), &[("Accept", "text/event-stream")], "");
    assert_eq!(refused.status, 503, "{refused:?}");
    drop(streams);
}

#[test]
fn slow_and_broken_requests_hold_nobody_up() {
    let limits = Limits { patience: Duration::from_millis(300), connections: 4, ..Limits::default() };
    let served = Served::with(Defences::default(), limits);
    let mut slow: Vec<_> = (0..4).map(|_| served.connect()).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /v1/health HTTP/1.1\r\nHost: ").unwrap();
    }
    // All connections are taken; they are given up after a while, and this one is answered.
    assert_eq!(served.get("/v1/health").status, 200);
    for broken in [
        "\r\n\r\n",
        "NONSENSE\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000)),
    ] {
        let mut stream = served.connect();
        stream.write_all(broken.as_bytes()).ok();
        drop(stream);
    }
    assert_eq!(served.get("/v1/health").status, 200);
}

#[test]
fn the_document_names_every_route_and_is_the_one_that_is_checked_in() {
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
