//! One live stream: what the file has first, and then what comes, to a listener that nobody waits for.

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
use super::memory_budget::Reserved;
use super::work::{Job, Lane};
use super::{Api, Problem};
use crate::live::{Frame, FrameId, Listening, end_of};

/// How many pieces wait for a listener, and how long each may be.
const PIECES_MAX: usize = 8;
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// How much of the file is read for a listener at a time; a line that is longer needs room of its own.
const CATCH_UP_BYTES: usize = 64 * 1024;
/// What a stream says to show that it is there.
const HEARTBEAT: &[u8] = b": still here\n\n";

/// Where a stream begins.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// After a number.
    Seq(u64),
    /// After an event that somebody has got.
    Id(FrameId),
}

/// Answers with the events of a run from somewhere on, and then with each as it is recorded.
pub(super) async fn stream(api: Arc<Api>, run: RunId, start: Start) -> Result<Response, Problem> {
    let permit = Arc::clone(&api.listeners).try_acquire_owned();
    let permit = permit.map_err(|_| Problem::too_much("as many listen as may: try again later"))?;
    // Listening begins before the file is read, so that nothing falls between the two.
    let listening = api.work(Lane::Streams, move |api| Ok(api.hub.listen(run)?)).await?;
    let (send, frames) = mpsc::channel(PIECES_MAX);
    let last = Arc::new(Mutex::new(None));
    let patience = api.limits.stall;
    let outlet = Outlet { send, last: Arc::clone(&last), patience, is_torn: false, _permit: permit };
    tokio::spawn(Feeding { api, run, outlet, sent: Sent::default(), has: 0 }.run(start, listening));
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
    /// The server stops.
    Stopping,
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

    /// Ends the stream with a last word.
    fn end_with(&self, word: Bytes) {
        if !self.is_torn {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(word);
        }
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
    /// The last number that the listener has, or says it has: no event up to it is sent.
    has: u64,
}

impl Feeding {
    /// Sends what is in the file, and then what comes, until the listener is gone or too slow.
    async fn run(mut self, start: Start, listening: Listening) {
        let mut stopping = self.api.stopping.subscribe();
        let ended = tokio::select! {
            ended = self.follow(start, listening) => ended,
            () = stopped(&mut stopping) => Err(Ended::Stopping),
        };
        match ended {
            Err(Ended::Stalled) => self.outlet.end_with(Frame::lagged(self.sent.seq)),
            Err(Ended::Stopping) => self.outlet.end_with(Frame::stopping(self.sent.seq)),
            Err(Ended::Gone | Ended::Broken) | Ok(()) => {}
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
                        self.send(bytes, Sent { seq: frame.seq, end: frame.end }).await?;
                    } else {
                        // A long line, or one after some that were missed: all of that is in the file.
                        is_behind = true;
                    }
                }
            }
        }
    }

    /// Sends an event, unless the listener has it already.
    async fn send(&mut self, bytes: Bytes, to: Sent) -> Result<(), Ended> {
        if to.seq > self.has {
            self.outlet.send(bytes).await?;
        }
        self.sent = to;
        Ok(())
    }

    /// Waits for room, and says meanwhile that the stream is there.
    async fn room_for(&mut self, bytes: usize) -> Result<Reserved, Ended> {
        let api = Arc::clone(&self.api);
        let mut reserving = std::pin::pin!(api.long_lines.reserve(bytes));
        loop {
            let reserved = tokio::select! {
                () = self.outlet.send.closed() => return Err(Ended::Gone),
                reserved = tokio::time::timeout(api.limits.heartbeat, &mut reserving) => reserved,
            };
            match reserved {
                Ok(reserved) => return reserved.map_err(|problem| broken(self.run, &problem)),
                Err(_) => self.outlet.send(Bytes::from_static(HEARTBEAT)).await?,
            }
        }
    }

    /// Finds where the stream begins in the file; what the listener has and the run has not is told.
    async fn begin(&mut self, start: Start) -> Result<(), Ended> {
        let run = self.run;
        let found = self.api.work(Lane::Streams, move |api| find(api, run, start)).await;
        match found.map_err(|problem| broken(run, &problem))? {
            Found::At(place) => (self.sent, self.has) = (place, place.seq),
            Found::Other => self.outlet.send(Frame::reset()).await?,
            // What is asked for is yet to come.
            Found::Ahead { seq, end } => (self.sent, self.has) = (end, seq),
        }
        Ok(())
    }

    /// Sends what the file has behind what was sent, piece by piece: nobody else waits while the listener reads.
    async fn catch_up(&mut self) -> Result<(), Ended> {
        let mut room = None;
        loop {
            let (run, from, taken) = (self.run, self.sent, room.take());
            let read = self.api.work(Lane::Streams, move |api| read_piece(api, run, from, taken)).await;
            match read.map_err(|problem| broken(run, &problem))? {
                Piece::Events(events) if events.is_empty() => return Ok(()),
                Piece::Events(events) => {
                    for (bytes, to) in events {
                        self.send(bytes, to).await?;
                    }
                }
                // It is read again when there is room: those who wait for that hold nothing.
                Piece::Long(bytes) => room = Some(self.room_for(bytes).await?),
            }
        }
    }
}

/// Where a stream begins.
enum Found {
    /// After this one.
    At(Sent),
    /// The run has something else than the listener.
    Other,
    /// After a number that is beyond the end of the run.
    Ahead { seq: u64, end: Sent },
}

fn find(api: &Job, run: RunId, start: Start) -> Result<Found, Problem> {
    let (seq, id) = match start {
        Start::Seq(0) => return Ok(Found::At(Sent::default())),
        Start::Seq(seq) => (seq, None),
        Start::Id(id) => (id.seq, Some(id)),
    };
    let mut reader = Reader::open(&api.store, run)?.until_now()?;
    let mut end = Sent::default();
    while let Some(recorded) = reader.read_next()? {
        api.check()?;
        end = Sent { seq: recorded.event.seq.get(), end: end_of(&recorded) };
        if end.seq == seq {
            let is_it = id.is_none_or(|id| FrameId::of(&recorded) == id);
            return Ok(if is_it { Found::At(end) } else { Found::Other });
        }
    }
    Ok(if id.is_some() { Found::Other } else { Found::Ahead { seq, end } })
}

/// What was read for a listener.
enum Piece {
    /// Events, with how far each brings it; none when there are no more.
    Events(Vec<(Bytes, Sent)>),
    /// One that is so long that there has to be room for it.
    Long(usize),
}

fn read_piece(api: &Api, run: RunId, from: Sent, room: Option<Reserved>) -> Result<Piece, Problem> {
    let mut reader =
        Reader::open_after(&api.store, run, from.end, steno_model::Seq::new(from.seq))?.until_now()?;
    let (mut events, mut len) = (Vec::new(), 0);
    while let Some(recorded) = reader.read_next()? {
        let bytes = Frame::bytes_of(&recorded);
        let to = Sent { seq: recorded.event.seq.get(), end: end_of(&recorded) };
        len += bytes.len();
        if len <= CATCH_UP_BYTES {
            events.push((bytes.into(), to));
            continue;
        }
        if !events.is_empty() {
            break;
        }
        let Some(mut room) = room else { return Ok(Piece::Long(bytes.len())) };
        if !room.fit(bytes.len()) {
            return Ok(Piece::Long(bytes.len()));
        }
        return Ok(Piece::Events(vec![(room.hold(bytes), to)]));
    }
    Ok(Piece::Events(events))
}

fn broken(run: RunId, problem: &Problem) -> Ended {
    tracing::warn!(%run, "a stream cannot go on: {}", problem.detail);
    Ended::Broken
}
