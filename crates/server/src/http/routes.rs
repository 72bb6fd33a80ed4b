//! The routes: one table for the router and the tests, which compare the `OpenAPI` document with it.

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};

use super::{Api, Problem, app, events, openapi, record, runs, search, sessions, threads, usage};

/// A route.
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    handler: fn() -> MethodRouter<Arc<Api>>,
}

/// All routes.
pub const ROUTES: &[Route] = &[
    Route { method: "GET", path: "/v1/health", handler: || get(app::health) },
    Route { method: "GET", path: "/v1/openapi.json", handler: || get(openapi::document) },
    Route { method: "GET", path: "/v1/runs", handler: || get(runs::list) },
    Route { method: "GET", path: "/v1/runs/{run}", handler: || get(runs::one) },
    Route { method: "GET", path: "/v1/runs/{run}/events", handler: || get(events::events) },
    Route { method: "POST", path: "/v1/runs/{run}/events", handler: || post(record::record) },
    Route { method: "GET", path: "/v1/search", handler: || get(search::search) },
    Route { method: "GET", path: "/v1/sessions", handler: || get(sessions::list) },
    Route { method: "GET", path: "/v1/threads/{thread}", handler: || get(threads::thread) },
    Route { method: "GET", path: "/v1/threads/{thread}/turns/{turn}", handler: || get(threads::turn) },
    Route {
        method: "GET",
        path: "/v1/threads/{thread}/turns/{turn}/receipt",
        handler: || get(threads::receipt),
    },
    Route { method: "GET", path: "/v1/usage", handler: || get(usage::usage) },
];

/// Builds the router.
pub(super) fn router(api: Arc<Api>) -> Router {
    let add = |router: Router<Arc<Api>>, route: &Route| router.route(route.path, (route.handler)());
    let router = ROUTES.iter().fold(Router::new(), add);
    let router = router.fallback(async || Problem::not_found("there is no route for this path"));
    let router = router.method_not_allowed_fallback(async || {
        let status = axum::http::StatusCode::METHOD_NOT_ALLOWED;
        Problem::new(status, "method-not-allowed", "Method not allowed", "see /v1/openapi.json")
    });
    router.with_state(api)
}
