//! An event as it goes over a live stream.

use std::fmt;

use axum::body::Bytes;
use steno_journal::RecordedEvent;

/// What an event is called on a live stream: its number, and a sum of its line.
///
/// After a power cut a number that was only written may be given again, to another event. The sum tells the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameId {
    /// Its number.
    pub seq: u64,
    sum: u32,
}

impl FrameId {
    /// Names an event.
    #[must_use]
    pub fn of(recorded: &RecordedEvent) -> Self {
        Self { seq: recorded.event.seq.get(), sum: crc32fast::hash(&recorded.line) }
    }

    /// Reads a name.
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

/// An event in the words of `text/event-stream`, made once for all who listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number.
    pub seq: u64,
    /// Where its line ends in the file.
    pub end: u64,
    /// `id`, `event` and `data`, with the empty line at the end; `None` for a long line, which is read from the file by
    /// whoever wants it: those who are behind hold on to frames.
    pub bytes: Option<Bytes>,
}

/// How long a line may be that is handed out.
const LINE_BYTES_MAX: usize = 4 * 1024;

impl Frame {
    /// Makes the frame of an event.
    #[must_use]
    pub fn of(recorded: &RecordedEvent) -> Self {
        let bytes = (recorded.line.len() <= LINE_BYTES_MAX).then(|| Self::bytes_of(recorded).into());
        Self { seq: recorded.event.seq.get(), end: end_of(recorded), bytes }
    }

    /// Returns an event in the words of a stream, however long it is.
    #[must_use]
    pub fn bytes_of(recorded: &RecordedEvent) -> Vec<u8> {
        let mut bytes = format!("id: {}\nevent: event\ndata: ", FrameId::of(recorded)).into_bytes();
        // A line of JSON is one line of data, but for a carriage return between its tokens, which ends one there.
        bytes.extend(recorded.line.iter().map(|byte| if *byte == b'\r' { b' ' } else { *byte }));
        bytes.extend_from_slice(b"\n\n");
        bytes
    }

    /// Tells a listener that what it has is no longer what was recorded: everything comes anew.
    #[must_use]
    pub fn reset() -> Bytes {
        Bytes::from_static(b"event: reset\ndata: {\"since_seq\":0}\n\n")
    }

    /// Tells a listener that is too slow where it can catch up.
    #[must_use]
    pub fn lagged(since_seq: u64) -> Bytes {
        format!("event: lagged\ndata: {{\"since_seq\":{since_seq}}}\n\n").into()
    }

    /// Tells a listener that the server stops, and where it can go on with the next one.
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
