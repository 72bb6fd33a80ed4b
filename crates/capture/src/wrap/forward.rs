//! Forwards the bytes of one stream, and then sends them to the queue.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use steno_model::wrap::WrapLane;

use super::queue::SpoolQueue;
#[cfg(target_os = "linux")]
use super::splice::Splicer;

/// How many bytes are read at a time.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// Pieces of at least this size are moved, not copied. Each smaller piece would use up a slot of the pipes.
pub(super) const MANY_BYTES: usize = 64 * 1024;
/// Programs that print a lot write at least this at once.
const BULK_BYTES: usize = 4096;
/// A stream is busy if less time than this is between two pieces. The forwarder then sleeps for this time.
const BUSY: Duration = Duration::from_millis(1);
const REST: Duration = Duration::from_micros(200);

/// How a stream ended.
#[derive(Debug)]
pub enum ForwardEnd {
    /// The writing side closed it.
    Closed,
    /// The reading side is gone.
    Unread,
    /// It was stopped, and there were no more bytes.
    Stopped,
    /// Reading or writing failed.
    Failed(io::Error),
}

/// Stops forwarders when dropped: they forward the bytes that are there, and do not wait for more.
pub struct Stop(OwnedFd);

/// What a forwarder watches to know when to stop. It is readable once [`Stop`] is dropped.
pub struct StopSignal(OwnedFd);

impl Stop {
    /// Makes a connected pair.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new() -> io::Result<(Self, StopSignal)> {
        let (read, write) = io::pipe()?;
        Ok((Self(write.into()), StopSignal(read.into())))
    }

    /// Stops the forwarders.
    pub fn stop(self) {
        drop(self.0);
    }
}

impl StopSignal {
    /// Returns another handle for another forwarder.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }
}

/// Forwards one stream.
pub struct Forwarder<'a> {
    /// The source. It is closed at the end, so that the command sees that nobody reads any more.
    pub from: OwnedFd,
    /// The destination.
    pub to: BorrowedFd<'a>,
    /// The lane in the file; `None` if the stream is not kept.
    pub lane: Option<WrapLane>,
    /// Stops it.
    pub stop: StopSignal,
}

impl Forwarder<'_> {
    /// Runs until one side is gone or it is stopped.
    #[must_use]
    pub fn run(self, queue: &SpoolQueue) -> ForwardEnd {
        let mut state = ForwardState::new(&self);
        let end = loop {
            match self.wait() {
                Ok(true) => {}
                Ok(false) => break ForwardEnd::Stopped,
                Err(error) => break ForwardEnd::Failed(error.into()),
            }
            match self.step(&mut state, queue) {
                Ok(len) => state.rest_after(len),
                Err(end) => break end,
            }
        };
        if let Some(lane) = self.lane {
            queue.close(lane);
        }
        end
    }

    /// Waits for bytes; false if it was stopped and there are none.
    fn wait(&self) -> Result<bool, Errno> {
        loop {
            let mut fds = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.stop.0, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => return Ok(!fds[0].revents().is_empty()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Forwards the bytes that are there. Returns their number.
    fn step(&self, state: &mut ForwardState, queue: &SpoolQueue) -> Result<usize, ForwardEnd> {
        #[cfg(target_os = "linux")]
        if let Some(splicer) = &mut state.splicer
            && let Some(len) = splicer.step(&self.from, self.to, queue)?
        {
            return Ok(len);
        }
        self.copy(&mut state.buffer, queue)
    }

    /// Reads once and forwards what was read. Returns the number of bytes.
    fn copy(&self, buffer: &mut Vec<u8>, queue: &SpoolQueue) -> Result<usize, ForwardEnd> {
        buffer.resize(READ_BYTES, 0);
        let read = match rustix::io::read(&self.from, &mut **buffer) {
            // Reading from the master of a terminal fails like this when the last program has closed the other side.
            Ok(0) | Err(Errno::IO) => return Err(ForwardEnd::Closed),
            Ok(read) => read,
            Err(Errno::INTR | Errno::AGAIN) => return Ok(0),
            Err(error) => return Err(ForwardEnd::Failed(error.into())),
        };
        let handed_on = write_all(self.to, &buffer[..read]);
        if let Some(lane) = self.lane {
            queue.send(lane, buffer, read);
        }
        handed_on.map(|()| read)
    }
}

/// The state of a forwarder.
struct ForwardState {
    buffer: Vec<u8>,
    #[cfg(target_os = "linux")]
    splicer: Option<Splicer>,
    last: Instant,
}

impl ForwardState {
    fn new(forwarder: &Forwarder<'_>) -> Self {
        Self {
            buffer: Vec::new(),
            #[cfg(target_os = "linux")]
            splicer: forwarder.lane.and_then(|lane| Splicer::new(&forwarder.from, lane)),
            last: Instant::now(),
        }
    }

    /// Sleeps for a moment if many short pieces come. The command continues meanwhile, because its pipe has room, and the
    /// next piece is longer.
    fn rest_after(&mut self, len: usize) {
        let is_busy = self.last.elapsed() < BUSY;
        if is_busy && (BULK_BYTES..MANY_BYTES).contains(&len) {
            std::thread::sleep(REST);
        }
        self.last = Instant::now();
    }
}

/// Writes all bytes, also to a non-blocking stream.
pub(super) fn write_all(to: BorrowedFd<'_>, mut bytes: &[u8]) -> Result<(), ForwardEnd> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(0) => return Err(ForwardEnd::Unread),
            Ok(written) => bytes = &bytes[written..],
            Err(error) => retry(to, error)?,
        }
    }
    Ok(())
}

/// Waits until a write may succeed.
pub(super) fn retry(to: BorrowedFd<'_>, error: Errno) -> Result<(), ForwardEnd> {
    match error {
        Errno::INTR => Ok(()),
        Errno::AGAIN => {
            poll(&mut [PollFd::from_borrowed_fd(to.as_fd(), PollFlags::OUT)], None).ok();
            Ok(())
        }
        Errno::PIPE | Errno::IO => Err(ForwardEnd::Unread),
        error => Err(ForwardEnd::Failed(error.into())),
    }
}
