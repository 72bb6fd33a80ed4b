//! `opencode run --format json`: what one process prints, or several one after the other.

use std::collections::{HashMap, HashSet};

use steno_model::json::{Extra, RawJson};
use steno_model::{BlockContent, ContentBlock, EntryType, Fidelity};

use super::wire::{ErrorReport, Line, Part, is_odd};
use super::{ABOUT, PROVIDER, calls};
use crate::adapter::{Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push, string};
use crate::pending::{PendingKind, PendingRecords};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, RawField as _, parse};

/// One session of an output.
struct SessionRun {
    run: Run,
    /// The ids of parts that were written.
    parts: HashSet<String>,
    /// How many steps of a message have ended.
    steps: HashMap<String, u32>,
}

/// An output while it is read.
pub(super) struct Stream {
    source: String,
    runs: HashMap<String, SessionRun>,
    /// The session of the last record.
    current: Option<String>,
    /// Records that came before the session's name.
    waiting: PendingRecords,
}

impl Stream {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source: source.id.to_text().into_owned(),
            runs: HashMap::new(),
            current: None,
            waiting: PendingRecords::default(),
        }
    }

    /// Makes a session the current one, and reads what has waited for its name.
    fn open(&mut self, session: &str, emit: &mut Emit<'_>) {
        if !self.runs.contains_key(session) {
            let mut run = Run::main(derived_run_id(&[PROVIDER, "stream", &self.source, session]));
            if !session.is_empty() {
                run.mirrors = Some(run_id_of(PROVIDER, session));
                run = run.of_session(session);
            }
            let run = SessionRun { run, parts: HashSet::new(), steps: HashMap::new() };
            self.runs.insert(session.to_owned(), run);
        }
        self.current = Some(session.to_owned());
        for waiter in self.waiting.take() {
            emit.release(&waiter.record, |emit| match waiter.what {
                PendingKind::Unreadable(why) => self.unreadable(&why, emit),
                PendingKind::Record(_) => {
                    let line: Line<'_> = parse(waiter.record.text()).unwrap_or_default();
                    let outcome = self.line(&line, emit);
                    emit.read_late(outcome);
                }
            });
        }
    }

    fn now(&mut self) -> Option<&mut SessionRun> {
        self.current.as_ref().and_then(|session| self.runs.get_mut(session))
    }

    fn line(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        self.now().map_or(RecordOutcome::Waiting, |session| session.line(line, emit))
    }
}

impl SessionRun {
    /// Begins the run and its turn. A process works on one prompt, which it does not print.
    fn begin(&mut self, emit: &mut Emit<'_>) {
        if !self.run.is_started {
            let mut extra = Extra::default();
            // OpenCode resumes a session by this name, which the run's id does not contain.
            push(&mut extra, "session_id", self.run.session.as_deref().map(string));
            emit.begin(&mut self.run, None, extra);
            emit.begin_turn(&mut self.run, None, None);
        }
    }

    fn line(&mut self, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        self.begin(emit);
        let kind = line.kind.text().unwrap_or_default();
        let is_read = match (&*kind, &line.part, &line.error) {
            ("error", _, Some(error)) => self.error(error, emit),
            (kind, Some(part), _) => self.part(kind, part, emit),
            _ => false,
        };
        if is_read && !is_odd(line) {
            return RecordOutcome::Understood;
        }
        let name = if kind.is_empty() { "untyped" } else { &*kind };
        emit.unknown(&self.run, name, None);
        emit.entry(&self.run, EntryType::Unknown, None);
        RecordOutcome::Unknown(name.to_owned())
    }

    /// Takes a part of a message; false if it is of an unknown type, or was written before.
    fn part(&mut self, kind: &str, part: &Part<'_>, emit: &mut Emit<'_>) -> bool {
        if part.id.text().is_some_and(|id| self.parts.contains(&*id)) {
            return false;
        }
        let is_read = match kind {
            "step_start" => {
                emit.entry(&self.run, EntryType::SystemEvent, Some("step_start"));
                true
            }
            "text" => self.text(part, emit),
            "reasoning" => self.thought(part, emit),
            "tool_use" => {
                let response = self.response(part);
                calls::call(&mut self.run, part, response, emit)
            }
            "step_finish" => self.end_step(part, emit),
            _ => false,
        };
        self.parts.extend(part.id.text().map(std::borrow::Cow::into_owned).filter(|_| is_read));
        is_read
    }

    /// Returns the id of a response: that of its message. If the message has several steps, a number follows.
    fn response(&self, part: &Part<'_>) -> Option<RawJson> {
        let message = part.message.text()?;
        Some(match self.steps.get(&*message) {
            Some(ended) => string(&format!("{message}#{}", ended + 1)),
            None => string(&message),
        })
    }

    fn text(&self, part: &Part<'_>, emit: &mut Emit<'_>) -> bool {
        let Some(text) = part.text.string() else { return false };
        self.say(part, BlockContent::Text(Some(text)), emit);
        emit.entry(&self.run, EntryType::AssistantMessage, None);
        true
    }

    fn thought(&self, part: &Part<'_>, emit: &mut Emit<'_>) -> bool {
        let Some(text) = part.text.string() else { return false };
        self.say(part, BlockContent::Thinking(Some(text)), emit);
        emit.entry(&self.run, EntryType::Thinking, None);
        true
    }

    fn say(&self, part: &Part<'_>, content: BlockContent, emit: &mut Emit<'_>) {
        let mut extra = Extra::default();
        push(&mut extra, "response", self.response(part));
        emit.assistant(&self.run, vec![ContentBlock::new(Fidelity::AgentEmitted, content)], extra);
    }

    /// Takes the end of a response, with its usage. It does not end the turn: after a compaction the work continues.
    fn end_step(&mut self, part: &Part<'_>, emit: &mut Emit<'_>) -> bool {
        let mut extra = Extra::default();
        push(&mut extra, "response", self.response(part));
        push(&mut extra, "stop_reason", part.reason.json());
        if let Some(usage) = part.tokens.json() {
            extra.push("usage", usage);
            extra.push("usage_scope", string("response"));
            extra.push("final", RawJson::from(true));
        }
        push(&mut extra, "cost_usd", part.cost.json());
        emit.assistant(&self.run, Vec::new(), extra);
        emit.entry(&self.run, EntryType::TokenUsage, None);
        if let Some(message) = part.message.text() {
            *self.steps.entry(message.into_owned()).or_default() += 1;
        }
        true
    }

    /// Takes an error of the session. It does not end the turn: after some errors the agent continues.
    fn error(&self, error: &ErrorReport<'_>, emit: &mut Emit<'_>) -> bool {
        let message = error.data.and_then(|data| data.message.text());
        let Some(text) = message.or_else(|| error.name.text()) else { return false };
        emit.error(&self.run, error.name.text().as_deref().unwrap_or("error"), &text);
        emit.entry(&self.run, EntryType::Error, None);
        true
    }
}

impl Mapper for Stream {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let line: Line<'_> = parse(record.text)?;
        emit.set_time_or_captured(None);
        emit.set_time_ms(line.timestamp.number());
        match line.session.text() {
            Some(session) if self.current.as_deref() != Some(&*session) => self.open(&session, emit),
            None if self.current.is_none() => {
                if !self.waiting.keep(PendingKind::Record(record.lane), emit) {
                    self.open("", emit);
                }
                return Ok(RecordOutcome::Waiting);
            }
            Some(_) | None => {}
        }
        Ok(self.line(&line, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if let Some(session) = self.now() {
            session.begin(emit);
            emit.unknown(&session.run, "unreadable", Some(why));
            emit.entry(&session.run, EntryType::Unknown, None);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.open("", emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.current.as_ref().and_then(|session| self.runs.get(session)).map(|session| &session.run)
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.current.is_none() && !self.waiting.is_empty() {
            self.open("", emit);
        }
    }
}
