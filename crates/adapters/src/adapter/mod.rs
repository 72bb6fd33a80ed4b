//! The adapter of one source: frames in, drafts out, for any provider.

mod entries;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use steno_model::json::{Fields, JsonString};
use steno_model::{Frame, Lane, Packing};

use self::entries::OrderedSink;
use crate::conversation::{Message, is_envelope};
use crate::emit::{AdapterInfo, CurrentRecord, Emit, Memory};
use crate::lines::{Line, Lines};
use crate::repair::{self, IsRecord, LinePiece, PieceContent};
use crate::run::Run;
use crate::sink::Sink;
use crate::wire::NoObject;

/// What an adapter knows about its source besides the bytes.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its name in evidence.
    pub id: JsonString,
    /// Its file name without directories, if it is a file; some providers have ids only there.
    pub file_name: Option<String>,
}

impl Source {
    /// Makes a source with an id only.
    #[must_use]
    pub fn named(id: &str) -> Self {
        Self { id: id.into(), file_name: None }
    }
}

/// A record that was read.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) lane: Lane,
    /// Whether it is a note of our recorder, not a message of either side.
    pub(crate) is_recorders: bool,
    pub(crate) text: &'a str,
}

/// What a mapper made of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordOutcome {
    /// It became events, or is a copy of what did.
    Understood,
    /// It is on the adapter's list of records without information about the work.
    Bookkeeping,
    /// It has a type that the adapter does not know.
    Unknown(String),
    /// It waits for its run to be known; its outcome follows then.
    Waiting,
}

/// What a record without an entry is.
pub(crate) enum LeftoverRecord<'a> {
    /// An unknown entry of a run, with this part of the record as its detail.
    Unknown { run: &'a Run, detail: &'a str },
    /// A delta of an item, which is part of the item's entry.
    Delta,
    /// Its run is not known yet.
    Waiting,
}

/// Maps the records of a surface to events. It holds the state of the session.
pub(crate) trait Mapper: Send {
    /// The description of its runs.
    fn about(&self) -> &'static AdapterInfo;

    /// Makes events from a record.
    ///
    /// # Errors
    /// [`NoObject`] if the text is not a JSON object; then nothing changes.
    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject>;

    /// Notes a record that cannot be read.
    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>);

    /// Returns the run that facts of the source itself belong to, if it is known yet.
    fn run(&self) -> Option<&Run>;

    /// Classifies a record that the mapper has made no entry of.
    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        self.run().map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: text })
    }

    /// Writes what waited for the source's session, now that it will not be named any more.
    fn finish(&mut self, emit: &mut Emit<'_>);
}

/// A position in a source.
#[derive(Clone, Copy)]
struct SourceOffset {
    lane: Lane,
    offset: u64,
}

impl SourceOffset {
    fn after(self, bytes: usize) -> Self {
        Self { offset: self.offset + bytes as u64, ..self }
    }
}

/// The text of a record, and its length in the source.
struct RecordText<'a> {
    text: &'a str,
    /// How many bytes of the source it takes; a text that had to be changed has another length.
    length: usize,
    is_repaired: bool,
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
}

/// How much of a source was understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completeness {
    /// Records that were read.
    pub records: u64,
    /// Of these, the ones without information about the work, by the adapter's list.
    pub bookkeeping: u64,
    /// Of these, the ones of unknown types, by type.
    pub unknown: BTreeMap<String, u64>,
    /// Of these, the ones whose bytes had to be changed to read them.
    pub repaired: u64,
    /// Pieces of the source that cannot be read.
    pub unreadable: u64,
    /// The bytes of a last line that has no newline and is not a whole record.
    pub torn_bytes: u64,
    /// Records that were read and then removed by a rewrite of the source.
    pub vanished: u64,
}

impl Completeness {
    fn count(&mut self, read: RecordOutcome) {
        match read {
            RecordOutcome::Understood | RecordOutcome::Waiting => {}
            RecordOutcome::Bookkeeping => self.bookkeeping += 1,
            RecordOutcome::Unknown(name) => *self.unknown.entry(name).or_default() += 1,
        }
    }
}

/// Turns the frames of one source into drafts.
///
/// Frames may be cut anywhere; the drafts are the same. Nothing in them makes it fail: what it does not understand
/// becomes an unknown step and is counted.
pub struct Adapter {
    source: Source,
    framing: Framing,
    mapper: Box<dyn Mapper>,
    lanes: [Lines; 2],
    /// How far this generation of the source has been seen.
    end: u64,
    /// How far unfinished lines have been read by [`Adapter::finish`], lane by lane.
    handed_over: [u64; 2],
    generation: u32,
    /// What the generation is packed in.
    unpacked: Option<Packing>,
    /// Whether the source was rewritten since the last record.
    is_rewritten: bool,
    memory: Memory,
    completeness: Completeness,
}

impl Adapter {
    pub(crate) fn new(source: Source, mapper: Box<dyn Mapper>) -> Self {
        Self {
            source,
            framing: Framing::Records,
            mapper,
            lanes: Default::default(),
            end: 0,
            handed_over: [0; 2],
            generation: 0,
            unpacked: None,
            is_rewritten: false,
            memory: Memory::default(),
            completeness: Completeness::default(),
        }
    }

    /// Reads the source as a recording of both sides of a connection: one line per message, with its direction.
    #[must_use]
    pub fn of_conversation(self) -> Self {
        Self { framing: Framing::Conversation, ..self }
    }

    /// Takes the next piece of the source.
    ///
    /// If a source has two lanes, they must alternate only between lines, because the bytes of a line are one range of
    /// evidence.
    pub fn feed(&mut self, frame: Frame<'_>, sink: &mut dyn Sink) {
        if frame.generation != self.generation {
            self.generation = frame.generation;
            self.lanes = Default::default();
            self.end = 0;
            self.handed_over = [0; 2];
            self.is_rewritten = true;
        }
        self.unpacked = frame.unpacked;
        // Envelopes have their own capture time; until the first one, the source's time is the best estimate.
        if self.framing == Framing::Records || self.memory.captured.is_none() {
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
                adapter.line(SourceOffset { lane: frame.lane, offset }, line, sink);
            });
        });
        self.lanes[frame.lane as usize] = lines;
    }

    /// Bytes are missing: incomplete lines are taken as they are.
    fn give_up_partial_lines(&mut self, sink: &mut dyn Sink) {
        for lane in [Lane::FromAgent, Lane::ToAgent] {
            let mut lines = std::mem::take(&mut self.lanes[lane as usize]);
            lines.finish(|offset, line| self.line(SourceOffset { lane, offset }, line, sink));
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
                self.last_line(SourceOffset { lane, offset }, line, sink);
            }
            self.lanes[lane as usize] = lines;
        }
    }

    /// Ends the source: records that waited for a session name are written under a derived one. This ends no turn, call
    /// or run.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        let sink = &mut OrderedSink::waiting(sink);
        self.pause_now(sink);
        let at = CurrentRecord::end_of(&self.source.id, self.generation, self.end);
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        self.mapper.finish(&mut emit);
        self.count_late();
        self.torn_entries(sink);
        self.last_entries(sink);
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

    fn line(&mut self, place: SourceOffset, line: Line<'_>, sink: &mut dyn Sink) {
        match line {
            Line::Whole(bytes) => self.whole_line(place, bytes, sink),
            Line::TooLong(length) => {
                let lost = UnreadableText { text: "".into(), length, why: "a line too long to be read" };
                self.unreadable(place, &lost, sink);
            }
        }
    }

    fn whole_line(&mut self, place: SourceOffset, line: &[u8], sink: &mut dyn Sink) {
        let usual = line.strip_suffix(b"\r").unwrap_or(line);
        let is_new = self.handed_over[place.lane as usize] <= place.offset;
        if let Ok(text) = str::from_utf8(usual)
            && is_new
            && !usual.is_empty()
            && self.object(place, &RecordText { text, length: text.len(), is_repaired: false }, sink).is_ok()
        {
            return;
        }
        for piece in repair::pieces(line, self.is_record()) {
            self.piece(place.after(piece.at), &line[piece.at..][..piece.len], piece.content, sink);
        }
    }

    fn piece(&mut self, place: SourceOffset, bytes: &[u8], content: PieceContent<'_>, sink: &mut dyn Sink) {
        if place.offset < self.handed_over[place.lane as usize] {
            return;
        }
        let is_read = match content {
            PieceContent::Object { text, repaired } => {
                let found = RecordText { text: &text, length: bytes.len(), is_repaired: repaired };
                self.object(place, &found, sink).is_ok()
            }
            PieceContent::Unreadable(_) => false,
        };
        if !is_read {
            let (text, length) = (String::from_utf8_lossy(bytes), bytes.len() as u64);
            self.unreadable(place, &UnreadableText { text, length, why: "no JSON object" }, sink);
        }
    }

    fn is_record(&self) -> IsRecord {
        match self.framing {
            Framing::Records => repair::is_record,
            Framing::Conversation => is_envelope,
        }
    }

    /// Reads the whole records of a last line without a newline. The rest may still come.
    ///
    /// Text after something unreadable is not read: it may be inside a record that continues.
    fn last_line(&mut self, place: SourceOffset, line: Line<'_>, sink: &mut dyn Sink) {
        let (bytes, len) = match line {
            Line::Whole(bytes) => (bytes, bytes.len() as u64),
            Line::TooLong(len) => (&[][..], len),
        };
        let mut pieces = repair::pieces(bytes, self.is_record());
        let is_torn = |piece: &LinePiece<'_>| matches!(piece.content, PieceContent::Unreadable(_));
        let whole = pieces.iter().position(is_torn).unwrap_or(pieces.len());
        pieces.truncate(whole);
        let end = pieces.last().map_or(0, |last| last.at + last.len);
        for piece in pieces {
            self.piece(place.after(piece.at), &bytes[piece.at..][..piece.len], piece.content, sink);
        }
        let handed_over = &mut self.handed_over[place.lane as usize];
        *handed_over = place.after(end).offset.max(*handed_over);
        self.completeness.torn_bytes += len - end as u64;
    }

    fn object(
        &mut self,
        place: SourceOffset,
        found: &RecordText<'_>,
        sink: &mut dyn Sink,
    ) -> Result<(), NoObject> {
        let RecordText { text, length, is_repaired } = *found;
        let record = match self.framing {
            Framing::Records => Record { lane: place.lane, is_recorders: false, text },
            Framing::Conversation => {
                let message = Message::read(text)?;
                if let Some(time) = message.time {
                    self.memory.captured = Some(time.clone());
                    self.memory.clock = Some(time);
                }
                Record { lane: message.lane, is_recorders: message.is_recorders, text: message.text }
            }
        };
        let text = record.text;
        let at = CurrentRecord {
            source: &self.source.id,
            generation: self.generation,
            offset: place.offset,
            length: length as u64,
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
            self.completeness.vanished += emit.rewritten(begun(&*self.mapper));
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

    fn unreadable(&mut self, place: SourceOffset, lost: &UnreadableText<'_>, sink: &mut dyn Sink) {
        let at = CurrentRecord {
            source: &self.source.id,
            generation: self.generation,
            offset: place.offset,
            length: lost.length,
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

/// Returns the run that facts of the source belong to, if it has begun.
fn begun(mapper: &dyn Mapper) -> Option<&Run> {
    mapper.run().filter(|run| run.is_started)
}
