//! Reads wraps: finds out which agent a command is by what it prints, and passes its lines to the agent's mapper.
//!
//! The decision depends only on the lines, never on how they are cut or when they come: each line is added to a bounded
//! head, and the head is sniffed. If nothing is recognised in it, the output is plain.

use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::wrap::{LostBytes, ProcessEnd, WrapControl, WrapHeader, WrapLane};
use steno_model::{EntryType, Frame, Lane};

use super::{Adapter, SourceOffset, UnreadableText};
use crate::documents::SplitRule;
use crate::emit::{CurrentRecord, Emit, WrappedCommand, push};
use crate::lines::Line;
use crate::run::Run;
use crate::sink::Sink;
use crate::sniff::{HEAD_BYTES_MAX, SniffResult, sniff};
use crate::wrap::{
    COMMAND, CommandOutput, KeptItem, LinePlace, WrapContent, WrapDocument, WrapItem, WrapLines, WrapSink,
    command_fields, lane_fields, output_fields,
};

/// How many lines of output are examined before it is plain.
const HEAD_LINES_MAX: usize = 32;
/// Why a wrap cannot be read to its end.
const DAMAGE: &str = "a line of the wrap that cannot be read";

/// What is known about a wrap.
#[derive(Default)]
pub(super) struct WrapState {
    lines: WrapLines,
    stage: Stage,
    /// The agent's output, if it may be a document over many lines.
    document: Option<WrapDocument>,
    header: Option<(WrapHeader, String)>,
    out: CommandOutput,
    err: CommandOutput,
    /// How many bytes are missing, of all lanes.
    lost: u64,
    /// The lanes that programs in the background had open at the end.
    left_open: Vec<WrapLane>,
    is_ended: bool,
}

/// What the output of a command is.
enum Stage {
    /// Not known yet.
    Examining {
        head: Vec<u8>,
        lines: usize,
        /// The lines and notes so far.
        kept: Vec<KeptItem>,
    },
    /// Records of an agent.
    Agent,
    /// Anything else.
    Plain,
}

impl Default for Stage {
    fn default() -> Self {
        Self::Examining { head: Vec::new(), lines: 0, kept: Vec::new() }
    }
}

/// Passes the parts of a wrap on to its adapter.
struct WrapFeed<'a> {
    adapter: &'a mut Adapter,
    sink: &'a mut dyn Sink,
}

impl WrapSink for WrapFeed<'_> {
    fn bytes(&mut self, lane: WrapLane, bytes: &[u8]) {
        let wrap = &mut self.adapter.wrap;
        match lane {
            WrapLane::Out if !matches!(wrap.stage, Stage::Agent) => wrap.out.take(bytes),
            WrapLane::Err => wrap.err.take(bytes),
            WrapLane::Out | WrapLane::In => {}
        }
    }

    fn item(&mut self, item: WrapItem<'_>) {
        self.adapter.wrap_item(&item, self.sink);
    }
}

impl WrapState {
    /// Returns the name of the command's step.
    fn name(&self) -> JsonString {
        let header = self.header.as_ref().map(|(header, _)| header);
        let program = header.and_then(|header| header.command.first()).map(JsonString::to_text);
        let program = program.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or("command");
        header.and_then(|header| header.name.clone()).unwrap_or_else(|| program.into())
    }

    /// Returns the run of the command.
    fn run(&self) -> Option<Run> {
        self.header.as_ref().map(|(header, _)| Run::main(header.run))
    }
}

impl Adapter {
    /// Takes the next piece of a wrap. It has one generation; later ones give no events.
    pub(super) fn feed_wrap(&mut self, frame: Frame<'_>, sink: &mut dyn Sink) {
        let known = usize::try_from(self.end.saturating_sub(frame.offset)).unwrap_or(usize::MAX);
        let bytes = frame.bytes.get(known..).unwrap_or_default();
        if frame.generation != 0 || frame.offset > self.end || bytes.is_empty() {
            return;
        }
        let offset = self.end;
        self.end += bytes.len() as u64;
        let mut lines = std::mem::take(&mut self.wrap.lines);
        lines.feed(offset, bytes, &mut WrapFeed { adapter: self, sink });
        let is_examining = matches!(self.wrap.stage, Stage::Examining { .. });
        if is_examining && lines.partial_len() > HEAD_BYTES_MAX as u64 {
            self.be_plain(sink);
        }
        if matches!(self.wrap.stage, Stage::Plain) {
            lines.only_notes();
        }
        self.completeness.torn_bytes = u64::from(lines.is_torn());
        self.wrap.lines = lines;
    }

    fn wrap_item(&mut self, item: &WrapItem<'_>, sink: &mut dyn Sink) {
        if let WrapContent::Header(header, text) = &item.content {
            let (run, fields) = (header.run, command_fields(header));
            self.memory.wrapped = Some(WrappedCommand { run, fields });
            self.memory.wrap = Some(run);
            self.memory.captured = Some(header.started.clone());
            self.wrap.header = Some(((*header).clone(), (*text).to_owned()));
            return;
        }
        if matches!(self.wrap.stage, Stage::Examining { .. }) {
            self.examine(item, sink);
        } else {
            self.take_item(item, sink);
        }
    }

    /// Keeps an item until it is known what the output is.
    fn examine(&mut self, item: &WrapItem<'_>, sink: &mut dyn Sink) {
        let Stage::Examining { head, lines, kept } = &mut self.wrap.stage else { return };
        kept.extend(KeptItem::of(item));
        match &item.content {
            WrapContent::Line(Lane::FromAgent, Line::Whole(line))
                if head.len() + line.len() < HEAD_BYTES_MAX =>
            {
                head.extend_from_slice(line);
                head.push(b'\n');
                *lines += 1;
                let sniffed = sniff(head).filter(|sniffed| sniffed.surface.is_stream());
                let sniffed = sniffed.filter(|sniffed| !sniffed.is_conversation);
                let sniffed =
                    sniffed.map(|sniffed| SniffResult { surface: sniffed.surface.when_printed(), ..sniffed });
                let is_full = *lines >= HEAD_LINES_MAX;
                match sniffed.and_then(|sniffed| crate::open(&sniffed, self.source.clone())) {
                    Some(agent) => self.be_agent(agent, sink),
                    None if is_full => self.be_plain(sink),
                    None => {}
                }
            }
            WrapContent::Line(Lane::FromAgent, _) | WrapContent::Note(WrapControl::Ended(_), _) => {
                self.be_plain(sink);
            }
            WrapContent::Damage(_) => {
                self.be_plain(sink);
                self.take_item(item, sink);
            }
            WrapContent::Line(Lane::ToAgent, _) | WrapContent::Note(..) | WrapContent::Header(..) => {}
        }
    }

    fn be_agent(&mut self, agent: Self, sink: &mut dyn Sink) {
        self.mapper = agent.mapper;
        let is_document = matches!(agent.splitting, SplitRule::Documents(_));
        self.wrap.document = is_document.then(|| WrapDocument::new(agent.splitting));
        self.wrap.out = CommandOutput::default();
        self.take_kept(Stage::Agent, sink);
    }

    /// Writes the beginning of a plain command.
    fn be_plain(&mut self, sink: &mut dyn Sink) {
        let (name, run) = (self.wrap.name(), self.wrap.run());
        if let (Some((header, text)), Some(mut run)) = (&self.wrap.header, run) {
            let end = CurrentRecord::end_of(&self.source.id, self.generation, 0);
            let at = CurrentRecord { length: text.len() as u64, text, ..end };
            let mut emit = Emit::new(sink, &COMMAND, at, &mut self.memory);
            emit.set_time(Some(header.started.as_json().clone()));
            emit.begin_command(&mut run, &name, header.cwd.as_ref());
            self.completeness.records += 1;
        }
        self.take_kept(Stage::Plain, sink);
    }

    fn take_kept(&mut self, stage: Stage, sink: &mut dyn Sink) {
        if let Stage::Examining { kept, .. } = std::mem::replace(&mut self.wrap.stage, stage) {
            for kept in &kept {
                self.take_item(&kept.item(), sink);
            }
        }
    }

    /// Takes an item of output that is known.
    fn take_item(&mut self, item: &WrapItem<'_>, sink: &mut dyn Sink) {
        if let Some(time) = item.time {
            self.memory.captured = Some(time.clone());
        }
        let is_agent = matches!(self.wrap.stage, Stage::Agent);
        match &item.content {
            WrapContent::Line(lane, text) if is_agent => match (self.wrap.document.take(), lane, text) {
                (Some(mut document), Lane::FromAgent, Line::Whole(bytes)) => {
                    document.feed(item.place, bytes, |at, record| self.agent_line(*lane, at, record, sink));
                    self.wrap.document = Some(document);
                }
                (document, ..) => {
                    self.wrap.document = document;
                    self.agent_line(*lane, item.place, *text, sink);
                }
            },
            WrapContent::Note(WrapControl::Lost(lost), text) => self.lost(lost, item.place, text, sink),
            WrapContent::Note(WrapControl::LeftOpen(lane), _) => self.wrap.left_open.push(*lane),
            WrapContent::Note(WrapControl::Ended(end), text) => self.ended(*end, item.place, text, sink),
            WrapContent::Damage(length) => {
                let lost = UnreadableText { text: "".into(), length: *length, why: DAMAGE };
                let place = SourceOffset { lane: Lane::FromAgent, line: item.place, at: 0 };
                self.unreadable(place, &lost, sink);
            }
            WrapContent::Line(..) | WrapContent::Note(..) | WrapContent::Header(..) => {}
        }
    }

    fn agent_line(&mut self, lane: Lane, at: LinePlace<'_>, text: Line<'_>, sink: &mut dyn Sink) {
        let place = SourceOffset { lane, line: at, at: 0 };
        self.in_order(sink, |adapter, sink| adapter.line(place, text, sink));
    }

    /// Reads what is incomplete of a document: nothing more comes.
    fn end_document(&mut self, sink: &mut dyn Sink) {
        if let Some(mut document) = self.wrap.document.take() {
            document.finish(|at, record| self.agent_line(Lane::FromAgent, at, record, sink));
        }
    }

    /// Writes that bytes are missing.
    fn lost(&mut self, lost: &LostBytes, place: LinePlace<'_>, text: &str, sink: &mut dyn Sink) {
        let wrap = &mut self.wrap;
        wrap.lost += lost.bytes;
        match lost.lane {
            WrapLane::Out => wrap.out.lose(lost.bytes),
            WrapLane::Err => wrap.err.lose(lost.bytes),
            WrapLane::In => {}
        }
        self.completeness.records += 1;
        // A run begins with its first record. A loss before it is only counted, at the end.
        let Some(run) = wrap.run().filter(|_| self.memory.wrapped.is_none()) else { return };
        self.memory.clock.clone_from(&self.memory.captured);
        let at = note(&self.source.id, place, text);
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        let result = RawJson::object(|object| {
            object.word("lane", lost.lane.as_str());
            object.number("bytes", lost.bytes);
            object.string("why", &lost.why);
            object.optional("error", lost.error.as_ref(), ObjectWriter::string);
        });
        emit.system(&run, "lost", Some(result));
        emit.entry(&run, EntryType::SystemEvent, Some("lost"));
    }

    /// Writes the end of the command: that of its run, which is not the end of the agent's session.
    fn ended(&mut self, end: ProcessEnd, place: LinePlace<'_>, text: &str, sink: &mut dyn Sink) {
        self.end_document(sink);
        let wrap = &mut self.wrap;
        let Some(run) = wrap.run().filter(|_| !wrap.is_ended) else { return };
        wrap.is_ended = true;
        self.completeness.records += 1;
        self.memory.clock.clone_from(&self.memory.captured);
        let (field, value) = match end {
            ProcessEnd::Code(code) => ("exit_code", RawJson::from(i64::from(code))),
            ProcessEnd::Signal(signal) => ("signal", RawJson::from(i64::from(signal))),
        };
        let mut extra = Extra::default();
        extra.push(field, value.clone());
        push(&mut extra, "lost_bytes", (wrap.lost > 0).then(|| RawJson::from(wrap.lost)));
        // Streams end in any order.
        wrap.left_open.sort_unstable();
        let left_open = wrap.left_open.iter().map(|lane| JsonString::from(lane.as_str()).to_json());
        push(&mut extra, "left_open", (!wrap.left_open.is_empty()).then(|| RawJson::array(left_open)));
        let at = note(&self.source.id, place, text);
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        if matches!(wrap.stage, Stage::Plain) {
            let result = RawJson::object(|object| {
                object.json(field, &value);
                output_fields(&wrap.out, &wrap.err, object);
            });
            emit.end_command(&run, &wrap.name(), end, result);
            emit.complete_command(&run, &wrap.name(), extra);
        } else {
            self.mapper.finish(&mut emit);
            if !wrap.err.is_empty() {
                emit.system(&run, "stderr", Some(lane_fields("stderr", &wrap.err)));
            }
            emit.complete_wrap(&run, extra);
            emit.entry(&run, EntryType::SystemEvent, Some("command_completed"));
        }
    }

    /// Writes the output of a command whose end is not recorded: its forwarder was killed.
    pub(super) fn finish_wrap(&mut self, sink: &mut dyn Sink) {
        if self.wrap.is_ended || self.wrap.header.is_none() {
            return;
        }
        if matches!(self.wrap.stage, Stage::Examining { .. }) {
            self.be_plain(sink);
        }
        self.end_document(sink);
        let wrap = &self.wrap;
        let Some(run) = wrap.run().filter(|_| self.memory.wrapped.is_none()) else { return };
        let at = CurrentRecord::end_of(&self.source.id, self.generation, self.end);
        let mut emit = Emit::new(sink, self.mapper.about(), at, &mut self.memory);
        if matches!(wrap.stage, Stage::Plain) {
            let result = RawJson::object(|object| output_fields(&wrap.out, &wrap.err, object));
            emit.system(&run, "output", Some(result));
        } else if !wrap.err.is_empty() {
            emit.system(&run, "stderr", Some(lane_fields("stderr", &wrap.err)));
        }
    }
}

/// Returns a note of the forwarder as the record that is being read.
fn note<'a>(source: &'a JsonString, place: LinePlace<'_>, text: &'a str) -> CurrentRecord<'a> {
    CurrentRecord { length: text.len() as u64, text, ..CurrentRecord::end_of(source, 0, place.start) }
}
