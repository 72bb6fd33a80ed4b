//! Connections: taken on loopback alone, so many at a time, each request checked before it is looked at.

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

use super::guard::Passed;
use super::paced_stream::Paced;
use super::routes::router;
use super::unauthenticated::{Stranger, Strangers};
use super::{Api, Problem};

/// How often runs are closed that nobody records any more.
const CLOSING_INTERVAL: Duration = Duration::from_secs(2);
/// How long answers may take to their end when the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long to wait after a connection could not be taken: descriptors may be short.
const AFTER_FAILURE: Duration = Duration::from_millis(50);
/// How long at least between two words of that.
const FAILURES_INTERVAL: Duration = Duration::from_mins(1);
/// How much the system holds for whoever does not read. It says that there is room again when a third of it was read: with
/// less, it is seen sooner that somebody reads slowly.
const SEND_BYTES: usize = 256 * 1024;
/// How long a request's first line and headers may be.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Serves the API until `stop` becomes true; then lets answers come to their end.
pub async fn serve(listener: TcpListener, api: Arc<Api>, mut stop: watch::Receiver<bool>) {
    let free = Arc::new(Semaphore::new(api.limits.connections));
    let strangers = Arc::new(Strangers::default());
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
                    tracing::warn!(%error, "a connection cannot be taken; it waits until that is possible");
                    failed = Some(Instant::now());
                }
                tokio::time::sleep(AFTER_FAILURE).await;
                continue;
            }
        };
        let visit = Visit { api: Arc::clone(&api), router: router.clone(), stranger: strangers.enter() };
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

/// Closes runs now and then that nobody records any more.
async fn close_quiet(api: Arc<Api>, mut stop: watch::Receiver<bool>) {
    while tokio::time::timeout(CLOSING_INTERVAL, stopped(&mut stop)).await.is_err() {
        let api = Arc::clone(&api);
        tokio::task::spawn_blocking(move || api.recorders.close_quiet()).await.ok();
    }
}

/// Waits until somebody says stop, or nobody is left who could.
pub(super) async fn stopped(stop: &mut watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

/// Waits so long for something.
pub(super) async fn within<T>(
    patience: Duration,
    something: impl Future<Output = Result<T, Problem>>,
    detail: &str,
) -> Result<T, Problem> {
    let late = |_| Problem::new(StatusCode::GATEWAY_TIMEOUT, "too-slow", "It took too long", detail);
    tokio::time::timeout(patience, something).await.map_err(late)?
}

/// Takes a connection when there is room for one.
async fn accept(
    listener: &TcpListener,
    free: &Arc<Semaphore>,
    strangers: &Strangers,
) -> io::Result<(TcpStream, OwnedSemaphorePermit)> {
    // A connection has to be there before anybody makes room for it.
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
    // Bound to loopback nobody else gets here; a listener that was handed over may be bound otherwise.
    if !from.ip().to_canonical().is_loopback() {
        return Err(io::Error::other(format!("{from} is not on this machine")));
    }
    Ok((stream, permit))
}

/// A connection, and who it is.
#[derive(Clone)]
struct Visit {
    api: Arc<Api>,
    router: Router,
    stranger: Arc<Stranger>,
}

impl Visit {
    /// Answers what comes over a connection, until it ends or has to.
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
        let connection = builder.serve_connection(TokioIo::new(Paced::new(stream, patience)), service);
        let mut connection = std::pin::pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended");
                }
            }
            () = stranger.has_to_go() => {}
            // One without the token is not waited for.
            () = stopped(&mut stop) => if stranger.is_known() {
                connection.as_mut().graceful_shutdown();
                connection.await.ok();
            }
        }
    }

    /// Answers a request that may be asked.
    async fn checked(&self, request: Request<Incoming>) -> Response {
        let mut response = match self.api.guard.check(&request) {
            Ok(passed) => {
                self.stranger.becomes_known();
                match passed {
                    Passed::LogsIn => self.logged_in(),
                    Passed::Asks => self.asked(request).await,
                }
            }
            Err(problem) => {
                // Who is refused gets no second try over the same connection, behind which others wait.
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

    /// Gives a browser its cookie, and sends it on without the code in its address.
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
            // It waits for nothing too long before it begins, and who asked has to know how it ended.
            return answer.await;
        }
        let answer = within(self.api.limits.patience, async { Ok(answer.await) }, "ask for less at a time");
        answer.await.unwrap_or_else(Problem::into_response)
    }
}
