//! The security table, row by row, for every route. A control shows what happens without each defence.

use steno_server::http::{Defences, Limits, ROUTES, Route};

use crate::test_server::{TestServer, request};

/// Returns a path of each route, and some other paths.
fn paths() -> Vec<(&'static str, String)> {
    let run = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";
    let fill = |route: &Route| {
        let path = route.path.replace("{run}", run).replace("{thread}", run).replace("{turn}", "turn-0001");
        assert!(!path.contains('{'), "{path} has a parameter without a value here");
        (route.method, path)
    };
    let others =
        ["/", "/v2", "/v1/runs/", "/v1/../v1/health", "/%2e%2e/etc/passwd", "/favicon.ico", "/login"];
    let others = others.into_iter().flat_map(|path| [("GET", path.to_owned()), ("POST", path.to_owned())]);
    ROUTES.iter().map(fill).chain(others).chain([("DELETE", "/v1/health".to_owned())]).collect()
}

/// Sends a valid request with some headers replaced.
fn with(served: &TestServer, method: &str, path: &str, host: &[&str], more: &[(&str, &str)]) -> u16 {
    let bearer = format!("Bearer {}", served.token);
    let mut headers: Vec<(&str, &str)> = host.iter().map(|host| ("Host", *host)).collect();
    headers.extend([
        ("Authorization", bearer.as_str()),
        ("Connection", "close"),
        ("Content-Type", "application/json"),
    ]);
    headers.extend_from_slice(more);
    let body = if method == "POST" { "{}" } else { "" };
    served.send(&request(method, path, &headers, body)).status
}

fn is_refused(status: u16) -> bool {
    (400..500).contains(&status) && status != 404 && status != 405
}

#[test]
fn foreign_host_is_refused_on_every_path() {
    let served = TestServer::start();
    let ours = format!("127.0.0.1:{}", served.port);
    let bad = [
        "evil.com",
        "localhost.evil.com",
        &format!("evil.com:{}", served.port),
        "127.0.0.1",
        "127.0.0.1:1",
        "",
    ];
    for (method, path) in paths() {
        for host in bad {
            assert!(is_refused(with(&served, method, &path, &[host], &[])), "{method} {path} at {host}");
        }
        assert!(is_refused(with(&served, method, &path, &[], &[])), "{method} {path} without a host");
        assert!(is_refused(with(&served, method, &path, &[&ours, &ours], &[])), "{method} {path} with two");
        assert!(
            is_refused(with(&served, method, &path, &[&ours, "evil.com"], &[])),
            "{method} {path} with two"
        );
        let absolute = format!("http://evil.com{path}");
        assert!(is_refused(with(&served, method, &absolute, &[&ours], &[])), "{method} {absolute}");
    }
    for host in [&ours, &format!("localhost:{}", served.port), &format!("[::1]:{}", served.port)] {
        assert_eq!(with(&served, "GET", "/v1/health", &[host], &[]), 200, "{host}");
    }
    let open = TestServer::with(Defences { host: false, ..Defences::default() }, Limits::default());
    assert_eq!(with(&open, "GET", "/v1/health", &["evil.com"], &[]), 200, "without the defence it succeeds");
}

#[test]
fn every_path_requires_the_token() {
    let served = TestServer::start();
    let host = format!("127.0.0.1:{}", served.port);
    let old = TestServer::start().token.clone();
    let shorter = served.token[..63].to_owned();
    for (method, path) in paths() {
        for token in [
            "",
            "Bearer ",
            "Bearer wrong",
            &format!("Bearer {old}"),
            &format!("Bearer {shorter}"),
            &format!("Basic {}", served.token),
            &served.token,
        ] {
            let mut headers =
                vec![("Host", host.as_str()), ("Connection", "close"), ("Content-Type", "application/json")];
            if !token.is_empty() {
                headers.push(("Authorization", token));
            }
            let answer = served.send(&request(method, &path, &headers, ""));
            assert_eq!(answer.status, 401, "{method} {path} with `{token}`: {answer:?}");
            assert!(!answer.head.contains(&served.token) && !answer.body.contains(&served.token));
        }
    }
    let bearer = format!("bearer {}", served.token);
    let headers = [("Host", host.as_str()), ("Connection", "close"), ("Authorization", &bearer)];
    assert_eq!(served.send(&request("GET", "/v1/health", &headers, "")).status, 200, "in any case");
    let open = TestServer::with(Defences { token: false, ..Defences::default() }, Limits::default());
    let host = format!("127.0.0.1:{}", open.port);
    let answer = open.send(&request("GET", "/v1/health", &[("Host", &host), ("Connection", "close")], ""));
    assert_eq!(answer.status, 200, "without the defence it succeeds");
}

#[test]
fn foreign_origin_is_refused_on_every_path() {
    let served = TestServer::start();
    let host = format!("127.0.0.1:{}", served.port);
    for (method, path) in paths() {
        for origin in [
            "http://evil.com",
            "null",
            "https://evil.com",
            &format!("https://{host}"),
            "http://127.0.0.1:1",
            "http://localhost",
        ] {
            assert_eq!(
                with(&served, method, &path, &[&host], &[("Origin", origin)]),
                403,
                "{method} {path} from {origin}"
            );
        }
    }
    let own = format!("http://{host}");
    assert_eq!(with(&served, "GET", "/v1/health", &[&host], &[("Origin", &own)]), 200);
    assert_eq!(
        with(&served, "GET", "/v1/health", &[&host], &[("Origin", &own), ("Origin", "http://evil.com")]),
        403
    );
    let answer = served.get("/v1/health");
    assert!(!answer.head.to_ascii_lowercase().contains("access-control"), "no other origin may read it");
    let open = TestServer::with(Defences { origin: false, ..Defences::default() }, Limits::default());
    let host = format!("127.0.0.1:{}", open.port);
    assert_eq!(with(&open, "GET", "/v1/health", &[&host], &[("Origin", "http://evil.com")]), 200);
}

/// Returns the cookie that a browser gets for a link.
fn cookie(served: &TestServer) -> String {
    let link = served.api.link();
    let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let answer =
        served.send(&request("GET", &format!("/{path}"), &[("Host", host), ("Connection", "close")], ""));
    let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

/// A form of another page is sent with the browser's cookie, and only with one of three content types.
#[test]
fn html_forms_are_refused() {
    const EVENT: &str = r#"{"type":"run.started","payload":{"name":"x","kind":"session"}}"#;
    let run = "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a90";
    let path = format!("/v1/runs/{run}/events");
    let post = |served: &TestServer, kind: &str, more: &[(&str, &str)]| {
        let host = format!("127.0.0.1:{}", served.port);
        let cookie = cookie(served);
        let mut headers = vec![("Host", host.as_str()), ("Cookie", &cookie), ("Connection", "close")];
        if !kind.is_empty() {
            headers.push(("Content-Type", kind));
        }
        headers.extend_from_slice(more);
        served.send(&request("POST", &path, &headers, EVENT)).status
    };
    let served = TestServer::start();
    let own = format!("http://127.0.0.1:{}", served.port);
    let forms = [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "",
        "text/plain; application/json",
    ];
    for kind in forms {
        assert_eq!(post(&served, kind, &[("Origin", &own)]), 403, "{kind}");
        assert_eq!(post(&served, kind, &[]), 403, "{kind}");
    }
    assert_eq!(post(&served, "application/json", &[]), 403, "a cookie needs an origin");
    assert_eq!(post(&served, "application/json", &[("Origin", "http://evil.com")]), 403);
    assert_eq!(served.get(&format!("/v1/runs/{run}")).status, 404, "nothing was recorded");
    assert_eq!(post(&served, "application/json; charset=utf-8", &[("Origin", &own)]), 200);
    let open =
        TestServer::with(Defences { origin: false, forms: false, ..Defences::default() }, Limits::default());
    assert_eq!(
        post(&open, "text/plain", &[("Origin", "http://evil.com")]),
        200,
        "without the defences it succeeds"
    );
    assert_eq!(open.get(&format!("/v1/runs/{run}")).status, 200);
}

#[test]
fn login_link_works_once() {
    let served = TestServer::start();
    let link = served.api.link();
    let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let follow = |path: &str| {
        served.send(&request("GET", &format!("/{path}"), &[("Host", host), ("Connection", "close")], ""))
    };
    assert_eq!(follow("login?code=").status, 401);
    assert_eq!(follow(&path.replace("code=", "code=0")).status, 401);
    let answer = follow(path);
    assert_eq!(answer.status, 303, "{answer:?}");
    let cookie = answer.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    assert_eq!(follow(path).status, 401, "it works once");
    let cookie = cookie.split(';').next().unwrap();
    let value = cookie.split_once('=').unwrap().1;
    assert_ne!(value, served.token, "whoever gets the cookie has no token");
    let bearer = format!("Bearer {value}");
    let headers = [("Host", host), ("Authorization", bearer.as_str()), ("Connection", "close")];
    assert_eq!(served.send(&request("GET", "/v1/health", &headers, "")).status, 401);
    let both = [("Sec-Fetch-Site", "none"), ("Sec-Fetch-Site", "cross-site")];
    let headers = [("Host", host), ("Cookie", cookie), ("Connection", "close"), both[0], both[1]];
    assert_eq!(served.send(&request("GET", "/v1/health", &headers, "")).status, 403);
    for (site, status) in [("same-site", 403), ("cross-site", 403), ("same-origin", 200), ("none", 200)] {
        let headers = [("Host", host), ("Cookie", cookie), ("Sec-Fetch-Site", site), ("Connection", "close")];
        assert_eq!(served.send(&request("GET", "/v1/health", &headers, "")).status, status, "{site}");
    }
    let answer = served.send(&request(
        "GET",
        "/v1/health",
        &[("Host", host), ("Cookie", cookie), ("Connection", "close")],
        "",
    ));
    assert_eq!(answer.status, 200);
}

#[test]
fn every_answer_has_security_headers() {
    let served = TestServer::start();
    for path in ["/v1/health", "/nothing", "/v1/runs/x"] {
        let head = served.get(path).head.to_ascii_lowercase();
        for line in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "content-security-policy: default-src 'none'",
        ] {
            assert!(head.contains(line), "{path}: {head}");
        }
    }
}

#[test]
fn ids_with_path_tricks_are_refused() {
    let served = TestServer::start();
    std::fs::write(served.dir.path().join("transcripts/secret.jsonl"), "secret\n").unwrap();
    let long = "a".repeat(300);
    for id in
        ["..%2f..%2fetc%2fpasswd", "secret", "%2e%2e", "7d1f0a52-0c5e-4d3b-9a57-6f2b8c4e1a9%00", &long, "%ff"]
    {
        for path in [
            format!("/v1/runs/{id}"),
            format!("/v1/runs/{id}/events"),
            format!("/v1/threads/{id}/turns/{id}/receipt"),
        ] {
            let answer = served.get(&path);
            assert!(
                [400, 404].contains(&answer.status) && !answer.body.contains("secret\n"),
                "{path}: {answer:?}"
            );
            assert!(answer.head.contains("application/problem+json"), "{path}: {answer:?}");
        }
    }
}
