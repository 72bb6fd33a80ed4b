//! The list of runs, and the overview of each.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use steno_journal::Error as JournalError;
use steno_model::RunId;
use utoipa::IntoParams;

use super::extract::{InPath, InQuery, RunPath, RunUuid, optional_run_id};

use super::{Api, Problem};

/// The default and the largest number of runs of a page.
const PAGE_LEN: usize = 100;
const PAGE_LEN_MAX: usize = 1000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RunsQuery {
    /// Start after this run
    #[param(nullable = false, value_type = RunUuid, inline)]
    #[serde(default, deserialize_with = "optional_run_id")]
    after: Option<RunId>,
    /// Runs per page
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

/// List runs, in the order of their ids
#[utoipa::path(get, path = "/v1/runs", params(RunsQuery), responses(
    (status = 200, description = "`runs`, and `next` to use as `after` for the next page, if there is one", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    InQuery(page): InQuery<RunsQuery>,
) -> Result<Response, Problem> {
    let RunsQuery { after, limit } = page;
    let limit = limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` must be a number from 1 to {PAGE_LEN_MAX}")));
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
            // A run that was deleted meanwhile is left out.
            rows.extend(library.overview(*run)?.map(|overview| overview.row()));
        }
        let next = runs.last().filter(|_| has_more).map_or("null".to_owned(), |run| format!("\"{run}\""));
        Ok(format!("{{\"runs\":[{}],\"next\":{next}}}", rows.join(",")))
    });
    answer.await
}

/// Show a run
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
