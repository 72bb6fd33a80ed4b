//! `--output-format stream-json`: what one process prints, or several one after the other.

use std::collections::VecDeque;

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{ContentBlock, Fidelity};

use super::calls::{class_of, use_block};
use super::results::is_denial;
use super::usage::{Scope, push_usage};
use super::wire::{ErrorReport, StreamLine, ToolCall};
use super::{CHANNEL, PROVIDER};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Answer, CallReport, Emit, EndedBy, Outcome, PendingRecord, TurnEnd, push};
use crate::pending::{PendingKind, PendingRecords};
use crate::repeats::QuickMap;
use crate::run::{Run, derived_run_id, run_id_of};
use crate::shapes::words;
use crate::wire::{NoObject, RawField as _, WireObject as _, parse};

static ABOUT: AdapterInfo = AdapterInfo {
    channel: "stream",
    carries: &["prompts", "calls", "results", "usage"],
    detail_name: "stream_event",
    ..CHANNEL
};

/// Text of the model whose end has not been seen. The pieces are one message.
struct OpenText {
    /// The text with its escapes, since a piece may end inside a character.
    token: String,
    pieces: u32,
    /// The last piece.
    last: PendingRecord,
}

/// One session of a stream.
struct StreamRun {
    run: Run,
    opening: Extra,
    model: Option<RawJson>,
    open_text: Option<OpenText>,
    /// The calls without a result, in order: their ids in events, by Gemini's id, which may be used again.
    waiting: QuickMap<String, VecDeque<JsonString>>,
    /// How often an id was used.
    uses: QuickMap<String, u32>,
    /// Counts the responses, which have no id.
    responses: u32,
    /// Whether the model is speaking.
    is_speaking: bool,
}

/// A stream while it is read.
pub(super) struct Stream {
    source: String,
    runs: QuickMap<String, StreamRun>,
    /// The session that is being written.
    current: Option<String>,
    waiting: PendingRecords,
}

impl Stream {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source: source.id.to_text().into_owned(),
            runs: QuickMap::default(),
            current: None,
            waiting: PendingRecords::default(),
        }
    }

    /// Begins or continues a session; true if it was there.
    fn open(&mut self, session: &str, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> bool {
        self.flush(emit);
        self.current = Some(session.to_owned());
        let is_there = self.runs.contains_key(session);
        if !is_there {
            let mut run = Run::main(derived_run_id(&[PROVIDER, "stream", &self.source, session]));
            if !session.is_empty() {
                run.mirrors = Some(run_id_of(PROVIDER, session));
                run = run.of_session(session);
            }
            let mut opening = Extra::default();
            push(&mut opening, "model", line.model.json());
            self.runs.insert(session.to_owned(), StreamRun::new(run, opening));
        }
        self.release(emit);
        self.flush(emit);
        if let Some(run) = self.now() {
            run.begin(emit);
            run.model = line.model.json().or(run.model.take());
        }
        is_there
    }

    fn now(&mut self) -> Option<&mut StreamRun> {
        self.current.as_ref().and_then(|session| self.runs.get_mut(session))
    }

    fn flush(&mut self, emit: &mut Emit<'_>) {
        if let Some(run) = self.now() {
            run.flush(emit);
        }
    }

    /// Writes what has waited for the session.
    fn release(&mut self, emit: &mut Emit<'_>) {
        for waiter in self.waiting.take() {
            emit.release(&waiter.record, |emit| match waiter.what {
                PendingKind::Unreadable(why) => self.unreadable(&why, emit),
                PendingKind::Record(_) => {
                    let line: StreamLine<'_> = parse(waiter.record.text()).unwrap_or_default();
                    let read = self.line(&line, emit);
                    emit.read_late(read);
                }
            });
        }
    }

    fn init(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let session = line.session_id.text().unwrap_or_default().into_owned();
        let is_there = self.open(&session, line, emit);
        let Some(run) = self.now() else { return RecordOutcome::Waiting };
        if is_there {
            emit.system(&run.run, "resume", None);
        }
        let subtype = if is_there { "resume" } else { "session_start" };
        emit.entry(&run.run, EntryType::SystemEvent, Some(subtype));
        if line.is_odd() { run.unknown("init", emit) } else { RecordOutcome::Understood }
    }

    fn line(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(run) = self.now() else { return RecordOutcome::Waiting };
        run.begin(emit);
        let kind = line.kind.text().unwrap_or_default();
        if kind == "message" && line.role.is("assistant") {
            return run.text(line, emit);
        }
        run.flush(emit);
        let is_read = match &*kind {
            "message" if line.role.is("user") => run.prompt(line, emit),
            "tool_use" => run.call(line, emit),
            "tool_result" => run.result(line, emit),
            "error" => run.notice(line, emit),
            "result" => run.end(line, emit),
            _ => false,
        };
        match () {
            () if is_read && !line.is_odd() => RecordOutcome::Understood,
            () if kind.is_empty() => run.unknown("untyped", emit),
            () => run.unknown(&kind, emit),
        }
    }
}

impl StreamRun {
    fn new(run: Run, opening: Extra) -> Self {
        Self {
            run,
            opening,
            model: None,
            open_text: None,
            waiting: QuickMap::default(),
            uses: QuickMap::default(),
            responses: 0,
            is_speaking: false,
        }
    }

    fn begin(&mut self, emit: &mut Emit<'_>) {
        if !self.run.is_started {
            emit.begin(&mut self.run, None, std::mem::take(&mut self.opening));
        }
    }

    fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
    }

    /// Returns the fields of a message of the model. The next result or prompt ends the response.
    fn response_fields(&mut self) -> Extra {
        if !std::mem::replace(&mut self.is_speaking, true) {
            self.responses += 1;
        }
        let mut extra = Extra::default();
        extra.push("response", RawJson::from(u64::from(self.responses)));
        push(&mut extra, "model", self.model.clone());
        extra
    }

    /// Takes a piece of text. It is written when something else follows.
    fn text(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let content = line.content.map(RawValue::get);
        let Some(piece) = content.and_then(|raw| raw.strip_prefix('"')?.strip_suffix('"')) else {
            self.flush(emit);
            return self.unknown("message", emit);
        };
        if !line.delta.is_true() {
            self.flush(emit);
        }
        let before = self.open_text.take().map(|open| (open.token, open.pieces));
        let (token, pieces) = before.unwrap_or_default();
        self.open_text = Some(OpenText { token: token + piece, pieces: pieces + 1, last: emit.hold() });
        if !line.delta.is_true() {
            self.flush(emit);
        }
        if line.is_odd() {
            self.flush(emit);
            return self.unknown("message", emit);
        }
        RecordOutcome::Understood
    }

    /// Writes the collected text, at the place of its last piece.
    fn flush(&mut self, emit: &mut Emit<'_>) {
        let Some(open) = self.open_text.take() else { return };
        let token = format!("\"{}\"", open.token);
        let text = serde_json::from_str::<&RawValue>(&token).ok().and_then(JsonString::from_raw);
        let Some(text) = text.filter(|text| !text.is_empty()) else { return };
        let extra = self.response_fields();
        emit.release(&open.last, |emit| {
            emit.set_accumulated((open.pieces > 1).then(|| text.to_text().into_owned()));
            emit.assistant(&self.run, vec![ContentBlock::text(Fidelity::AgentEmitted, text)], extra);
            emit.entry(&self.run, EntryType::AssistantMessage, None);
        });
    }

    fn prompt(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> bool {
        let Some(text) = line.content.string() else { return false };
        self.is_speaking = false;
        emit.begin_turn(&mut self.run, None, None);
        emit.user(&self.run, vec![ContentBlock::text(Fidelity::AgentEmitted, text)], Extra::default());
        emit.entry(&self.run, EntryType::UserMessage, None);
        true
    }

    fn call(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> bool {
        let Some((name, id)) = line.tool_name.string().zip(words(line.tool_id)) else { return false };
        let key = id.to_text().into_owned();
        let uses = self.uses.entry(key.clone()).or_default();
        *uses += 1;
        let id: JsonString = if *uses == 1 { id } else { format!("{key}#{uses}").as_str().into() };
        self.waiting.entry(key).or_default().push_back(id.clone());
        let class = class_of(&name.to_text(), &ToolCall::default());
        let input = line.parameters.json().unwrap_or_else(RawJson::null);
        let call = CallReport::new(name, class, input);
        let extra = self.response_fields();
        emit.assistant(&self.run, vec![use_block(&id, &call)], extra);
        emit.entry(&self.run, EntryType::ToolUse, None);
        emit.call(&mut self.run, &id, call);
        true
    }

    fn result(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> bool {
        let Some(id) = words(line.tool_id) else { return false };
        self.is_speaking = false;
        let waiting = self.waiting.get_mut(&*id.to_text()).and_then(VecDeque::pop_front);
        let is_answered = self.run.calls.get(&id.to_text()).is_some_and(|call| call.is_answered);
        if waiting.is_none() && is_answered {
            // A second result of one call.
            return false;
        }
        let error = line.error.as_ref().and_then(message_of);
        let is_denied = error.as_ref().is_some_and(|error| is_denial(&error.to_text()));
        let outcome = match line.status.text().as_deref() {
            _ if is_denied => Outcome::Denied,
            Some("success") => Outcome::Ok,
            Some("error") => Outcome::Failed,
            Some("cancelled" | "canceled") => Outcome::Interrupted,
            Some(_) | None => Outcome::Unknown,
        };
        let mut answer = Answer::new(line.output.json().unwrap_or_else(RawJson::null), outcome);
        answer.error = error;
        push(&mut answer.extra, "error_type", line.error.and_then(|error| error.kind.json()));
        emit.result(&mut self.run, &waiting.unwrap_or(id), "", answer);
        emit.entry(&self.run, EntryType::ToolResult, None);
        true
    }

    fn notice(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> bool {
        let Some(message) = line.message.string().or_else(|| line.error.as_ref().and_then(message_of)) else {
            return false;
        };
        if line.severity.is("warning") {
            emit.system(&self.run, "warning", Some(message.to_json()));
            emit.entry(&self.run, EntryType::SystemEvent, Some("warning"));
        } else {
            emit.error(&self.run, "error", &message.to_text());
            emit.entry(&self.run, EntryType::Error, None);
        }
        true
    }

    /// Takes the end of a process, which is the end of its turn, with the sums of its usage.
    fn end(&mut self, line: &StreamLine<'_>, emit: &mut Emit<'_>) -> bool {
        self.is_speaking = false;
        if let Some(stats) = line.stats.json() {
            let mut extra = Extra::default();
            push(&mut extra, "model", self.model.clone());
            push_usage(&mut extra, stats, Scope::Process);
            emit.assistant(&self.run, Vec::new(), extra);
            emit.entry(&self.run, EntryType::TokenUsage, None);
        }
        let is_failed = !line.status.is("success");
        let error = line.error.as_ref().and_then(message_of);
        let error =
            is_failed.then(|| error.or_else(|| line.status.string()).unwrap_or_else(|| "failed".into()));
        end_turn(&mut self.run, error, emit);
        true
    }
}

/// Ends a turn with a record; a failure without a turn is an error.
pub(super) fn end_turn(run: &mut Run, error: Option<JsonString>, emit: &mut Emit<'_>) {
    let is_failed = error.is_some();
    match error {
        Some(error) if !run.turns.is_open() => emit.error(run, "error", &error.to_text()),
        error => emit.end_turn(run, TurnEnd { by: EndedBy::Record, error, result: None }),
    }
    let (entry, subtype) =
        if is_failed { (EntryType::Error, None) } else { (EntryType::SystemEvent, Some("turn_end")) };
    emit.entry(run, entry, subtype);
}

/// Returns the message of an error, otherwise its type.
pub(super) fn message_of(error: &ErrorReport<'_>) -> Option<JsonString> {
    error.message.string().or_else(|| error.kind.string())
}

impl Mapper for Stream {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: StreamLine<'_> = parse(record.text)?;
        emit.set_time_or_captured(line.timestamp.string());
        if emit.is_known(None) {
            return Ok(RecordOutcome::Understood);
        }
        if line.kind.is("init") {
            return Ok(self.init(&line, emit));
        }
        if self.current.is_none() {
            if !self.waiting.keep(PendingKind::Record(record.lane), emit) {
                self.open("", &StreamLine::default(), emit);
            }
            return Ok(RecordOutcome::Waiting);
        }
        Ok(self.line(&line, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        self.flush(emit);
        if let Some(run) = self.now() {
            run.begin(emit);
            emit.unknown(&run.run, "unreadable", Some(why));
            emit.entry(&run.run, EntryType::Unknown, None);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.open("", &StreamLine::default(), emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.current.as_ref().and_then(|session| self.runs.get(session)).map(|run| &run.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let line: StreamLine<'_> = parse(text).unwrap_or_default();
        if line.kind.is("message") && line.role.is("assistant") && line.delta.is_true() {
            return LeftoverRecord::Delta;
        }
        self.run().map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: text })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.current.is_none() && !self.waiting.is_empty() {
            self.open("", &StreamLine::default(), emit);
        }
        self.flush(emit);
    }
}
