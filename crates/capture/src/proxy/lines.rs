//! Puts the chunks of pumps back together into lines, in order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use steno_model::{Lane, Timestamp};

use super::{Chunk, ChunkContent, DroppedBytes};

/// The maximum length of a line. A longer one is counted as lost: no message of a protocol is that long.
const LINE_BYTES_MAX: usize = 60 * 1024 * 1024;

/// How long to wait for more after the server has ended.
const AFTER_END: Duration = Duration::from_millis(100);

/// A line that passed the proxy, or lines that were lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxiedLine {
    /// A line, without its newline.
    Line {
        /// Its direction.
        lane: Lane,
        /// When its end was read.
        time: Timestamp,
        /// The line.
        line: Vec<u8>,
    },
    /// Lines that were forwarded but not kept, because part of each is missing.
    Lost {
        /// Their direction.
        lane: Lane,
        /// When the end of the last one was read.
        time: Timestamp,
        /// How many lines.
        lines: u64,
        /// How many bytes they had, with newlines.
        bytes: u64,
        /// Why they were not kept.
        why: LossReason,
    },
}

/// Why a line was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossReason {
    /// The recorder was too far behind.
    Behind,
    /// It is longer than any message.
    TooLong,
}

/// The lines of both directions, in the order in which they were read.
pub struct ProxiedLines {
    chunks: Receiver<Chunk>,
    waiting: Arc<AtomicUsize>,
    /// Chunks that arrived before others with smaller tickets.
    early: BTreeMap<u64, Chunk>,
    next: u64,
    to_agent: PartialLine,
    from_agent: PartialLine,
    lines: std::collections::VecDeque<ProxiedLine>,
    /// Whether the server has closed its output.
    has_ended: bool,
}

/// A line that has not ended.
#[derive(Default)]
struct PartialLine {
    line: Vec<u8>,
    /// How many bytes of it were lost, and why.
    lost: Option<(u64, LossReason)>,
}

impl ProxiedLines {
    pub(super) fn new(chunks: Receiver<Chunk>, waiting: Arc<AtomicUsize>) -> Self {
        let (to_agent, from_agent) = (PartialLine::default(), PartialLine::default());
        let (early, lines) = (BTreeMap::new(), std::collections::VecDeque::new());
        Self { chunks, waiting, early, next: 0, to_agent, from_agent, lines, has_ended: false }
    }

    fn take(&mut self, chunk: Chunk) {
        let Chunk { lane, time, content, .. } = chunk;
        let partial = match lane {
            Lane::ToAgent => &mut self.to_agent,
            Lane::FromAgent => &mut self.from_agent,
        };
        match content {
            ChunkContent::Bytes(bytes) => {
                self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                partial.add(lane, &time, &bytes, &mut self.lines);
            }
            ChunkContent::DroppedBytes(dropped) => partial.drop_lines(lane, &time, dropped, &mut self.lines),
            ChunkContent::End => {
                partial.end(lane, &time, &mut self.lines);
                self.has_ended |= lane == Lane::FromAgent;
            }
        }
    }
}

impl Iterator for ProxiedLines {
    type Item = ProxiedLine;

    /// Waits for the next line; `None` when there can be no more.
    fn next(&mut self) -> Option<ProxiedLine> {
        loop {
            if let Some(lines) = self.lines.pop_front() {
                return Some(lines);
            }
            if let Some(chunk) = self.early.remove(&self.next) {
                self.next += 1;
                self.take(chunk);
                continue;
            }
            // After the server has ended, a client may be silent for ever.
            let patience = if self.has_ended { AFTER_END } else { Duration::MAX };
            match self.chunks.recv_timeout(patience) {
                Ok(chunk) => drop(self.early.insert(chunk.ticket, chunk)),
                // A pump that died may have left a gap.
                Err(_) => self.next = *self.early.first_key_value()?.0,
            }
        }
    }
}

impl PartialLine {
    fn add(&mut self, lane: Lane, time: &Timestamp, bytes: &[u8], lines: &mut impl Extend<ProxiedLine>) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.grow(&rest[..end]);
            lines.extend([self.finish(lane, time, 1)]);
            rest = &rest[end + 1..];
        }
        self.grow(rest);
    }

    fn grow(&mut self, bytes: &[u8]) {
        if self.lost.is_some() || self.line.len() + bytes.len() > LINE_BYTES_MAX {
            self.lose(bytes.len() as u64, LossReason::TooLong);
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Drops the line and counts its bytes.
    fn lose(&mut self, bytes: u64, why: LossReason) {
        let (before, why) = self.lost.unwrap_or((0, why));
        self.lost = Some((before + bytes + self.line.len() as u64, why));
        self.line = Vec::new();
    }

    /// Handles bytes that were only counted: lines that ended in them are lost, and so is the one that began there.
    fn drop_lines(
        &mut self,
        lane: Lane,
        time: &Timestamp,
        dropped: DroppedBytes,
        out: &mut impl Extend<ProxiedLine>,
    ) {
        let DroppedBytes { bytes, lines, rest_bytes } = dropped;
        self.lose(bytes - rest_bytes, LossReason::Behind);
        if lines > 0 {
            let (bytes, why) = self.lost.take().unwrap_or((0, LossReason::Behind));
            out.extend([ProxiedLine::Lost { lane, time: time.clone(), lines, bytes, why }]);
        }
        if rest_bytes > 0 {
            self.lose(rest_bytes, LossReason::Behind);
        }
    }

    /// Ends a line. If part of it is lost, all of it is.
    fn finish(&mut self, lane: Lane, time: &Timestamp, newline: u64) -> ProxiedLine {
        let time = time.clone();
        match std::mem::take(self) {
            Self { line, lost: None } => ProxiedLine::Line { lane, time, line },
            Self { lost: Some((bytes, why)), .. } => {
                ProxiedLine::Lost { lane, time, lines: 1, bytes: bytes + newline, why }
            }
        }
    }

    fn end(&mut self, lane: Lane, time: &Timestamp, lines: &mut impl Extend<ProxiedLine>) {
        if self.lost.is_some() || !self.line.is_empty() {
            lines.extend([self.finish(lane, time, 0)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    fn time() -> Timestamp {
        Timestamp::from_unix_ms(0).unwrap()
    }

    /// Returns the lines of chunks that arrive in some order.
    fn heard(chunks: Vec<(u64, Lane, ChunkContent)>) -> Vec<(Lane, String)> {
        let (send, receive) = channel();
        for (ticket, lane, content) in chunks {
            send.send(Chunk { lane, ticket, time: time(), content }).unwrap();
        }
        drop(send);
        let lines = ProxiedLines::new(receive, Arc::new(AtomicUsize::new(usize::MAX / 2)));
        let shown = |lines| match lines {
            ProxiedLine::Line { lane, line, .. } => (lane, String::from_utf8(line).unwrap()),
            ProxiedLine::Lost { lane, lines, bytes, why, .. } => {
                (lane, format!("{why:?}: {lines} lines, {bytes} bytes"))
            }
        };
        lines.map(shown).collect()
    }

    fn bytes(text: &str) -> ChunkContent {
        ChunkContent::Bytes(text.into())
    }

    use Lane::{FromAgent, ToAgent};

    #[test]
    fn lines_come_in_the_order_they_were_read() {
        // An answer that arrives before its question.
        let heard = heard(vec![
            (1, FromAgent, bytes("answer\nmore")),
            (0, ToAgent, bytes("question\n")),
            (3, FromAgent, ChunkContent::End),
            (2, ToAgent, bytes("next\n")),
        ]);
        let want = [(ToAgent, "question"), (FromAgent, "answer"), (ToAgent, "next"), (FromAgent, "more")];
        assert_eq!(heard, want.map(|(lane, text)| (lane, text.to_owned())));
    }

    #[track_caller]
    fn check(chunks: &[&str], want: &[&str]) {
        // Chunks that begin with `<` were only counted.
        let content = |text: &&str| match text.strip_prefix('<') {
            Some(dropped) => ChunkContent::DroppedBytes(DroppedBytes::of(dropped.as_bytes())),
            None => bytes(text),
        };
        let chunks = (0..).zip(chunks).map(|(ticket, text)| (ticket, ToAgent, content(text)));
        let last = (1000, ToAgent, ChunkContent::End);
        let heard = heard(chunks.chain([last]).collect());
        assert_eq!(heard.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>(), want);
    }

    #[test]
    fn partly_lost_lines_are_counted_as_lost() {
        check(
            &["one\ntw", "<0123456789", "o\nthree\n", "four"],
            &["one", "Behind: 1 lines, 14 bytes", "three", "four"],
        );
        // Two lines end in what was dropped, and a third begins there.
        check(
            &["tw", "<o\nthree\nfo", "ur\nfive\n"],
            &["Behind: 2 lines, 10 bytes", "Behind: 1 lines, 5 bytes", "five"],
        );
        // One ends there, and what follows is whole.
        check(&["one\n", "<two\n", "three\n"], &["one", "Behind: 1 lines, 4 bytes", "three"]);
        check(&["one\n", "<\n\n", "<tw"], &["one", "Behind: 2 lines, 2 bytes", "Behind: 1 lines, 2 bytes"]);
    }
}
