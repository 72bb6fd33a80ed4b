//! The token usage of sessions and its cost, from the runs of the store.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::tz::TimeZone;
use serde::Deserialize;
use steno_library::{UsageColumn, UsageFilter, UsageQuery, UsageTable};
use steno_session::usage::UsageBuilder;
use utoipa::IntoParams;

use super::extract::InQuery;
use super::session_filter::time;
use super::work::Job;
use super::{Api, Problem};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageParameters {
    /// What to group by, separated by commas: `day`, `week`, `month`, `window`, `provider`, `agent`, `model`, `project`, `branch`, `session`
    #[param(
        nullable = false,
        pattern = "^(day|week|month|window|provider|agent|model|project|branch|session)(,(day|week|month|window|provider|agent|model|project|branch|session))*$"
    )]
    by: Option<String>,
    /// Only usage at or after this time, like `2026-11-01T00:00:00Z`
    #[param(nullable = false, format = DateTime)]
    since: Option<String>,
    /// Only usage before this time
    #[param(nullable = false, format = DateTime)]
    until: Option<String>,
    /// Only usage of sessions of projects whose path contains this
    #[param(nullable = false)]
    project: Option<String>,
    /// Only usage of sessions of this agent
    #[param(nullable = false)]
    agent: Option<String>,
    /// Only usage of models whose names contain this
    #[param(nullable = false)]
    model: Option<String>,
    /// Only usage of sessions on this branch
    #[param(nullable = false)]
    branch: Option<String>,
    /// Whether days, weeks, months and windows are those of UTC and not those of the server
    #[param(nullable = false)]
    utc: Option<bool>,
}

/// Sum the token usage of sessions and its cost
#[utoipa::path(get, path = "/v1/usage", params(UsageParameters), responses(
    (status = 200, description = "`rows` and their `total`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn usage(
    State(api): State<Arc<Api>>,
    InQuery(query): InQuery<UsageParameters>,
) -> Result<Response, Problem> {
    let by = query.by.as_deref().unwrap_or("day,model");
    let by: Option<Vec<UsageColumn>> = by.split(',').map(UsageColumn::parse).collect();
    let names = || UsageColumn::ALL.map(|column| format!("`{}`", column.name())).join(", ");
    let by = by.ok_or_else(|| {
        Problem::bad_request(format!("`by` must be a list of {}, separated by commas", names()))
    })?;
    let is_utc = query.utc.unwrap_or(false);
    let only =
        UsageFilter { project: query.project, agent: query.agent, model: query.model, branch: query.branch };
    let query = UsageQuery {
        by,
        only,
        since_ms: time("since", query.since.as_deref())?,
        until_ms: time("until", query.until.as_deref())?,
        zone: if is_utc { TimeZone::UTC } else { api.zone.clone() },
    };
    api.answer(move |api| rows(api, &query)).await
}

fn rows(api: &Job, query: &UsageQuery) -> Result<String, Problem> {
    let mut builder = UsageBuilder::new();
    // Stop as soon as the client is gone, also inside a long run.
    api.library().usage(&mut builder, &|| api.check().is_ok())?;
    api.check()?;
    let mut table = UsageTable::of(&builder.count(), query, &api.prices);
    api.library().set_titles(&mut table)?;
    let rows: Vec<String> = table.rows.iter().map(|row| row.json().as_str().to_owned()).collect();
    Ok(format!("{{\"rows\":[{}],\"total\":{}}}", rows.join(","), table.total.json().as_str()))
}
