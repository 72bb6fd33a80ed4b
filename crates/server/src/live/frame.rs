//! An event as it goes over a live stream.

use std::fmt;

use axum::body::Bytes;
use steno_journal::RecordedEvent;

/// The id of an event on a live stream: its number, and a checksum of its line.
///
/// After a power cut, a number that was written but not synced may be assigned to another event. The checksum differs then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId {
    /// Its number.
    pub seq: u64,
    sum: u32,
}

impl FrameId {
    /// Returns the id of an event.
    #[must_use]
    pub fn of(recorded: &RecordedEvent) -> Self {
        Self { seq: recorded.event.seq.get(), sum: crc32fast::hash(&recorded.line) }
    }

    /// Parses an id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (seq, sum) = text.split_once('.')?;
        Some(Self { seq: seq.parse().ok()?, sum: u32::from_str_radix(sum, 16).ok()? })
    }
}

impl fmt::Display for FrameId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{:08x}", self.seq, self.sum)
    }
}

/// An event as a `text/event-stream` message, built once for all listeners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number.
    pub seq: u64,
    /// Where its line ends in the file.
    pub end: u64,
    /// `id`, `event` and `data`, with the empty line at the end. `None` for a long line: each listener reads it from the file,
    /// because frames wait in memory while a listener is behind.
    pub bytes: Option<Bytes>,
}

/// The longest line that is sent from memory.
const LINE_BYTES_MAX: usize = 4 * 1024;

impl Frame {
    /// Makes the frame of an event.
    #[must_use]
    pub fn of(recorded: &RecordedEvent) -> Self {
        let bytes = (recorded.line.len() <= LINE_BYTES_MAX).then(|| Self::bytes_of(recorded).into());
        Self { seq: recorded.event.seq.get(), end: end_of(recorded), bytes }
    }

    /// Returns an event as a stream message of any length.
    #[must_use]
    pub fn bytes_of(recorded: &RecordedEvent) -> Vec<u8> {
        let mut bytes = format!("id: {}\nevent: event\ndata: ", FrameId::of(recorded)).into_bytes();
        // A carriage return between JSON tokens would end the line of data.
        bytes.extend(recorded.line.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }));
        bytes.extend_from_slice(b"\n\n");
        bytes
    }

    /// Returns the message that what the listener has was replaced, and that the stream starts again at the first event.
    #[must_use]
    pub fn reset() -> Bytes {
        Bytes::from_static(b"event: reset\ndata: {\"since_seq\":0}\n\n")
    }

    /// Returns the message for a listener that is too slow, with the number to continue after.
    #[must_use]
    pub fn lagged(since_seq: u64) -> Bytes {
        format!("event: lagged\ndata: {{\"since_seq\":{since_seq}}}\n\n").into()
    }

    /// Returns the message that the server stops, with the number to continue after.
    #[must_use]
    pub fn stopping(since_seq: u64) -> Bytes {
        format!("event: stopping\ndata: {{\"since_seq\":{since_seq}}}\n\n").into()
    }
}

/// Returns where the line of an event ends.
#[must_use]
pub fn end_of(recorded: &RecordedEvent) -> u64 {
    recorded.offset + recorded.line.len() as u64 + 1
}
