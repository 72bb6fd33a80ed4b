//! The state that all requests share.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use jiff::tz::TimeZone;
use serde::Serialize;
use steno_journal::{Journal, Level, Options, Store};
use steno_library::Library;
use steno_views::cost::Prices;
use tokio::sync::{Semaphore, watch};
use utoipa::ToSchema;

use super::Limits;
use super::guard::{Defences, Guard};
use super::memory_budget::MemoryBudget;
use super::recorders::Recorders;
use super::work::Workers;
use crate::live::Hub;

/// Answers with JSON.
pub(super) fn json_response(json: Bytes) -> Response {
    let mut response = json.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Options of the API.
pub struct ApiOptions {
    /// The port that it listens at.
    pub port: u16,
    /// The token that clients have to send.
    pub token: String,
    /// What an acknowledgement guarantees, unless a request says otherwise.
    pub level: Level,
    /// The limits.
    pub limits: Limits,
    /// The defences.
    pub defences: Defences,
    /// The prices of models.
    pub prices: Prices,
    /// The time zone of days.
    pub zone: TimeZone,
    /// The flags that name the store in a command of `steno`, quoted for a shell, each after a space.
    pub store_flags: String,
}

/// The API over a store.
pub struct Api {
    pub(super) store: Store,
    pub(super) hub: Hub,
    pub(super) recorders: Recorders,
    pub(super) guard: Guard,
    pub(super) limits: Limits,
    pub(super) level: Level,
    pub(super) listeners: Arc<Semaphore>,
    /// Memory for bodies that are being received.
    pub(super) bodies: MemoryBudget,
    /// Memory for parsed bodies, which take more.
    pub(super) parsing: MemoryBudget,
    /// Memory for answers until they are sent.
    pub(super) answers: MemoryBudget,
    /// Memory for lines that are too long for the queues of live streams.
    pub(super) long_lines: MemoryBudget,
    /// Becomes true when the server stops.
    pub(super) stopping: watch::Sender<bool>,
    pub(super) workers: Workers,
    started: Instant,
    pub(super) prices: Prices,
    pub(super) zone: TimeZone,
    pub(super) store_flags: String,
}

impl Api {
    /// Opens a new catalog of the store.
    pub(super) fn library(&self) -> Library {
        Library::new(Some(self.store.clone()))
    }

    /// Opens the API.
    #[must_use]
    pub fn new(store: Store, options: ApiOptions) -> Arc<Self> {
        let ApiOptions { port, token, level, limits, defences, prices, zone, store_flags } = options;
        let journal = Journal::new(store.clone(), Options::default());
        Arc::new(Self {
            hub: Hub::new(store.clone()),
            recorders: Recorders::new(journal, limits.recorders),
            guard: Guard::new(token, port, defences),
            limits,
            level,
            listeners: Arc::new(Semaphore::new(limits.listeners)),
            bodies: MemoryBudget::new(limits.room_bytes),
            parsing: MemoryBudget::new(limits.room_bytes),
            answers: MemoryBudget::new(limits.room_bytes),
            long_lines: MemoryBudget::new(limits.room_bytes),
            stopping: watch::channel(false).0,
            workers: Workers::new(&limits),
            started: Instant::now(),
            prices,
            zone,
            store_flags,
            store,
        })
    }

    /// Makes a link that logs a browser in once.
    #[must_use]
    pub fn link(&self) -> String {
        self.guard.link()
    }

    /// Closes all runs that are being recorded.
    pub fn close(&self) {
        self.recorders.close_all();
    }
}

/// The state of the server.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of the program.
    version: &'static str,
    /// How long the server has been running.
    uptime_ms: u64,
    /// How many live streams there are.
    listeners: usize,
    /// How many runs have live streams.
    runs_listened_to: usize,
    /// How many runs are being recorded over HTTP.
    runs_recorded: usize,
}

/// Check that the server is running
#[utoipa::path(get, path = "/v1/health", responses((status = 200, body = Health)))]
pub(super) async fn health(State(api): State<Arc<Api>>) -> Json<Health> {
    Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        uptime_ms: u64::try_from(api.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        listeners: api.limits.listeners - api.listeners.available_permits(),
        runs_listened_to: api.hub.runs(),
        runs_recorded: api.recorders.len(),
    })
}
