//! What was said over a wire, line by line and in order, put together from what pumps have told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use steno_model::{Lane, Timestamp};

use super::{Chunk, Content};

/// How long a line may be. What is longer is counted as lost: no message of a protocol is.
const LINE_BYTES_MAX: usize = 60 * 1024 * 1024;

/// How long is listened after the server has ended.
const AFTER_END: Duration = Duration::from_millis(100);

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A line, without its newline.
    Line {
        /// Which way it went.
        lane: Lane,
        /// When the end of it was read.
        time: Timestamp,
        /// The line.
        line: Vec<u8>,
    },
    /// Bytes that were handed on and not kept, with the line that they were a part of.
    Lost {
        /// Which way they went.
        lane: Lane,
        /// How many.
        bytes: u64,
    },
}

/// Hears a wire, both directions in the order in which they were read.
pub struct Conversation {
    chunks: Receiver<Chunk>,
    waiting: Arc<AtomicUsize>,
    /// Chunks that came before others that were read before them.
    early: BTreeMap<u64, Chunk>,
    next: u64,
    to_agent: Partial,
    from_agent: Partial,
    said: std::collections::VecDeque<Said>,
    /// Whether the server has said all that it will.
    has_ended: bool,
}

/// A line that has not ended.
#[derive(Default)]
struct Partial {
    line: Vec<u8>,
    /// How much of it was lost.
    lost: u64,
}

impl Conversation {
    pub(super) fn new(chunks: Receiver<Chunk>, waiting: Arc<AtomicUsize>) -> Self {
        let (to_agent, from_agent) = (Partial::default(), Partial::default());
        let (early, said) = (BTreeMap::new(), std::collections::VecDeque::new());
        Self { chunks, waiting, early, next: 0, to_agent, from_agent, said, has_ended: false }
    }

    fn take(&mut self, chunk: Chunk) {
        let Chunk { lane, time, content, .. } = chunk;
        let partial = match lane {
            Lane::ToAgent => &mut self.to_agent,
            Lane::FromAgent => &mut self.from_agent,
        };
        match content {
            Content::Bytes(bytes) => {
                self.waiting.fetch_sub(bytes.len(), Ordering::Relaxed);
                partial.add(lane, &time, &bytes, &mut self.said);
            }
            Content::Dropped(bytes) => partial.lose(bytes as u64),
            Content::End => {
                partial.end(lane, &time, &mut self.said);
                self.has_ended |= lane == Lane::FromAgent;
            }
        }
    }
}

impl Iterator for Conversation {
    type Item = Said;

    /// Waits for what is said next; `None` when nobody can say anything more.
    fn next(&mut self) -> Option<Said> {
        loop {
            if let Some(said) = self.said.pop_front() {
                return Some(said);
            }
            if let Some(chunk) = self.early.remove(&self.next) {
                self.next += 1;
                self.take(chunk);
                continue;
            }
            // When the server has ended, a client may stay silent for ever.
            let patience = if self.has_ended { AFTER_END } else { Duration::MAX };
            match self.chunks.recv_timeout(patience) {
                Ok(chunk) => drop(self.early.insert(chunk.ticket, chunk)),
                // A pump that has died may have left a gap.
                Err(_) => self.next = *self.early.first_key_value()?.0,
            }
        }
    }
}

impl Partial {
    fn add(&mut self, lane: Lane, time: &Timestamp, bytes: &[u8], said: &mut impl Extend<Said>) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.grow(&rest[..end]);
            said.extend([self.finish(lane, time, 1)]);
            rest = &rest[end + 1..];
        }
        self.grow(rest);
    }

    fn grow(&mut self, bytes: &[u8]) {
        if self.lost > 0 || self.line.len() + bytes.len() > LINE_BYTES_MAX {
            self.lose(bytes.len() as u64);
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    fn lose(&mut self, bytes: u64) {
        self.lost += bytes + self.line.len() as u64;
        self.line = Vec::new();
    }

    /// Ends a line, of which something may be lost, and then all of it is.
    fn finish(&mut self, lane: Lane, time: &Timestamp, newline: u64) -> Said {
        match std::mem::take(self) {
            Self { line, lost: 0 } => Said::Line { lane, time: time.clone(), line },
            Self { lost, .. } => Said::Lost { lane, bytes: lost + newline },
        }
    }

    fn end(&mut self, lane: Lane, time: &Timestamp, said: &mut impl Extend<Said>) {
        if self.lost > 0 || !self.line.is_empty() {
            said.extend([self.finish(lane, time, 0)]);
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

    /// What is heard of chunks that come in some order.
    fn heard(chunks: Vec<(u64, Lane, Content)>) -> Vec<(Lane, String)> {
        let (send, receive) = channel();
        for (ticket, lane, content) in chunks {
            send.send(Chunk { lane, ticket, time: time(), content }).unwrap();
        }
        drop(send);
        let said = Conversation::new(receive, Arc::new(AtomicUsize::new(usize::MAX / 2)));
        let shown = |said| match said {
            Said::Line { lane, line, .. } => (lane, String::from_utf8(line).unwrap()),
            Said::Lost { lane, bytes } => (lane, format!("lost {bytes}")),
        };
        said.map(shown).collect()
    }

    fn bytes(text: &str) -> Content {
        Content::Bytes(text.into())
    }

    use Lane::{FromAgent, ToAgent};

    #[test]
    fn what_was_read_first_is_heard_first_whoever_tells_of_it_first() {
        // An answer that was told before its question.
        let heard = heard(vec![
            (1, FromAgent, bytes("answer\nmore")),
            (0, ToAgent, bytes("question\n")),
            (3, FromAgent, Content::End),
            (2, ToAgent, bytes("next\n")),
        ]);
        let want = [(ToAgent, "question"), (FromAgent, "answer"), (ToAgent, "next"), (FromAgent, "more")];
        assert_eq!(heard, want.map(|(lane, text)| (lane, text.to_owned())));
    }

    #[test]
    fn a_line_of_which_something_is_lost_is_lost_and_the_next_is_not() {
        let heard = heard(vec![
            (0, ToAgent, bytes("one\ntw")),
            (1, ToAgent, Content::Dropped(10)),
            (2, ToAgent, bytes("o\nthree\n")),
            (3, ToAgent, bytes("four")),
            (5, ToAgent, Content::End),
        ]);
        let want = [(ToAgent, "one"), (ToAgent, "lost 14"), (ToAgent, "three"), (ToAgent, "four")];
        assert_eq!(heard, want.map(|(lane, text)| (lane, text.to_owned())));
    }
}
