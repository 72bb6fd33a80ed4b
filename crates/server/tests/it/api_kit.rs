//! A server over a store of its own, and a client that sends what it is told, byte for byte.

use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use steno_disk::RealDisk;
use steno_journal::{Level, Store};
use steno_server::http::{Api, ApiOptions, Defences, Limits, new_token, serve};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long the client waits for anything. A server that takes longer has failed the test.
const PATIENCE: Duration = Duration::from_mins(1);

/// A server that ends with the test.
pub struct Served {
    pub dir: tempfile::TempDir,
    pub port: u16,
    pub token: String,
    pub api: Arc<Api>,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub fn open_store(dir: &tempfile::TempDir) -> Store {
    Store::create(Arc::new(RealDisk::create(dir.path()).unwrap())).unwrap()
}

impl Served {
    pub fn start() -> Self {
        Self::with(Defences::default(), Limits::default())
    }

    pub fn with(defences: Defences, limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = open_store(&dir);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let (port, token) = (listener.local_addr().unwrap().port(), new_token());
        let options = ApiOptions { port, token: token.clone(), level: Level::Written, limits, defences };
        let api = Api::new(store, options);
        let (stop, stopped) = watch::channel(false);
        let served = Arc::clone(&api);
        let thread = std::thread::spawn(move || runtime.block_on(serve(listener, served, stopped)));
        Self { dir, port, token, api, stop, thread: Some(thread) }
    }

    /// Ends the server, and waits until it has.
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

    /// Sends a request as it is, and reads the answer to its end.
    pub fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut BufReader::new(stream))
    }

    /// Asks as whoever has the token does.
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

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.send(true).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Writes a request down.
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
