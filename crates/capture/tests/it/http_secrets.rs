//! Canaries: a text in every place of a request and an answer where a credential can be, and none in a record.

use std::io::Write as _;

use crate::http_kit::{ProxyUnderTest, post, read_request, server, whole};

/// What every canary begins with.
const CANARY: &str = "canary-7f3a91d2";

/// Headers with something that must not be recorded after their name.
const HEADERS: [&str; 16] = [
    "authorization: Bearer ",
    "proxy-authorization: Basic ",
    "x-api-key: ",
    "api-key: ",
    "x-goog-api-key: ",
    "cookie: session=",
    "set-cookie: session=",
    "x-custom: ",
    "anthropic-organization-id: ",
    "openai-organization: ",
    "location: https://example.com/?token=",
    "user-agent: ",
    "x-request-id: ",
    "session-id: ",
    "retry-after: ",
    "referer: ",
];

/// A canary of its own for each place, so that one that is removed does not hide another.
fn canary(place: &str) -> String {
    let place: String = place.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{CANARY}-{place}-")
}

/// Headers with canaries. `side` is who sends them.
fn headers(side: &str) -> String {
    HEADERS.map(|name| format!("{name}{}\r\n", canary(&format!("{side}{name}")))).concat()
}

fn request() -> Vec<u8> {
    let query = format!(
        "key={}&{}&alt={}&customer={}",
        canary("key"),
        canary("bare"),
        canary("alt"),
        canary("customer")
    );
    post(&format!("/v1/messages?{query}"), &headers("request"), r#"{"model":"m"}"#)
}

/// The canaries in a text.
fn canaries_in(text: &str) -> Vec<&str> {
    let end = |rest: &str| {
        rest.find(|letter: char| !letter.is_alphanumeric() && letter != '-').unwrap_or(rest.len())
    };
    text.match_indices(CANARY).map(|(at, _)| &text[at..at + end(&text[at..])]).collect()
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

/// Fails if a canary is recorded.
#[track_caller]
fn check_absent(records: &str, when: &str) {
    assert_eq!(canaries_in(records), [""; 0], "{when}: {records}");
}

#[test]
fn headers_and_queries_are_not_recorded() {
    let records = records_of(|_| whole("200 OK", &headers("answer"), b"{}"), &request());
    check_absent(&records, "ordinary");
    assert!(records.contains(r#""query":["alt"],"query_omitted":3"#), "{records}");
}

#[test]
fn trailers_are_not_recorded() {
    let answer = |_: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntrailer: x-late\r\ntransfer-encoding: chunked\r\n";
        let (early, late) = (canary("answer early"), canary("answer late"));
        format!("{head}x-early: {early}\r\n\r\na\r\ndata: {{}}\n\n\r\n0\r\nx-late: {late}\r\n\r\n")
            .into_bytes()
    };
    let records = records_of(answer, &request_with_trailer());
    assert!(records.contains(r#""body":{"model":"m"}"#), "{records}");
    check_absent(&records, "trailers");
}

/// A request that is sent in chunks, with a trailer.
fn request_with_trailer() -> Vec<u8> {
    let (early, late) = (canary("request early"), canary("request late"));
    let body = format!("d\r\n{{\"model\":\"m\"}}\r\n0\r\nx-late: {late}\r\n\r\n");
    let head = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close, te\r\nte: trailers\r\ntrailer: x-late\r\n";
    format!("{head}transfer-encoding: chunked\r\nx-early: {early}\r\n\r\n{body}").into_bytes()
}

#[test]
fn error_that_repeats_trailers_is_recorded_without_them() {
    let answer = |head: &str| {
        let (early, late) = (canary("answer early"), canary("answer late"));
        let seen = format!("{head}{}{early}{late}", canary("request late"));
        let body = serde_json::json!({"error": {"message": seen}}).to_string();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntrailer: x-late\r\ntransfer-encoding: chunked\r\n";
        let len = body.len();
        format!("{head}x-early: {early}\r\n\r\n{len:x}\r\n{body}\r\n0\r\nx-late: {late}\r\n\r\n").into_bytes()
    };
    let records = records_of(answer, &request_with_trailer());
    assert!(records.contains("[removed]"), "{records}");
    check_absent(&records, "trailers in an error");
}

/// Every way in which a server reports an error; each repeats a text.
fn errors(text: &str) -> Vec<(&'static str, Vec<u8>)> {
    let line = text.replace("\r\n", " ");
    let error = serde_json::json!({"message": text});
    let object = serde_json::json!({"error": error}).to_string();
    let answered = headers("answer");
    let json = |status: &str, body: &str| {
        whole(status, &format!("{answered}content-type: application/json\r\n"), body.as_bytes())
    };
    let html = |status: &str| {
        whole(status, &format!("{answered}content-type: text/html\r\n"), format!("<pre>{text}").as_bytes())
    };
    let events = |body: &str| {
        let before = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
        whole(
            "200 OK",
            &format!("{answered}content-type: text/event-stream\r\n"),
            format!("{before}{body}").as_bytes(),
        )
    };
    vec![
        ("status 401", json("401 Unauthorized", &object)),
        ("status 500", html("500 Oops")),
        ("a redirection", html("307 Elsewhere")),
        ("a body with an error", json("200 OK", &object)),
        (
            "a body on many lines",
            json("200 OK", &serde_json::to_string_pretty(&serde_json::json!({"error": error})).unwrap()),
        ),
        (
            "a body of the type error",
            json("200 OK", &serde_json::json!({"type": "error", "message": text}).to_string()),
        ),
        ("a list with an error", json("200 OK", &format!("[{{}},{object}]"))),
        ("an event of the type error", events(&format!("event: error\ndata: {object}\n\n"))),
        ("an error as text", events(&format!("event: error\ndata: {line}\n\n"))),
        ("an event with an error", events(&format!("data: {object}\n\n"))),
        ("an event in many lines", events(&format!("data: {{\"error\":\ndata: {error}}}\n\n"))),
        (
            "an event that failed",
            events(&format!("data: {{\"type\":\"response.failed\",\"response\":{object}}}\n\n")),
        ),
        ("an event that is cut", events(&format!("data: {}\n", &object[..object.len() - 2]))),
    ]
}

#[test]
fn error_that_repeats_the_request_is_recorded_without_its_values() {
    for number in 0..errors("").len() {
        let name = errors("")[number].0;
        let repeat = move |head: &str| {
            // Its own headers too.
            let head = format!("{head}{}", headers("answer"));
            errors(&head).swap_remove(number).1
        };
        let records = records_of(repeat, &request());
        assert!(records.contains("[removed]"), "{name}: {records}");
        check_absent(&records, name);
    }
}

#[test]
fn ordinary_answer_loses_credentials_and_keeps_other_values() {
    let repeat = |head: &str| {
        let body = serde_json::json!({"text": head, "error": null}).to_string();
        whole("200 OK", "content-type: text/event-stream\r\n", format!("data: {body}\n\n").as_bytes())
    };
    let records = records_of(repeat, &request());
    let credentials = ["authorization", "key", "cookie"];
    let kept: Vec<String> = HEADERS.iter().map(|name| canary(&format!("request{name}"))).collect();
    let kept: Vec<&String> = kept.iter().filter(|canary| records.contains(canary.as_str())).collect();
    assert_eq!(kept.len(), HEADERS.len() - 7, "{kept:?}");
    let is_credential = |canary: &&&String| credentials.iter().any(|name| canary.contains(name));
    assert_eq!(kept.iter().find(is_credential), None);
    assert!(!records.contains(&canary("key")) && records.contains(&canary("customer")), "{records}");
}

#[test]
fn failure_to_reach_the_upstream_is_recorded_without_credentials() {
    let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
    let proxy = ProxyUnderTest::to(port);
    proxy.ask(&request());
    let records = proxy.records().join("\n");
    assert!(records.contains("no_response"), "{records}");
    check_absent(&records, "no upstream");
}
