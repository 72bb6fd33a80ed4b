//! The events of a run: as pages, or as a live stream.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::Response;
use serde::Deserialize;
use steno_journal::{Reader, RecordedEvent};
use steno_model::RunId;
use utoipa::IntoParams;

use super::extract::{InPath, InQuery, RunPath};
use super::streams::{Start, stream};
use super::work::{ANSWER_BYTES, Job};
use super::{Api, Problem};
use crate::live::FrameId;

/// The default and the largest number of events of a page, and the size at which a page ends.
const PAGE_LEN: usize = 1000;
const PAGE_LEN_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = ANSWER_BYTES - 1024;
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Start after this event
    #[param(nullable = false)]
    since_seq: Option<u64>,
    /// Events per page
    #[param(nullable = false, minimum = 1, maximum = 10000)]
    limit: Option<usize>,
}

/// Read the events of a run
///
/// Returns pages of JSON. With `Accept: text/event-stream`, returns a stream: the events after `since_seq` or `Last-Event-ID`,
/// then each new event as any process records it.
#[utoipa::path(get, path = "/v1/runs/{run}/events", params(RunPath, EventsQuery), responses(
    (status = 200, description = "`events`, and `next_since_seq` to get the next page, if there is one", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(api): State<Arc<Api>>,
    InPath(RunPath { run }): InPath<RunPath>,
    InQuery(query): InQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if query.since_seq.is_some_and(|since| i64::try_from(since).is_err()) {
        return Err(Problem::bad_request("`since_seq` is too large"));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
    {
        // An empty header means that the client has received nothing.
        let last = headers.get("last-event-id").filter(|value| !value.is_empty());
        let start = match last.map(|value| value.to_str().ok().and_then(FrameId::parse)) {
            Some(Some(id)) => Start::Id(id),
            Some(None) => return Err(Problem::bad_request("`Last-Event-ID` is not an event id")),
            None => Start::Seq(query.since_seq.unwrap_or(0)),
        };
        return stream(api, run, start).await;
    }
    let limit = query.limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` must be a number from 1 to {PAGE_LEN_MAX}")));
    }
    let since = query.since_seq.unwrap_or(0);
    api.answer(move |api| page(api, run, since, limit)).await
}

fn page(api: &Job, run: RunId, since: u64, limit: usize) -> Result<String, Problem> {
    let mut reader = Reader::open(&api.store, run)?.until_now()?;
    let mut out = String::from("{\"events\":[");
    let (mut count, mut last) = (0, since);
    let mut has_more = false;
    while let Some(RecordedEvent { line, event, .. }) = reader.read_next()? {
        if event.seq.get() <= since {
            api.check()?;
            continue;
        }
        if count == limit || count > 0 && out.len() + line.len() > PAGE_BYTES_MAX {
            has_more = true;
            break;
        }
        if count > 0 {
            out.push(',');
        }
        out.push_str(&String::from_utf8_lossy(&line));
        (count, last) = (count + 1, event.seq.get());
    }
    let next = if has_more { last.to_string() } else { "null".to_owned() };
    out.push_str(&format!("],\"last_seq\":{last},\"next_since_seq\":{next}}}"));
    Ok(out)
}
