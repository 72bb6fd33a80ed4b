//! One direction of a wire.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use steno_model::{Lane, Timestamp};

use super::{Chunk, Content, Dropped, WAITING_BYTES_MAX};

const BUFFER_BYTES: usize = 64 * 1024;

/// Where pumps tell of what they hand on.
#[derive(Clone)]
pub struct Tap {
    send: Sender<Chunk>,
    tickets: Arc<AtomicU64>,
    waiting: Arc<AtomicUsize>,
}

impl Tap {
    pub(super) fn new(send: Sender<Chunk>) -> Self {
        Self { send, tickets: Arc::default(), waiting: Arc::default() }
    }

    pub(super) fn waiting(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.waiting)
    }

    fn take_ticket(&self) -> Ticket {
        let number = self.tickets.fetch_add(1, Ordering::SeqCst);
        Ticket { number, time: Timestamp::from_instant(jiff::Timestamp::now()) }
    }

    /// Tells what was handed on, or of long queues only how much that was.
    fn tell(&self, lane: Lane, ticket: Ticket, bytes: &[u8]) {
        let before = self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let content = if before + bytes.len() > WAITING_BYTES_MAX {
            self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            Content::Dropped(Dropped::of(bytes))
        } else {
            Content::Bytes(bytes.to_vec())
        };
        self.send(lane, ticket, content);
    }

    fn send(&self, lane: Lane, ticket: Ticket, content: Content) {
        // Nobody may listen any more: the wire is there for those at its ends.
        self.send.send(Chunk { lane, ticket: ticket.number, time: ticket.time, content }).ok();
    }
}

struct Ticket {
    number: u64,
    time: Timestamp,
}

/// How a direction ended.
#[derive(Debug)]
pub enum PumpEnd {
    /// The side that writes has closed it.
    Closed,
    /// The side that reads is gone.
    Unread,
    /// It could not be read or handed on.
    Failed(io::Error),
}

/// Hands bytes on from one end to the other.
pub struct Pump<R, W> {
    /// Where they come from.
    pub from: R,
    /// Where they go.
    pub to: W,
    /// Which way that is.
    pub lane: Lane,
}

impl<R: Read, W: Write> Pump<R, W> {
    /// Runs until one of its ends is gone; both are closed then.
    pub fn run(mut self, tap: &Tap) -> PumpEnd {
        let mut buffer = vec![0; BUFFER_BYTES];
        let end = loop {
            let read = match self.from.read(&mut buffer) {
                Ok(0) => break PumpEnd::Closed,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => break PumpEnd::Failed(error),
            };
            let ticket = tap.take_ticket();
            let handed_on = self.to.write_all(&buffer[..read]).and_then(|()| self.to.flush());
            tap.tell(self.lane, ticket, &buffer[..read]);
            match handed_on {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break PumpEnd::Unread,
                Err(error) => break PumpEnd::Failed(error),
            }
        };
        let ticket = tap.take_ticket();
        tap.send(self.lane, ticket, Content::End);
        end
    }
}
