//! A body that is passed on frame by frame, with a copy to the tap.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http_body_util::BodyExt as _;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use tokio::sync::oneshot;

use super::secrets::Secrets;
use super::tap::{BodyEnd, ExchangeTap, Side, TapContent};

/// A body on its way through the proxy.
pub(super) struct TappedBody {
    /// `None` once it was passed to `rest`.
    inner: Option<Incoming>,
    tap: ExchangeTap,
    side: Side,
    bytes: u64,
    is_over: bool,
    /// Receives what nobody has read.
    rest: Option<oneshot::Sender<TappedBody>>,
}

impl TappedBody {
    pub(super) fn new(inner: Incoming, tap: ExchangeTap, side: Side) -> Self {
        Self { inner: Some(inner), tap, side, bytes: 0, is_over: false, rest: None }
    }

    /// Returns the body with a receiver, which gets what is not read of it.
    pub(super) fn with_rest(self) -> (Self, oneshot::Receiver<Self>) {
        let (send, receive) = oneshot::channel();
        let mut body = self;
        body.rest = Some(send);
        (body, receive)
    }

    /// Reads to the end, for the tap alone.
    pub(super) async fn drain(mut self) {
        while let Some(Ok(_)) = self.frame().await {}
    }

    fn end(&mut self, end: BodyEnd) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.tap.tell(TapContent::End(self.side, end, self.bytes));
        }
    }
}

impl Body for TappedBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(inner).poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.bytes += data.len() as u64;
                    self.tap.chunk(self.side, data);
                }
                if let Some(trailers) = frame.trailers_ref() {
                    let mut secrets = Secrets::default();
                    secrets.add_headers(trailers);
                    self.tap.tell(TapContent::Trailers(secrets));
                }
            }
            Some(Err(error)) => self.end(BodyEnd::Cut(steno_model::with_causes(error))),
            None => self.end(BodyEnd::Complete),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map(Incoming::size_hint).unwrap_or_default()
    }
}

impl Drop for TappedBody {
    fn drop(&mut self) {
        // A body whose length is known is not polled again after its last byte.
        if self.is_end_stream() {
            return self.end(BodyEnd::Complete);
        }
        if let (false, Some(rest)) = (self.is_over, self.rest.take()) {
            let (inner, tap) = (self.inner.take(), self.tap.clone());
            self.is_over = true;
            // If nobody waits for it, it comes back, and ends here.
            drop(rest.send(Self {
                inner,
                tap,
                side: self.side,
                bytes: self.bytes,
                is_over: false,
                rest: None,
            }));
            return;
        }
        self.end(BodyEnd::Abandoned);
    }
}
