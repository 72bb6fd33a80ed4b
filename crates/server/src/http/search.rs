//! Searches the texts of all sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use steno_index::Query;
use steno_library::{ListFilter, SearchLimits, SessionHits};
use utoipa::IntoParams;

use super::extract::InQuery;
use super::session_filter::SessionFilterQuery;
use super::work::Job;
use super::{Api, Problem};

/// The default and the largest number of sessions of an answer, and of hits of each.
const SESSIONS_LEN: usize = 20;
const SESSIONS_LEN_MAX: usize = 1000;
const HITS_LEN: usize = 3;
const HITS_LEN_MAX: usize = 1000;
/// How many sessions may be left out.
const SKIP_MAX: usize = 100_000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct SearchQuery {
    /// What to look for, as for `steno search`
    #[param(min_length = 1)]
    q: String,
    /// Look for the text as it is, with its case and punctuation
    #[param(nullable = false)]
    exact: Option<bool>,
    /// Sessions per answer
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Sessions to leave out, to read on: `next_skip` of the answer before
    #[param(nullable = false, minimum = 0, maximum = 100_000)]
    skip: Option<usize>,
    /// Hits of each session
    #[param(nullable = false, minimum = 1, maximum = 1000)]
    hits: Option<usize>,
}

/// Search all sessions
#[utoipa::path(get, path = "/v1/search", params(SearchQuery, SessionFilterQuery), responses(
    (status = 200, description = "`hits`, and what was `searched`", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn search(
    State(api): State<Arc<Api>>,
    InQuery(wanted): InQuery<SearchQuery>,
    InQuery(filter): InQuery<SessionFilterQuery>,
) -> Result<Response, Problem> {
    let skip = wanted.skip.unwrap_or(0);
    if skip > SKIP_MAX {
        return Err(Problem::bad_request(format!("`skip` must be at most {SKIP_MAX}")));
    }
    let limits = SearchLimits {
        sessions: limit("limit", wanted.limit.unwrap_or(SESSIONS_LEN), SESSIONS_LEN_MAX)?,
        hits: limit("hits", wanted.hits.unwrap_or(HITS_LEN), HITS_LEN_MAX)?,
    };
    let is_exact = wanted.exact.unwrap_or(false);
    let query = if is_exact { Query::exactly(&wanted.q) } else { Query::parse(&wanted.q) };
    let query = query.map_err(|error| Problem::bad_request(format!("`q` cannot be read: {error}")))?;
    let filter = filter.read(&[])?;
    api.answer(move |api| found(api, &query, &filter, (skip, limits))).await
}

fn limit(name: &str, number: usize, max: usize) -> Result<usize, Problem> {
    if (1..=max).contains(&number) {
        return Ok(number);
    }
    Err(Problem::bad_request(format!("`{name}` must be a number from 1 to {max}")))
}

fn found(
    api: &Job,
    query: &Query,
    filter: &ListFilter,
    (skip, limits): (usize, SearchLimits),
) -> Result<String, Problem> {
    let library = api.library();
    let filter = library.resolve_filter(filter, Timestamp::now())?;
    let (mut sessions, mut skipped) = (Vec::<SessionHits>::new(), 0);
    let all = SearchLimits { sessions: limits.sessions.saturating_add(skip), ..limits };
    let report = library.search_each(query, &filter, all, |session| {
        if skipped < skip {
            skipped += 1;
        } else if sessions.len() < limits.sessions {
            sessions.push(session);
        }
        api.check().is_ok()
    })?;
    api.check()?;
    let ids = library.index()?;
    let hits: Vec<String> = sessions
        .iter()
        .flat_map(|session| session.hits.iter().map(move |hit| (session, hit)))
        .map(|(session, hit)| hit.to_json(session, ids).as_str().to_owned())
        .collect();
    let next = (skipped + sessions.len()) as u64;
    let next = (next < report.sessions_found).then_some(next);
    Ok(format!("{{\"hits\":[{}],\"searched\":{}}}", hits.join(","), report.to_json(next).as_str()))
}
