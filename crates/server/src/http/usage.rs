//! The token usage of sessions, from the runs of the store.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use steno_session::usage::{Column, UsageBuilder, grouped, row};
use utoipa::IntoParams;

use super::extract::InQuery;
use super::work::Job;
use super::{Api, Problem};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageQuery {
    /// What to group by, separated by commas: `day`, `provider`, `model`, `session`
    #[param(nullable = false, pattern = "^(day|provider|model|session)(,(day|provider|model|session))*$")]
    by: Option<String>,
}

/// Sum the token usage of sessions
#[utoipa::path(get, path = "/v1/usage", params(UsageQuery), responses(
    (status = 200, description = "`rows`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn usage(
    State(api): State<Arc<Api>>,
    InQuery(query): InQuery<UsageQuery>,
) -> Result<Response, Problem> {
    let by = query.by.as_deref().unwrap_or("day,model");
    let by: Option<Vec<Column>> = by.split(',').map(Column::parse).collect();
    let by = by.ok_or_else(|| {
        Problem::bad_request(
            "`by` must be a list of `day`, `provider`, `model` and `session`, separated by commas",
        )
    })?;
    api.answer(move |api| rows(api, &by)).await
}

fn rows(api: &Job, by: &[Column]) -> Result<String, Problem> {
    let mut builder = UsageBuilder::new();
    // Stop as soon as the client is gone, also inside a long run.
    api.library().usage(&mut builder, &|| api.check().is_ok())?;
    api.check()?;
    let groups = grouped(&builder.finish(), by);
    let rows: Vec<String> = groups.iter().map(|(group, used)| row(group, used).as_str().to_owned()).collect();
    Ok(format!("{{\"rows\":[{}]}}", rows.join(",")))
}
