//! The HTTP server in worker threads, while a command does something else.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use steno_journal::Level;
use steno_server::http::{Api, ApiOptions, Defences, Endpoint, EndpointFile, Limits, new_token, serve};
use tokio::sync::watch;

use crate::failure::Failure;
use crate::recording;
use crate::runs;
use crate::settings::Settings;

/// The default port.
pub const PORT: u16 = 7836;
/// The number of worker threads for connections. Other threads read and write files.
const WORKERS: usize = 2;

/// How long to wait for file operations after the server has ended.
const LAST_WORK: Duration = Duration::from_secs(1);

/// A server that ends when this is dropped.
pub struct BackgroundServer {
    api: Arc<Api>,
    url: String,
    announced: EndpointFile,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl BackgroundServer {
    /// Starts to serve on a port, or on any free port.
    pub fn start(settings: &Settings, port: Option<u16>) -> Result<Self, Failure> {
        let store = runs::make_store(settings)?;
        let (listener, port) = listen(port.unwrap_or(0))?;
        let (url, token) = (format!("http://127.0.0.1:{port}"), new_token());
        let reached = Endpoint { url: url.clone(), token: token.clone(), pid: std::process::id() };
        let announced = EndpointFile::write(store.disk(), port, &reached)?;
        let level = Level::from(settings.level.value);
        recording::raise_file_limit();
        let limits = Limits::default().within(recording::open_files_max().unwrap_or(usize::MAX));
        let options = ApiOptions {
            port,
            token,
            level,
            limits,
            defences: Defences::default(),
            prices: settings.prices.prices.clone(),
            zone: jiff::tz::TimeZone::system(),
            store_flags: settings.store_flags(),
        };
        let api = Api::new(store, options);
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        let (stop, stopped) = watch::channel(false);
        let served = Arc::clone(&api);
        let thread = std::thread::Builder::new().name("steno-serve".to_owned()).spawn(move || {
            runtime.block_on(async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => serve(listener, served, stopped).await,
                    Err(error) => tracing::error!("cannot serve: {error}"),
                }
            });
            // Requests that are still running are abandoned.
            runtime.shutdown_timeout(LAST_WORK);
        })?;
        Ok(Self { api, url, announced, stop, thread: Some(thread) })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns a link that gives one browser access, once.
    pub fn link(&self) -> String {
        self.api.link()
    }

    /// Returns where in the store the token is.
    pub fn token_file(&self) -> String {
        self.announced.path().to_string()
    }
}

/// Listens on a port of this machine, or on any free port if it is 0. Returns the port.
pub fn listen(port: u16) -> Result<(TcpListener, u16), Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| {
        let failure = Failure::could_not(format!("cannot listen on 127.0.0.1:{port}: {error}"));
        failure.with_hint("`--port 0` takes any free port")
    })?;
    listener.set_nonblocking(true)?;
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

impl Drop for BackgroundServer {
    fn drop(&mut self) {
        self.stop.send(true).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
