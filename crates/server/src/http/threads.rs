//! Sessions as threads, turns and receipts (003).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use steno_views::receipt::to_json;
use utoipa::IntoParams;

use super::extract::{InPath, InQuery};
use super::runs::parse;
use super::{Api, Problem};
use crate::receipts::{ReadRun, Wanted, export};

fn json(value: &impl Serialize) -> Result<String, Problem> {
    serde_json::to_string(value).map_err(|error| Problem::internal(error.to_string()))
}

/// Show a session with its turns
#[utoipa::path(get, path = "/v1/threads/{thread}", params(("thread" = String, Path, pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", description = "The run's UUID")), responses(
    (status = 200, description = "`thread` and `turns`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn thread(
    State(api): State<Arc<Api>>,
    InPath(thread): InPath<String>,
) -> Result<Response, Problem> {
    let run = parse(&thread)?;
    let answer = api.answer(move |api| {
        let records = ReadRun::of_store(&api.store, run, Wanted::default())?.records;
        json(&serde_json::json!({"thread": records.thread, "turns": records.turns}))
    });
    answer.await
}

/// Show a turn with its items
#[utoipa::path(get, path = "/v1/threads/{thread}/turns/{turn}", params(
    ("thread" = String, Path, pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", description = "The run's UUID"),
    ("turn" = String, Path, min_length = 1, description = "The turn's step, or what its provider calls it"),
), responses(
    (status = 200, description = "`turn` and `items`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn turn(
    State(api): State<Arc<Api>>,
    InPath((thread, turn)): InPath<(String, String)>,
) -> Result<Response, Problem> {
    let run = parse(&thread)?;
    let answer = api.answer(move |api| {
        let read = ReadRun::of_store(&api.store, run, Wanted::default())?;
        let turn = read.turn(&turn)?;
        let items: Vec<_> = read.records.items.iter().filter(|item| item.turn_id == turn.id).collect();
        json(&serde_json::json!({"turn": turn, "items": items}))
    });
    answer.await
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ReceiptQuery {
    /// Add hashes of the lines it is made of, and proofs that these are lines of the run
    #[param(nullable = false)]
    integrity: Option<bool>,
}

/// Export the receipt of a turn
#[utoipa::path(get, path = "/v1/threads/{thread}/turns/{turn}/receipt", params(
    ("thread" = String, Path, pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", description = "The run's UUID"),
    ("turn" = String, Path, min_length = 1, description = "The turn's step, or what its provider calls it"),
    ReceiptQuery,
), responses(
    (status = 200, description = "The receipt, the same bytes as `steno receipt export` prints", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn receipt(
    State(api): State<Arc<Api>>,
    InPath((thread, turn)): InPath<(String, String)>,
    InQuery(query): InQuery<ReceiptQuery>,
) -> Result<Response, Problem> {
    let run = parse(&thread)?;
    let wanted = Wanted { has_integrity: query.integrity.unwrap_or(false), lines_max: None };
    let answer = api.answer(move |api| Ok(to_json(&export(&api.store, run, &turn, wanted)?)));
    answer.await
}
