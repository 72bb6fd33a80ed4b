//! What all requests share.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use steno_journal::{Journal, Level, Options, Store};
use tokio::sync::Semaphore;
use utoipa::ToSchema;

use super::guard::{Defences, Guard, secret};
use super::problem::Problem;
use super::recorders::Recorders;
use crate::live::Hub;

/// How much is served at once, and how long anybody may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many connections there are at once. Whoever comes then waits.
    pub connections: usize,
    /// How many listen to live events at once.
    pub listeners: usize,
    /// How long a body may be.
    pub body_bytes: usize,
    /// How many requests read or write files at once.
    pub working: usize,
    /// How long a request may take to come, and how long its answer to begin.
    pub patience: Duration,
    /// How long a live stream may stand still because nobody reads it.
    pub stall: Duration,
    /// After how long without events a live stream says that it is still there.
    pub heartbeat: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            listeners: 512,
            body_bytes: 16 * 1024 * 1024,
            working: 8,
            patience: Duration::from_secs(30),
            stall: Duration::from_secs(10),
            heartbeat: Duration::from_secs(15),
        }
    }
}

/// Makes a token.
#[must_use]
pub fn new_token() -> String {
    secret()
}

/// How the API is opened.
pub struct ApiOptions {
    /// The port that it listens at.
    pub port: u16,
    /// The token that has to be shown.
    pub token: String,
    /// What an acknowledgement promises, unless a request says otherwise.
    pub level: Level,
    /// The limits.
    pub limits: Limits,
    /// The defences.
    pub defences: Defences,
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
    working: Arc<Semaphore>,
    started: Instant,
}

impl Api {
    /// Opens the API.
    #[must_use]
    pub fn new(store: Store, options: ApiOptions) -> Arc<Self> {
        let ApiOptions { port, token, level, limits, defences } = options;
        let journal = Journal::new(store.clone(), Options::default());
        Arc::new(Self {
            hub: Hub::new(store.clone()),
            recorders: Recorders::new(journal),
            guard: Guard::new(token, port, defences),
            limits,
            level,
            listeners: Arc::new(Semaphore::new(limits.listeners)),
            working: Arc::new(Semaphore::new(limits.working)),
            started: Instant::now(),
            store,
        })
    }

    /// Does something that reads or writes files, beside those that wait for nothing but messages.
    pub(super) async fn work<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.working).acquire_owned().await;
        let permit = permit.map_err(|_| Problem::internal("the server ends"))?;
        let api = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&api);
            drop(permit);
            done
        });
        done.await.map_err(|error| Problem::internal(error.to_string()))?
    }

    /// Makes a link that lets a browser in, once.
    #[must_use]
    pub fn link(&self) -> String {
        self.guard.link()
    }

    /// Closes what was being recorded.
    pub fn close(&self) {
        self.recorders.close_all();
    }
}

/// How the server does.
#[derive(Serialize, ToSchema)]
pub(super) struct Health {
    /// Always `ok`.
    status: &'static str,
    /// The version of the program.
    version: &'static str,
    /// For how long it has served.
    uptime_ms: u64,
    /// How many live streams there are.
    listeners: usize,
    /// To how many runs.
    runs_listened_to: usize,
    /// How many runs are recorded through it at the moment.
    runs_recorded: usize,
}

/// Say that the server is there
#[utoipa::path(get, path = "/v1/health", responses((status = 200, body = Health)))]
pub(super) async fn health(State(api): State<Arc<Api>>) -> Json<Health> {
    let (listeners, runs_listened_to) = api.hub.listeners();
    Json(Health {
        status: "ok",
        version: env!("CARGO_PKG_VERSION"),
        uptime_ms: u64::try_from(api.started.elapsed().as_millis()).unwrap_or(u64::MAX),
        listeners,
        runs_listened_to,
        runs_recorded: api.recorders.len(),
    })
}
