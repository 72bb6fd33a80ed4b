//! A connection whose other end has to go on reading: one that does not is given up.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How much has to be read within the time that is given, unless less is waiting.
const PROGRESS_BYTES: usize = 16 * 1024;
/// For how long the other end may go on sending what nobody wants, after all was said.
const LINGER: Duration = Duration::from_secs(1);
/// How much of that is taken at a time.
const TAKE_BYTES: usize = 8 * 1024;

/// A connection that fails when what is written to it stands still.
pub(super) struct Paced<S> {
    stream: S,
    patience: Duration,
    /// Until when enough has to be taken of what waits; nothing while nothing waits.
    deadline: Option<Pin<Box<Sleep>>>,
    /// How much was taken since that began.
    taken: usize,
    /// Until when the other end may close, after we have.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
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
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads the answer")));
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Paced<S> {
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
        // It is asked for when all was written: nothing waits any more.
        self.deadline = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let paced = &mut *self;
        if paced.lingering.is_none() {
            ready!(Pin::new(&mut paced.stream).poll_shutdown(context))?;
        }
        let lingering = paced.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        // A connection that is closed before all was received makes the other end forget the answer.
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
