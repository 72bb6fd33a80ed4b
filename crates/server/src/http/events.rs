//! The events of a run: page by page, or as a stream that goes on live.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::StreamBody;
use hyper::body::Frame as BodyFrame;
use serde::Deserialize;
use steno_journal::{Reader, Recorded};
use steno_model::RunId;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc};
use utoipa::IntoParams;

use super::extract::{InPath, InQuery};
use super::runs::parse;
use super::{Api, Problem};
use crate::live::{Frame, FrameId, Listening};

/// How many events a page has, if it is not said, and at most; and after how many bytes it ends.
const PAGE_LEN: usize = 1000;
const PAGE_LEN_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many frames of a replay are read ahead of whoever takes them.
const REPLAY_AHEAD: usize = 64;
/// What a stream says to show that it is there.
const HEARTBEAT: &[u8] = b": still here\n\n";

/// Answers with JSON.
pub(super) fn json_response(json: String) -> Response {
    let mut response = json.into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

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
#[utoipa::path(get, path = "/v1/runs/{run}/events", params(
    ("run" = String, Path, pattern = "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$", description = "The run's UUID"),
    EventsQuery,
), responses(
    (status = 200, description = "`events`, and in `next_since_seq` where to go on, if there are more", content_type = "application/json"),
    (status = 400, body = Problem, content_type = "application/problem+json"),
    (status = 404, body = Problem, content_type = "application/problem+json"),
    (status = 409, body = Problem, content_type = "application/problem+json"),
    (status = 503, body = Problem, content_type = "application/problem+json"),
))]
pub(super) async fn events(
    State(api): State<Arc<Api>>,
    InPath(run): InPath<String>,
    InQuery(query): InQuery<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let run = parse(&run)?;
    if query.since_seq.is_some_and(|since| i64::try_from(since).is_err()) {
        return Err(Problem::bad_request("`since_seq` is larger than any number of an event"));
    }
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accept.split(',').any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
    {
        let last = headers.get("last-event-id").map(|value| value.to_str().ok().and_then(FrameId::parse));
        let from = match last {
            Some(Some(id)) => From::Id(id),
            Some(None) => return Err(Problem::bad_request("`Last-Event-ID` is no id of an event")),
            None => From::Seq(query.since_seq.unwrap_or(0)),
        };
        return stream(api, run, from).await;
    }
    let limit = query.limit.unwrap_or(PAGE_LEN);
    if !(1..=PAGE_LEN_MAX).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {PAGE_LEN_MAX}")));
    }
    let since = query.since_seq.unwrap_or(0);
    Ok(json_response(api.work(move |api| page(api, run, since, limit)).await?))
}

fn page(api: &Api, run: RunId, since: u64, limit: usize) -> Result<String, Problem> {
    let mut reader = Reader::open(&api.store, run)?.until_now()?;
    let mut out = String::from("{\"events\":[");
    let (mut count, mut last) = (0, since);
    let mut has_more = false;
    while let Some(Recorded { line, event, .. }) = reader.read_next()? {
        if event.seq.get() <= since {
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

/// Where a stream begins.
#[derive(Clone, Copy)]
enum From {
    /// After a number.
    Seq(u64),
    /// After an event that somebody has got.
    Id(FrameId),
}

impl From {
    fn seq(self) -> u64 {
        match self {
            Self::Seq(seq) => seq,
            Self::Id(id) => id.seq,
        }
    }
}

async fn stream(api: Arc<Api>, run: RunId, from: From) -> Result<Response, Problem> {
    let permit = Arc::clone(&api.listeners).try_acquire_owned();
    let permit = permit.map_err(|_| Problem::too_much("as many listen as may: try again later"))?;
    // Listening begins before the file is read, so that nothing falls between the two.
    let listening = api.work(move |api| Ok(api.hub.listen(run)?)).await?;
    let (send, frames) = mpsc::channel(REPLAY_AHEAD);
    let last = Arc::new(Mutex::new(None));
    let outlet = Outlet { send, last: Arc::clone(&last), _permit: permit };
    tokio::spawn(feed(api, run, from, listening, outlet));
    let body = StreamBody::new(Frames { frames, last });
    let mut response = Body::new(body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Where the frames of one listener go.
struct Outlet {
    send: mpsc::Sender<Bytes>,
    /// What is told last, after all that waits.
    last: Arc<Mutex<Option<Bytes>>>,
    _permit: OwnedSemaphorePermit,
}

impl Outlet {
    /// Sends a frame; false when the listener is gone, or has not read for too long.
    async fn send(&self, bytes: Bytes, patience: Duration) -> bool {
        self.send.send_timeout(bytes, patience).await.is_ok()
    }

    /// Ends the stream with word of where it can be taken up again.
    fn end_at(&self, sent: u64) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(Frame::lagged(sent));
    }
}

/// The frames of one listener as a body.
struct Frames {
    frames: mpsc::Receiver<Bytes>,
    last: Arc<Mutex<Option<Bytes>>>,
}

impl futures_core::Stream for Frames {
    type Item = Result<BodyFrame<Bytes>, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.frames.poll_recv(context).map(|bytes| {
            let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
            bytes.or_else(last).map(|bytes| Ok(BodyFrame::data(bytes)))
        })
    }
}

/// Sends what is in the file, and then what comes, until the listener is gone or too slow.
async fn feed(api: Arc<Api>, run: RunId, from: From, listening: Listening, outlet: Outlet) {
    let Listening { mut frames, seq_last } = listening;
    let Some(mut sent) = replay(&api, run, from, seq_last, &outlet).await else { return };
    loop {
        let bytes = match tokio::time::timeout(api.limits.heartbeat, frames.recv()).await {
            Ok(Ok(frame)) if frame.seq <= sent => continue,
            Ok(Ok(frame)) => match frame.bytes.clone() {
                Some(bytes) => {
                    if !outlet.send(bytes, api.limits.stall).await {
                        return outlet.end_at(sent);
                    }
                    sent = frame.seq;
                    continue;
                }
                None => match replay(&api, run, From::Seq(sent), frame.seq, &outlet).await {
                    Some(last) => {
                        sent = last;
                        continue;
                    }
                    None => return outlet.end_at(sent),
                },
            },
            Ok(Err(broadcast::error::RecvError::Lagged(_))) => return outlet.end_at(sent),
            Ok(Err(broadcast::error::RecvError::Closed)) => return,
            Err(_) => Bytes::from_static(HEARTBEAT),
        };
        if !outlet.send(bytes, api.limits.stall).await {
            return outlet.end_at(sent);
        }
    }
}

/// Sends what the file has up to where live events begin; returns the last number, or `None` when that is all.
async fn replay(api: &Arc<Api>, run: RunId, from: From, until: u64, outlet: &Outlet) -> Option<u64> {
    if from.seq() > until && matches!(from, From::Seq(_)) {
        // What is asked for is yet to come.
        return Some(from.seq());
    }
    let send = outlet.send.clone();
    let read = api.work(move |api| {
        let mut last = 0;
        let start = match from {
            From::Id(id) if !is_known(api, run, id)? => {
                send.blocking_send(Frame::reset()).ok();
                0
            }
            From::Id(_) | From::Seq(_) => from.seq(),
        };
        let mut reader = Reader::open(&api.store, run)?;
        while last < until
            && let Some(recorded) = reader.read_next()?
        {
            last = recorded.event.seq.get();
            if last > start && send.blocking_send(Frame::bytes_of(&recorded)).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(last.max(start)))
    });
    match read.await {
        Ok(last) => last,
        Err(problem) => {
            tracing::warn!(%run, "a stream cannot go on: {}", problem.detail);
            None
        }
    }
}

/// Tells whether an event is still the one that somebody got under its id.
fn is_known(api: &Api, run: RunId, id: FrameId) -> Result<bool, Problem> {
    let mut reader = Reader::open(&api.store, run)?.until_now()?;
    while let Some(recorded) = reader.read_next()? {
        if recorded.event.seq.get() == id.seq {
            return Ok(FrameId::of(&recorded) == id);
        }
    }
    Ok(false)
}
