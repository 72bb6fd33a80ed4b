//! The `OpenAPI` document, made from the handlers.

use std::collections::BTreeMap;

use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, Ref, RefOr, ResponseBuilder, Schema};
use utoipa::{Modify, OpenApi};

use super::app::json_response;
use super::drafts::{DRAFT, DRAFTS, draft_schema, drafts_schema};
use super::problem::MEDIA_TYPE;
use super::{app, events, record, runs, search, sessions, threads, usage};

#[derive(OpenApi)]
#[openapi(
    info(title = "Stenograph", description = "The local HTTP API of a Stenograph store"),
    paths(
        app::health,
        document,
        runs::list,
        runs::one,
        events::events,
        record::record,
        search::search,
        sessions::list,
        threads::thread,
        threads::turn,
        threads::receipt,
        usage::usage,
    ),
    security(("token" = [])),
    modifiers(&TokenScheme, &CommonProblems)
)]
struct Document;

/// Adds the authentication scheme.
struct TokenScheme;

impl Modify for TokenScheme {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    }
}

/// Adds the problems that every route may return, because they are checked before routing.
struct CommonProblems;

impl Modify for CommonProblems {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let refusals = [
            ("400", "Bad request"),
            ("401", "The token is missing or wrong"),
            ("403", "The request is not allowed"),
            ("500", "Internal error"),
            ("504", "Timeout"),
        ];
        let items = document.paths.paths.values_mut();
        let operations = items.flat_map(|item| [&mut item.get, &mut item.post]).flatten();
        for operation in operations {
            for (status, what) in refusals {
                let schema = Ref::from_schema_name("Problem");
                let content = ContentBuilder::new().schema(Some(schema)).build();
                let response = ResponseBuilder::new().description(what).content(MEDIA_TYPE, content).build();
                operation.responses.responses.entry(status.to_owned()).or_insert_with(|| response.into());
            }
        }
    }
}

/// The document with schemas that are not made from types.
#[derive(Serialize)]
struct ApiDocument {
    #[serde(flatten)]
    document: utoipa::openapi::OpenApi,
    components: DescribedComponents,
}

#[derive(Serialize)]
struct DescribedComponents {
    schemas: BTreeMap<String, DescribedSchema>,
    #[serde(flatten)]
    others: Components,
}

#[derive(Serialize)]
#[serde(untagged)]
enum DescribedSchema {
    OfType(Box<RefOr<Schema>>),
    OfFile(Value),
}

/// Returns the `OpenAPI` document.
#[must_use]
pub fn openapi() -> String {
    let mut document = Document::openapi();
    let mut others = document.components.take().unwrap_or_default();
    let of_types = std::mem::take(&mut others.schemas).into_iter();
    let mut schemas: BTreeMap<_, _> =
        of_types.map(|(name, schema)| (name, DescribedSchema::OfType(Box::new(schema)))).collect();
    schemas.insert(DRAFTS.to_owned(), DescribedSchema::OfFile(drafts_schema()));
    schemas.insert(DRAFT.to_owned(), DescribedSchema::OfFile(draft_schema()));
    let described = ApiDocument { document, components: DescribedComponents { schemas, others } };
    serde_json::to_string_pretty(&described).unwrap_or_default() + "\n"
}

/// Describe this API
#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "This document", content_type = "application/json")))]
pub(super) async fn document() -> Response {
    json_response(openapi().into())
}
