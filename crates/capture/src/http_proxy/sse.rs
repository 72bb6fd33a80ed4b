//! Splits a stream of server-sent events.

use memchr::memchr2;

use super::assembly::BODY_BYTES_MAX;

/// An event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Its type, if it has one.
    pub(super) event: Option<String>,
    /// Its data, the lines joined by newlines.
    pub(super) data: Vec<u8>,
}

/// Takes the bytes of a stream and returns its events.
#[derive(Default)]
pub(super) struct SseSplitter {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
    /// Whether the last byte was a carriage return.
    after_return: bool,
    /// Whether an event is too large to be kept.
    is_too_large: bool,
}

impl SseSplitter {
    /// Takes the next bytes; returns the events that end in them, and how many were too large.
    pub(super) fn push(&mut self, bytes: &[u8]) -> (Vec<SseEvent>, u64) {
        let (mut events, mut lost) = (Vec::new(), 0);
        let mut rest = bytes;
        if self.after_return && rest.first() == Some(&b'\n') {
            rest = &rest[1..];
        }
        self.after_return = self.after_return && bytes.is_empty();
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            self.grow(&rest[..end]);
            let is_return = rest[end] == b'\r';
            let next = rest.get(end + 1);
            self.after_return = is_return && next.is_none();
            let skip = usize::from(is_return && next == Some(&b'\n'));
            rest = &rest[end + 1 + skip..];
            match self.end_line() {
                Some(Ok(event)) => events.push(event),
                Some(Err(())) => lost += 1,
                None => {}
            }
        }
        self.grow(rest);
        (events, lost)
    }

    /// Returns what came after the last whole event.
    pub(super) fn finish(mut self) -> Option<SseEvent> {
        if !self.line.is_empty() {
            self.end_line();
        }
        (self.has_data && !self.is_too_large).then_some(self.event)
    }

    fn grow(&mut self, bytes: &[u8]) {
        if self.is_too_large || self.line.len() + self.event.data.len() + bytes.len() > BODY_BYTES_MAX {
            (self.is_too_large, self.line) = (true, Vec::new());
        } else {
            self.line.extend_from_slice(bytes);
        }
    }

    /// Ends a line; an empty one ends the event, which may have been too large.
    fn end_line(&mut self) -> Option<Result<SseEvent, ()>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() && (self.has_data || !self.is_too_large) {
            let event = std::mem::take(&mut self.event);
            let is_too_large = std::mem::take(&mut self.is_too_large);
            let has_data = std::mem::take(&mut self.has_data);
            return has_data.then_some(if is_too_large { Err(()) } else { Ok(event) });
        }
        let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let value = line.get(at + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match line.get(..at).unwrap_or_default() {
            b"event" => self.event.event = Some(String::from_utf8_lossy(value).into_owned()),
            b"data" => {
                if self.has_data {
                    self.event.data.push(b'\n');
                }
                self.event.data.extend_from_slice(value);
                self.has_data = true;
            }
            // The line of a too large event was dropped.
            _ => self.has_data |= self.is_too_large,
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str, size: usize) -> (Vec<(Option<String>, String)>, Option<String>) {
        let mut splitter = SseSplitter::default();
        let shown = |event: SseEvent| (event.event, String::from_utf8(event.data).unwrap());
        let events =
            text.as_bytes().chunks(size).flat_map(|piece| splitter.push(piece).0).map(shown).collect();
        (events, splitter.finish().map(|event| String::from_utf8(event.data).unwrap()))
    }

    #[test]
    fn events_are_split_however_they_are_cut() {
        let text =
            ": hello\nevent: a\ndata: 1\n\ndata:2\r\ndata: 3\r\n\r\nid: x\n\nevent: b\rdata: 4\r\rdata: to";
        let event = |name: Option<&str>, data: &str| (name.map(str::to_owned), data.to_owned());
        let want = vec![event(Some("a"), "1"), event(None, "2\n3"), event(Some("b"), "4")];
        for size in [1, 2, 3, 5, text.len()] {
            assert_eq!(split(text, size), (want.clone(), Some("to".to_owned())), "{size}");
        }
    }

    #[test]
    fn too_large_event_is_counted_and_the_next_is_whole() {
        let mut splitter = SseSplitter::default();
        let piece = vec![b'x'; BODY_BYTES_MAX / 4];
        assert_eq!(splitter.push(b"data: "), (vec![], 0));
        for _ in 0..5 {
            assert_eq!(splitter.push(&piece), (vec![], 0));
        }
        let (events, lost) = splitter.push(b"\n\ndata: next\n\n");
        assert_eq!((events.len(), lost), (1, 1));
        assert_eq!(events[0].data, b"next");
    }
}
