//! Forwards one direction.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use steno_model::{Lane, Timestamp};

use super::{Chunk, ChunkContent, DroppedBytes, WAITING_BYTES_MAX};

const BUFFER_BYTES: usize = 64 * 1024;

/// Receives what pumps forward.
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

    /// Sends the forwarded bytes to the recorder, or only their count if the queue is too long.
    fn tell(&self, lane: Lane, ticket: Ticket, bytes: &[u8]) {
        let before = self.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        let content = if before + bytes.len() > WAITING_BYTES_MAX {
            self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
            ChunkContent::DroppedBytes(DroppedBytes::of(bytes))
        } else {
            ChunkContent::Bytes(bytes.to_vec())
        };
        self.send(lane, ticket, content);
    }

    fn send(&self, lane: Lane, ticket: Ticket, content: ChunkContent) {
        // The recorder may be gone; the proxy continues.
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
    /// The writing side closed it.
    Closed,
    /// The reading side is gone.
    Unread,
    /// Reading or forwarding failed.
    Failed(io::Error),
}

/// Forwards bytes from a reader to a writer.
pub struct Pump<R, W> {
    /// The reader.
    pub from: R,
    /// The writer.
    pub to: W,
    /// The direction.
    pub lane: Lane,
}

impl<R: Read, W: Write> Pump<R, W> {
    /// Runs until one side is gone; both are closed then.
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
        tap.send(self.lane, ticket, ChunkContent::End);
        end
    }
}
