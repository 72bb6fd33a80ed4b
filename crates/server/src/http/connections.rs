//! Connections: taken on loopback alone, so many at a time, each request checked before it is looked at.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt as _;

use super::guard::Passed;
use super::routes::router;
use super::{Api, Problem};

/// How often runs are closed that nobody records any more.
const CLOSING_INTERVAL: Duration = Duration::from_secs(2);
/// How long answers may take to their end when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be taken: descriptors may be short.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// How long a request's first line and headers may be.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves the API until `stop` becomes true; then lets answers come to their end.
pub async fn serve(listener: TcpListener, api: Arc<Api>, mut stop: watch::Receiver<bool>) {
    let free = Arc::new(Semaphore::new(api.limits.connections));
    let router = router(Arc::clone(&api));
    let mut closing = tokio::time::interval(CLOSING_INTERVAL);
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            _ = closing.tick() => {
                let api = Arc::clone(&api);
                tokio::task::spawn_blocking(move || api.recorders.close_quiet());
                continue;
            }
            accepted = accept(&listener, &free) => accepted,
        };
        let Some((stream, permit)) = accepted else {
            tokio::time::sleep(AFTER_FAILURE).await;
            continue;
        };
        let (api, router, stop) = (Arc::clone(&api), router.clone(), stop.clone());
        tokio::spawn(async move {
            answer(stream, api, router, stop).await;
            drop(permit);
        });
    }
    let connections = u32::try_from(api.limits.connections).unwrap_or(u32::MAX);
    tokio::time::timeout(LAST_ANSWERS, free.acquire_many(connections)).await.ok();
    tokio::task::spawn_blocking(move || api.close()).await.ok();
}

/// Waits until somebody says stop, or nobody is left who could.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

/// Takes a connection when there is room for one.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(free).acquire_owned().await.ok()?;
    let (stream, from) =
        listener.accept().await.inspect_err(|error| tracing::warn!(%error, "accept")).ok()?;
    // Bound to loopback nobody else gets here; a listener that was handed over may be bound otherwise.
    is_local(from).then_some((stream, permit))
}

fn is_local(from: SocketAddr) -> bool {
    from.ip().to_canonical().is_loopback()
}

async fn answer(stream: TcpStream, api: Arc<Api>, router: Router, mut stop: watch::Receiver<bool>) {
    stream.set_nodelay(true).ok();
    let patience = api.limits.patience;
    let service = hyper::service::service_fn(move |request: Request<Incoming>| {
        let (api, router) = (Arc::clone(&api), router.clone());
        async move { Ok::<_, Infallible>(checked(&api, router, request).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(patience).max_buf_size(HEAD_BYTES_MAX);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        }
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await.ok();
        }
    }
}

/// Gives a browser the token, and sends it on without the code in its address.
fn logged_in(api: &Api) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, HeaderValue::from_static("/v1/health"));
    headers.extend(api.guard.cookie().map(|cookie| (header::SET_COOKIE, cookie)));
    response
}

/// Answers a request that may be asked.
async fn checked(api: &Arc<Api>, router: Router, request: Request<Incoming>) -> Response {
    let answered = async {
        if api.guard.check(&request)? == Passed::LogsIn {
            return Ok(logged_in(api));
        }
        let answer = router.oneshot(request.map(Body::new));
        let answer = tokio::time::timeout(api.limits.patience, answer).await;
        let late = |_| {
            Problem::new(
                StatusCode::GATEWAY_TIMEOUT,
                "too-slow",
                "It took too long",
                "ask for less at a time",
            )
        };
        answer.map_err(late).map(|answer| answer.unwrap_or_else(|never| match never {}))
    };
    let mut response = answered.await.unwrap_or_else(|problem: Problem| problem.into_response());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
