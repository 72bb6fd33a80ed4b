//! Runs: which there are, and what each came to.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use steno_journal::{Ends, run_ends};
use steno_model::RunId;
use steno_views::summary::{RunSummary, state_name};
use steno_views::with_causes;
use utoipa::IntoParams;

use super::extract::{InPath, InQuery, RunPath, RunUuid, run_id_if_any};

use super::{Api, Problem};

/// How many runs a page has, if it is not said, and at most.
const PAGE_LEN: usize = 100;
const PAGE_LEN_MAX: usize = 1000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Page {
    /// Begin after this run
    #[param(nullable = false, value_type = RunUuid, inline)]
    #[serde(default, deserialize_with = "run_id_if_any")]
    after: Option<RunId>,
    /// How many at most
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// List runs, in the order of their ids
#[utoipa::path(get, path = "/v1/runs", params(Page), responses(
    (status = 200, description = "`runs`, and in `next` the id to go on after, if there are more", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    InQuery(page): InQuery<Page>,
) -> Result<Response, Problem> {
    let Page { after, limit } = page;
    let limit = limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {PAGE_LEN_MAX}")));
    }
    let answer = api.answer(move |api| {
        let mut runs = api.store.runs()?;
        runs.sort_unstable();
        runs.retain(|run| after.is_none_or(|after| *run > after));
        let has_more = runs.len() > limit;
        runs.truncate(limit);
        let rows = runs.iter().filter_map(|run| api.check().map(|()| listed(api, *run)).transpose());
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let next = runs.last().filter(|_| has_more).map_or("null".to_owned(), |run| format!("\"{run}\""));
        Ok(format!("{{\"runs\":[{}],\"next\":{next}}}", rows.join(",")))
    });
    answer.await
}

/// Say what a run came to
#[utoipa::path(get, path = "/v1/runs/{run}", params(RunPath), responses(
    (status = 200, description = "The run", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn one(
    State(api): State<Arc<Api>>,
    InPath(RunPath { run }): InPath<RunPath>,
) -> Result<Response, Problem> {
    api.answer(move |api| Ok(summary(api, run)?)).await
}

/// Sums a run up for a list: one that cannot be read takes nothing from the others, and one that is gone is not there.
fn listed(api: &Api, run: RunId) -> Option<String> {
    match summary(api, run) {
        Ok(row) => Some(row),
        Err(steno_journal::Error::NoSuchRun { .. }) => None,
        Err(error) => Some(unreadable(run, "unreadable", &error)),
    }
}

fn unreadable(run: RunId, state: &str, error: &steno_journal::Error) -> String {
    let why = serde_json::Value::from(with_causes(error));
    format!("{{\"run_id\":\"{run}\",\"state\":\"{state}\",\"why\":{why}}}")
}

/// Sums a run up, from its first and its last event.
fn summary(api: &Api, run: RunId) -> Result<String, steno_journal::Error> {
    let is_held = api.store.is_held(run)?;
    let ends = match run_ends(&api.store, run) {
        Ok(ends) => ends,
        Err(error @ steno_journal::Error::Damaged { .. }) => return Ok(unreadable(run, "damaged", &error)),
        Err(error) => return Err(error),
    };
    let Ends { events, bytes } = ends;
    let summary = events.map(|(first, last)| RunSummary::from_ends(&first, &last));
    let state = state_name(summary.as_ref(), is_held);
    let summary = serde_json::json!(summary);
    Ok(format!("{{\"run_id\":\"{run}\",\"state\":\"{state}\",\"bytes\":{bytes},\"summary\":{summary}}}"))
}
