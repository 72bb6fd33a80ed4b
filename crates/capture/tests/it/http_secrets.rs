//! Canaries: a text in every place of a request and an answer where a credential can be, and none in a record.

use std::io::Write as _;

use crate::http_kit::{ProxyUnderTest, post, read_request, server, whole};

const CANARY: &str = "canary-7f3a91d2";

/// Headers with a canary, for requests and answers.
fn headers() -> String {
    let names = [
        "authorization: Bearer",
        "proxy-authorization: Basic",
        "x-api-key:",
        "api-key:",
        "x-goog-api-key:",
        "cookie: session=",
        "set-cookie: session=",
        "x-custom:",
        "anthropic-organization-id:",
        "openai-organization:",
        "location: https://example.com/?token=",
        "user-agent:",
        "x-request-id:",
        "session-id:",
        "retry-after:",
        "referer:",
    ];
    names.map(|name| format!("{name} {CANARY}\r\n")).concat()
}

/// Asks a server that answers in one way, and returns all records.
fn records_of(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static, request: &[u8]) -> String {
    let port = server(move |mut stream| {
        while let Some(request) = read_request(&mut stream) {
            // The client did send what must not be recorded.
            assert!(request.head.contains(CANARY), "{}", request.head);
            stream.write_all(&answer(&request.head)).unwrap();
        }
    });
    let proxy = ProxyUnderTest::to(port);
    let answer = proxy.ask(request);
    assert!(String::from_utf8_lossy(&answer).contains(CANARY), "the client gets everything");
    proxy.records().join("\n")
}

fn request() -> Vec<u8> {
    post(&format!("/v1/messages?key={CANARY}&{CANARY}&alt={CANARY}"), &headers(), r#"{"model":"m"}"#)
}

#[test]
fn headers_and_queries_are_not_recorded() {
    let records = records_of(|_| whole("200 OK", &headers(), b"{}"), &request());
    assert!(!records.contains(CANARY), "{records}");
    assert!(records.contains(r#""query":["alt"],"query_omitted":2"#), "{records}");
}

#[test]
fn trailers_are_not_recorded() {
    let answer = |_: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntrailer: x-late\r\ntransfer-encoding: chunked\r\n";
        format!("{head}x-early: {CANARY}\r\n\r\na\r\ndata: {{}}\n\n\r\n0\r\nx-late: {CANARY}\r\n\r\n")
            .into_bytes()
    };
    let body = format!("d\r\n{{\"model\":\"m\"}}\r\n0\r\nx-late: {CANARY}\r\n\r\n");
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close, te\r\nte: trailers\r\ntrailer: x-late\r\n";
    let request = format!("{head}transfer-encoding: chunked\r\nx-early: {CANARY}\r\n\r\n{body}");
    let records = records_of(answer, request.as_bytes());
    assert!(records.contains(r#""body":{"model":"m"}"#) && !records.contains(CANARY), "{records}");
}

#[test]
fn error_that_repeats_a_credential_is_recorded_without_it() {
    // A server that repeats the whole request.
    let repeat = |head: &str| {
        let text = serde_json::json!({"error": {"message": format!("refused: {head}")}}).to_string();
        whole("401 Unauthorized", "content-type: application/json\r\n", text.as_bytes())
    };
    let records = records_of(repeat, &request());
    assert!(records.contains("[removed]") && !records.contains(CANARY), "{records}");
    let repeat =
        |head: &str| whole("500 Oops", "content-type: text/html\r\n", format!("<pre>{head}").as_bytes());
    let records = records_of(repeat, &request());
    assert!(records.contains("[removed]") && !records.contains(CANARY), "{records}");
}

#[test]
fn answer_that_repeats_a_credential_is_recorded_without_it() {
    let repeat = |_: &str| {
        let body = format!("data: {{\"text\":\"your key is {CANARY}\"}}\n\n");
        whole("200 OK", "content-type: text/event-stream\r\n", body.as_bytes())
    };
    let records = records_of(repeat, &request());
    assert!(records.contains("your key is [removed]") && !records.contains(CANARY), "{records}");
}

#[test]
fn failure_to_reach_the_upstream_is_recorded_without_credentials() {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let proxy = ProxyUnderTest::to(port);
    proxy.ask(&request());
    let records = proxy.records().join("\n");
    assert!(records.contains("no_response") && !records.contains(CANARY), "{records}");
}
