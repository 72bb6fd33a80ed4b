//! The HTTP proxy: what passes it stays as it is, and is recorded.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use steno_capture::http_proxy::BODY_BYTES_MAX;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};

use crate::http_kit::{
    ProxyUnderTest, answering, header, post, read_chunk, read_head, read_request, server, whole,
};

fn parsed(records: &[String]) -> Vec<Value> {
    records.iter().map(|record| serde_json::from_str(record).unwrap()).collect()
}

fn kinds(records: &[Value]) -> Vec<&str> {
    records.iter().map(|record| record["http"].as_str().unwrap()).collect()
}

#[test]
fn whole_answer_passes_and_is_recorded() {
    let port =
        answering(whole("200 OK", "content-type: application/json\r\nX-Odd-Case: 1\r\n", b"{\"id\": 1.50}"));
    let proxy = ProxyUnderTest::to(port);
    let answer = proxy.ask(&post(
        "/v1/messages?beta=true&key=k",
        "user-agent: claude-cli/2.1.0 (x)\r\n",
        r#"{"model": "m"}"#,
    ));
    let answer = String::from_utf8(answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n{\"id\": 1.50}"),
        "{answer}"
    );
    assert!(answer.contains("\r\nX-Odd-Case: 1\r\n"), "{answer}");
    let records = proxy.records();
    let want = [
        concat!(
            r#"{"http":"request","exchange":1,"method":"POST","path":"/v1/messages","query":["beta"],"query_omitted":1,"#,
            r#""headers":{"content_length":"14","user_agent":"claude-cli/2.1.0"},"bytes":14,"body":{"model": "m"}}"#
        ),
        r#"{"http":"response","exchange":1,"status":200,"headers":{"content_length":"12","content_type":"application/json"}}"#,
        r#"{"http":"body","exchange":1,"body":{"id": 1.50}}"#,
        r#"{"http":"end","exchange":1,"outcome":"complete","bytes":12}"#,
    ];
    assert_eq!(records, want);
}

#[test]
fn each_piece_of_a_stream_is_passed_on_before_the_next_is_sent() {
    let (go, wait) = channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let port = server(move |mut stream| {
        let Some(_) = read_request(&mut stream) else { return };
        stream
            .write_all(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
            )
            .unwrap();
        for piece in ["event: a\ndata: {\"n\":1}\n\n", "data: {\"n\"", ":2}\n\ndata: [DONE]\n\n"] {
            stream.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes()).unwrap();
            // The client has this piece before the next one is sent.
            wait.lock().unwrap().recv().unwrap();
        }
        stream.write_all(b"0\r\n\r\n").unwrap();
    });
    let proxy = ProxyUnderTest::to(port);
    let mut client = proxy.connect();
    client.write_all(&post("/v1/chat/completions", "", "{}")).unwrap();
    assert!(read_head(&mut client).unwrap().starts_with("HTTP/1.1 200"));
    for piece in ["event: a\ndata: {\"n\":1}\n\n", "data: {\"n\"", ":2}\n\ndata: [DONE]\n\n"] {
        assert_eq!(String::from_utf8(read_chunk(&mut client)).unwrap(), piece);
        go.send(()).unwrap();
    }
    assert!(read_chunk(&mut client).is_empty());
    let records = proxy.records();
    assert_eq!(
        records[2..5],
        [
            r#"{"http":"event","exchange":1,"event":"a","data":{"n":1}}"#,
            r#"{"http":"event","exchange":1,"data":{"n":2}}"#,
            r#"{"http":"event","exchange":1,"text":"[DONE]"}"#,
        ]
    );
}

#[test]
fn connection_is_used_again_for_the_next_request() {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let port = server(move |mut stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        while read_request(&mut stream).is_some() {
            stream.write_all(&whole("200 OK", "", b"ok")).unwrap();
        }
    });
    let proxy = ProxyUnderTest::to(port);
    let mut client = proxy.connect();
    for _ in 0..3 {
        client.write_all(b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
        let head = read_head(&mut client).unwrap();
        let mut body = vec![0; header(&head, "content-length").unwrap().parse().unwrap()];
        client.read_exact(&mut body).unwrap();
        assert_eq!(body, b"ok");
    }
    drop(client);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    // Of other requests than model calls no body is recorded.
    let records = parsed(&proxy.records());
    assert_eq!(kinds(&records), ["request", "response", "end"].repeat(3));
}

#[test]
fn answer_of_an_old_server_has_the_version_of_the_proxy() {
    let port = answering(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec());
    let proxy = ProxyUnderTest::to(port);
    let answer = String::from_utf8(proxy.ask(&post("/v1/messages", "", "{}"))).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("ok"), "{answer}");
}

#[test]
fn requests_for_other_servers_are_refused() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let port = server(move |mut stream| {
        while read_request(&mut stream).is_some() {
            counted.fetch_add(1, Ordering::SeqCst);
            stream.write_all(&whole("200 OK", "", b"")).unwrap();
        }
    });
    let proxy = ProxyUnderTest::to(port);
    for (request, status) in [
        ("GET http://example.com/ HTTP/1.1\r\nhost: example.com\r\nconnection: close\r\n\r\n", "400"),
        ("CONNECT example.com:443 HTTP/1.1\r\nhost: example.com:443\r\nconnection: close\r\n\r\n", "405"),
        ("GET / HTTP/1.1\r\nhost: evil.com\r\nconnection: close\r\n\r\n", "421"),
        ("GET / HTTP/1.1\r\nhost: localhost\r\nhost: evil.com\r\nconnection: close\r\n\r\n", "421"),
        ("GET / HTTP/1.1\r\nconnection: close\r\n\r\n", "421"),
    ] {
        let answer = String::from_utf8(proxy.ask(request.as_bytes())).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{request}: {answer}");
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    assert!(proxy.records().is_empty());
}

#[test]
fn client_that_leaves_cancels_the_request() {
    let (told, gone) = channel::<()>();
    let port = server(move |mut stream| {
        let Some(_) = read_request(&mut stream) else { return };
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {}\n\n").unwrap();
        // The end of the connection.
        let mut rest = [0];
        assert_eq!(stream.read(&mut rest).unwrap_or(0), 0);
        told.send(()).unwrap();
    });
    let proxy = ProxyUnderTest::to(port);
    let mut client = proxy.connect();
    client.write_all(&post("/v1/messages", "", "{}")).unwrap();
    read_head(&mut client).unwrap();
    read_chunk(&mut client);
    drop(client);
    gone.recv_timeout(std::time::Duration::from_mins(1)).unwrap();
    let records = parsed(&proxy.records());
    assert_eq!(records.last().unwrap()["outcome"], "abandoned");
}

#[test]
fn upstream_that_cannot_be_reached_is_an_answer() {
    // Nobody listens on a port that was just given back.
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let proxy = ProxyUnderTest::to(port);
    let answer = String::from_utf8(proxy.ask(&post("/v1/messages", "", r#"{"model": "m"}"#))).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("no answer from the upstream"),
        "{answer}"
    );
    let records = parsed(&proxy.records());
    assert_eq!(
        (kinds(&records), &records[1]["outcome"]),
        (vec!["request", "end"], &Value::from("no_response"))
    );
    let (request, bytes) = (&records[0], &Value::from(14));
    assert_eq!(
        (request["body"]["model"].as_str(), &request["bytes"], &request["cut"]),
        (Some("m"), bytes, &Value::Null)
    );
}

#[test]
fn answer_that_breaks_off_is_recorded_as_cut() {
    let port = server(|mut stream| {
        let Some(_) = read_request(&mut stream) else { return };
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}9\r\ndata: {{}}\n\r\n").as_bytes()).unwrap();
    });
    let proxy = ProxyUnderTest::to(port);
    proxy.ask(&post("/v1/messages", "", "{}"));
    let records = parsed(&proxy.records());
    assert_eq!(kinds(&records), ["request", "response", "event", "end"]);
    assert_eq!((&records[2]["cut"], &records[3]["outcome"]), (&Value::from(true), &Value::from("cut")));
}

#[test]
fn compressed_answer_passes_unchanged_and_is_recorded_decoded() {
    let mut packed = flate2_gzip(b"data: {\"n\":1}\n\n");
    let port =
        answering(whole("200 OK", "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n", &packed));
    let proxy = ProxyUnderTest::to(port);
    let answer = proxy.ask(&post("/v1/messages", "accept-encoding: gzip\r\n", "{}"));
    assert!(answer.ends_with(&packed));
    packed.clear();
    let records = proxy.records();
    assert_eq!(records[2], r#"{"http":"event","exchange":1,"data":{"n":1}}"#);
}

/// `printf 'data: {"n":1}\n\n' | gzip -n`, stored without compression so that no library is needed.
fn flate2_gzip(text: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    let len = u16::try_from(text.len()).unwrap();
    out.extend(len.to_le_bytes());
    out.extend((!len).to_le_bytes());
    out.extend(text);
    out.extend(crc32(text).to_le_bytes());
    out.extend(u32::from(len).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    })
}

#[test]
fn large_bodies_pass_both_ways_and_are_only_counted() {
    let size = BODY_BYTES_MAX + 1;
    let port = server(move |mut stream| {
        while let Some(request) = read_request(&mut stream) {
            stream.write_all(&whole("200 OK", "content-type: application/json\r\n", &request.body)).unwrap();
        }
    });
    let proxy = ProxyUnderTest::to(port);
    let body = "x".repeat(size);
    let answer = proxy.ask(&post("/v1/messages", "", &body));
    assert!(answer.ends_with(body.as_bytes()));
    let records = parsed(&proxy.records());
    assert_eq!(
        (&records[0]["omitted"], &records[0]["bytes"]),
        (&Value::from("too_large"), &Value::from(size))
    );
    assert_eq!(
        (&records[2]["omitted"], &records[3]["bytes"]),
        (&Value::from("too_large"), &Value::from(size))
    );
}

#[test]
fn upgraded_connection_is_a_tunnel() {
    let port = server(|mut stream| {
        let request = read_request(&mut stream).unwrap();
        assert_eq!(header(&request.head, "upgrade"), Some("websocket"));
        stream
            .write_all(
                b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
            )
            .unwrap();
        let mut said = [0; 5];
        stream.read_exact(&mut said).unwrap();
        stream.write_all(&said.map(|byte| byte.to_ascii_uppercase())).unwrap();
    });
    let proxy = ProxyUnderTest::to(port);
    let mut client = proxy.connect();
    client
        .write_all(b"GET /v1/responses HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n")
        .unwrap();
    assert!(read_head(&mut client).unwrap().starts_with("HTTP/1.1 101 "));
    client.write_all(b"hello").unwrap();
    let mut heard = [0; 5];
    client.read_exact(&mut heard).unwrap();
    assert_eq!(&heard, b"HELLO");
    drop(client);
    let records = parsed(&proxy.records());
    assert_eq!(
        (kinds(&records), &records[1]["upgrade"]),
        (vec!["request", "response", "end"], &Value::from(true))
    );
}

/// A certificate authority of its own, and a server whose certificate it signed for a name.
fn tls_server(name: &str, answer: Vec<u8>) -> (u16, tempfile::TempDir, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::from_params(&params, &key);
    let server_key = KeyPair::generate().unwrap();
    let signed =
        CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&server_key, &issuer).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![signed.der().clone()],
            PrivateKeyDer::from(PrivatePkcs8KeyDer::from(server_key.serialize_der())),
        )
        .unwrap();
    let config = Arc::new(config);
    let port = server(move |stream: TcpStream| {
        let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = StreamOwned::new(connection, stream);
        while read_request(&mut stream).is_some() {
            stream.write_all(&answer).unwrap();
            stream.flush().unwrap();
        }
    });
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.pem");
    std::fs::write(&path, authority.pem()).unwrap();
    (port, dir, path)
}

#[test]
fn upstream_behind_tls_is_reached_with_its_own_authority() {
    let answer = whole("200 OK", "content-type: application/json\r\n", b"{}");
    let (port, _dir, ca) = tls_server("localhost", answer.clone());
    let proxy = ProxyUnderTest::start(&format!("https://localhost:{port}"), Some(&ca));
    let heard = String::from_utf8(proxy.ask(&post("/v1/messages", "", "{}"))).unwrap();
    assert!(heard.starts_with("HTTP/1.1 200 ") && heard.ends_with("{}"), "{heard}");
    assert_eq!(proxy.records().len(), 4);
    // The certificate is for another name.
    let (other_port, _other_dir, other_ca) = tls_server("example.com", answer);
    let proxy = ProxyUnderTest::start(&format!("https://localhost:{other_port}"), Some(&other_ca));
    let heard = String::from_utf8(proxy.ask(&post("/v1/messages", "", "{}"))).unwrap();
    assert!(heard.starts_with("HTTP/1.1 502 "), "{heard}");
    // The authority is not trusted.
    let proxy = ProxyUnderTest::start(&format!("https://localhost:{port}"), Some(&other_ca));
    let heard = String::from_utf8(proxy.ask(&post("/v1/messages", "", "{}"))).unwrap();
    assert!(heard.starts_with("HTTP/1.1 502 "), "{heard}");
}
