//! Sessions as threads, turns and receipts (003).

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use steno_model::records::{ItemRecord, ThreadRecord, TurnRecord};
use steno_views::receipt::to_json;
use utoipa::IntoParams;

use super::extract::{InPath, InQuery, ThreadPath, TurnPath};
use super::{Api, Problem};
use crate::receipts::{ReadOptions, ReceiptSession, export};

fn json(value: &impl Serialize) -> Result<String, Problem> {
    serde_json::to_string(value).map_err(|error| Problem::internal(error.to_string()))
}

/// A session with its turns. The fields keep the order of the records, so that the commands print the same bytes.
#[derive(Serialize)]
struct ThreadAnswer<'a> {
    thread: &'a ThreadRecord,
    turns: &'a [TurnRecord],
}

/// A turn with its items.
#[derive(Serialize)]
struct TurnAnswer<'a> {
    turn: &'a TurnRecord,
    items: Vec<&'a ItemRecord>,
}

/// Show a session with its turns
#[utoipa::path(get, path = "/v1/threads/{thread}", params(ThreadPath), responses(
    (status = 200, description = "`thread` and `turns`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn thread(
    State(api): State<Arc<Api>>,
    InPath(ThreadPath { thread }): InPath<ThreadPath>,
) -> Result<Response, Problem> {
    let answer = api.answer(move |api| {
        let records = ReceiptSession::of_store(&api.store, thread, ReadOptions::default())?.records;
        json(&ThreadAnswer { thread: &records.thread, turns: &records.turns })
    });
    answer.await
}

/// Show a turn with its items
#[utoipa::path(get, path = "/v1/threads/{thread}/turns/{turn}", params(TurnPath), responses(
    (status = 200, description = "`turn` and `items`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn turn(
    State(api): State<Arc<Api>>,
    InPath(TurnPath { thread, turn }): InPath<TurnPath>,
) -> Result<Response, Problem> {
    let answer = api.answer(move |api| {
        let read = ReceiptSession::of_store(&api.store, thread, ReadOptions::default())?;
        let turn = read.turn(&turn)?;
        let items = read.records.items.iter().filter(|item| item.turn_id == turn.id).collect();
        json(&TurnAnswer { turn, items })
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
#[utoipa::path(get, path = "/v1/threads/{thread}/turns/{turn}/receipt", params(TurnPath, ReceiptQuery), responses(
    (status = 200, description = "The receipt, in the same bytes as from `steno receipt export`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn receipt(
    State(api): State<Arc<Api>>,
    InPath(TurnPath { thread, turn }): InPath<TurnPath>,
    InQuery(query): InQuery<ReceiptQuery>,
) -> Result<Response, Problem> {
    let wanted = ReadOptions { has_integrity: query.integrity.unwrap_or(false), ..ReadOptions::default() };
    let answer = api.answer(move |api| Ok(to_json(&export(&api.store, thread, &turn, wanted.clone())?)));
    answer.await
}
