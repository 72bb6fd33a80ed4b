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
use crate::live::{Frame, FrameId, Listening, end_of};

/// How many events a page has, if it is not said, and at most; and after how many bytes it ends.
const PAGE_LEN: usize = 1000;
const PAGE_LEN_MAX: usize = 10_000;
const PAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many pieces wait for a listener, and how long each may be.
const PIECES_MAX: usize = 16;
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// How much of the file is read for a listener at a time, or one line that is longer.
const CATCH_UP_BYTES: usize = 256 * 1024;
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
        let start = match last {
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
enum Start {
    /// After a number.
    Seq(u64),
    /// After an event that somebody has got.
    Id(FrameId),
}

async fn stream(api: Arc<Api>, run: RunId, start: Start) -> Result<Response, Problem> {
    let permit = Arc::clone(&api.listeners).try_acquire_owned();
    let permit = permit.map_err(|_| Problem::too_much("as many listen as may: try again later"))?;
    // Listening begins before the file is read, so that nothing falls between the two.
    let listening = api.work(move |api| Ok(api.hub.listen(run)?)).await?;
    let (send, frames) = mpsc::channel(PIECES_MAX);
    let last = Arc::new(Mutex::new(None));
    let patience = api.limits.stall;
    let outlet = Outlet { send, last: Arc::clone(&last), patience, is_torn: false, _permit: permit };
    tokio::spawn(Feeding { api, run, outlet, sent: Sent::default() }.run(start, listening));
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
    /// How long it may stand still.
    patience: Duration,
    /// Whether only a part of a frame was sent. Nothing can be told behind that: it has to end so that it is no frame.
    is_torn: bool,
    _permit: OwnedSemaphorePermit,
}

/// Why a stream ends.
enum Ended {
    /// The listener is gone.
    Gone,
    /// It has not read for too long.
    Stalled,
    /// The run cannot be read on.
    Broken,
}

impl Outlet {
    /// Sends bytes, in pieces: what waits for a listener is bounded, however long a line is.
    async fn send(&mut self, bytes: Bytes) -> Result<(), Ended> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES_MAX));
            self.send.send_timeout(piece, self.patience).await.map_err(|error| match error {
                mpsc::error::SendTimeoutError::Timeout(_) => Ended::Stalled,
                mpsc::error::SendTimeoutError::Closed(_) => Ended::Gone,
            })?;
            self.is_torn = !rest.is_empty();
        }
        Ok(())
    }

    /// Ends the stream with word of where it can be taken up again.
    fn end_at(&self, sent: u64) {
        if self.is_torn {
            return;
        }
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

/// How far a listener has got.
#[derive(Clone, Copy, Default)]
struct Sent {
    /// The last number.
    seq: u64,
    /// Where in the file its line ends.
    end: u64,
}

/// One listener being fed.
struct Feeding {
    api: Arc<Api>,
    run: RunId,
    outlet: Outlet,
    sent: Sent,
}

impl Feeding {
    /// Sends what is in the file, and then what comes, until the listener is gone or too slow.
    async fn run(mut self, start: Start, listening: Listening) {
        if let Err(Ended::Stalled) = self.follow(start, listening).await {
            self.outlet.end_at(self.sent.seq);
        }
    }

    async fn follow(&mut self, start: Start, mut listening: Listening) -> Result<(), Ended> {
        self.begin(start).await?;
        // What is in the file comes before what is told live.
        let mut is_behind = self.sent.seq < listening.seq_last;
        loop {
            if std::mem::take(&mut is_behind) {
                self.catch_up().await?;
            }
            let heard = tokio::select! {
                () = self.outlet.send.closed() => return Err(Ended::Gone),
                heard = tokio::time::timeout(self.api.limits.heartbeat, listening.frames.recv()) => heard,
            };
            match heard {
                Err(_) => self.outlet.send(Bytes::from_static(HEARTBEAT)).await?,
                Ok(Err(broadcast::error::RecvError::Closed)) => return Err(Ended::Broken),
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => is_behind = true,
                Ok(Ok(frame)) if frame.seq <= self.sent.seq => {}
                Ok(Ok(frame)) => {
                    if let Some(bytes) = frame.bytes.clone().filter(|_| frame.seq == self.sent.seq + 1) {
                        self.outlet.send(bytes).await?;
                        self.sent = Sent { seq: frame.seq, end: frame.end };
                    } else {
                        // A long line, or one after some that were missed: all of that is in the file.
                        is_behind = true;
                    }
                }
            }
        }
    }

    /// Finds where the stream begins in the file; what the listener has and the run has not is told.
    async fn begin(&mut self, start: Start) -> Result<(), Ended> {
        let run = self.run;
        let found = self.api.work(move |api| find(api, run, start)).await;
        match (found.map_err(|problem| broken(run, &problem))?, start) {
            (Some(found), _) => self.sent = found,
            (None, Start::Id(_)) => self.outlet.send(Frame::reset()).await?,
            // What is asked for is yet to come.
            (None, Start::Seq(seq)) => self.sent.seq = seq,
        }
        Ok(())
    }

    /// Sends what the file has behind what was sent, piece by piece: nobody else waits while the listener reads.
    async fn catch_up(&mut self) -> Result<(), Ended> {
        loop {
            let (run, from) = (self.run, self.sent);
            let read = self.api.work(move |api| read_piece(api, run, from)).await;
            let events = read.map_err(|problem| broken(run, &problem))?;
            if events.is_empty() {
                return Ok(());
            }
            for (bytes, to) in events {
                self.outlet.send(bytes).await?;
                self.sent = to;
            }
        }
    }
}

/// Finds the event that a stream begins after; `None` when the run has no such one.
fn find(api: &Api, run: RunId, start: Start) -> Result<Option<Sent>, Problem> {
    let (seq, id) = match start {
        Start::Seq(0) => return Ok(Some(Sent::default())),
        Start::Seq(seq) => (seq, None),
        Start::Id(id) => (id.seq, Some(id)),
    };
    let mut reader = Reader::open(&api.store, run)?.until_now()?;
    while let Some(recorded) = reader.read_next()? {
        if recorded.event.seq.get() == seq {
            let is_it = id.is_none_or(|id| FrameId::of(&recorded) == id);
            return Ok(is_it.then(|| Sent { seq, end: end_of(&recorded) }));
        }
    }
    Ok(None)
}

fn read_piece(api: &Api, run: RunId, from: Sent) -> Result<Vec<(Bytes, Sent)>, Problem> {
    let mut reader =
        Reader::open_after(&api.store, run, from.end, steno_model::Seq::new(from.seq))?.until_now()?;
    let (mut events, mut len) = (Vec::new(), 0);
    while len < CATCH_UP_BYTES
        && let Some(recorded) = reader.read_next()?
    {
        let bytes = Frame::bytes_of(&recorded);
        len += bytes.len();
        events.push((bytes, Sent { seq: recorded.event.seq.get(), end: end_of(&recorded) }));
    }
    Ok(events)
}

fn broken(run: RunId, problem: &Problem) -> Ended {
    tracing::warn!(%run, "a stream cannot go on: {}", problem.detail);
    Ended::Broken
}
