//! Chat files: a document that is rewritten at each change, or a log of headers, messages and updates.

use std::borrow::Cow;

use steno_model::json::{Extra, RawJson};
use steno_model::{EntrySource, EntryType, RunId};

use super::messages::message_id;
use super::session::Session;
use super::wire::ChatRecord;
use super::{CHANNEL, PROVIDER};
use crate::adapter::{Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push, string};
use crate::pending::{PendingKind, PendingRecords};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, RawField as _, WireObject as _, parse};

static ABOUT: AdapterInfo = CHANNEL;

/// A chat file while it is read.
pub(super) struct Chat {
    source: String,
    /// The parent session of a subagent's file.
    parent: Option<String>,
    working_dir: Option<String>,
    session: Option<Session>,
    waiting: PendingRecords,
}

impl Chat {
    pub(super) fn new(source: &Source) -> Self {
        let parent = source.directory.clone().filter(|name| RunId::parse(name).is_ok());
        Self {
            source: source.id.to_text().into_owned(),
            parent,
            working_dir: source.working_dir.clone(),
            session: None,
            waiting: PendingRecords::default(),
        }
    }

    /// Begins the session that a header names.
    fn open(&mut self, header: &ChatRecord<'_>, emit: &mut Emit<'_>) {
        let id = header.session_id.text();
        let run_id = match id.as_deref().filter(|id| !id.is_empty()) {
            Some(id) => run_id_of(PROVIDER, id),
            None => derived_run_id(&[PROVIDER, "chat", &self.source]),
        };
        let is_subagent = header.kind.is("subagent");
        let parent = self.parent.as_deref().filter(|_| is_subagent);
        let name = id.as_deref().unwrap_or_default();
        let mut run = match parent {
            Some(parent) => Run::subagent(run_id, run_id_of(PROVIDER, parent), name),
            None => Run::main(run_id),
        };
        if is_subagent {
            run.source = EntrySource::subagent(name);
        }
        run.session = parent.map(str::to_owned).or_else(|| id.map(Cow::into_owned));
        let mut opening = Extra::default();
        push(&mut opening, "cwd", self.working_dir.as_deref().map(string));
        push(&mut opening, "project_hash", header.project_hash.json());
        push(&mut opening, "agent_kind", header.kind.json());
        self.session = Some(Session::new(run, opening));
        self.release(emit);
        if let Some(session) = &mut self.session {
            session.begin(emit);
        }
    }

    /// Writes what has waited for the session.
    fn release(&mut self, emit: &mut Emit<'_>) {
        for waiter in self.waiting.take() {
            emit.release(&waiter.record, |emit| match waiter.what {
                PendingKind::Unreadable(why) => self.unreadable(&why, emit),
                PendingKind::Record(_) => {
                    let record: ChatRecord<'_> = parse(emit.text()).unwrap_or_default();
                    let read = self.take(&record, emit);
                    emit.read_late(read);
                }
            });
        }
    }

    /// Takes a header: of the session, of a process that resumes it, or of a document that was rewritten.
    fn header(&mut self, header: &ChatRecord<'_>, is_rewritten: bool, emit: &mut Emit<'_>) -> RecordOutcome {
        let is_first = self.session.is_none();
        if is_first {
            self.open(header, emit);
        }
        let Some(session) = &mut self.session else { return RecordOutcome::Waiting };
        if is_first {
            emit.entry(&session.run, EntryType::SystemEvent, Some("session_start"));
        } else if !is_rewritten {
            session.live.clear();
            let id = header.session_id.text().unwrap_or_default();
            let own = session.run.session.as_deref().unwrap_or_default();
            let other = (own != id && session.run.parent.is_none())
                .then(|| RawJson::object(|object| object.json("session_id", &string(&id))));
            session.fact("resume", "resume", other, emit);
        }
        session.session_facts(emit.text(), emit);
        if header.is_odd() { session.unknown("header", emit) } else { RecordOutcome::Understood }
    }

    /// Takes a record of a session that is known.
    fn take<'a>(&mut self, record: &ChatRecord<'a>, emit: &mut Emit<'a>) -> RecordOutcome {
        let Some(session) = &mut self.session else { return RecordOutcome::Waiting };
        session.begin(emit);
        match kind_of(record) {
            RecordKind::Rewind => session.rewind(record.rewind_to, emit),
            RecordKind::Update => match record.set {
                Some(set) => session.update(set, emit),
                None => session.unknown("$set", emit),
            },
            RecordKind::Message => {
                session.live.add(&message_id(record, emit.text()));
                session.message(record, emit)
            }
            RecordKind::Header => self.header(record, false, emit),
            RecordKind::Fields if !session.session_facts(emit.text(), emit) => {
                session.unknown("untyped", emit)
            }
            RecordKind::Fields if emit.has_written() => RecordOutcome::Understood,
            RecordKind::Fields => RecordOutcome::Bookkeeping,
        }
    }
}

/// What a record of a chat file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordKind {
    Header,
    Message,
    Update,
    Rewind,
    /// The fields of a document after its messages, or something unknown.
    Fields,
}

fn kind_of(record: &ChatRecord<'_>) -> RecordKind {
    match () {
        () if record.rewind_to.is_some() => RecordKind::Rewind,
        () if record.set.is_some() => RecordKind::Update,
        () if record.id.is_some() || record.message_type.is_some() => RecordKind::Message,
        () if record.session_id.is_some() => RecordKind::Header,
        () => RecordKind::Fields,
    }
}

/// Returns the name by which a record of a document is recognised when the document is rewritten.
fn mark_of<'a>(record: &ChatRecord<'a>, text: &str) -> Cow<'a, str> {
    match kind_of(record) {
        RecordKind::Message => message_id(record, text),
        RecordKind::Header => "header".into(),
        RecordKind::Update | RecordKind::Rewind | RecordKind::Fields => "fields".into(),
    }
}

impl Mapper for Chat {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        // The text of `emit` is that of the record, but it lives long enough for what is written.
        let read: ChatRecord<'_> = parse(emit.text())?;
        emit.set_time(read.timestamp.string().or_else(|| read.start_time.string()));
        // Lines are known by their bytes: a message is written several times.
        let mark = record.is_in_document.then(|| mark_of(&read, record.text));
        let is_rewritten = emit.is_known(mark.as_deref());
        if kind_of(&read) == RecordKind::Header {
            return Ok(self.header(&read, is_rewritten, emit));
        }
        if self.session.is_none() {
            if !self.waiting.keep(PendingKind::Record(record.lane), emit) {
                self.open(&ChatRecord::default(), emit);
            }
            return Ok(RecordOutcome::Waiting);
        }
        Ok(self.take(&read, emit))
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        if let Some(session) = &mut self.session {
            session.begin(emit);
            emit.unknown(&session.run, "unreadable", Some(why));
            emit.entry(&session.run, EntryType::Unknown, None);
        } else if !self.waiting.keep(PendingKind::Unreadable(why.into()), emit) {
            self.open(&ChatRecord::default(), emit);
        }
    }

    fn run(&self) -> Option<&Run> {
        self.session.as_ref().map(|session| &session.run)
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if self.session.is_none() && !self.waiting.is_empty() {
            self.open(&ChatRecord::default(), emit);
        }
    }
}
