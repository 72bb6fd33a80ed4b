//! The adapter of one source: frames in, drafts out, for any provider.

mod completeness;
mod entries;
mod mapper;
mod parts;
mod source;
mod source_offset;
#[cfg(test)]
mod tests;
mod wrap;

use std::borrow::Cow;

use steno_model::json::Fields;
use steno_model::{Frame, Lane, Packing, Provider, Vocabulary as _};

pub use self::completeness::Completeness;
use self::entries::OrderedSink;
pub(crate) use self::mapper::{LeftoverRecord, Mapper, Record, RecordOutcome};
pub use self::source::Source;
use self::source_offset::SourceOffset;
use self::wrap::WrapState;
use crate::conversation::{Message, is_envelope};
use crate::documents::{DocumentShape, SplitRule, Splitter};
use crate::emit::{CurrentRecord, Emit, Memory};
use crate::lines::Line;
use crate::repair::{self, IsRecord, LinePiece, PieceContent};
use crate::run::Run;
use crate::sink::Sink;
use crate::wire::NoObject;

/// The text of a record, and its length in the source.
struct RecordText<'a> {
    text: &'a str,
    /// How many bytes of the source it takes; a text that had to be changed has another length.
    length: usize,
    is_repaired: bool,
    is_in_document: bool,
}

/// A part of a source that is not a record.
struct UnreadableText<'a> {
    /// Its bytes, as far as they are text.
    text: Cow<'a, str>,
    length: u64,
    why: &'static str,
}

/// How records are framed in a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// One after the other, as the agent wrote them.
    Records,
    /// Each in an envelope with its direction.
    Conversation,
    /// Each as the data of a server-sent event.
    Events,
    /// In the output of a command that we started.
    Wrap,
}

/// Turns the frames of one source into drafts.
///
/// Frames may be cut anywhere; the drafts are the same. Nothing in them makes it fail: what it does not understand
/// becomes an unknown step and is counted.
pub struct Adapter {
    source: Source,
    framing: Framing,
    splitting: SplitRule,
    mapper: Box<dyn Mapper>,
    /// The state of reading a wrap, if the source is one.
    wrap: WrapState,
    lanes: [Splitter; 2],
    /// How far this generation of the source has been seen.
    end: u64,
    /// How far unfinished lines have been read by [`Adapter::finish`], lane by lane.
    handed_over: [u64; 2],
    generation: u32,
    /// What the generation is packed in.
    unpacked: Option<Packing>,
    /// Whether the source was rewritten since the last record.
    is_rewritten: bool,
    /// Whether the list of a document has had a record in this generation.
    has_listed: bool,
    memory: Memory,
    completeness: Completeness,
}

impl Adapter {
    pub(crate) fn new(source: Source, mapper: Box<dyn Mapper>) -> Self {
        Self {
            source,
            framing: Framing::Records,
            splitting: SplitRule::Lines,
            mapper,
            wrap: WrapState::default(),
            lanes: Default::default(),
            end: 0,
            handed_over: [0; 2],
            generation: 0,
            unpacked: None,
            is_rewritten: false,
            has_listed: false,
            memory: Memory::default(),
            completeness: Completeness::default(),
        }
    }

    /// Reads the source as a recording of both sides of a connection: one line per message, with its direction.
    #[must_use]
    pub fn of_conversation(self) -> Self {
        Self { framing: Framing::Conversation, ..self }
    }

    /// Reads the source as a stream of server-sent events.
    #[must_use]
    pub fn of_events(self) -> Self {
        Self { framing: Framing::Events, ..self }
    }

    /// Reads a source that may be a document over many lines.
    pub(crate) fn of_documents(mut self, shape: DocumentShape) -> Self {
        self.splitting = SplitRule::Documents(shape);
        self.lanes = self.new_lanes();
        self
    }

    fn new_lanes(&self) -> [Splitter; 2] {
        [Splitter::new(self.splitting), Splitter::new(self.splitting)]
    }

    /// Reads the source as the output of a command that `steno run` started.
    pub(crate) fn of_wrap(self) -> Self {
        Self { framing: Framing::Wrap, ..self }
    }

    /// Takes the next piece of the source.
    ///
    /// If a source has two lanes, they must alternate only between lines, because the bytes of a line are one range of
    /// evidence.
    pub fn feed(&mut self, frame: Frame<'_>, sink: &mut dyn Sink) {
        if self.framing == Framing::Wrap {
            return self.feed_wrap(frame, sink);
        }
        if frame.generation != self.generation {
            self.generation = frame.generation;
            self.lanes = self.new_lanes();
            self.end = 0;
            self.handed_over = [0; 2];
            self.is_rewritten = true;
            self.has_listed = false;
        }
        self.unpacked = frame.unpacked;
        // Envelopes have their own capture time; until the first one, the source's time is the best estimate.
        if self.framing != Framing::Conversation || self.memory.captured.is_none() {
            self.memory.captured = frame.captured.cloned();
        }
        // Both lanes share the source's positions, so a jump in one of them may be the other's bytes.
        let known = usize::try_from(self.end.saturating_sub(frame.offset)).unwrap_or(usize::MAX);
        let bytes = frame.bytes.get(known..).unwrap_or_default();
        if frame.offset > self.end {
            self.give_up_partial_lines(sink);
        }
        self.end = self.end.max(frame.offset + frame.bytes.len() as u64);
        let offset = frame.offset + (frame.bytes.len() - bytes.len()) as u64;
        let mut lines = std::mem::take(&mut self.lanes[frame.lane as usize]);
        lines.feed(offset, bytes, |offset, line| {
            self.in_order(sink, |adapter, sink| {
                adapter.line(SourceOffset::of(frame.lane, offset), line, sink);
            });
        });
        self.lanes[frame.lane as usize] = lines;
    }

    /// Bytes are missing: incomplete lines are taken as they are.
    fn give_up_partial_lines(&mut self, sink: &mut dyn Sink) {
        for lane in [Lane::FromAgent, Lane::ToAgent] {
            let mut lines = std::mem::take(&mut self.lanes[lane as usize]);
            lines.finish(|offset, line| self.line(SourceOffset::of(lane, offset), line, sink));
            self.lanes[lane as usize] = lines;
        }
    }

    /// Does not remember records, which saves memory for a source that is read once and has one generation.
    #[must_use]
    pub fn read_once(mut self) -> Self {
        self.memory.seen = None;
        self
    }

    /// Reads a last line without a newline, if it is whole. The source may continue, and this does not change its
    /// events.
    pub fn pause(&mut self, sink: &mut dyn Sink) {
        self.in_order(sink, Self::pause_now);
    }

    fn pause_now(&mut self, sink: &mut dyn Sink) {
        self.completeness.torn_bytes = 0;
        for lane in [Lane::FromAgent, Lane::ToAgent] {
            let lines = std::mem::take(&mut self.lanes[lane as usize]);
            if let Some((offset, line)) = lines.unfinished() {
                self.last_line(SourceOffset::of(lane, offset), line, sink);
            }
            self.lanes[lane as usize] = lines;
        }
    }

    /// Ends the source: records that waited for a session name are written under a derived one. This ends no turn, call
    /// or run.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        let sink = &mut OrderedSink::waiting(sink);
        self.pause_now(sink);
        if self.framing == Framing::Wrap {
            self.finish_wrap(sink);
        }
        let at = CurrentRecord::end_of(&self.source.id, self.generation, self.end);
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        self.mapper.finish(&mut emit);
        self.count_late();
        self.torn_entries(sink);
        self.last_entries(sink);
    }

    /// Returns the agent whose records it reads, if it is one that is known by name.
    #[must_use]
    pub fn provider(&self) -> Option<Provider> {
        Provider::find(self.mapper.about().provider)
    }

    /// Returns the adapter's name and version, like `claude/2`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.mapper.about().adapter
    }

    /// Returns what the source's channel can show at all; what is not in the list is unavailable, not zero.
    #[must_use]
    pub fn carries(&self) -> &'static [&'static str] {
        self.mapper.about().carries
    }

    /// Returns how much was understood so far.
    #[must_use]
    pub fn completeness(&self) -> &Completeness {
        &self.completeness
    }

    fn line(&mut self, place: SourceOffset<'_>, line: Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Whole(bytes) => self.whole_line(place, bytes, sink),
            Line::TooLong(length) => {
                let lost = UnreadableText { text: "".into(), length, why: "a line too long to be read" };
                self.unreadable(place, &lost, sink);
            }
            Line::Listed(bytes) => self.listed(place, bytes, sink),
            Line::Fields(bytes) => self.fields(place, bytes, sink),
            Line::End => self.document_end(place, sink),
        }
    }

    /// Reads a line of a stream of events: its data is a record, and all other fields say nothing.
    fn event_line(&mut self, place: SourceOffset<'_>, line: &[u8], sink: &mut dyn Sink) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(data) = line.strip_prefix(b"data:") else { return };
        let data = data.trim_ascii_start();
        if data == b"[DONE]" {
            return;
        }
        let place = place.after(line.len() - data.len());
        for piece in repair::pieces(data, self.is_record()) {
            self.piece(place.after(piece.at), &data[piece.at..][..piece.len], piece.content, sink);
        }
    }

    fn not_an_object(&mut self, place: SourceOffset<'_>, bytes: &[u8], sink: &mut dyn Sink) {
        let (text, length) = (String::from_utf8_lossy(bytes), bytes.len() as u64);
        self.unreadable(place, &UnreadableText { text, length, why: "no JSON object" }, sink);
    }

    fn whole_line(&mut self, place: SourceOffset<'_>, line: &[u8], sink: &mut dyn Sink) {
        if self.framing == Framing::Events {
            return self.event_line(place, line, sink);
        }
        let usual = line.strip_suffix(b"\r").unwrap_or(line);
        let is_new = self.handed_over[place.lane as usize] <= place.offset();
        if let Ok(text) = str::from_utf8(usual)
            && is_new
            && !usual.is_empty()
            && self.object(place, &line_of(text), sink).is_ok()
        {
            return;
        }
        for piece in repair::pieces(line, self.is_record()) {
            self.piece(place.after(piece.at), &line[piece.at..][..piece.len], piece.content, sink);
        }
    }

    fn piece(
        &mut self,
        place: SourceOffset<'_>,
        bytes: &[u8],
        content: PieceContent<'_>,
        sink: &mut dyn Sink,
    ) {
        if place.offset() < self.handed_over[place.lane as usize] {
            return;
        }
        let is_read = match content {
            PieceContent::Object { text, repaired } => {
                let found = RecordText { length: bytes.len(), is_repaired: repaired, ..line_of(&text) };
                self.object(place, &found, sink).is_ok()
            }
            PieceContent::Unreadable(_) => false,
        };
        if !is_read {
            self.not_an_object(place, bytes, sink);
        }
    }

    fn is_record(&self) -> IsRecord {
        match self.framing {
            Framing::Records | Framing::Events | Framing::Wrap => repair::is_record,
            Framing::Conversation => is_envelope,
        }
    }

    /// Reads the whole records of a last line without a newline. The rest may still come.
    ///
    /// Text after something unreadable is not read: it may be inside a record that continues.
    fn last_line(&mut self, place: SourceOffset<'_>, line: Line<'_>, sink: &mut dyn Sink) {
        let (bytes, len) = match line {
            Line::Whole(bytes) | Line::Listed(bytes) | Line::Fields(bytes) => (bytes, bytes.len() as u64),
            Line::TooLong(len) => (&[][..], len),
            Line::End => (&[][..], 0),
        };
        let prefix = if self.framing == Framing::Events {
            bytes.strip_prefix(b"data:").map_or(bytes.len(), |_| 5)
        } else {
            0
        };
        let (place, bytes) = (place.after(prefix), &bytes[prefix..]);
        let mut pieces = repair::pieces(bytes, self.is_record());
        let is_torn = |piece: &LinePiece<'_>| matches!(piece.content, PieceContent::Unreadable(_));
        let whole = pieces.iter().position(is_torn).unwrap_or(pieces.len());
        pieces.truncate(whole);
        let end = pieces.last().map_or(0, |last| last.at + last.len);
        for piece in pieces {
            self.piece(place.after(piece.at), &bytes[piece.at..][..piece.len], piece.content, sink);
        }
        let handed_over = &mut self.handed_over[place.lane as usize];
        *handed_over = place.after(end).offset().max(*handed_over);
        self.completeness.torn_bytes += len - (prefix + end) as u64;
    }

    fn object(
        &mut self,
        place: SourceOffset<'_>,
        found: &RecordText<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), NoObject> {
        let RecordText { text, length, is_repaired, is_in_document } = *found;
        let record = match self.framing {
            Framing::Records | Framing::Events | Framing::Wrap => {
                Record { lane: place.lane, is_recorders: false, is_in_document, text }
            }
            Framing::Conversation => {
                let message = Message::read(text)?;
                if let Some(time) = message.time {
                    self.memory.captured = Some(time.clone());
                    self.memory.clock = Some(time);
                }
                let Message { lane, is_recorders, text, .. } = message;
                Record { lane, is_recorders, is_in_document, text }
            }
        };
        let text = record.text;
        let at = CurrentRecord {
            source: &self.source.id,
            generation: self.generation,
            offset: place.offset(),
            length: place.span(length as u64),
            unpacked: self.unpacked,
            text,
            is_repaired,
            unreadable: None,
        };
        if self.is_rewritten && Fields::parse(text).is_err() {
            // The note about the rewrite comes with the first record, and this is not a record.
            return Err(NoObject);
        }
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        if std::mem::take(&mut self.is_rewritten) {
            let run = begun(&*self.mapper);
            // A document is rewritten whenever it changes, which is not worth a step.
            self.completeness.vanished +=
                if is_in_document { emit.next_generation(run) } else { emit.rewritten(run) };
        }
        // An unchanged record of a rewritten source already has its events.
        let is_there = emit.was_there();
        let read =
            if is_there { RecordOutcome::Understood } else { self.mapper.record(record, &mut emit)? };
        if !is_there {
            emit.read();
        }
        self.completeness.vanished += emit.keep(begun(&*self.mapper));
        self.completeness.records += 1;
        self.completeness.repaired += u64::from(is_repaired && !is_there);
        self.completeness.count(read);
        self.count_late();
        Ok(())
    }

    /// Counts the records that have waited.
    fn count_late(&mut self) {
        self.memory.late.drain(..).for_each(|read| self.completeness.count(read));
    }

    fn unreadable(&mut self, place: SourceOffset<'_>, lost: &UnreadableText<'_>, sink: &mut dyn Sink) {
        let at = CurrentRecord {
            source: &self.source.id,
            generation: self.generation,
            offset: place.offset(),
            length: place.span(lost.length),
            unpacked: self.unpacked,
            text: &lost.text,
            is_repaired: false,
            unreadable: Some(lost.why),
        };
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        if std::mem::take(&mut self.is_rewritten) {
            self.completeness.vanished += emit.rewritten(begun(&*self.mapper));
        }
        if !emit.was_there() {
            self.completeness.unreadable += 1;
            self.mapper.unreadable(lost.why, &mut emit);
            emit.read();
        }
        self.completeness.vanished += emit.keep(begun(&*self.mapper));
        self.count_late();
    }
}

/// Returns a line as a record.
fn line_of(text: &str) -> RecordText<'_> {
    RecordText { text, length: text.len(), is_repaired: false, is_in_document: false }
}

/// Returns the run that facts of the source belong to, if it has begun.
fn begun(mapper: &dyn Mapper) -> Option<&Run> {
    mapper.run().filter(|run| run.is_started)
}
