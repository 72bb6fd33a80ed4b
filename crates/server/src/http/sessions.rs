//! The list of sessions.

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use steno_index::SessionFilter;
use steno_library::ListFilter;
use steno_model::RunId;
use utoipa::IntoParams;

use super::extract::{InQuery, RunUuid, optional_run_id};
use super::{Api, Problem};

/// The default and the largest number of sessions of a page.
const PAGE_LEN: usize = 100;
const PAGE_LEN_MAX: usize = 1000;

#[derive(Clone, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SessionsQuery {
    /// Start after this session
    #[param(nullable = false, value_type = RunUuid, inline)]
    #[serde(default, deserialize_with = "optional_run_id")]
    after: Option<RunId>,
    /// Sessions per page
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only sessions with an event since this time
    #[param(nullable = false, format = "date-time")]
    since: Option<String>,
    /// Only sessions that began before this time
    #[param(nullable = false, format = "date-time")]
    until: Option<String>,
    /// Only sessions of projects whose path contains this
    #[param(nullable = false)]
    project: Option<String>,
    /// Only sessions of this agent
    #[param(nullable = false)]
    agent: Option<String>,
    /// Only sessions with a model whose name contains this
    #[param(nullable = false)]
    model: Option<String>,
    /// Only sessions on this branch
    #[param(nullable = false)]
    branch: Option<String>,
    /// Only sessions that changed this file or directory
    #[param(nullable = false)]
    touched: Option<String>,
    /// Only sessions whose title, project or branch contains each of these words
    #[param(nullable = false)]
    words: Option<String>,
    /// Only sessions that failed or have a failed call
    #[param(nullable = false)]
    failed: Option<bool>,
    /// Only sessions that are being recorded, or grew within a minute
    #[param(nullable = false)]
    live: Option<bool>,
    /// Only sessions that the agent deleted, shortened or rewrote
    #[param(nullable = false)]
    gone: Option<bool>,
}

/// List sessions, the one with the latest event first
#[utoipa::path(get, path = "/v1/sessions", params(SessionsQuery), responses(
    (status = 200, description = "`sessions`, and `next` to use as `after` for the next page, if there is one", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(api): State<Arc<Api>>,
    InQuery(query): InQuery<SessionsQuery>,
) -> Result<Response, Problem> {
    let limit = query.limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` must be a number from 1 to {PAGE_LEN_MAX}")));
    }
    let filter = query.filter()?;
    let after = query.after;
    let answer = api.answer(move |api| {
        let sessions = api.library().list(&filter, Timestamp::now())?;
        api.check()?;
        // A session that is not in the list any more begins it again.
        let place = after.and_then(|after| sessions.iter().position(|session| session.id == after));
        let from = place.map_or(0, |place| place + 1);
        let page: Vec<_> = sessions.iter().skip(from).take(limit).collect();
        let has_more = from + page.len() < sessions.len();
        let rows: Vec<String> =
            page.iter().map(|session| session.to_json(&api.prices).as_str().to_owned()).collect();
        let last = page.last().filter(|_| has_more);
        let next = last.map_or("null".to_owned(), |session| format!("\"{}\"", session.id));
        Ok(format!("{{\"sessions\":[{}],\"next\":{next}}}", rows.join(",")))
    });
    answer.await
}

impl SessionsQuery {
    fn filter(&self) -> Result<ListFilter, Problem> {
        let time = |name: &str, text: &Option<String>| -> Result<Option<i64>, Problem> {
            let Some(text) = text else { return Ok(None) };
            let time = text.parse::<Timestamp>();
            let wrong =
                |_| Problem::bad_request(format!("`{name}` must be a time like 2026-11-01T08:00:00Z"));
            Ok(Some(time.map_err(wrong)?.as_millisecond()))
        };
        let words = self.words.as_deref().unwrap_or_default().split_whitespace().map(str::to_owned);
        let sessions = SessionFilter {
            since_ms: time("since", &self.since)?,
            until_ms: time("until", &self.until)?,
            project: self.project.clone(),
            agent: self.agent.clone(),
            model: self.model.clone(),
            branch: self.branch.clone(),
            is_failed: self.failed.unwrap_or(false),
            touched: self.touched.clone(),
            words: words.collect(),
            sessions: None::<HashSet<RunId>>,
        };
        let (is_live, is_gone) = (self.live.unwrap_or(false), self.gone.unwrap_or(false));
        Ok(ListFilter { sessions, is_live, is_gone })
    }
}
