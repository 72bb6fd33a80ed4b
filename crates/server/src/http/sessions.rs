//! The list of sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use steno_model::RunId;
use utoipa::IntoParams;

use super::extract::{InQuery, RunUuid, optional_run_id};
use super::session_filter::SessionFilterQuery;
use super::{Api, Problem};

/// The default and the largest number of sessions of a page.
const PAGE_LEN: usize = 100;
const PAGE_LEN_MAX: usize = 1000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsQuery {
    /// Start after this session
    #[param(nullable = false, value_type = RunUuid, inline)]
    #[serde(default, deserialize_with = "optional_run_id")]
    after: Option<RunId>,
    /// Sessions per page
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only sessions whose title, project or branch contains each of these words
    #[param(nullable = false)]
    words: Option<String>,
}

/// List sessions, the one with the latest event first
#[utoipa::path(get, path = "/v1/sessions", params(SessionsQuery, SessionFilterQuery), responses(
    (status = 200, description = "`sessions`, and `next` to use as `after` for the next page, if there is one", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    InQuery(query): InQuery<SessionsQuery>,
    InQuery(filter): InQuery<SessionFilterQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` must be a number from 1 to {PAGE_LEN_MAX}")));
    }
    let words: Vec<&str> = query.words.as_deref().unwrap_or_default().split_whitespace().collect();
    let filter = filter.read(&words)?;
    let after = query.after;
    let answer = api.answer(move |api| {
        let sessions = api.library().list(&filter, Timestamp::now())?;
        api.check()?;
        // A session that is not in the list any more begins it again.
        let place = after.and_then(|after| sessions.iter().position(|session| session.id == after));
        let from = place.map_or(0, |place| place + 1);
        let page: Vec<_> = sessions.iter().skip(from).take(limit).collect();
        let has_more = from + page.len() < sessions.len();
        let rows: Vec<String> = page
            .iter()
            .map(|session| session.to_json(&api.prices, &api.store_flags).as_str().to_owned())
            .collect();
        let last = page.last().filter(|_| has_more);
        let next = last.map_or("null".to_owned(), |session| format!("\"{}\"", session.id));
        Ok(format!("{{\"sessions\":[{}],\"next\":{next}}}", rows.join(",")))
    });
    answer.await
}
