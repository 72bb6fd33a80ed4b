//! A server and a client that write HTTP byte by byte, and the proxy between them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use steno_capture::http_proxy::{HttpProxy, Upstream, http_tap, serve};
use tokio::sync::watch;

/// How long a test waits for bytes that must come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A stream of either kind.
pub trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// A request as the server got it.
pub struct ServerRequest {
    pub head: String,
    pub body: Vec<u8>,
}

/// Reads a request, or `None` at the end of the connection.
pub fn read_request(stream: &mut dyn Stream) -> Option<ServerRequest> {
    let head = read_head(stream)?;
    let body = read_body(&head, stream);
    Some(ServerRequest { head, body })
}

/// Reads up to the empty line.
pub fn read_head(stream: &mut dyn Stream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    Some(String::from_utf8(head).unwrap())
}

/// Returns the value of a header.
pub fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(':'));
    lines.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn read_body(head: &str, stream: &mut dyn Stream) -> Vec<u8> {
    if header(head, "transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        return read_chunked(stream);
    }
    let len = header(head, "content-length").map_or(0, |len| len.parse().unwrap());
    let mut body = vec![0; len];
    stream.read_exact(&mut body).unwrap();
    body
}

fn read_chunked(stream: &mut dyn Stream) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let piece = read_chunk(stream);
        if piece.is_empty() {
            while !read_line(stream).is_empty() {}
            return body;
        }
        body.extend(piece);
    }
}

/// Reads one chunk; the last is empty.
pub fn read_chunk(stream: &mut dyn Stream) -> Vec<u8> {
    let size = usize::from_str_radix(read_line(stream).split(';').next().unwrap(), 16).unwrap();
    let mut piece = vec![0; size];
    stream.read_exact(&mut piece).unwrap();
    if size > 0 {
        read_line(stream);
    }
    piece
}

/// Reads a line without its end.
pub fn read_line(stream: &mut dyn Stream) -> String {
    let (mut line, mut byte) = (Vec::new(), [0]);
    while !line.ends_with(b"\r\n") {
        stream.read_exact(&mut byte).unwrap();
        line.push(byte[0]);
    }
    line.truncate(line.len() - 2);
    String::from_utf8(line).unwrap()
}

/// Starts a server; each connection is handled in a thread of its own.
pub fn server(handle: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let handle = Arc::new(handle);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let handle = Arc::clone(&handle);
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            std::thread::spawn(move || handle(stream));
        }
    });
    port
}

/// Starts a server that answers every request with the same bytes.
pub fn answering(answer: impl Into<Vec<u8>>) -> u16 {
    let answer = answer.into();
    server(move |mut stream| {
        while read_request(&mut stream).is_some() {
            stream.write_all(&answer).unwrap();
        }
    })
}

/// Returns a whole answer.
pub fn whole(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// The proxy in a thread, with what it recorded.
pub struct ProxyUnderTest {
    pub port: u16,
    stop: watch::Sender<bool>,
    serving: JoinHandle<()>,
    records: JoinHandle<Vec<String>>,
}

impl ProxyUnderTest {
    pub fn to(port: u16) -> Self {
        Self::start(&format!("http://127.0.0.1:{port}"), None)
    }

    pub fn start(upstream: &str, ca: Option<&Path>) -> Self {
        let (tap, messages) = http_tap();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = HttpProxy::new(Upstream::parse(upstream).unwrap(), ca, tap).unwrap();
        let (stop, stopped) = watch::channel(false);
        let serving = std::thread::spawn(move || {
            runtime.block_on(async {
                serve(tokio::net::TcpListener::from_std(listener).unwrap(), Arc::new(proxy), stopped).await;
            });
            runtime.shutdown_timeout(Duration::from_secs(1));
        });
        let records =
            std::thread::spawn(move || messages.map(|message| message.record.as_str().to_owned()).collect());
        Self { port, stop, serving, records }
    }

    /// Opens a connection.
    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Sends a request on a connection of its own, and returns the whole answer.
    pub fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(request).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        stream.shutdown(Shutdown::Both).ok();
        answer
    }

    /// Stops the proxy, and returns its records.
    pub fn records(self) -> Vec<String> {
        self.stop.send(true).unwrap();
        self.serving.join().unwrap();
        self.records.join().unwrap()
    }
}

/// Returns a request that closes its connection.
pub fn post(path: &str, headers: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {len}\r\n{headers}\r\n{body}"
    )
    .into_bytes()
}
