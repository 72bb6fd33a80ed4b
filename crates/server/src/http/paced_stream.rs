//! A connection that fails when the other end stops reading.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How much the other end has to read within the time limit, unless less is waiting.
const PROGRESS_BYTES: usize = 16 * 1024;
/// How long the other end may continue sending after the answer was written.
const LINGER: Duration = Duration::from_secs(1);
/// How much of that is read at a time.
const TAKE_BYTES: usize = 8 * 1024;

/// A connection that fails when the other end stops reading.
pub(super) struct PacedStream<S> {
    stream: S,
    patience: Duration,
    /// Until when the other end has to read enough; `None` while nothing waits.
    deadline: Option<Pin<Box<Sleep>>>,
    /// How much it has read since then.
    taken: usize,
    /// Until when the other end may close, after this end did.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S> PacedStream<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, deadline: None, taken: 0, lingering: None }
    }

    fn pace(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(len)) = written {
            self.taken += len;
            if self.taken >= PROGRESS_BYTES {
                self.deadline = None;
            }
        }
        if written.is_pending() {
            if self.deadline.is_none() {
                self.taken = 0;
            }
            let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(self.patience)));
            ready!(deadline.as_mut().poll(context));
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client does not read the answer",
            )));
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PacedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for PacedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pace(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.pace(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A flush comes after everything was written: nothing waits any more.
        self.deadline = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let paced = &mut *self;
        if paced.lingering.is_none() {
            ready!(Pin::new(&mut paced.stream).poll_shutdown(context))?;
        }
        let lingering = paced.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        // Closing a connection with unread input makes the other end drop the answer.
        let mut space = [MaybeUninit::uninit(); TAKE_BYTES];
        while lingering.as_mut().poll(context).is_pending() {
            let mut taken = ReadBuf::uninit(&mut space);
            let read = ready!(Pin::new(&mut paced.stream).poll_read(context, &mut taken));
            if read.is_err() || taken.filled().is_empty() {
                break;
            }
        }
        Poll::Ready(Ok(()))
    }
}
