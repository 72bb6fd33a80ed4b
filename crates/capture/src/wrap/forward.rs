//! Forwards the bytes of one stream, and then puts them into the queue.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ioctl_fionread};
use steno_model::wrap::WrapLane;

use super::queue::SpoolQueue;
#[cfg(target_os = "linux")]
use super::splice::Splicer;

/// How many bytes are read at a time.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// Programs that print a lot write at least this many bytes at once.
const BULK_BYTES: usize = 4096;
/// A stream is busy if two pieces come within this time.
const BUSY: Duration = Duration::from_millis(1);
/// How long a busy stream is left alone, so that the next piece is longer. A large pipe is not full by then.
const REST: Duration = Duration::from_micros(200);
/// The size of a pipe whose size is not known.
const PIPE_BYTES: usize = 64 * 1024;

/// How a stream ended.
#[derive(Debug)]
pub enum ForwardEnd {
    /// The writing side closed it.
    Closed,
    /// The reading side is gone.
    Unread,
    /// It was stopped, and somebody may still write to this.
    Stopped(OwnedFd),
    /// Reading or writing failed.
    Failed(io::Error),
}

/// Stops forwarders: they forward what is there, and do not wait for more.
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
    /// Where bytes come from. It is closed at the end, which tells its writers that nobody reads any more.
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
            match self.wait(&mut state) {
                Ok(true) => {}
                Ok(false) => break None,
                Err(error) => break Some(ForwardEnd::Failed(error.into())),
            }
            match self.step(&mut state, queue) {
                Ok(len) => state.moved(len),
                Err(end) => break Some(end),
            }
        };
        // A terminal ends with its session, whoever has it open.
        let end = end.unwrap_or_else(|| {
            if state.is_pipe { ForwardEnd::Stopped(self.from) } else { ForwardEnd::Closed }
        });
        match (self.lane, &end) {
            (Some(lane), ForwardEnd::Stopped(_)) => queue.leave_open(lane),
            (Some(lane), _) => queue.close(lane),
            (None, _) => {}
        }
        end
    }

    /// Waits for bytes; false if it was stopped and has forwarded what was there then.
    fn wait(&self, state: &mut ForwardState) -> Result<bool, Errno> {
        loop {
            let mut fds = [PollFd::new(&self.from, PollFlags::IN), PollFd::new(&self.stop.0, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            let (found, is_stopped) = (fds[0].revents(), !fds[1].revents().is_empty());
            if is_stopped && state.left.is_none() {
                // A program in the background may print without end.
                let there = ioctl_fionread(&self.from).ok().filter(|_| state.is_pipe);
                state.left = Some(there.unwrap_or(u64::MAX));
            }
            // If nobody writes any more, all of the rest is forwarded.
            let is_done = state.left == Some(0) && !found.contains(PollFlags::HUP);
            return Ok(!found.is_empty() && !is_done);
        }
    }

    /// Forwards what is there; returns how many bytes.
    fn step(&self, state: &mut ForwardState, queue: &SpoolQueue) -> Result<usize, ForwardEnd> {
        #[cfg(target_os = "linux")]
        if let Some(splicer) = &mut state.splicer
            && let Some(len) = splicer.step(&self.from, self.to, queue)?
        {
            return Ok(len);
        }
        self.copy(&mut state.buffer, queue)
    }

    /// Reads once and forwards what was read; returns how many bytes.
    fn copy(&self, buffer: &mut Vec<u8>, queue: &SpoolQueue) -> Result<usize, ForwardEnd> {
        buffer.resize(READ_BYTES, 0);
        let read = match rustix::io::read(&self.from, &mut **buffer) {
            // Reading the master of a terminal fails like this when the last program has closed the other side.
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
    is_pipe: bool,
    /// A piece of this length or more shows that the command is fast enough to fill the pipe.
    rest_below: usize,
    /// How many of the bytes that were there when it was stopped are still to be forwarded.
    left: Option<u64>,
}

impl ForwardState {
    fn new(forwarder: &Forwarder<'_>) -> Self {
        let found = fstat(&forwarder.from);
        #[cfg(target_os = "linux")]
        let pipe_bytes = rustix::pipe::fcntl_getpipe_size(&forwarder.from).unwrap_or(PIPE_BYTES);
        #[cfg(not(target_os = "linux"))]
        let pipe_bytes = PIPE_BYTES;
        Self {
            buffer: Vec::new(),
            #[cfg(target_os = "linux")]
            splicer: forwarder.lane.and_then(|lane| Splicer::new(&forwarder.from, lane)),
            last: Instant::now(),
            is_pipe: found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Fifo),
            rest_below: pipe_bytes / 4,
            left: None,
        }
    }

    /// Counts bytes that were forwarded.
    fn moved(&mut self, len: usize) {
        self.left = self.left.map(|left| left.saturating_sub(len as u64));
        self.rest_after(len);
    }

    /// Rests for a moment if a lot comes in short pieces. The command goes on meanwhile, since its pipe has room, and
    /// the next piece is longer.
    fn rest_after(&mut self, len: usize) {
        let is_busy = self.last.elapsed() < BUSY;
        if is_busy && (BULK_BYTES..self.rest_below).contains(&len) {
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
