//! The queue between the proxy and the recorder. The proxy puts messages in and never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use hyper::body::Bytes;
use steno_model::Timestamp;
use steno_model::json::RawJson;

use super::messages::HttpMessages;
use super::secrets::Secrets;
use crate::proxy::WAITING_BYTES_MAX;

/// One side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Request,
    Response,
}

/// Something that passed the proxy.
pub(super) struct TapEvent {
    pub(super) exchange: u64,
    pub(super) time: Timestamp,
    pub(super) content: TapContent,
}

/// What passed the proxy.
pub(super) enum TapContent {
    Request(Box<RequestHead>),
    Response(Box<ResponseHead>),
    /// A piece of a body.
    Chunk(Side, Bytes),
    /// A piece of a body that was not kept because too much waits already.
    Dropped(Side),
    /// Values of trailers, which are not recorded.
    Trailers(Secrets),
    /// The end of a body, and how many bytes it had.
    End(Side, BodyEnd, u64),
    /// There is no answer.
    NoResponse(String),
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BodyEnd {
    Complete,
    /// The sender broke off.
    Cut(String),
    /// The receiver left before the end.
    Abandoned,
}

/// The beginning of a request.
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: Vec<&'static str>,
    pub(super) query_omitted: u64,
    pub(super) headers: RawJson,
    pub(super) coding: Option<String>,
    pub(super) is_model_call: bool,
    pub(super) secrets: Secrets,
}

/// The beginning of an answer.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) headers: RawJson,
    pub(super) coding: Option<String>,
    pub(super) is_event_stream: bool,
    pub(super) is_upgrade: bool,
    pub(super) secrets: Secrets,
}

/// Receives what passes the proxy.
#[derive(Clone)]
pub struct HttpTap {
    send: Sender<TapEvent>,
    waiting: Arc<AtomicUsize>,
    exchanges: Arc<AtomicU64>,
}

/// Creates a connected pair: the proxy tells the tap, and records come out.
#[must_use]
pub fn http_tap() -> (HttpTap, HttpMessages) {
    let (send, events): (_, Receiver<TapEvent>) = channel();
    let waiting = Arc::<AtomicUsize>::default();
    let tap = HttpTap { send, waiting: Arc::clone(&waiting), exchanges: Arc::default() };
    (tap, HttpMessages::new(events, waiting))
}

impl HttpTap {
    /// Begins an exchange.
    pub(super) fn begin(&self, keeps_bodies: bool) -> ExchangeTap {
        let exchange = self.exchanges.fetch_add(1, Ordering::Relaxed) + 1;
        ExchangeTap { tap: self.clone(), exchange, keeps_bodies }
    }
}

/// Receives what passes of one exchange.
#[derive(Clone)]
pub(super) struct ExchangeTap {
    tap: HttpTap,
    exchange: u64,
    keeps_bodies: bool,
}

impl ExchangeTap {
    /// Tells whether the bodies are recorded.
    pub(super) fn keeps_bodies(&self) -> bool {
        self.keeps_bodies
    }

    /// Puts something in the queue.
    pub(super) fn tell(&self, content: TapContent) {
        let time = Timestamp::from_instant(jiff::Timestamp::now());
        // The recorder may be gone; the proxy continues.
        self.tap.send.send(TapEvent { exchange: self.exchange, time, content }).ok();
    }

    /// Puts a piece of a body in the queue, or a note if the queue is too long.
    pub(super) fn chunk(&self, side: Side, bytes: &Bytes) {
        if !self.keeps_bodies || bytes.is_empty() {
            return;
        }
        let before = self.tap.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        if before + bytes.len() > WAITING_BYTES_MAX {
            self.tap.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            self.tell(TapContent::Dropped(side));
        } else {
            self.tell(TapContent::Chunk(side, bytes.clone()));
        }
    }
}
