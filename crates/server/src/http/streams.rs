//! One live stream: first the events in the file, then new events. A slow listener does not delay others.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use http_body_util::StreamBody;
use hyper::body::Frame as BodyFrame;
use steno_journal::Reader;
use steno_model::RunId;
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc};

use super::connections::stopped;
use super::memory_budget::Reservation;
use super::work::{Job, Lane};
use super::{Api, Problem};
use crate::live::{Frame, FrameId, Subscription, end_of};

/// How many chunks may wait for a listener, and the longest chunk.
const PIECES_MAX: usize = 8;
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// How much of the file is read for a listener at a time; memory for a longer line is reserved separately.
const CATCH_UP_BYTES: usize = 64 * 1024;
/// The comment that keeps a quiet stream alive.
const HEARTBEAT: &[u8] = b": still here\n\n";

/// Where the client wants a stream to start.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// After a number.
    Seq(u64),
    /// After an event that the client has received.
    Id(FrameId),
}

/// Streams the events of a run from a start, and then each new event.
pub(super) async fn stream(api: Arc<Api>, run: RunId, start: Start) -> Result<Response, Problem> {
    let permit = Arc::clone(&api.listeners).try_acquire_owned();
    let permit =
        permit.map_err(|_| Problem::too_much("the limit of live streams is reached: try again later"))?;
    // Subscribe before the file is read, so that no event is missed between the two.
    let listening = api.work(Lane::Streams, move |api| Ok(api.hub.listen(run)?)).await?;
    let (send, frames) = mpsc::channel(PIECES_MAX);
    let last = Arc::new(Mutex::new(None));
    let patience = api.limits.stall;
    let outlet = FrameSender { send, last: Arc::clone(&last), patience, is_torn: false, _permit: permit };
    tokio::spawn(
        StreamFeed { api, run, outlet, sent: StreamPosition::default(), has: 0 }.run(start, listening),
    );
    let body = StreamBody::new(FrameBody { frames, last });
    let mut response = Body::new(body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Sends frames to one listener.
struct FrameSender {
    send: mpsc::Sender<Bytes>,
    /// The last message, sent after all that waits.
    last: Arc<Mutex<Option<Bytes>>>,
    /// How long the listener may not read.
    patience: Duration,
    /// Whether only a part of a frame was sent. Nothing may follow it, so that the client sees an incomplete frame.
    is_torn: bool,
    _permit: OwnedSemaphorePermit,
}

/// Why a stream ends.
enum StreamEnd {
    /// The listener has disconnected.
    Gone,
    /// The listener did not read for too long.
    Stalled,
    /// The run cannot be read any further.
    Broken,
    /// The server stops.
    Stopping,
}

impl FrameSender {
    /// Sends bytes in chunks, so that what waits for a listener is bounded.
    async fn send(&mut self, bytes: Bytes) -> Result<(), StreamEnd> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = rest.split_to(rest.len().min(PIECE_BYTES_MAX));
            self.send.send_timeout(piece, self.patience).await.map_err(|error| match error {
                mpsc::error::SendTimeoutError::Timeout(_) => StreamEnd::Stalled,
                mpsc::error::SendTimeoutError::Closed(_) => StreamEnd::Gone,
            })?;
            self.is_torn = !rest.is_empty();
        }
        Ok(())
    }

    /// Ends the stream with a last message.
    fn end_with(&self, word: Bytes) {
        if !self.is_torn {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(word);
        }
    }
}

/// The frames of one listener as a body.
struct FrameBody {
    frames: mpsc::Receiver<Bytes>,
    last: Arc<Mutex<Option<Bytes>>>,
}

impl futures_core::Stream for FrameBody {
    type Item = Result<BodyFrame<Bytes>, std::convert::Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.frames.poll_recv(context).map(|bytes| {
            let last = || self.last.lock().unwrap_or_else(PoisonError::into_inner).take();
            bytes.or_else(last).map(|bytes| Ok(BodyFrame::data(bytes)))
        })
    }
}

/// How far a stream was sent.
#[derive(Clone, Copy, Default)]
struct StreamPosition {
    /// The last number.
    seq: u64,
    /// Where in the file its line ends.
    end: u64,
}

/// The stream of one listener.
struct StreamFeed {
    api: Arc<Api>,
    run: RunId,
    outlet: FrameSender,
    sent: StreamPosition,
    /// The last number that the client has: no event up to it is sent.
    has: u64,
}

impl StreamFeed {
    /// Sends the events in the file, then new events, until the listener disconnects or is too slow.
    async fn run(mut self, start: Start, listening: Subscription) {
        let mut stopping = self.api.stopping.subscribe();
        let ended = tokio::select! {
            ended = self.follow(start, listening) => ended,
            () = stopped(&mut stopping) => Err(StreamEnd::Stopping),
        };
        match ended {
            Err(StreamEnd::Stalled) => self.outlet.end_with(Frame::lagged(self.sent.seq)),
            Err(StreamEnd::Stopping) => self.outlet.end_with(Frame::stopping(self.sent.seq)),
            Err(StreamEnd::Gone | StreamEnd::Broken) | Ok(()) => {}
        }
    }

    async fn follow(&mut self, start: Start, mut listening: Subscription) -> Result<(), StreamEnd> {
        self.begin(start).await?;
        // Events in the file come before live events.
        let mut is_behind = self.sent.seq < listening.seq_last;
        loop {
            if std::mem::take(&mut is_behind) {
                self.catch_up().await?;
            }
            let received = tokio::select! {
                () = self.outlet.send.closed() => return Err(StreamEnd::Gone),
                received = tokio::time::timeout(self.api.limits.heartbeat, listening.frames.recv()) => received,
            };
            match received {
                Err(_) => self.outlet.send(Bytes::from_static(HEARTBEAT)).await?,
                Ok(Err(broadcast::error::RecvError::Closed)) => return Err(StreamEnd::Broken),
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => is_behind = true,
                Ok(Ok(frame)) if frame.seq <= self.sent.seq => {}
                Ok(Ok(frame)) => {
                    if let Some(bytes) = frame.bytes.clone().filter(|_| frame.seq == self.sent.seq + 1) {
                        self.send(bytes, StreamPosition { seq: frame.seq, end: frame.end }).await?;
                    } else {
                        // A long line, or missed events: read them from the file.
                        is_behind = true;
                    }
                }
            }
        }
    }

    /// Sends an event, unless the client has it.
    async fn send(&mut self, bytes: Bytes, to: StreamPosition) -> Result<(), StreamEnd> {
        if to.seq > self.has {
            self.outlet.send(bytes).await?;
        }
        self.sent = to;
        Ok(())
    }

    /// Waits for memory, and sends heartbeats meanwhile.
    async fn reserve(&mut self, bytes: usize) -> Result<Reservation, StreamEnd> {
        let api = Arc::clone(&self.api);
        let mut reserving = std::pin::pin!(api.long_lines.reserve(bytes));
        loop {
            let reserved = tokio::select! {
                () = self.outlet.send.closed() => return Err(StreamEnd::Gone),
                reserved = tokio::time::timeout(api.limits.heartbeat, &mut reserving) => reserved,
            };
            match reserved {
                Ok(reserved) => return reserved.map_err(|problem| broken(self.run, &problem)),
                Err(_) => self.outlet.send(Bytes::from_static(HEARTBEAT)).await?,
            }
        }
    }

    /// Finds the start of the stream in the file. Sends a reset if the run does not have the client's event.
    async fn begin(&mut self, start: Start) -> Result<(), StreamEnd> {
        let run = self.run;
        let found = self.api.work(Lane::Streams, move |api| find(api, run, start)).await;
        match found.map_err(|problem| broken(run, &problem))? {
            StreamStart::At(place) => (self.sent, self.has) = (place, place.seq),
            StreamStart::Other => self.outlet.send(Frame::reset()).await?,
            // The client asks for events that are not recorded yet.
            StreamStart::Ahead { seq, end } => (self.sent, self.has) = (end, seq),
        }
        Ok(())
    }

    /// Sends the rest of the file in chunks, so that other streams can read in between.
    async fn catch_up(&mut self) -> Result<(), StreamEnd> {
        let mut room = None;
        loop {
            let (run, from, taken) = (self.run, self.sent, room.take());
            let read = self.api.work(Lane::Streams, move |api| read_chunk(api, run, from, taken)).await;
            match read.map_err(|problem| broken(run, &problem))? {
                Chunk::Events(events) if events.is_empty() => return Ok(()),
                Chunk::Events(events) => {
                    for (bytes, to) in events {
                        self.send(bytes, to).await?;
                    }
                }
                // It is read again when there is memory, so that a waiting stream holds none.
                Chunk::Long(bytes) => room = Some(self.reserve(bytes).await?),
            }
        }
    }
}

/// Where a stream starts in the file.
enum StreamStart {
    /// After this position.
    At(StreamPosition),
    /// The run does not have the client's event.
    Other,
    /// After a number beyond the end of the run.
    Ahead { seq: u64, end: StreamPosition },
}

fn find(api: &Job, run: RunId, start: Start) -> Result<StreamStart, Problem> {
    let (seq, id) = match start {
        Start::Seq(0) => return Ok(StreamStart::At(StreamPosition::default())),
        Start::Seq(seq) => (seq, None),
        Start::Id(id) => (id.seq, Some(id)),
    };
    let mut reader = Reader::open(&api.store, run)?.until_now()?;
    let mut end = StreamPosition::default();
    while let Some(recorded) = reader.read_next()? {
        api.check()?;
        end = StreamPosition { seq: recorded.event.seq.get(), end: end_of(&recorded) };
        if end.seq == seq {
            let is_it = id.is_none_or(|id| FrameId::of(&recorded) == id);
            return Ok(if is_it { StreamStart::At(end) } else { StreamStart::Other });
        }
    }
    Ok(if id.is_some() { StreamStart::Other } else { StreamStart::Ahead { seq, end } })
}

/// What was read from the file.
enum Chunk {
    /// Events with their positions; none at the end of the file.
    Events(Vec<(Bytes, StreamPosition)>),
    /// An event that is too long, and needs this much memory.
    Long(usize),
}

fn read_chunk(
    api: &Api,
    run: RunId,
    from: StreamPosition,
    room: Option<Reservation>,
) -> Result<Chunk, Problem> {
    let mut reader =
        Reader::open_after(&api.store, run, from.end, steno_model::Seq::new(from.seq))?.until_now()?;
    let (mut events, mut len) = (Vec::new(), 0);
    while let Some(recorded) = reader.read_next()? {
        let bytes = Frame::bytes_of(&recorded);
        let to = StreamPosition { seq: recorded.event.seq.get(), end: end_of(&recorded) };
        len += bytes.len();
        if len <= CATCH_UP_BYTES {
            events.push((bytes.into(), to));
            continue;
        }
        if !events.is_empty() {
            break;
        }
        let Some(mut room) = room else { return Ok(Chunk::Long(bytes.len())) };
        if !room.fit(bytes.len()) {
            return Ok(Chunk::Long(bytes.len()));
        }
        return Ok(Chunk::Events(vec![(room.hold(bytes), to)]));
    }
    Ok(Chunk::Events(events))
}

fn broken(run: RunId, problem: &Problem) -> StreamEnd {
    tracing::warn!(%run, "a live stream ends: {}", problem.detail);
    StreamEnd::Broken
}
