//! Accepts connections on this machine and forwards their requests.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use super::forward::forward;
use super::tap::HttpTap;
use super::upstream::{Upstream, UpstreamClient, UpstreamError};

/// The most connections at a time. Others wait.
const CONNECTIONS_MAX: u32 = 1024;
/// How long open answers may take when the proxy stops.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long to wait after accepting a connection failed: the process may be out of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// A proxy in front of one upstream.
pub struct HttpProxy {
    pub(super) upstream: Upstream,
    pub(super) client: UpstreamClient,
    pub(super) tap: HttpTap,
}

impl HttpProxy {
    /// Makes a proxy. With `https`, the certificate of the upstream is checked against the system's certificates and
    /// those of a file.
    ///
    /// # Errors
    /// If certificates cannot be read.
    pub fn new(upstream: Upstream, ca_file: Option<&Path>, tap: HttpTap) -> Result<Self, UpstreamError> {
        Ok(Self { client: upstream.client(ca_file)?, upstream, tap })
    }
}

/// Serves until `stop` becomes true, and then finishes open answers.
pub async fn serve(listener: TcpListener, proxy: Arc<HttpProxy>, mut stop: watch::Receiver<bool>) {
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX as usize));
    loop {
        let accept = async { (Arc::clone(&free).acquire_owned().await, listener.accept().await) };
        let (permit, accepted) = tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = accept => accepted,
        };
        match (accepted, permit) {
            (Ok((stream, from)), Ok(permit)) if from.ip().to_canonical().is_loopback() => {
                let (proxy, stop) = (Arc::clone(&proxy), stop.clone());
                tokio::spawn(async move {
                    connection(stream, proxy, stop).await;
                    drop(permit);
                });
            }
            (Ok(_), _) => {}
            (Err(_), _) => tokio::time::sleep(AFTER_FAILURE).await,
        }
    }
    tokio::time::timeout(LAST_ANSWERS, free.acquire_many(CONNECTIONS_MAX)).await.ok();
}

/// Waits until `stop` is true or its sender is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    stop.wait_for(|stop| *stop).await.ok();
}

async fn connection(stream: TcpStream, proxy: Arc<HttpProxy>, mut stop: watch::Receiver<bool>) {
    stream.set_nodelay(true).ok();
    let answer = service_fn(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok::<_, Infallible>(forward(proxy, request).await) }
    });
    let serving = http1::Builder::new()
        // A client may be idle for as long as it wants: one whose connection is closed may lose its next request.
        .header_read_timeout(None)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), answer)
        .with_upgrades();
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        // A client that breaks off is not a failure of the proxy.
        served = &mut serving => drop(served),
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await.ok();
        }
    }
}
