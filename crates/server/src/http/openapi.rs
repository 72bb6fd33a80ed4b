//! The `OpenAPI` document, made from the handlers.

use axum::response::Response;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::events::json_response;
use super::{app, events, record, runs, threads, usage};

#[derive(OpenApi)]
#[openapi(
    info(title = "Stenograph", description = "What a store of Stenograph answers, on this machine alone"),
    paths(
        app::health,
        document,
        runs::list,
        runs::one,
        events::events,
        record::record,
        threads::thread,
        threads::turn,
        threads::receipt,
        usage::usage,
    ),
    security(("token" = [])),
    modifiers(&Token)
)]
struct Document;

/// Adds how the token is shown.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// Returns the `OpenAPI` document.
#[must_use]
pub fn openapi() -> String {
    Document::openapi().to_pretty_json().unwrap_or_default() + "\n"
}

/// Describe this API
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "This document", content_type = "application/json")))]
pub(super) async fn document() -> Response {
    json_response(openapi())
}
