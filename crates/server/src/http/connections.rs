//! Connections: accepted on loopback only, up to a limit. The guard checks each request before it is routed.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt as _;

use super::guard::Access;
use super::paced_stream::PacedStream;
use super::routes::router;
use super::unauthenticated::{PendingPeer, PendingPeers};
use super::{Api, Problem};

/// How often idle runs are closed.
const CLOSING_INTERVAL: Duration = Duration::from_secs(2);
/// How long open answers may take when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long to wait after accepting a connection failed: the process may be out of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// The least time between two warnings about that.
const FAILURES_INTERVAL: Duration = Duration::from_mins(1);
/// The size of the socket's send buffer. The system reports free space when a third of it was read, so a small buffer
/// shows slow readers sooner.
const SEND_BYTES: usize = 256 * 1024;
/// The longest request line with headers.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves the API until `stop` becomes true, and then finishes open answers.
pub async fn serve(listener: TcpListener, api: Arc<Api>, mut stop: watch::Receiver<bool>) {
    let free = Arc::new(Semaphore::new(api.limits.connections));
    let strangers = Arc::new(PendingPeers::default());
    let router = router(Arc::clone(&api));
    let mut failed = None;
    tokio::spawn(close_quiet(Arc::clone(&api), stop.clone()));
    loop {
        let accepted = tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = accept(&listener, &free, &strangers) => accepted,
        };
        let (stream, permit) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                if failed.is_none_or(|at: Instant| at.elapsed() >= FAILURES_INTERVAL) {
                    tracing::warn!(%error, "cannot accept a connection; trying again");
                    failed = Some(Instant::now());
                }
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        let visit =
            ConnectionHandler { api: Arc::clone(&api), router: router.clone(), stranger: strangers.enter() };
        let stop = stop.clone();
        tokio::spawn(async move {
            visit.answer(stream, stop).await;
            drop(permit);
        });
    }
    api.stopping.send_replace(true);
    let connections = u32::try_from(api.limits.connections).unwrap_or(u32::MAX);
    tokio::time::timeout(LAST_ANSWERS, free.acquire_many(connections)).await.ok();
    tokio::task::spawn_blocking(move || api.close()).await.ok();
}

/// Closes idle runs regularly.
async fn close_quiet(api: Arc<Api>, mut stop: watch::Receiver<bool>) {
    while tokio::time::timeout(CLOSING_INTERVAL, stopped(&mut stop)).await.is_err() {
        let api = Arc::clone(&api);
        tokio::task::spawn_blocking(move || api.recorders.close_quiet()).await.ok();
    }
}

/// Waits until `stop` is true or its sender is gone.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

/// Waits for something, up to a time limit.
pub(super) async fn within<T>(
    patience: Duration,
    something: impl Future<Output = Result<T, Problem>>,
    detail: &str,
) -> Result<T, Problem> {
    let late = |_| Problem::new(StatusCode::GATEWAY_TIMEOUT, "too-slow", "Timeout", detail);
    tokio::time::timeout(patience, something).await.map_err(late)?
}

/// Accepts a connection when one is free.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
    strangers: &PendingPeers,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    // Peers without the token are only dropped when a connection is waiting.
    let (stream, from) = listener.accept().await?;
    let mut permit = std::pin::pin!(Arc::clone(free).acquire_owned());
    let permit = loop {
        tokio::select! {
            biased;
            permit = &mut permit => break permit,
            () = strangers.make_room() => {}
        }
    };
    let permit = permit.map_err(io::Error::other)?;
    // A listener that was passed in may be bound to another address than loopback.
    if !from.ip().to_canonical().is_loopback() {
        return Err(io::Error::other(format!("{from} is not on this machine")));
    }
    Ok((stream, permit))
}

/// Handles the requests of one connection.
#[derive(Clone)]
struct ConnectionHandler {
    api: Arc<Api>,
    router: Router,
    stranger: Arc<PendingPeer>,
}

impl ConnectionHandler {
    /// Answers requests until the connection ends or is dropped.
    async fn answer(self, stream: TcpStream, mut stop: watch::Receiver<bool>) {
        stream.set_nodelay(true).ok();
        set_socket_send_buffer_size(&stream, SEND_BYTES).ok();
        let (patience, stranger) = (self.api.limits.patience, Arc::clone(&self.stranger));
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let visit = self.clone();
            async move { Ok::<_, Infallible>(visit.checked(request).await) }
        });
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(patience)
            .max_buf_size(HEAD_BYTES_MAX)
            .max_header_size(HEAD_BYTES_MAX);
        let connection = builder.serve_connection(TokioIo::new(PacedStream::new(stream, patience)), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
            }
            () = stranger.evicted() => {}
            // The server does not wait for clients without the token.
            () = stopped(&mut stop) => if stranger.is_authenticated() {
                connection.as_mut().graceful_shutdown();
                connection.await.ok();
            }
        }
    }

    /// Checks a request and answers it.
    async fn checked(&self, request: Request<Incoming>) -> Response {
        let mut response = match self.api.guard.check(&request) {
            Ok(passed) => {
                self.stranger.authenticate();
                match passed {
                    Access::Login => self.logged_in(),
                    Access::Request => self.asked(request).await,
                }
            }
            Err(problem) => {
                // A refused client has to open a new connection, so that it does not take the place of others.
                let mut response = problem.into_response();
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                response
            }
        };
        let is_unread = response.status() == StatusCode::PAYLOAD_TOO_LARGE;
        let headers = response.headers_mut();
        if is_unread {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
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

    /// Sets the browser's cookie, and redirects it to an address without the code.
    fn logged_in(&self) -> Response {
        let mut response = StatusCode::SEE_OTHER.into_response();
        let headers = response.headers_mut();
        headers.insert(header::LOCATION, HeaderValue::from_static("/v1/health"));
        headers.extend(self.api.guard.cookie().map(|cookie| (header::SET_COOKIE, cookie)));
        response
    }

    async fn asked(&self, request: Request<Incoming>) -> Response {
        let changes_something = request.method() == Method::POST;
        let answer = self.router.clone().oneshot(request.map(Body::new));
        let answer = async { answer.await.unwrap_or_else(|never| match never {}) };
        if changes_something {
            // No timeout here: each wait before the write is limited, and the client has to learn the result of the write.
            return answer.await;
        }
        let answer = within(self.api.limits.patience, async { Ok(answer.await) }, "ask for less at a time");
        answer.await.unwrap_or_else(Problem::into_response)
    }
}
