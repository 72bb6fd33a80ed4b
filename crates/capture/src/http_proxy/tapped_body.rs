//! A body that is passed on frame by frame, with a copy to the tap.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

use super::secrets::Secrets;
use super::tap::{BodyEnd, ExchangeTap, Side, TapContent};

/// A body on its way through the proxy.
pub(super) struct TappedBody {
    inner: Incoming,
    tap: ExchangeTap,
    side: Side,
    bytes: u64,
    is_over: bool,
}

impl TappedBody {
    pub(super) fn new(inner: Incoming, tap: ExchangeTap, side: Side) -> Self {
        Self { inner, tap, side, bytes: 0, is_over: false }
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
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
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
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl Drop for TappedBody {
    fn drop(&mut self) {
        // A body whose length is known is not polled again after its last byte.
        let end = if self.inner.is_end_stream() { BodyEnd::Complete } else { BodyEnd::Abandoned };
        self.end(end);
    }
}
