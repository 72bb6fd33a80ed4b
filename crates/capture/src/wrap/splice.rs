//! Forwards bytes from pipe to pipe without copying them, if there are many.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ioctl_fionread};
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, tee};
use steno_model::wrap::WrapLane;

use super::forward::{ForwardEnd, READ_BYTES, retry, write_all};
use super::queue::SpoolQueue;

/// From this length on, bytes are moved instead of copied. Shorter pieces would each use up a buffer of the pipes.
const MANY_BYTES: usize = 64 * 1024;
/// How much may wait in the second pipe to be written.
const PIPE_BYTES: usize = 1024 * 1024;

/// Moves bytes from a pipe to their destination, and leaves a copy in a second pipe.
pub(super) struct Splicer {
    lane: WrapLane,
    copy_in: OwnedFd,
    copy_out: Arc<OwnedFd>,
    /// Whether the destination accepts bytes from a pipe.
    is_possible: bool,
}

impl Splicer {
    /// Creates the second pipe; `None` if the source is not a pipe.
    pub(super) fn new(from: &OwnedFd, lane: WrapLane) -> Option<Self> {
        let is_pipe = FileType::from_raw_mode(fstat(from).ok()?.st_mode) == FileType::Fifo;
        let (copy_out, copy_in) = pipe_with(PipeFlags::CLOEXEC).ok().filter(|_| is_pipe)?;
        fcntl_setpipe_size(&copy_in, PIPE_BYTES).ok();
        Some(Self { lane, copy_in, copy_out: Arc::new(copy_out), is_possible: true })
    }

    /// Forwards what is there, and returns how many bytes; `None` if they have to be copied.
    pub(super) fn step(
        &mut self,
        from: &OwnedFd,
        to: BorrowedFd<'_>,
        queue: &SpoolQueue,
    ) -> Result<Option<usize>, ForwardEnd> {
        let is_much = || ioctl_fionread(from).is_ok_and(|len| len >= MANY_BYTES as u64);
        if !self.is_possible || !is_much() || queue.is_paused() {
            return Ok(None);
        }
        let len = match tee(from, &self.copy_in, READ_BYTES, SpliceFlags::NONBLOCK) {
            Ok(len) if len > 0 => len,
            // The second pipe is full.
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(_) => {
                self.is_possible = false;
                return Ok(None);
            }
        };
        let handed_on = self.hand_on(from, to, len);
        queue.send_piped(self.lane, &self.copy_out, len);
        handed_on.map(|()| Some(len))
    }

    fn hand_on(&mut self, from: &OwnedFd, to: BorrowedFd<'_>, len: usize) -> Result<(), ForwardEnd> {
        let mut left = len;
        while left > 0 {
            match splice(from, None, to, None, left, SpliceFlags::empty()) {
                Ok(0) => return Err(ForwardEnd::Unread),
                Ok(moved) => left -= moved,
                Err(Errno::INVAL) => {
                    self.is_possible = false;
                    return copy(from.as_fd(), to, left);
                }
                Err(error) => retry(to, error)?,
            }
        }
        Ok(())
    }
}

/// Forwards bytes that are there by copying them.
fn copy(from: BorrowedFd<'_>, to: BorrowedFd<'_>, len: usize) -> Result<(), ForwardEnd> {
    let mut buffer = vec![0; len];
    let mut left = len;
    while left > 0 {
        match rustix::io::read(from, &mut buffer[..left]) {
            Ok(0) => return Err(ForwardEnd::Closed),
            Ok(read) => {
                write_all(to, &buffer[..read])?;
                left -= read;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(ForwardEnd::Failed(error.into())),
        }
    }
    Ok(())
}
