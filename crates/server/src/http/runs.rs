//! Runs: which there are, and what each came to.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use steno_journal::Error as JournalError;
use steno_model::RunId;
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
        let library = api.library();
        let mut runs = library.runs()?;
        runs.retain(|run| after.is_none_or(|after| *run > after));
        let has_more = runs.len() > limit;
        runs.truncate(limit);
        let mut rows = Vec::new();
        for run in &runs {
            api.check()?;
            // One that is gone since is not there.
            rows.extend(library.overview(*run)?.map(|overview| overview.row()));
        }
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
    let answer = api.answer(move |api| {
        let overview = api.library().overview(run)?;
        Ok(overview.ok_or(JournalError::NoSuchRun { run })?.row())
    });
    answer.await
}
