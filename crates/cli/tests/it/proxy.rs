//! `steno proxy`: programs talk to their model as usual, and what they say becomes runs.

use std::fs;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned, crypto};

use crate::kit::{CommandOutput, RunningSteno, Steno, wait_until};
use crate::privacy::scan::places_of;

const PATIENCE: Duration = Duration::from_mins(1);
const SESSION: &str = "1698de89-1035-4c5a-9dee-db2cee51cfde";

/// The proxy, and its port.
pub struct RunningProxy {
    pub steno: RunningSteno,
    pub port: u16,
}

impl RunningProxy {
    pub fn start(steno: &Steno, upstream: &str, more: &[&str]) -> Self {
        let args: Vec<&str> =
            ["proxy", "--upstream", upstream, "--port", "0", "--json"].iter().chain(more).copied().collect();
        let mut running = steno.start(&args);
        let said: Value = serde_json::from_str(&running.line()).unwrap();
        let port = said["url"].as_str().unwrap().rsplit_once(':').unwrap().1.parse().unwrap();
        Self { steno: running, port }
    }

    /// Sends a request, and returns the status and the body of the answer.
    pub fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, String) {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let headers: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let headers = headers.concat();
        let body = body.to_string();
        let len = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}");
        stream.write_all(format!("{head}content-length: {len}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
        (status, if is_chunked { unchunked(body) } else { body.to_owned() })
    }

    /// Stops the proxy.
    pub fn stop(self) -> CommandOutput {
        self.steno.signal("INT");
        self.steno.ended()
    }
}

fn unchunked(mut body: &str) -> String {
    let mut out = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        out.push_str(&rest[..size]);
        body = &rest[size + 2..];
    }
    out
}

/// Starts a server that answers with what a function returns for the body of a request: a status and a body.
fn model(answer: impl Fn(&str, &Value) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                while let Some((head, body)) = read_request(&mut stream) {
                    let body = serde_json::from_str(&body).unwrap_or_default();
                    let (status, text) = answer(&head, &body);
                    let len = text.len();
                    let kind = if text.starts_with("event:") || text.starts_with("data:") {
                        "text/event-stream"
                    } else {
                        "application/json"
                    };
                    let head = format!(
                        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len}\r\n\r\n"
                    );
                    if stream.write_all(format!("{head}{text}").as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn read_request(stream: &mut impl Read) -> Option<(String, String)> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let len = head.to_ascii_lowercase();
    let len = len
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |len| len.trim().parse().unwrap());
    let mut body = vec![0; len];
    stream.read_exact(&mut body).unwrap();
    Some((head, String::from_utf8(body).unwrap()))
}

/// Starts a server behind TLS that gives one answer, and writes the certificate of its authority to a file.
fn tls_model(ca: &Path, answer: String) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    fs::write(ca, params.self_signed(&key).unwrap().pem()).unwrap();
    let (issuer, server_key) = (Issuer::from_params(&params, &key), KeyPair::generate().unwrap());
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&server_key, &issuer).unwrap();
    let server_key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(server_key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], server_key);
    let config = Arc::new(config.unwrap());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            // A client that does not trust the server sends no request.
            if read_request(&mut stream).is_some() {
                let len = answer.len();
                let answer = format!("{head}content-length: {len}\r\n\r\n{answer}");
                stream.write_all(answer.as_bytes()).and_then(|()| stream.flush()).unwrap();
            }
        }
    });
    format!("https://localhost:{port}")
}

fn message(id: &str, content: &Value, stop: &str) -> String {
    json!({"id": id, "type": "message", "role": "assistant", "model": "m-1", "content": content, "stop_reason": stop,
        "usage": {"input_tokens": 5, "output_tokens": 3}})
    .to_string()
}

/// A model that makes one call and then says what came of it.
fn one_call() -> String {
    model(|_, body| {
        let is_answered = body["messages"].to_string().contains("tool_result");
        let call = json!([{"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]);
        let answer = if is_answered {
            message("msg_2", &json!([{"type": "text", "text": "One file."}]), "end_turn")
        } else {
            message("msg_1", &call, "tool_use")
        };
        (200, answer)
    })
}

fn request(session: &str, prompt: &str, is_answered: bool) -> Value {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    if is_answered {
        let call = json!({"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}});
        messages.push(json!({"role": "assistant", "content": [call]}));
        let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "a.txt"});
        messages.push(json!({"role": "user", "content": [result]}));
    }
    let user_id = json!({"session_id": session}).to_string();
    json!({"model": "m-1", "system": "Be brief.", "tools": [{"name": "Bash"}], "messages": messages,
        "metadata": {"user_id": user_id}})
}

#[test]
fn calls_become_one_session_with_the_clients_id() {
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    for is_answered in [false, true] {
        let (status, _) = proxy.post("/v1/messages", &[], &request(SESSION, "List them.", is_answered));
        assert_eq!(status, 200);
    }
    let said = proxy.stop();
    assert_eq!((said.code, said.err.as_str()), (0, ""));
    let listed = steno.run(&["ls", "--json"]).json();
    assert_eq!((listed.len(), &listed[0]["run_id"]), (1, &json!(SESSION)), "{listed:?}");
    let shown = steno.run(&["show", SESSION, "-t", "4"]);
    for text in ["Be brief.", "│ List them.", "▸ $ ls", "a.txt", "One file."] {
        assert_eq!(shown.out.matches(text).count(), 1, "{text} in {}", shown.out);
    }
    let used = steno.run(&["usage", "--json"]).json();
    assert_eq!((&used[0]["responses"], &used[0]["input_tokens"]), (&json!(2), &json!(10)));
    // The vault has the recording; its own file is gone.
    assert_eq!(fs::read_dir(steno.store().join("connections")).unwrap().count(), 0);
    assert_eq!(steno.run(&["verify"]).code, 0);
    let entries = steno.run(&["entries", SESSION]);
    assert!(entries.code == 0 && entries.out.contains("anthropic_http"), "{entries:?}");
}

#[test]
fn upstream_with_an_authority_of_its_own_needs_ca() {
    let steno = Steno::new();
    let [ca, other] = ["ca.pem", "other.pem"].map(|name| steno.dir.path().join(name));
    let answer = message("msg_1", &json!([{"type": "text", "text": "Trusted."}]), "end_turn");
    let upstream = tls_model(&ca, answer);
    tls_model(&other, String::new());
    for (file, status) in [(&ca, 200), (&other, 502)] {
        let proxy = RunningProxy::start(&steno, &upstream, &["--ca", file.to_str().unwrap()]);
        assert_eq!(proxy.post("/v1/messages", &[], &request(SESSION, "Who?", false)).0, status, "{file:?}");
        assert_eq!(proxy.stop().code, 0);
    }
    let shown = steno.run(&["show", SESSION]).out;
    assert_eq!(shown.matches("Trusted.").count(), 1, "{shown}");
    fs::write(&ca, "no certificate").unwrap();
    for file in [&ca, Path::new("absent.pem")] {
        let file = file.to_str().unwrap();
        let said = steno.run(&["proxy", "--upstream", &upstream, "--port", "0", "--ca", file]);
        assert!(said.code == 3 && said.err.contains(file), "{said:?}");
    }
}

#[test]
fn request_is_recorded_if_the_upstream_cannot_be_reached() {
    let steno = Steno::new();
    // Nobody listens on a port that was just given back.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let proxy = RunningProxy::start(&steno, &format!("http://127.0.0.1:{port}"), &[]);
    let key = format!("Bearer {CANARY}-unreached");
    let (status, _) = proxy.post(
        "/v1/messages",
        &[("authorization", &key)],
        &json!({"model": "m-1", "messages": [{"role": "user", "content": format!("Is {CANARY}-unreached there?")}]}),
    );
    assert_eq!(status, 502);
    proxy.stop();
    assert_eq!(steno.run(&["ls", "--json"]).json().len(), 1);
    let shown = steno.run(&["show", "last"]).out;
    assert!(
        shown.contains("Is [removed] there?") && shown.contains("no answer from the upstream"),
        "{shown}"
    );
    assert_eq!(places_of(&steno.store(), CANARY), [] as [String; 0]);
}

#[test]
fn malformed_request_does_not_join_the_session_of_another() {
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    proxy.post("/v1/messages", &[], &request(SESSION, "List them.", false));
    proxy.post("/v1/messages", &[], &json!(["no", "request"]));
    proxy.post("/v1/messages", &[("x-claude-code-session-id", SESSION)], &json!(["named"]));
    proxy.stop();
    let unknown = |run: &str| steno.run(&["show", run]).out.matches("1 record of unknown type").count();
    let listed = steno.run(&["ls", "--json"]).json();
    assert_eq!(listed.len(), 2, "{listed:?}");
    for session in &listed {
        assert_eq!(unknown(session["run_id"].as_str().unwrap()), 1, "{session}");
    }
}

#[test]
fn calls_are_listed_while_the_proxy_runs() {
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    proxy.post("/v1/messages", &[], &request(SESSION, "First.", false));
    wait_until("the first exchange is archived", || steno.run(&["ls"]).out.contains("First."));
    proxy.post("/v1/messages", &[], &request(SESSION, "First.", true));
    proxy.stop();
    let shown = steno.run(&["show", SESSION]).out;
    assert_eq!((shown.matches("│ First.").count(), shown.matches("One file.").count()), (1, 1), "{shown}");
    assert_eq!(steno.run(&["verify"]).code, 0);
}

#[test]
fn killed_proxy_loses_nothing_that_it_wrote() {
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    proxy.post("/v1/messages", &[], &request(SESSION, "Before the kill.", false));
    let connections = steno.store().join("connections");
    let recorded = || {
        let files =
            fs::read_dir(&connections).unwrap().map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
        files.into_iter().any(|text| text.contains(r#""http":"end""#))
    };
    wait_until("the exchange is recorded", recorded);
    proxy.steno.signal("KILL");
    drop(proxy);
    // The next command that archives files archives it too.
    assert_eq!(steno.run(&["import", steno.dir.path().to_str().unwrap()]).code, 0);
    assert!(steno.run(&["show", SESSION]).out.contains("Before the kill."));
    assert_eq!(fs::read_dir(&connections).unwrap().count(), 0);
}

#[test]
fn requests_pass_when_nothing_can_be_recorded() {
    let steno = Steno::new();
    fs::write(steno.store(), "not a directory").unwrap();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    let (status, body) = proxy.post("/v1/messages", &[], &request(SESSION, "Hello.", false));
    assert!(status == 200 && body.contains("toolu_1"));
    let said = proxy.stop();
    assert!(said.code == 0 && said.err.contains("NOTHING WAS RECORDED"), "{said:?}");
}

#[test]
fn upstream_with_a_password_is_refused_without_repeating_it() {
    let steno = Steno::new();
    let said = steno.run(&["proxy", "--upstream", "https://me:hunter2@example.com", "--port", "0"]);
    assert_eq!(said.code, 2);
    assert!(
        said.err.contains("must not contain a user name") && !said.err.contains("hunter2"),
        "{}",
        said.err
    );
}

/// What every text that must not be recorded begins with.
const CANARY: &str = "canary-51c07be9f2";

/// A server that repeats what it got: in an error of the kind that the prompt names, else the key in an answer.
fn repeating_model() -> String {
    model(|head, body| {
        let error =
            json!({"type": "authentication_error", "message": format!("no: {}", head.replace("\r\n", " "))});
        let body = body.to_string();
        if body.contains("fail") {
            (401, json!({"error": error}).to_string())
        } else if body.contains("error event") {
            (200, format!("event: error\ndata: {}\n\n", json!({"type": "error", "error": error})))
        } else if body.contains("error body") {
            (200, json!({"type": "error", "error": error}).to_string())
        } else {
            let text = format!("key {CANARY}-authorization");
            (200, message("msg_1", &json!([{"type": "text", "text": text}]), "end_turn"))
        }
    })
}

#[test]
fn no_credential_reaches_the_store_or_the_log() {
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &repeating_model(), &["--verbose"]);
    // Each place has a canary of its own: one that is removed must not hide another.
    let canary = |place: &str| format!("{CANARY}-{place}");
    let headers = [
        ("authorization", format!("Bearer {}", canary("authorization"))),
        ("x-api-key", canary("x-api-key")),
        ("x-goog-api-key", canary("goog")),
        ("cookie", format!("a={}; b=2", canary("cookie"))),
        ("user-agent", canary("agent")),
        ("x-custom", canary("custom")),
        ("referer", format!("https://example.com/{}", canary("referer"))),
        ("session-id", canary("session")),
    ];
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    for path in [
        "/v1/messages",
        "/v1/messages?key=",
        "/v1/messages?customer=",
        "/v1/oauth/token?",
        "/v1/responses?x=",
    ] {
        for prompt in ["Hello.", "fail", "error event", "error body"] {
            let path = match path.rsplit_once('?') {
                Some((_, name)) => {
                    format!("{path}{}", canary(&format!("query-{}", name.trim_end_matches('='))))
                }
                None => path.to_owned(),
            };
            let (_, body) = proxy.post(&path, &headers, &request(SESSION, prompt, false));
            assert!(body.contains(CANARY), "the client gets everything: {body}");
        }
    }
    let said = proxy.stop();
    assert!(!said.err.contains(CANARY) && !said.out.contains(CANARY), "{said:?}");
    assert_eq!(places_of(&steno.store(), CANARY), [] as [String; 0]);
    // The exchanges themselves were recorded.
    let shown = steno.run(&["show", SESSION]).out;
    assert!(shown.contains("key [removed]") && shown.contains("401 authentication_error"), "{shown}");
    // The search finds what is there.
    assert_ne!(places_of(&steno.store(), "authentication_error"), [] as [String; 0]);
}

#[test]
fn forgotten_session_goes_with_its_exchanges_and_others_stay() {
    let other = "2798de89-1035-4c5a-9dee-db2cee51cfde";
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    proxy.post("/v1/messages", &[], &request(SESSION, "secret-one", false));
    proxy.post("/v1/messages", &[], &request(other, "public-two", false));
    proxy.post(
        "/v1/messages",
        &[],
        &json!({"model": "m-1", "messages": [{"role": "user", "content": "secret-three"}]}),
    );
    proxy.stop();
    assert_eq!(steno.run(&["forget", SESSION, "--yes"]).code, 0);
    let unnamed = steno.run(&["ls", "--json"]).json();
    let unnamed =
        unnamed.iter().find(|run| run["name"] == "anthropic").unwrap()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(steno.run(&["forget", &unnamed, "--yes"]).code, 0);
    for text in ["secret-one", "secret-three", SESSION] {
        assert_eq!(places_of(&steno.store(), text), [] as [String; 0], "{text}");
    }
    assert!(steno.run(&["show", other]).out.contains("public-two"));
    assert_eq!(steno.run(&["verify"]).code, 0);
    // It is not recorded again.
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    proxy.post("/v1/messages", &[], &request(SESSION, "secret-one", false));
    let said = proxy.stop();
    assert!(said.err.contains("forwarded but not recorded"), "{}", said.err);
    assert_eq!(places_of(&steno.store(), "secret-one"), [] as [String; 0]);
}

#[test]
fn request_that_names_an_excluded_project_is_not_recorded() {
    let steno = Steno::new();
    let config = steno.dir.path().join("config.toml");
    fs::write(&config, "exclude_projects = [\"/src/secret\"]\n").unwrap();
    let config = config.to_str().unwrap().to_owned();
    let proxy = RunningProxy::start(&steno, &one_call(), &["--config", &config]);
    proxy.post("/v1/messages", &[], &request(SESSION, "Working directory: /src/secret/app", false));
    proxy.post("/v1/messages", &[], &request(SESSION, "Working directory: /src/public", false));
    proxy.stop();
    assert_eq!(places_of(&steno.store(), "/src/secret/app"), [] as [String; 0]);
    assert!(steno.run(&["show", SESSION]).out.contains("/src/public"));
}

#[test]
fn exchanges_during_a_pause_are_forwarded_and_counted() {
    let steno = Steno::new();
    let proxy = RunningProxy::start(&steno, &one_call(), &[]);
    assert_eq!(steno.run(&["pause"]).code, 0);
    let (status, _) = proxy.post("/v1/messages", &[], &request(SESSION, "unheard-words", false));
    assert_eq!(status, 200);
    assert_eq!(steno.run(&["resume"]).code, 0);
    proxy.post("/v1/messages", &[], &request(SESSION, "heard-words", false));
    let said = proxy.stop();
    assert!(said.err.contains("forwarded but not recorded"), "{}", said.err);
    assert_eq!(places_of(&steno.store(), "unheard-words"), [] as [String; 0]);
    assert!(steno.run(&["show", SESSION]).out.contains("heard-words"));
}
