//! The events of a run: page by page, or as a stream that goes on live.

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

/// How many events a page has, if it is not said, and at most; and after how many bytes it ends.
const PAGE_LEN: usize = 1000;
const PAGE_LEN_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = ANSWER_BYTES - 1024;
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EventsQuery {
    /// Begin after this event
    #[param(nullable = false)]
    since_seq: Option<u64>,
    /// How many at most, of a page
    #[param(nullable = false, minimum = 1, maximum = 10000)]
    limit: Option<usize>,
}

/// Read the events of a run
///
/// As pages of JSON; with `Accept: text/event-stream` as a stream: those after `since_seq` or `Last-Event-ID`, and then each as it
/// is recorded, by whatever process.
#[utoipa::path(get, path = "/v1/runs/{run}/events", params(RunPath, EventsQuery), responses(
    (status = 200, description = "`events`, and in `next_since_seq` where to go on, if there are more", content_type = "application/json"),
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
        return Err(Problem::bad_request("`since_seq` is larger than any number of an event"));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
    {
        // An empty one says that nothing was received.
        let last = headers.get("last-event-id").filter(|value| !value.is_empty());
        let start = match last.map(|value| value.to_str().ok().and_then(FrameId::parse)) {
            Some(Some(id)) => Start::Id(id),
            Some(None) => return Err(Problem::bad_request("`Last-Event-ID` is no id of an event")),
            None => Start::Seq(query.since_seq.unwrap_or(0)),
        };
        return stream(api, run, start).await;
    }
    let limit = query.limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {PAGE_LEN_MAX}")));
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
