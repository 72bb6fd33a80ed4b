//! Slow, too large and broken requests do not affect others.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use steno_journal::Store;
use steno_server::http::{Defences, Limits};
use steno_testkit::sim_disk::{Call, Fault, SimDisk};

use crate::test_server::{RUN, TestServer, event, read_head, request, wait_for};

/// Longer than any test waits.
const FOR_EVER: Duration = Duration::from_hours(1);

/// Returns the headers of a client with the token.
fn headers(served: &TestServer) -> [(&'static str, String); 2] {
    [("Host", format!("127.0.0.1:{}", served.port)), ("Authorization", format!("Bearer {}", served.token))]
}

fn good(served: &TestServer, path: &str) -> String {
    let headers = headers(served);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    request("GET", path, &headers, "")
}

/// Opens a connection that has sent the token.
fn known(served: &TestServer) -> TcpStream {
    let mut stream = served.connect();
    stream.write_all(good(served, "/v1/nothing").as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let (status, head) = read_head(&mut reader);
    assert_eq!(status, 404, "{head}");
    let length: u64 =
        head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok()).unwrap();
    std::io::copy(&mut reader.by_ref().take(length), &mut std::io::sink()).unwrap();
    reader.into_inner()
}

#[test]
fn slow_and_broken_requests_do_not_block_others() {
    let limits = Limits { patience: Duration::from_millis(300), connections: 4, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let mut slow: Vec<_> = (0..4).map(|_| known(&served)).collect();
    for stream in &mut slow {
        stream.write_all(b"GET /v1/health HTTP/1.1\r\nHost: ").unwrap();
    }
    // All connections are in use; they are closed after a while, and this request is answered.
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

/// The unread answers are larger than the socket buffers.
#[test]
fn unread_answer_is_aborted() {
    let limits = Limits { patience: Duration::from_millis(300), connections: 1, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let path = format!("/v1/runs/{RUN}/events");
    assert_eq!(served.post(&path, &event(1).replace("event 1", &"x".repeat(3_000_000))).status, 200);
    let mut unread = known(&served);
    unread.write_all(good(&served, &path).repeat(20).as_bytes()).unwrap();
    // It uses the only connection.
    assert_eq!(served.get("/v1/health").status, 200);
    let mut rest = Vec::new();
    unread.read_to_end(&mut rest).ok();
    assert!(rest.len() < 20 * 3_000_000, "{} bytes of it came", rest.len());
}

#[test]
fn clients_without_token_do_not_block_others() {
    let limits = Limits { patience: FOR_EVER, connections: 8, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let mut strangers: Vec<TcpStream> = (0..50).map(|_| served.connect()).collect();
    assert_eq!(served.get("/v1/health").status, 200);
    // The oldest connections were closed for the others.
    assert_eq!(strangers[0].read(&mut [0]).ok().unwrap_or(0), 0);
    // Connections that have sent the token stay open.
    let mut friends: Vec<TcpStream> = (0..6).map(|_| known(&served)).collect();
    for stream in &mut friends {
        stream.write_all(good(&served, "/v1/health").as_bytes()).unwrap();
        assert_eq!(read_head(&mut BufReader::new(stream)).0, 200);
    }
}

/// Clients that send the token at once are not refused, in any number.
#[test]
fn many_clients_with_token_are_served() {
    let served = TestServer::with(Defences::default(), Limits { connections: 4, ..Limits::default() });
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(served.get("/v1/health").status, 200)));
        }
    });
}

#[test]
fn connection_closes_after_a_refused_request() {
    let served = TestServer::start();
    let host = format!("127.0.0.1:{}", served.port);
    let mut stream = served.connect();
    stream.write_all(request("GET", "/v1/health", &[("Host", &host)], "").repeat(3).as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).ok();
    assert_eq!(answers.matches("HTTP/1.1 401").count(), 1, "{answers}");
}

/// A body that does not arrive keeps its reserved memory until its request is aborted.
#[test]
fn bodies_wait_for_memory() {
    let limits = Limits { patience: Duration::from_millis(500), room_bytes: 100_000, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let path = format!("/v1/runs/{RUN}/events");
    let mut stuck = known(&served);
    let [host, bearer] = headers(&served);
    let head = [
        (host.0, host.1.as_str()),
        (bearer.0, &bearer.1),
        ("Content-Type", "application/json"),
        ("Expect", "100-continue"),
    ];
    let body = event(1).replace("event 1", &"x".repeat(90_000));
    let whole = request("POST", &path, &head, &body);
    stuck.write_all(&whole.as_bytes()[..whole.len() - body.len()]).unwrap();
    // There is memory for this body and for no other.
    assert_eq!(read_head(&mut BufReader::new(&stuck)).0, 100);
    // A waiting request may be aborted too.
    wait_for(|| served.post(&path, &body).status == 200);
    assert_eq!(served.get(&path).json()["last_seq"], 1);
    stuck.set_nonblocking(true).unwrap();
    let mut answered = [0; 12];
    stuck.read_exact(&mut answered).expect("it was given up before the other had its turn");
    assert_eq!(&answered, b"HTTP/1.1 504");
}

/// A client that sends too much can still read the refusal.
#[test]
fn client_reads_the_refusal_while_sending() {
    let served = TestServer::with(Defences::default(), Limits { body_bytes: 1_000_000, ..Limits::default() });
    let path = format!("/v1/runs/{RUN}/events");
    let long = event(1).replace("event 1", &"x".repeat(10_000_000));
    assert_eq!(served.post(&path, &long).status, 413);
    let host = format!("127.0.0.1:{}", served.port);
    let headers = [("Host", host.as_str()), ("Content-Type", "application/json")];
    assert_eq!(served.send(&request("POST", &path, &headers, &long)).status, 401);
}

/// Tests the limits of a request head, and one step beyond.
#[test]
fn too_long_request_head_gives_431() {
    const HEAD_BYTES_MAX: usize = 64 * 1024;
    const HEADERS_MAX: usize = 100;
    let served = TestServer::start();
    let check = |path: &str, more: &[(&str, &str)], want: (u16, bool)| {
        let headers = headers(&served);
        let own = headers.iter().map(|(name, value)| (*name, value.as_str()));
        let all: Vec<(&str, &str)> =
            own.chain([("Connection", "close")]).chain(more.iter().copied()).collect();
        let request = request("GET", path, &all, "");
        let answer = served.send(&request);
        assert_eq!((answer.status, answer.body.is_empty()), want, "{} bytes: {}", request.len(), answer.head);
    };
    let others = good(&served, "").len() + "Connection: close\r\n".len();
    let path = |bytes: usize| format!("/{}", "x".repeat(bytes - others - 1));
    check(&path(HEAD_BYTES_MAX), &[], (404, false));
    check(&path(HEAD_BYTES_MAX + 1), &[], (431, true));
    check(&path(10 * HEAD_BYTES_MAX), &[], (431, true));
    let value = |bytes: usize| "x".repeat(bytes - others - "/v1/health".len() - "x: \r\n".len());
    check("/v1/health", &[("x", &value(HEAD_BYTES_MAX))], (200, false));
    check("/v1/health", &[("x", &value(HEAD_BYTES_MAX + 1))], (431, true));
    check("/v1/health", &[("x", &value(10 * HEAD_BYTES_MAX))], (431, true));
    check("/v1/health", &vec![("x", ""); HEADERS_MAX - 3], (200, false));
    check("/v1/health", &vec![("x", ""); HEADERS_MAX - 2], (431, true));
}

#[test]
fn too_many_events_are_rejected_and_none_is_recorded() {
    let served = TestServer::start();
    let path = format!("/v1/runs/{RUN}/events");
    let lines = (event(1) + "\n").repeat(20_001);
    let answer = served.ask("POST", &path, &[("Content-Type", "application/x-ndjson")], &lines);
    assert_eq!(answer.status, 400, "{}", answer.body);
    let array = format!("[{}]", vec![event(1); 20_001].join(","));
    assert_eq!(served.post(&path, &array).status, 400);
    assert_eq!(served.get(&format!("/v1/runs/{RUN}")).status, 404);
}

/// The answer has the error of each line, but not the whole line.
#[test]
fn errors_of_many_events_fit_into_one_answer() {
    let served = TestServer::start();
    let lines = format!("{{\"type\":\"{}\"}}\n", "x".repeat(700)).repeat(20_000) + &event(1);
    let path = format!("/v1/runs/{RUN}/events");
    let kind = [("Content-Type", "application/x-ndjson")];
    assert_eq!(served.ask("POST", &path, &kind, &lines).status, 400, "one too many");
    let lines = lines.split_once('\n').unwrap().1;
    let answer = served.ask("POST", &path, &kind, lines);
    assert!(answer.status == 200 && answer.body.len() < 8_000_000, "{} bytes", answer.body.len());
    assert_eq!(answer.json()["acks"][19_999]["seq"], 1);
}

/// Answers that do not fit into memory together are sent one after the other.
#[test]
fn long_answers_wait_for_each_other() {
    let limits = Limits { room_bytes: 1024 * 1024, ..Limits::default() };
    let served = TestServer::with(Defences::default(), limits);
    let path = format!("/v1/runs/{RUN}/events");
    assert_eq!(served.post(&path, &event(1).replace("event 1", &"x".repeat(3_000_000))).status, 200);
    std::thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| assert_eq!(served.get(&path).status, 200));
        }
    });
}

fn uuid(number: usize) -> String {
    format!("00000000-0000-4000-8000-{number:012}")
}

#[test]
fn open_runs_stay_within_the_limit() {
    let served = TestServer::with(Defences::default(), Limits { recorders: 4, ..Limits::default() });
    let post = |run: usize| {
        let answer = served.post(&format!("/v1/runs/{}/events", uuid(run)), &event(1));
        assert!(answer.json()["acks"][0]["seq"].is_u64(), "{answer:?}");
    };
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let post = &post;
            scope.spawn(move || (0..60).for_each(|turn| post((turn * 7 + thread * 5) % 40)));
        }
    });
    post(41);
    let open = served.get("/v1/health").json()["runs_recorded"].as_u64().unwrap();
    assert!(open <= 4, "{open} are open");
    let counts = (0..40).map(|run| {
        let page = served.get(&format!("/v1/runs/{}/events", uuid(run))).json();
        page["last_seq"].as_u64().unwrap()
    });
    assert_eq!(counts.sum::<u64>(), 480, "each is there once");
}

/// Starts a server on a disk that can fail.
fn failing() -> (TestServer, SimDisk) {
    let disk = SimDisk::new(1);
    let store = Store::create(Arc::new(disk.clone())).unwrap();
    (TestServer::over(tempfile::tempdir().unwrap(), store, Defences::default(), Limits::default()), disk)
}

#[test]
fn full_disk_gives_507_and_recording_recovers() {
    let (served, disk) = failing();
    let path = format!("/v1/runs/{RUN}/events");
    assert_eq!(served.post(&path, &event(1)).status, 200);
    let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_room(Some(used as u64));
    let answer = served.post(&path, &format!("[{},{}]", event(2), event(3)));
    assert_eq!(answer.status, 507, "{answer:?}");
    // Some events fit, and the answer names them.
    disk.set_room(Some(used as u64 + 600));
    let long = event(3).replace("event 3", &"x".repeat(5000));
    let answer = served.post(&path, &format!("[{},{long}]", event(2))).json();
    assert_eq!((&answer["acks"][0]["seq"], answer["acks"][1]["error"].is_string()), (&json!(2), true));
    disk.set_room(None);
    assert_eq!(served.post(&path, &event(3)).json()["acks"][0]["seq"], 3);
}

#[test]
fn failed_recorder_is_reopened() {
    const EIO: i32 = 5;
    let (served, disk) = failing();
    let path = format!("/v1/runs/{RUN}/events?level=synced");
    assert_eq!(served.post(&path, &event(1)).json()["acks"][0]["seq"], 1);
    disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: EIO });
    let answer = served.post(&path, &event(2)).json();
    assert!(answer["acks"][0]["error"].is_string(), "{answer}");
    assert_eq!(disk.fired(), 1);
    let answer = served.post(&path, &event(3)).json();
    assert!(answer["acks"][0]["seq"].as_u64().is_some_and(|seq| seq >= 2), "{answer}");
}

/// A run has one recorder: requests wait until the failed one is closed.
#[test]
fn requests_wait_until_a_failed_recorder_is_closed() {
    const EIO: i32 = 5;
    let (served, disk) = failing();
    let path = format!("/v1/runs/{RUN}/events?level=synced");
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (served, disk, path) = (&served, &disk, &path);
            scope.spawn(move || {
                for turn in 0..30 {
                    if (turn + thread) % 10 == 0 {
                        disk.plan(Fault::Fail { kind: Call::Sync, nth: 1, error: EIO });
                    }
                    let answer = served.post(path, &event(1));
                    assert_ne!(answer.status, 409, "{answer:?}");
                }
            });
        }
    });
    assert!(disk.fired() > 0);
}

#[test]
fn new_run_on_a_full_disk_gives_507() {
    let (served, disk) = failing();
    let used: usize = disk.snapshot().iter().map(|(_, bytes)| bytes.len()).sum();
    disk.set_room(Some(used as u64));
    let answer = served.post(&format!("/v1/runs/{RUN}/events"), &event(1));
    assert_eq!(answer.status, 507, "{answer:?}");
}

#[test]
fn unreadable_run_does_not_break_the_list() {
    let served = TestServer::start();
    assert_eq!(served.post(&format!("/v1/runs/{RUN}/events"), &event(1)).status, 200);
    let odd = "00000000-0000-4000-8000-000000000001";
    std::fs::create_dir(served.dir.path().join("transcripts").join(format!("{odd}.jsonl"))).unwrap();
    let list = served.get("/v1/runs").json();
    assert_eq!((&list["runs"][0]["run_id"], &list["runs"][0]["state"]), (&json!(odd), &json!("damaged")));
    assert!(list["runs"][0]["why"].is_string() && list["runs"][1]["why"].is_null(), "{list}");
    assert_eq!((&list["runs"][1]["run_id"], &list["runs"][1]["state"]), (&json!(RUN), &json!("recording")));
    assert_eq!(served.get("/v1/usage").status, 200);
    assert_eq!(served.get(&format!("/v1/runs/{odd}")).json(), list["runs"][0]);
}

#[test]
fn limits_fit_the_open_file_limit() {
    let many = Limits::default();
    assert_eq!(many.within(usize::MAX), many);
    for files in [32, 64, 1024, 4096] {
        let fitted = many.within(files);
        let needs = fitted.connections + fitted.listeners + 3 * fitted.recorders;
        assert!(needs <= files / 2, "{files}: {fitted:?}");
    }
}
