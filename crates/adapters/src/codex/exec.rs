//! The output of `codex exec --json`: items since 0.50, events before (see `legacy`).

use std::collections::HashMap;

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::deltas::is_delta;
use super::items::{Kind, kind_of, message_of, type_of};
use super::legacy::{self, Legacy};
use super::notes::{Note, WaitingNotes};
use super::shapes::is_odd_item;
use super::thread::{Channel, Thread, ToolItem};
use super::wire::{ExecLine, Payload};
use super::{ADAPTER, ENTRY_ADAPTER, PROVIDER};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, EndedBy, TurnEnd, push, string};
use crate::run::Run;
use crate::shapes::{is_text, words};
use crate::wire::{NoObject, RawField as _, object, parse};

static ABOUT: AdapterInfo = CHANNEL;

/// Up to 0.36 the output had the prompt, and there were no subagents.
static LEGACY: AdapterInfo =
    AdapterInfo { carries: &["prompts", "calls", "results", "thinking", "usage", "retries"], ..CHANNEL };

const CHANNEL: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: ENTRY_ADAPTER,
    adapter: ADAPTER,
    channel: "exec",
    carries: &["calls", "results", "thinking", "usage", "retries", "subagents"],
    detail_name: "exec_event",
};

/// Codex's message on a retry: `Reconnecting... 1/5 (why)`.
const RETRY: &str = "Reconnecting... ";

/// A thread and the last state of its stream.
pub(super) struct Stream {
    pub(super) thread: Thread,
    pub(super) legacy: Legacy,
    /// The last plan.
    plan: Option<String>,
}

/// The output of one process, or of several one after the other.
pub(super) struct Exec {
    source_id: String,
    streams: HashMap<String, Stream>,
    /// The index of the current stream.
    current: String,
    /// How many processes there were. Items are numbered from the start in each.
    processes: u32,
    waiting: WaitingNotes,
}

impl Exec {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source_id: source.id.to_text().into_owned(),
            streams: HashMap::new(),
            current: String::new(),
            processes: 0,
            waiting: WaitingNotes::default(),
        }
    }

    /// Continues a thread's stream; false if it is new.
    fn open(&mut self, thread: &str, extra: &Extra, emit: &mut Emit<'_>) -> bool {
        thread.clone_into(&mut self.current);
        if self.streams.contains_key(thread) {
            return true;
        }
        let of = Channel::Exec.run_of(&self.source_id, thread);
        let mut run = Run::main(of.run);
        run.mirrors = of.session;
        if of.session.is_some() {
            run = run.of_session(thread);
        }
        let begin = |run: &mut Run, emit: &mut Emit<'_>| emit.begin(run, None, extra.clone());
        for waiter in self.waiting.take(|_| true) {
            waiter.write_at_its_place(&mut run, begin, emit);
        }
        begin(&mut run, emit);
        let thread_items = Thread::new(Channel::Exec, &self.source_id, run);
        let stream = Stream { thread: thread_items, legacy: Legacy::default(), plan: None };
        self.streams.insert(thread.to_owned(), stream);
        false
    }

    /// Begins a thread with the current record; false if it has begun before.
    fn begin(&mut self, thread: &str, extra: &Extra, emit: &mut Emit<'_>) -> bool {
        let is_known = self.open(thread, extra, emit);
        if let Some(stream) = self.streams.get(thread).filter(|_| !is_known) {
            emit.entry(&stream.thread.run, EntryType::SystemEvent, Some("session_start"));
        }
        !is_known
    }

    fn line(&mut self, line: &ExecLine<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let kind = line.kind.text().unwrap_or_default();
        if matches!(&*kind, "thread.started" | "session.created") {
            self.processes += 1;
            let named = line.thread_id.or(line.session_id);
            if !is_text(named) {
                return unknown(self.stream(emit), &kind, emit);
            }
            let thread = named.text().unwrap_or_default();
            if !self.begin(&thread, &Extra::default(), emit) {
                let stream = self.stream(emit);
                stream.thread.forget_texts();
                emit.system(&stream.thread.run, "resume", None);
            }
            return RecordOutcome::Understood;
        }
        if kind.is_empty() && line.workdir.is_some() {
            self.processes += 1;
            // Such a process names no thread. The next one in the same output is another run.
            let thread =
                if self.processes > 1 { format!("process-{}", self.processes) } else { String::new() };
            let mut extra = Extra::default();
            push(&mut extra, "cwd", line.workdir.json());
            push(&mut extra, "model_provider", line.provider.json());
            emit.set_about(&LEGACY);
            self.begin(&thread, &extra, emit);
            let stream = self.stream(emit);
            stream.thread.model = line.model.json();
            stream.legacy.settings = Some(super::events::settings(&[
                ("model", line.model),
                ("approval_policy", line.approval),
                ("sandbox_policy", line.sandbox),
            ]));
            return RecordOutcome::Understood;
        }
        let processes = self.processes;
        let stream = self.stream(emit);
        match &*kind {
            "turn.started" => emit.begin_turn(&mut stream.thread.run, None, None),
            "turn.completed" => turn_completed(stream, line, emit),
            "turn.failed" => {
                let error = message_of(line.error).unwrap_or_else(|| "failed".into());
                fail_turn(stream, error, emit);
            }
            "error" => error(stream, &words(line.message).unwrap_or_else(|| "".into()).to_text(), emit),
            "item.started" | "item.updated" | "item.completed" => {
                return item(stream, line, &kind, processes, emit);
            }
            "" => return legacy::line(stream, line, emit),
            _ => return unknown(stream, &kind, emit),
        }
        RecordOutcome::Understood
    }

    /// Returns the current stream; output without a beginning gets one too.
    fn stream(&mut self, emit: &mut Emit<'_>) -> &mut Stream {
        if !self.streams.contains_key(&self.current) {
            let current = self.current.clone();
            self.begin(&current, &Extra::default(), emit);
        }
        self.streams.get_mut(&self.current).expect("opened above")
    }
}

pub(super) fn unknown(stream: &Stream, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
    let name = if name.is_empty() { "record" } else { name };
    emit.unknown(&stream.thread.run, name, None);
    emit.entry(&stream.thread.run, EntryType::Unknown, None);
    RecordOutcome::Unknown(name.to_owned())
}

/// Writes the usage at the end of a turn, which is the total of the thread, earlier processes included.
fn turn_completed(stream: &mut Stream, line: &ExecLine<'_>, emit: &mut Emit<'_>) {
    if let Some(usage) = line.usage.json() {
        let mut extra = Extra::default();
        extra.push("usage", usage);
        extra.push("usage_scope", string("session"));
        extra.push("final", RawJson::from(true));
        emit.assistant(&stream.thread.run, Vec::new(), extra);
        emit.entry(&stream.thread.run, EntryType::TokenUsage, None);
    }
    emit.end_turn(&mut stream.thread.run, TurnEnd::plain(EndedBy::Record));
}

/// Writes an error or a retry.
pub(super) fn error(stream: &Stream, message: &str, emit: &mut Emit<'_>) {
    let run = &stream.thread.run;
    match message.strip_prefix(RETRY) {
        Some(rest) => {
            let (count, why) = rest.split_once(' ').unwrap_or((rest, ""));
            let (attempt, max) = count.split_once('/').unwrap_or((count, ""));
            let number = |text: &str| text.parse::<u64>().ok().map(RawJson::from);
            let result = RawJson::object(|object| {
                object.optional("attempt", number(attempt).as_ref(), ObjectWriter::json);
                object.optional("max", number(max).as_ref(), ObjectWriter::json);
            });
            let why = why.strip_prefix('(').and_then(|why| why.strip_suffix(')')).unwrap_or(message);
            let (error, result) = (Some(why.into()), Some(result));
            let payload = StepPayload { error, result, ..StepPayload::new("api", "retry") };
            emit.step_completed(run, &run.turns.path(), payload);
        }
        None => emit.error(run, "api", message),
    }
    emit.entry(run, EntryType::Error, None);
}

fn item(
    stream: &mut Stream,
    line: &ExecLine<'_>,
    moment: &str,
    processes: u32,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let Some(item) = &line.item else { return unknown(stream, moment, emit) };
    let spelled = type_of(item);
    let is_completed = moment == "item.completed";
    let mut is_odd = false;
    match kind_of(&spelled) {
        Kind::AgentMessage | Kind::Reasoning if is_completed => {
            let is_thought = kind_of(&spelled) == Kind::Reasoning;
            is_odd = !stream.thread.write_text(item, is_thought, None, emit);
        }
        Kind::Tool(tool) => {
            let Some(id) = item.id.string() else { return unknown(stream, "item", emit) };
            let tool_item = ToolItem { id: &unique(id, processes), item, tool, detail: None };
            match moment {
                "item.started" => is_odd = !stream.thread.start(&tool_item, emit),
                "item.completed" => is_odd = !stream.thread.complete(&tool_item, emit),
                _ => return RecordOutcome::Bookkeeping,
            }
            is_odd |= is_odd_item(item, tool);
        }
        Kind::Fact(name) => plan(stream, name, item.items.or(item.text), emit),
        Kind::Warning => {
            emit.system(&stream.thread.run, "warning", item.message.json());
            emit.entry(&stream.thread.run, EntryType::SystemEvent, Some("warning"));
        }
        Kind::UserMessage | Kind::Compaction | Kind::SubagentActivity if is_completed => {
            // No known version prints them.
            let line = emit.record();
            emit.system(&stream.thread.run, &spelled, Some(line));
            emit.entry(&stream.thread.run, EntryType::SystemEvent, Some(&spelled));
        }
        Kind::AgentMessage
        | Kind::Reasoning
        | Kind::UserMessage
        | Kind::Compaction
        | Kind::SubagentActivity => {
            return RecordOutcome::Bookkeeping;
        }
        Kind::Unknown => is_odd = true,
    }
    if is_odd { unknown(stream, &format!("item.{spelled}"), emit) } else { RecordOutcome::Understood }
}

/// Ends a failed turn; without an open turn it writes an error.
pub(super) fn fail_turn(stream: &mut Stream, error: JsonString, emit: &mut Emit<'_>) {
    let run = &mut stream.thread.run;
    if run.turns.is_open() {
        emit.end_turn(run, TurnEnd::failed(error));
    } else {
        emit.error(run, "turn", &error.to_text());
    }
    emit.entry(run, EntryType::Error, None);
}

/// Each process numbers its items from the start, so items of later processes get a prefix.
fn unique(id: JsonString, processes: u32) -> JsonString {
    if processes < 2 { id } else { format!("{processes}:{}", id.to_text()).as_str().into() }
}

/// Writes a plan if it has changed; Codex repeats it at the end of the turn.
fn plan(stream: &mut Stream, name: &str, plan: Option<&RawValue>, emit: &mut Emit<'_>) {
    let text = plan.map(|plan| plan.get().to_owned());
    if stream.plan == text {
        return;
    }
    stream.plan = text;
    emit.system(&stream.thread.run, name, plan.json());
    emit.entry(&stream.thread.run, EntryType::SystemEvent, Some(name));
}

impl Mapper for Exec {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: ExecLine<'_> = parse(record.text)?;
        if emit.is_known(None) {
            return Ok(RecordOutcome::Understood);
        }
        Ok(self.line(&line, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        let note = Note::Unreadable(why.to_owned());
        if let Some(stream) = self.streams.get(&self.current) {
            note.write(&stream.thread.run, None, emit);
        } else if !self.waiting.keep(None, note, emit) {
            self.open("", &Extra::default(), emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.streams.get(&self.current).map(|stream| &stream.thread.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let line: ExecLine<'_> = parse(text).unwrap_or_default();
        if line.msg.and_then(object::<Payload<'_>>).is_some_and(|event| is_delta(&event)) {
            return LeftoverRecord::Delta;
        }
        self.run().map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: text })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.streams.is_empty() && !self.waiting.is_empty() {
            self.open("", &Extra::default(), emit);
        }
    }
}
