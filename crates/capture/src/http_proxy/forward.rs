//! Forwards one request and its answer.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use hyper_util::rt::TokioIo;

use super::allowed;
use super::secrets::Secrets;
use super::serve::HttpProxy;
use super::tap::{BodyEnd, ExchangeTap, RequestHead, ResponseHead, Side, TapContent};
use super::tapped_body::TappedBody;

/// The body of an answer: the upstream's, or one of the proxy itself.
pub(super) type AnswerBody = Either<TappedBody, Full<Bytes>>;

/// How long a request that no server takes may last.
const REST_OF_REQUEST: Duration = Duration::from_secs(5);

/// Headers that belong to a connection and not to a message.
const OF_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    header::PROXY_AUTHORIZATION,
    header::PROXY_AUTHENTICATE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Forwards a request. A failure becomes an answer of the proxy.
pub(super) async fn forward(proxy: Arc<HttpProxy>, request: Request<Incoming>) -> Response<AnswerBody> {
    if let Some(refusal) = refusal(&request) {
        return refusal;
    }
    let is_model_call = *request.method() == Method::POST && is_model_path(request.uri().path());
    let tap = proxy.tap.begin(is_model_call);
    tap.tell(TapContent::Request(Box::new(request_head(&request, is_model_call))));
    let mut open = OpenExchange { tap: tap.clone(), is_answered: false };
    match send(&proxy, request, &tap).await {
        Ok(answer) => {
            open.is_answered = true;
            answer
        }
        Err(message) => {
            open.is_answered = true;
            tap.tell(TapContent::NoResponse(message.clone()));
            own_answer(StatusCode::BAD_GATEWAY, &format!("steno proxy: {message}"))
        }
    }
}

/// An exchange without an answer. If the client leaves, the request is dropped, and this too.
struct OpenExchange {
    tap: ExchangeTap,
    is_answered: bool,
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        if !self.is_answered {
            self.tap.tell(TapContent::NoResponse("the client closed the connection".to_owned()));
        }
    }
}

async fn send(
    proxy: &HttpProxy,
    request: Request<Incoming>,
    tap: &ExchangeTap,
) -> Result<Response<AnswerBody>, String> {
    let (mut parts, body) = request.into_parts();
    let to_client = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    let target = proxy.upstream.target(&parts.uri).map_err(|_| "the path cannot be forwarded".to_owned())?;
    (parts.uri, parts.version) = (target, Version::HTTP_11);
    let upgrade = upgrade_of(&parts.headers);
    strip(&mut parts.headers, upgrade.as_ref());
    let host = HeaderValue::from_str(proxy.upstream.host())
        .map_err(|_| "the upstream has no valid name".to_owned())?;
    parts.headers.insert(header::HOST, host);
    let (body, mut rest) = TappedBody::new(body, tap.clone(), Side::Request).with_rest();
    let answer = match proxy.client.request(Request::from_parts(parts, body)).await {
        Ok(answer) => answer,
        Err(error) => {
            // A server that cannot be reached reads nothing; the record has the request anyway.
            if let Ok(rest) = rest.try_recv().map(TappedBody::drain)
                && tap.keeps_bodies()
            {
                tokio::time::timeout(REST_OF_REQUEST, rest).await.ok();
            }
            return Err(format!("no answer from the upstream: {}", steno_model::with_causes(&error)));
        }
    };
    drop(rest);
    let (mut parts, body) = answer.into_parts();
    // Each connection has its own HTTP version: the server may speak an older one.
    parts.version = Version::HTTP_11;
    let is_upgrade = parts.status == StatusCode::SWITCHING_PROTOCOLS;
    tap.tell(TapContent::Response(Box::new(response_head(parts.status, &parts.headers, is_upgrade))));
    let upgrade = upgrade_of(&parts.headers).filter(|_| is_upgrade);
    strip(&mut parts.headers, upgrade.as_ref());
    if let (true, Some(to_client), Some(to_server)) =
        (is_upgrade, to_client, parts.extensions.remove::<hyper::upgrade::OnUpgrade>())
    {
        tokio::spawn(tunnel(to_client, to_server, tap.clone()));
        return Ok(Response::from_parts(parts, Either::Right(Full::default())));
    }
    Ok(Response::from_parts(parts, Either::Left(TappedBody::new(body, tap.clone(), Side::Response))))
}

/// Copies bytes both ways. Their number is recorded, and nothing else.
async fn tunnel(client: hyper::upgrade::OnUpgrade, server: hyper::upgrade::OnUpgrade, tap: ExchangeTap) {
    let mut open = OpenTunnel { tap, end: BodyEnd::Abandoned, bytes: 0 };
    let (Ok(client), Ok(server)) = (client.await, server.await) else { return };
    let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
    (open.end, open.bytes) = match tokio::io::copy_bidirectional(&mut client, &mut server).await {
        Ok((_, from_server)) => (BodyEnd::Complete, from_server),
        Err(error) => (BodyEnd::Cut(error.to_string()), 0),
    };
}

/// A tunnel. Its end is recorded even if the proxy stops first.
struct OpenTunnel {
    tap: ExchangeTap,
    end: BodyEnd,
    bytes: u64,
}

impl Drop for OpenTunnel {
    fn drop(&mut self) {
        self.tap.tell(TapContent::End(Side::Response, self.end.clone(), self.bytes));
    }
}

/// Refuses requests that are not for the upstream: this is not a general proxy.
fn refusal(request: &Request<Incoming>) -> Option<Response<AnswerBody>> {
    let hosts: Vec<_> = request.headers().get_all(header::HOST).iter().collect();
    let is_local = matches!(hosts[..], [host] if host.to_str().is_ok_and(is_loopback));
    if *request.method() == Method::CONNECT {
        Some(own_answer(StatusCode::METHOD_NOT_ALLOWED, "steno proxy: CONNECT is not supported"))
    } else if request.uri().authority().is_some() {
        Some(own_answer(
            StatusCode::BAD_REQUEST,
            "steno proxy: the request must name a path, not another server",
        ))
    } else if !is_local {
        // A page in a browser could reach the upstream under another name of this machine.
        Some(own_answer(
            StatusCode::MISDIRECTED_REQUEST,
            "steno proxy: the `Host` header must be this machine",
        ))
    } else {
        None
    }
}

fn is_loopback(host: &str) -> bool {
    let Ok(authority) = host.parse::<hyper::http::uri::Authority>() else { return false };
    matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]") && !host.contains('@')
}

fn own_answer(status: StatusCode, message: &str) -> Response<AnswerBody> {
    let text = serde_json::json!({"type": "error", "error": {"type": "steno_proxy", "message": message}})
        .to_string();
    let mut answer = Response::new(Either::Right(Full::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

/// Returns the protocol that a message wants to change to.
fn upgrade_of(headers: &HeaderMap) -> Option<HeaderValue> {
    let wants = headers.get(header::CONNECTION)?.to_str().ok()?.to_ascii_lowercase();
    wants.split(',').any(|word| word.trim() == "upgrade").then(|| headers.get(header::UPGRADE).cloned())?
}

/// Removes the headers of the connection, also those that `Connection` names. An upgrade stays.
fn strip(headers: &mut HeaderMap, upgrade: Option<&HeaderValue>) {
    let values: Vec<String> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>())
        .collect();
    for name in values.iter().filter(|name| !name.eq_ignore_ascii_case("te")) {
        headers.remove(name);
    }
    for name in &OF_CONNECTION {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
    if let Some(upgrade) = upgrade {
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(header::UPGRADE, upgrade.clone());
    }
}

/// Tells whether a path is that of a model call. Bodies of other requests are not recorded: they may be a login.
fn is_model_path(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    ["/messages", "/responses", "/responses/compact", "/chat/completions"]
        .iter()
        .any(|end| path.ends_with(end))
        || [":generateContent", ":streamGenerateContent"].iter().any(|end| path.ends_with(end))
}

fn coding_of(headers: &HeaderMap) -> Option<String> {
    headers
        .get(header::CONTENT_ENCODING)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase())
}

fn request_head(request: &Request<Incoming>, is_model_call: bool) -> RequestHead {
    let uri: &Uri = request.uri();
    let (query, query_omitted) = allowed::query(uri.query());
    RequestHead {
        method: request.method().to_string(),
        path: uri.path().to_owned(),
        query,
        query_omitted,
        headers: allowed::headers(request.headers()),
        coding: coding_of(request.headers()),
        is_model_call,
        secrets: Secrets::of_request(request.headers(), uri.query()),
    }
}

fn response_head(status: StatusCode, headers: &HeaderMap, is_upgrade: bool) -> ResponseHead {
    let media_type =
        headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut secrets = Secrets::default();
    secrets.add_headers(headers);
    ResponseHead {
        status: status.as_u16(),
        headers: allowed::headers(headers),
        coding: coding_of(headers),
        is_event_stream: media_type.trim_start().to_ascii_lowercase().starts_with("text/event-stream"),
        is_upgrade,
        secrets,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_accepted() {
        for host in ["127.0.0.1:8080", "localhost", "[::1]:1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["evil.com", "localhost.evil.com", "me@localhost", "", "127.0.0.1.evil.com:80", "0.0.0.0"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn bodies_are_recorded_of_model_calls_alone() {
        for path in [
            "/v1/messages",
            "/v1/responses",
            "/openai/v1/chat/completions/",
            "/v1beta/models/m:generateContent",
        ] {
            assert!(is_model_path(path), "{path}");
        }
        for path in [
            "/v1/oauth/token",
            "/v1/messages/count_tokens",
            "/v1/models",
            "/",
            "/v1beta/models/m:countTokens",
        ] {
            assert!(!is_model_path(path), "{path}");
        }
    }

    #[test]
    fn headers_of_the_connection_are_removed() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "x-one, keep-alive"), ("x-one", "1"), ("keep-alive", "5"), ("x-two", "2")]
        {
            headers.insert(name, value.parse().unwrap());
        }
        strip(&mut headers, None);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["x-two"]);
    }
}
