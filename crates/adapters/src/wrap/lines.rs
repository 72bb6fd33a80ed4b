//! Joins the bytes of a wrap's lanes to lines.
//!
//! Lines and notes are handed over in the order in which they begin in the file, although they may end in another one:
//! positions of events must increase. So a line waits while an earlier line of the other lane is incomplete.

use std::collections::BTreeMap;

use memchr::memchr;
use steno_model::limits::LINE_BYTES_MAX;
use steno_model::wrap::{WrapControl, WrapHeader, WrapLane};
use steno_model::{Lane, Timestamp};

use super::frames::{WrapPart, WrapReader};
use super::line_place::{Jump, LinePlace};
use crate::lines::Line;

/// The most bytes of lines that wait for an earlier one. Beyond it the earlier line is handed over as it is.
const WAITING_BYTES_MAX: usize = LINE_BYTES_MAX;

/// Receives the content of a wrap.
pub(crate) trait WrapSink {
    /// Takes bytes of a lane as they come.
    fn bytes(&mut self, _lane: WrapLane, _bytes: &[u8]) {}

    /// Takes a line of a lane or of the file, in the order in which they begin.
    fn item(&mut self, item: WrapItem<'_>);
}

/// A line, with its place in the file.
pub(crate) struct WrapItem<'a> {
    pub(crate) place: LinePlace<'a>,
    /// When its end was captured.
    pub(crate) time: Option<&'a Timestamp>,
    pub(crate) content: WrapContent<'a>,
}

/// What a line is.
pub(crate) enum WrapContent<'a> {
    /// The first line of the file.
    Header(&'a WrapHeader, &'a str),
    /// A line that the command printed or got.
    Line(Lane, Line<'a>),
    /// A note of the forwarder.
    Note(&'a WrapControl, &'a str),
    /// A line of the file that cannot be read, and so many of its bytes; nothing after it is read.
    Damage(u64),
}

/// An item that is kept.
pub(crate) struct KeptItem {
    start: u64,
    jumps: Vec<Jump>,
    time: Option<Timestamp>,
    content: KeptContent,
}

enum KeptContent {
    Line(Lane, Vec<u8>),
    TooLong(Lane, u64),
    Note(WrapControl, String),
}

impl KeptItem {
    /// Copies a line of a lane or a note; `None` for anything else.
    pub(crate) fn of(item: &WrapItem<'_>) -> Option<Self> {
        let content = match &item.content {
            WrapContent::Line(lane, Line::Whole(bytes)) => KeptContent::Line(*lane, bytes.to_vec()),
            WrapContent::Line(lane, Line::TooLong(len)) => KeptContent::TooLong(*lane, *len),
            WrapContent::Note(control, text) => KeptContent::Note((*control).clone(), (*text).to_owned()),
            WrapContent::Header(..)
            | WrapContent::Damage(_)
            | WrapContent::Line(_, Line::Listed(_) | Line::Fields(_) | Line::End) => return None,
        };
        let jumps = item.place.jumps.to_vec();
        Some(Self { start: item.place.start, jumps, time: item.time.cloned(), content })
    }

    /// Returns the item.
    pub(crate) fn item(&self) -> WrapItem<'_> {
        let content = match &self.content {
            KeptContent::Line(lane, bytes) => WrapContent::Line(*lane, Line::Whole(bytes)),
            KeptContent::TooLong(lane, len) => WrapContent::Line(*lane, Line::TooLong(*len)),
            KeptContent::Note(control, text) => WrapContent::Note(control, text),
        };
        let place = LinePlace { start: self.start, jumps: &self.jumps };
        WrapItem { place, time: self.time.as_ref(), content }
    }

    fn size(&self) -> usize {
        match &self.content {
            KeptContent::Line(_, bytes) => bytes.len(),
            KeptContent::TooLong(..) => 0,
            KeptContent::Note(_, text) => text.len(),
        }
    }
}

/// An incomplete line of a lane.
#[derive(Default)]
struct PartialLine {
    bytes: Vec<u8>,
    /// Its length so far; more than `bytes` has if it is too long.
    len: u64,
    start: u64,
    /// Where its next byte would be if the line went on there.
    next: u64,
    jumps: Vec<Jump>,
    time: Option<Timestamp>,
}

impl PartialLine {
    fn grow(&mut self, offset: u64, bytes: &[u8], time: &Timestamp) {
        if bytes.is_empty() {
            return;
        }
        if self.len == 0 {
            (self.start, self.next) = (offset, offset);
        }
        if offset != self.next {
            let skipped = offset - self.start - self.len;
            let jump = Jump { at: self.len, skipped };
            // Of a line that is too long only the end matters.
            if self.len > LINE_BYTES_MAX as u64 {
                self.jumps.clear();
            }
            self.jumps.push(jump);
        }
        self.len += bytes.len() as u64;
        self.next = offset + bytes.len() as u64;
        self.time = Some(time.clone());
        if self.len <= LINE_BYTES_MAX as u64 {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.bytes = Vec::new();
        }
    }

    /// Takes the line; `None` if it is empty.
    fn take(&mut self, lane: Lane) -> Option<KeptItem> {
        let Self { bytes, len, start, next: _, jumps, time } = std::mem::take(self);
        let content = if len > LINE_BYTES_MAX as u64 {
            KeptContent::TooLong(lane, len)
        } else {
            KeptContent::Line(lane, bytes)
        };
        (len > 0).then_some(KeptItem { start, jumps, time, content })
    }
}

/// The lines of a wrap.
#[derive(Default)]
pub(crate) struct WrapLines {
    reader: WrapReader,
    partial: [PartialLine; 2],
    waiting: BTreeMap<u64, KeptItem>,
    waiting_bytes: usize,
    /// Whether lines are not wanted any more.
    is_plain: bool,
}

impl WrapLines {
    /// Takes the next bytes of the file.
    pub(crate) fn feed(&mut self, offset: u64, bytes: &[u8], sink: &mut dyn WrapSink) {
        let mut reader = std::mem::take(&mut self.reader);
        reader.feed(offset, bytes, &mut |offset, part| self.part(offset, &part, sink));
        self.reader = reader;
    }

    /// Stops joining lines: only notes are handed over from now on.
    pub(crate) fn only_notes(&mut self) {
        self.is_plain = true;
        self.partial = Default::default();
    }

    /// Returns the length of the incomplete line that the command is printing.
    pub(crate) fn partial_len(&self) -> u64 {
        self.partial[Lane::FromAgent as usize].len
    }

    /// Tells whether the file ends inside a line or a frame.
    pub(crate) fn is_torn(&self) -> bool {
        self.reader.is_torn()
    }

    /// Hands over everything that is incomplete or waits.
    pub(crate) fn finish(&mut self, sink: &mut dyn WrapSink) {
        for lane in [Lane::FromAgent, Lane::ToAgent] {
            self.cut(lane);
        }
        self.release(sink);
    }

    fn part(&mut self, offset: u64, part: &WrapPart<'_>, sink: &mut dyn WrapSink) {
        match *part {
            WrapPart::Header(header, text) => {
                let content = WrapContent::Header(header, text);
                let time = Some(&header.started);
                sink.item(WrapItem { place: LinePlace::at(offset), time, content });
            }
            WrapPart::Bytes(wrap_lane, time, bytes) => {
                sink.bytes(wrap_lane, bytes);
                if let Some(lane) = lane_of(wrap_lane).filter(|_| !self.is_plain) {
                    self.bytes(lane, offset, (bytes, time), sink);
                }
            }
            WrapPart::Note(control, time, text) => {
                let ended: &[WrapLane] = match control {
                    WrapControl::Lost(lost) => &[lost.lane],
                    WrapControl::Closed(lane) | WrapControl::LeftOpen(lane) => &[*lane],
                    WrapControl::Ended(_) => &WrapLane::ALL,
                    WrapControl::Frame { .. } => &[],
                };
                ended.iter().filter_map(|lane| lane_of(*lane)).for_each(|lane| self.cut(lane));
                let content = KeptContent::Note(control.clone(), text.to_owned());
                self.wait(KeptItem { start: offset, jumps: Vec::new(), time: Some(time.clone()), content });
                self.release(sink);
            }
            WrapPart::Damage(length) => {
                self.finish(sink);
                let content = WrapContent::Damage(length);
                sink.item(WrapItem { place: LinePlace::at(offset), time: None, content });
            }
        }
    }

    fn bytes(
        &mut self,
        lane: Lane,
        offset: u64,
        (bytes, time): (&[u8], &Timestamp),
        sink: &mut dyn WrapSink,
    ) {
        let (mut rest, mut at) = (bytes, offset);
        while let Some(end) = memchr(b'\n', rest) {
            let whole = &rest[..end];
            let is_first = self.partial.iter().all(|partial| partial.len == 0) && self.waiting.is_empty();
            if is_first {
                // The usual case: nothing is copied.
                let content = WrapContent::Line(lane, Line::Whole(whole));
                sink.item(WrapItem { place: LinePlace::at(at), time: Some(time), content });
            } else {
                self.partial[lane as usize].grow(at, whole, time);
                self.cut(lane);
                self.release(sink);
            }
            at += end as u64 + 1;
            rest = &rest[end + 1..];
        }
        self.partial[lane as usize].grow(at, rest, time);
        if self.waiting_bytes > WAITING_BYTES_MAX {
            self.finish(sink);
        }
    }

    /// Ends the incomplete line of a lane.
    fn cut(&mut self, lane: Lane) {
        if let Some(item) = self.partial[lane as usize].take(lane) {
            self.wait(item);
        }
    }

    fn wait(&mut self, item: KeptItem) {
        self.waiting_bytes += item.size();
        self.waiting.insert(item.start, item);
    }

    /// Hands over what waits for no earlier line.
    fn release(&mut self, sink: &mut dyn WrapSink) {
        let open = self.partial.iter().filter(|partial| partial.len > 0).map(|partial| partial.start).min();
        while let Some(first) = self.waiting.first_entry()
            && open.is_none_or(|open| *first.key() < open)
        {
            let item = first.remove();
            self.waiting_bytes -= item.size();
            sink.item(item.item());
        }
    }
}

/// Returns the lane of records that a lane of the file has; errors have none.
fn lane_of(lane: WrapLane) -> Option<Lane> {
    match lane {
        WrapLane::Out => Some(Lane::FromAgent),
        WrapLane::In => Some(Lane::ToAgent),
        WrapLane::Err => None,
    }
}
