//! Writes the events of a record: each draft with its path, time and evidence.

mod calls;
mod commands;
mod earlier_records;
mod ledger;
mod memory;
mod shallow;
mod speech;
mod steps;

use std::cell::OnceCell;
use std::sync::Arc;

use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{
    Draft, EntryType, Error, EventType, Evidence, Payload, Position, RunId, StepPayload, Timestamp,
    Vocabulary as _, Word,
};

pub(crate) use self::calls::{Answer, CallReport, Decision, Outcome, SubagentEvent};
use self::earlier_records::{EarlierRecords, RecordSpan};
pub(crate) use self::memory::{CurrentRecord, Memory, PendingRecord, WrappedCommand};
use self::shallow::shallow;
pub(crate) use self::speech::{EndedBy, TurnEnd};
use crate::adapter::RecordOutcome;
use crate::run::Run;
use crate::sink::{AdapterEntry, Sink};
use crate::wire::{Raw, RawField as _};

/// The field that names the run that a record was copied from.
const COPIED_FROM: &str = "copied_from";

/// The description that all runs of an adapter begin with.
pub(crate) struct AdapterInfo {
    /// The provider's name, which is the run's too.
    pub(crate) provider: &'static str,
    /// The name of entries' adapter.
    pub(crate) entry_adapter: &'static str,
    /// This adapter and its version, like `claude/2`.
    pub(crate) adapter: &'static str,
    /// Where the records come from: `disk`, `stream`, `control`, ….
    pub(crate) channel: &'static str,
    /// What the channel can show at all; what is not in the list is unavailable, not zero.
    pub(crate) carries: &'static [&'static str],
    /// The key of a record in the detail of its entries.
    pub(crate) detail_name: &'static str,
}

/// Writes the events of one record.
pub(crate) struct Emit<'a> {
    sink: &'a mut dyn Sink,
    about: &'a AdapterInfo,
    at: CurrentRecord<'a>,
    part: u32,
    /// The text of this record's user message; kept only for entries.
    user_text: Option<String>,
    /// The text of the item's deltas; kept only for entries.
    accumulated: Option<String>,
    /// How many entries the record has.
    entries: u32,
    /// The record's text, if it is kept.
    kept: OnceCell<Arc<str>>,
    memory: &'a mut Memory,
    is_inferred: bool,
    /// Fields that all events of the record get.
    marks: Vec<(&'static str, RawJson)>,
    /// The nested record that is being written, if any.
    inner: Option<&'a str>,
}

/// A record that is nested in another one.
#[derive(Clone, Copy)]
pub(crate) struct NestedRecord<'a> {
    pub(crate) text: &'a str,
    /// The description of its run.
    pub(crate) about: &'static AdapterInfo,
    /// Its time; without one it has the time of the outer record.
    pub(crate) time: Raw<'a>,
    /// The run that it was copied from, if the outer record is a copy.
    pub(crate) copied_from: Option<RunId>,
}

impl<'a> Emit<'a> {
    pub(crate) fn new(
        sink: &'a mut dyn Sink,
        about: &'a AdapterInfo,
        at: CurrentRecord<'a>,
        memory: &'a mut Memory,
    ) -> Self {
        Self {
            sink,
            about,
            at,
            part: 0,
            user_text: None,
            accumulated: None,
            entries: 0,
            kept: OnceCell::new(),
            memory,
            is_inferred: true,
            marks: Vec::new(),
            inner: None,
        }
    }

    /// Sets the description of a run that begins with the record.
    pub(crate) fn set_about(&mut self, about: &'static AdapterInfo) {
        self.about = about;
    }

    /// Returns the channel that a run which begins with the record is of.
    pub(crate) fn channel(&self) -> &'static str {
        self.about.channel
    }

    /// Tells whether the record has given an event already.
    pub(crate) fn has_written(&self) -> bool {
        self.part > 0
    }

    /// Keeps the record for later.
    pub(crate) fn hold(&self) -> PendingRecord {
        PendingRecord {
            generation: self.at.generation,
            offset: self.at.offset,
            length: self.at.length,
            part: self.part,
            unpacked: self.at.unpacked,
            text: Arc::clone(self.kept.get_or_init(|| self.at.text.into())),
            is_repaired: self.at.is_repaired,
            unreadable: self.at.unreadable,
            clock: self.memory.clock.clone(),
            captured: self.memory.captured.clone(),
            is_inferred: self.is_inferred,
        }
    }

    /// Writes the events of a record that was kept, as if it were read now.
    pub(crate) fn release(&mut self, held: &PendingRecord, write: impl FnOnce(&mut Emit<'_>)) {
        let now = self.memory.clock.clone();
        let captured = std::mem::replace(&mut self.memory.captured, held.captured.clone());
        // A record before the first time gets the first time.
        self.memory.clock = held.clock.clone().or_else(|| now.clone());
        let at = CurrentRecord {
            source: self.at.source,
            generation: held.generation,
            offset: held.offset,
            length: held.length,
            unpacked: held.unpacked,
            text: &held.text,
            is_repaired: held.is_repaired,
            unreadable: held.unreadable,
        };
        let is_current = (held.generation, held.offset) == (self.at.generation, self.at.offset);
        let part = if is_current { held.part.max(self.part) } else { held.part };
        let mut emit = Emit::new(&mut *self.sink, self.about, at, &mut *self.memory);
        (emit.part, emit.is_inferred) = (part, held.is_inferred);
        write(&mut emit);
        let (entries, part) = (emit.entries, emit.part);
        (self.memory.clock, self.memory.captured) = (now, captured);
        if is_current {
            self.entries += entries;
            self.part = part;
        }
    }

    /// Notes that the record was read. If it has no entry, it gets one once it is no longer pending.
    pub(crate) fn read(&mut self) {
        if self.entries == 0 && self.sink.wants_entries() {
            self.memory.ledger.open(self.hold());
        }
    }

    /// Sets the outcome of a pending record.
    pub(crate) fn read_late(&mut self, read: RecordOutcome) {
        self.memory.late.push(read);
    }

    /// Adds a field to all following events of the record; its value must not be nested.
    pub(crate) fn mark(&mut self, name: &'static str, value: RawJson) {
        self.marks.push((name, value));
    }

    /// Tells whether the record's events have such a field.
    pub(crate) fn is_marked(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Writes events without the record's fields.
    pub(crate) fn unmarked(&mut self, write: impl FnOnce(&mut Self)) {
        let marks = std::mem::take(&mut self.marks);
        write(self);
        self.marks = marks;
    }

    /// Returns the record as JSON.
    pub(crate) fn text(&self) -> &'a str {
        self.at.text
    }

    /// Writes the events of a nested record, in a run of another channel.
    pub(crate) fn inside(
        &mut self,
        inside: NestedRecord<'a>,
        write: impl FnOnce(&mut Self) -> RecordOutcome,
    ) -> RecordOutcome {
        let about = std::mem::replace(&mut self.about, inside.about);
        let (clock, is_inferred) = (self.memory.clock.clone(), self.is_inferred);
        let marks = std::mem::take(&mut self.marks);
        if !marks.is_empty() {
            self.set_copied_from(inside.copied_from);
            self.marks.extend(marks.iter().filter(|(name, _)| *name != COPIED_FROM).cloned());
        }
        self.inner = Some(inside.text);
        self.is_inferred |= inside.time.json().is_some();
        self.set_time(inside.time.string());
        let read = write(self);
        (self.about, self.memory.clock, self.is_inferred) = (about, clock, is_inferred);
        (self.marks, self.inner) = (marks, None);
        read
    }

    /// Tells whether an earlier generation of the source had the same record, by its bytes.
    pub(crate) fn was_there(&mut self) -> bool {
        let place = RecordSpan { offset: self.at.offset, length: self.at.length };
        self.memory.seen.as_mut().is_some_and(|seen| seen.take(self.at.text, place))
    }

    /// Tells whether a record with this id was read in an earlier generation of the source; its events are there.
    pub(crate) fn is_known(&mut self, id: Option<&str>) -> bool {
        let seen = self.memory.seen.as_mut();
        id.zip(seen).is_some_and(|(id, seen)| seen.name(id))
    }

    /// Remembers the record, and writes which records of the previous generation are gone.
    pub(crate) fn keep(&mut self, run: Option<&Run>) -> u64 {
        let gone = self.memory.seen.as_mut().map(EarlierRecords::keep).unwrap_or_default();
        self.vanished(run, &gone, 1)
    }

    /// Writes that the source was rewritten, and which records are gone.
    pub(crate) fn rewritten(&mut self, run: Option<&Run>) -> u64 {
        let Some(seen) = &mut self.memory.seen else { return 0 };
        let gone = seen.rewritten();
        let records = seen.records_before() as u64;
        if let Some(run) = run {
            let result = RawJson::object(|object| object.number("records_before", records));
            self.system(run, "rewritten", Some(result));
        }
        self.vanished(run, &gone, 2)
    }

    /// Begins the next generation of a source that is rewritten all the time, and writes which records are gone.
    pub(crate) fn next_generation(&mut self, run: Option<&Run>) -> u64 {
        let gone = self.memory.seen.as_mut().map(EarlierRecords::rewritten).unwrap_or_default();
        self.vanished(run, &gone, 2)
    }

    /// Writes which records of the previous generation are gone, now that this one is complete.
    pub(crate) fn whole_generation(&mut self, run: Option<&Run>) -> u64 {
        let gone = self.memory.seen.as_mut().map(EarlierRecords::end).unwrap_or_default();
        self.vanished(run, &gone, 1)
    }

    /// Writes a step for each record that an earlier generation had; returns how many.
    fn vanished(&mut self, run: Option<&Run>, gone: &[RecordSpan], generations_ago: u32) -> u64 {
        let Some(run) = run else { return 0 };
        for place in gone {
            let result = RawJson::object(|object| {
                object.number("generation", u64::from(self.at.generation.saturating_sub(generations_ago)));
                object.number("offset", place.offset);
                object.number("length", place.length);
            });
            self.system(run, "vanished", Some(result));
        }
        gone.len() as u64
    }

    /// Sets the record's own time; without one it has the time of the record before.
    pub(crate) fn set_time(&mut self, time: Option<JsonString>) {
        if let Some(time) = time.map(Timestamp::from_record).filter(|time| time.instant().is_some()) {
            self.memory.clock = Some(time);
            self.is_inferred = false;
        }
    }

    /// Tells whether the record has no time of its own that can be read.
    pub(crate) fn is_time_inferred(&self) -> bool {
        self.is_inferred
    }

    /// Tells whether a record has given a time.
    pub(crate) fn has_time(&self) -> bool {
        self.memory.clock.is_some()
    }

    /// Sets the record's own time; without one it has that of its capture, on channels whose records often have none.
    pub(crate) fn set_time_or_captured(&mut self, time: Option<JsonString>) {
        if let Some(captured) = &self.memory.captured {
            self.memory.clock = Some(captured.clone());
        }
        self.set_time(time);
    }

    /// Sets the record's own time where it counts milliseconds since 1970.
    pub(crate) fn set_time_ms(&mut self, unix_ms: Option<i64>) {
        if let Some(time) = unix_ms.and_then(Timestamp::from_unix_ms) {
            self.memory.clock = Some(time);
            self.is_inferred = false;
        }
    }

    /// Returns the time of what is written now, as text.
    pub(crate) fn time_text(&self) -> String {
        self.memory.time().map(ToString::to_string).unwrap_or_default()
    }

    /// Marks the record as a copy of a record of another run.
    pub(crate) fn set_copied_from(&mut self, run: Option<RunId>) {
        if let Some(run) = run {
            self.mark(COPIED_FROM, string(&run.to_string()));
        }
    }

    /// Returns the record itself, for facts that are kept as they came.
    pub(crate) fn record(&self) -> RawJson {
        RawJson::parse(self.inner.unwrap_or(self.at.text)).unwrap_or_else(|_| RawJson::null())
    }

    /// Tells whether entries are wanted.
    pub(crate) fn wants_entries(&self) -> bool {
        self.sink.wants_entries()
    }

    /// Sets the user's text of the record, if its message is written later.
    pub(crate) fn set_user_text(&mut self, text: &str) {
        if self.sink.wants_entries() {
            self.user_text = Some(text.to_owned());
        }
    }

    /// Sets the text of the item's deltas.
    pub(crate) fn set_accumulated(&mut self, text: Option<String>) {
        self.accumulated = text;
    }

    /// Tells whether tool output is wanted.
    pub(crate) fn wants_whole(&self) -> bool {
        self.sink.wants_whole()
    }

    /// Writes an entry, if entries are wanted.
    pub(crate) fn entry(&mut self, run: &Run, entry_type: EntryType, subtype: Option<&str>) {
        self.entry_with(run, entry_type, subtype, self.inner.unwrap_or(self.at.text));
    }

    /// Writes an entry whose detail is a part of the record.
    pub(crate) fn entry_with(
        &mut self,
        run: &Run,
        entry_type: EntryType,
        subtype: Option<&str>,
        detail: &str,
    ) {
        if self.sink.wants_entries() {
            self.entries += 1;
            self.memory.ledger.close(self.at.generation, self.at.offset);
            let has_words = !matches!(entry_type, EntryType::Unknown | EntryType::SystemEvent);
            self.sink.entry(AdapterEntry {
                run: run.id,
                adapter: self.about.entry_adapter,
                entry_type,
                source: &run.source,
                timestamp: self.memory.time(),
                captured: self.memory.captured.as_ref(),
                session_id: run.session.as_deref(),
                text: self.user_text.as_deref().filter(|_| entry_type == EntryType::UserMessage),
                subtype,
                detail_name: self.about.detail_name,
                detail,
                accumulated: self.accumulated.as_deref().filter(|_| has_words),
                raw: self.at.text,
                unreadable: self.at.unreadable,
                generation: self.at.generation,
                offset: self.at.offset,
            });
        }
    }

    /// Returns the evidence of the next event.
    fn evidence(&self) -> RawJson {
        let position = Position { generation: self.at.generation, offset: self.at.offset, part: self.part };
        let (source, length) = (self.at.source.clone(), self.at.length);
        let unpacked = self.at.unpacked.map(Word::Known);
        Evidence { source, position, length, unpacked }.to_json()
    }

    fn put(
        &mut self,
        run: &Run,
        (event_type, path): (EventType, &JsonString),
        payload: &Payload,
        child: Option<RunId>,
    ) {
        if !self.sink.wants(event_type) {
            self.part += 1;
            return;
        }
        let make = |payload: &Payload| match child {
            None => Draft::new(event_type, payload),
            Some(child) => Draft::calling(event_type, child, payload),
        };
        // Values that nest too deep for a line are only in the evidence, and the event notes it.
        let draft = make(payload).or_else(|error| {
            let is_deep = matches!(error, Error::TooDeep { .. });
            if is_deep { make(&shallow(payload)) } else { Err(error) }
        });
        let draft = draft.or_else(|error| not_recordable(event_type, &error));
        let mut draft = draft.expect("a name, a kind and a reason can be recorded").at(path.clone());
        if let Some(parent) = run.parent {
            draft = draft.child_of(parent);
        }
        if let Some(time) = self.memory.time() {
            draft = draft.at_time(time.clone());
        }
        let evidence = self.sink.wants_whole().then(|| self.evidence());
        let mirrors = run.mirrors.filter(|_| event_type == EventType::RunStarted);
        let flags = [
            ("session_run_id", mirrors.map(|session| string(&session.to_string()))),
            ("ts_inferred", self.is_inferred.then(|| RawJson::from(true))),
            ("repaired", self.at.is_repaired.then(|| RawJson::from(true))),
            ("evidence", evidence),
        ];
        let marks = self.marks.iter().map(|(name, value)| (*name, Some(value.clone())));
        for (name, value) in marks.chain(flags) {
            if let Some(value) = value {
                draft = draft.with_field(name, value).expect("our fields are flat and not the envelope's");
            }
        }
        self.part += 1;
        self.sink.draft(run.id, draft);
    }
}

fn not_recordable(event_type: EventType, error: &Error) -> Result<Draft, Error> {
    let mut payload = StepPayload::new(event_type.as_str(), "unknown");
    payload.error = Some(error.to_string().into());
    Draft::new(EventType::StepCompleted, &Payload::Step(payload))
}

/// Adds a field that is there.
pub(crate) fn push(extra: &mut Extra, name: &'static str, value: Option<RawJson>) {
    if let Some(value) = value {
        extra.push(name, value);
    }
}

/// Returns text as a JSON string.
pub(crate) fn string(text: &str) -> RawJson {
    RawJson::string(text)
}
