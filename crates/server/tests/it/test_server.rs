//! A server with its own store, and a client that sends exact bytes.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};
use steno_disk::RealDisk;
use steno_journal::{Level, Store};
use steno_server::http::{Api, ApiOptions, Defences, Limits, new_token, serve};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The time after which the client fails the test.
const PATIENCE: Duration = Duration::from_mins(1);

/// The run id of most tests.
pub const RUN: &str = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";

/// Returns an event without a number.
pub fn event(number: u64) -> String {
    json!({"type": "message.user", "payload": {"role": "user", "blocks": [{"type": "text", "fidelity": "router", "text": format!("event {number}")}]}}).to_string()
}

/// Waits until a condition holds.
pub fn wait_for(mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_mins(1), "it did not come about");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A server that ends with the test.
pub struct TestServer {
    pub dir: tempfile::TempDir,
    pub port: u16,
    pub token: String,
    pub api: Arc<Api>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// An answer of the server.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub fn open_store(dir: &tempfile::TempDir) -> Store {
    Store::create(Arc::new(RealDisk::create(dir.path()).unwrap())).unwrap()
}

impl TestServer {
    pub fn start() -> Self {
        Self::with(Defences::default(), Limits::default())
    }

    pub fn with(defences: Defences, limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(&dir);
        Self::over(dir, store, defences, limits)
    }

    /// Serves a store, which may be outside the directory.
    pub fn over(dir: tempfile::TempDir, store: Store, defences: Defences, limits: Limits) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (port, token) = (listener.local_addr().unwrap().port(), new_token());
        let options = ApiOptions {
            port,
            token: token.clone(),
            level: Level::Written,
            limits,
            defences,
            prices: steno_views::cost::Prices::default(),
            zone: jiff::tz::TimeZone::UTC,
            store_flags: String::new(),
        };
        let api = Api::new(store, options);
        let (stop, stopped) = watch::channel(false);
        let served = Arc::clone(&api);
        let thread = std::thread::spawn(move || runtime.block_on(serve(listener, served, stopped)));
        Self { dir, port, token, api, stop, thread: Some(thread) }
    }

    /// Stops the server and waits for its end.
    pub fn end(&mut self) {
        self.stop.send(true).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a raw request, and reads the whole answer.
    pub fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut BufReader::new(stream))
    }

    /// Sends a request with the token.
    pub fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let host = format!("127.0.0.1:{}", self.port);
        let mut all = vec![("Host", host.as_str()), ("Authorization", &bearer), ("Connection", "close")];
        all.extend_from_slice(headers);
        self.send(&request(method, path, &all, body))
    }

    pub fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    pub fn post(&self, path: &str, body: &str) -> Answer {
        self.ask("POST", path, &[("Content-Type", "application/json")], body)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.send(true).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Returns the text of a request.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String =
        headers.iter().fold(String::new(), |all, (name, value)| format!("{all}{name}: {value}\r\n"));
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    format!("{method} {path} HTTP/1.1\r\n{headers}{length}\r\n{body}")
}

/// Reads the head of an answer.
pub fn read_head(stream: &mut impl std::io::BufRead) -> (u16, String) {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    (status, head)
}

fn read_answer(stream: &mut BufReader<TcpStream>) -> Answer {
    let (status, head) = read_head(stream);
    let lower = head.to_ascii_lowercase();
    let length =
        lower.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = Vec::new();
    match length {
        Some(length) => stream.take(length).read_to_end(&mut body).map(drop).unwrap(),
        None => stream.read_to_end(&mut body).map(drop).unwrap(),
    }
    Answer { status, head, body: String::from_utf8(body).unwrap() }
}

/// A stream of live events, line by line.
pub struct EventStream {
    stream: BufReader<TcpStream>,
    /// Bytes of chunks that are not yet read as lines.
    waiting: Vec<u8>,
}

impl EventStream {
    pub fn open(served: &TestServer, query: &str, headers: &[(&str, &str)]) -> Self {
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

    /// Returns the next line; `None` at the end of the stream.
    pub fn line(&mut self) -> Option<String> {
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

    /// Returns the next field of a frame, without comments.
    pub fn field(&mut self, name: &str) -> String {
        loop {
            let line = self.line().expect("the stream goes on");
            if let Some(value) = line.strip_prefix(&format!("{name}: ")) {
                return value.trim_end().to_owned();
            }
        }
    }

    /// Returns the number of the next event.
    pub fn seq(&mut self) -> u64 {
        let id = self.field("id");
        let data: Value = serde_json::from_str(&self.field("data")).unwrap();
        assert!(id.starts_with(&format!("{}.", data["seq"])), "{id}");
        data["seq"].as_u64().unwrap()
    }
}
