//! Reads the frames of a wrap, cut anywhere.

use memchr::memchr;
use steno_model::Timestamp;
use steno_model::wrap::{CONTROL_BYTES_MAX, WrapControl, WrapHeader, WrapLane};

/// A part of a wrap.
pub(crate) enum WrapPart<'a> {
    /// The first line.
    Header(&'a WrapHeader, &'a str),
    /// Bytes of a lane, perhaps not all of a frame.
    Bytes(WrapLane, &'a Timestamp, &'a [u8]),
    /// Another line than that of a frame.
    Note(&'a WrapControl, &'a Timestamp, &'a str),
    /// A line that cannot be read. The rest of the file is not read either. The number of its bytes so far is given.
    Damage(u64),
}

/// The state of reading a wrap.
pub(crate) struct WrapReader {
    state: ReaderState,
    /// The beginning of a control line.
    partial: Vec<u8>,
    /// Where that line begins.
    start: u64,
}

enum ReaderState {
    Header,
    Control,
    /// Inside of a frame, with so many bytes left.
    Frame {
        lane: WrapLane,
        time: Timestamp,
        left: u64,
    },
    /// After the bytes of a frame.
    Newline,
    /// After a line that cannot be read.
    Damaged,
}

impl Default for WrapReader {
    fn default() -> Self {
        Self { state: ReaderState::Header, partial: Vec::new(), start: 0 }
    }
}

impl WrapReader {
    /// Takes the next bytes, and hands over the parts that they complete with their offsets.
    pub(crate) fn feed(&mut self, offset: u64, bytes: &[u8], each: &mut dyn FnMut(u64, WrapPart<'_>)) {
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            let used = self.step(at, rest, each);
            at += used as u64;
            rest = &rest[used..];
        }
    }

    /// Tells whether the file ends inside a line or a frame.
    pub(crate) fn is_torn(&self) -> bool {
        match &self.state {
            ReaderState::Header | ReaderState::Control => !self.partial.is_empty(),
            ReaderState::Frame { .. } | ReaderState::Newline => true,
            ReaderState::Damaged => false,
        }
    }

    /// Reads one part; returns how many bytes it took.
    fn step(&mut self, at: u64, bytes: &[u8], each: &mut dyn FnMut(u64, WrapPart<'_>)) -> usize {
        match &mut self.state {
            ReaderState::Header | ReaderState::Control => self.control(at, bytes, each),
            ReaderState::Frame { lane, time, left } => {
                let used = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= used as u64;
                if used > 0 {
                    each(at, WrapPart::Bytes(*lane, time, &bytes[..used]));
                }
                if *left == 0 {
                    self.state = ReaderState::Newline;
                }
                used
            }
            ReaderState::Newline => {
                if bytes[0] == b'\n' {
                    self.state = ReaderState::Control;
                    1
                } else {
                    self.start = at;
                    self.damage(each)
                }
            }
            ReaderState::Damaged => bytes.len(),
        }
    }

    fn control(&mut self, at: u64, bytes: &[u8], each: &mut dyn FnMut(u64, WrapPart<'_>)) -> usize {
        if self.partial.is_empty() {
            self.start = at;
        }
        let end = memchr(b'\n', bytes);
        let piece = &bytes[..end.unwrap_or(bytes.len())];
        self.partial.extend_from_slice(piece);
        if self.partial.len() > CONTROL_BYTES_MAX {
            return self.damage(each);
        }
        let Some(end) = end else { return piece.len() };
        let line = std::mem::take(&mut self.partial);
        let read = str::from_utf8(&line).ok().and_then(|text| self.line(text, each));
        if read.is_none() {
            self.partial = line;
            return self.damage(each);
        }
        end + 1
    }

    fn line(&mut self, text: &str, each: &mut dyn FnMut(u64, WrapPart<'_>)) -> Option<()> {
        if matches!(self.state, ReaderState::Header) {
            let header = WrapHeader::parse(text)?;
            each(self.start, WrapPart::Header(&header, text));
            self.state = ReaderState::Control;
            return Some(());
        }
        let (control, time) = WrapControl::parse(text)?;
        if let WrapControl::Frame { lane, len } = control {
            self.state =
                if len == 0 { ReaderState::Newline } else { ReaderState::Frame { lane, time, left: len } };
        } else {
            each(self.start, WrapPart::Note(&control, &time, text));
        }
        Some(())
    }

    /// Gives up; what follows has no meaning without the line that cannot be read.
    fn damage(&mut self, each: &mut dyn FnMut(u64, WrapPart<'_>)) -> usize {
        each(self.start, WrapPart::Damage(self.partial.len() as u64));
        self.partial = Vec::new();
        self.state = ReaderState::Damaged;
        0
    }
}
