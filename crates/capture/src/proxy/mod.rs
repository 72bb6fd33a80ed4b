//! A proxy between a client and its server, over pipes: every byte is forwarded first, and then recorded.
//!
//! A pump reads one direction. It takes a ticket for what it read *before* it forwards it, so that a cause always has a
//! smaller ticket than its effect, and sends the bytes to the recorder afterwards. Pumps never wait for the recorder:
//! when it is too far behind, bytes are only counted.

mod lines;
mod pump;

use std::sync::mpsc::{Receiver, channel};

use steno_model::{Lane, Timestamp};

pub use lines::{LossReason, ProxiedLine, ProxiedLines};
pub use pump::{Pump, PumpEnd, Tap};

/// How many bytes may wait to be recorded. Beyond that they are forwarded and only counted.
pub const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes that a pump forwarded.
#[derive(Debug)]
pub struct Chunk {
    pub(crate) lane: Lane,
    pub(crate) ticket: u64,
    pub(crate) time: Timestamp,
    pub(crate) content: ChunkContent,
}

#[derive(Debug)]
pub(crate) enum ChunkContent {
    /// The bytes, as they were read.
    Bytes(Vec<u8>),
    /// Counts of bytes that were not kept.
    DroppedBytes(DroppedBytes),
    /// The direction has ended.
    End,
}

/// Bytes that were forwarded and only counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DroppedBytes {
    pub(crate) bytes: u64,
    /// How many lines ended in them.
    pub(crate) lines: u64,
    /// How many bytes came after the last of those ends.
    pub(crate) rest_bytes: u64,
}

impl DroppedBytes {
    fn of(bytes: &[u8]) -> Self {
        let pieces = bytes.split(|byte| *byte == b'\n');
        let (count, rest_bytes) = pieces.fold((0, 0), |(count, _), piece| (count + 1, piece.len() as u64));
        Self { bytes: bytes.len() as u64, lines: count - 1, rest_bytes }
    }
}

/// Creates a connected pair: pumps send to the tap, and the lines come out in order.
#[must_use]
pub fn tap() -> (Tap, ProxiedLines) {
    let (send, chunks): (_, Receiver<Chunk>) = channel();
    let tap = Tap::new(send);
    let waiting = tap.waiting();
    (tap, ProxiedLines::new(chunks, waiting))
}
