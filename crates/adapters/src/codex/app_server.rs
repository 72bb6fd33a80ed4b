//! A connection to `codex app-server`: JSON-RPC in both directions, with several threads.

use std::collections::HashMap;

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::{Extra, JsonString, RawJson};

use super::app_requests::Requests;
use super::connection::Conversation;
use super::deltas::{DELTA_EVENT, DELTAS, Deltas};
use super::notes::{Note, Waiter, WaitingNotes, params_of};
use super::thread::{Channel, Thread};
use super::usage::Start;
use super::wire::{self, Message, Params, RpcReply, ServerEnd};
use super::{ADAPTER, ENTRY_ADAPTER, PROVIDER, app_notices, app_requests};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::run::Run;
use crate::wire::{NoObject, RawField as _, object, parse};

static ABOUT: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: ENTRY_ADAPTER,
    adapter: ADAPTER,
    channel: "app-server",
    carries: &[
        "prompts",
        "calls",
        "results",
        "thinking",
        "usage",
        "approvals",
        "compaction",
        "subagents",
        "retries",
    ],
    detail_name: "notification",
};

/// What is known about a thread when it appears.
#[derive(Default)]
pub(super) struct Appearance<'a> {
    pub(super) thread: wire::Thread<'a>,
    /// Whether its history began elsewhere.
    pub(super) has_history: bool,
    /// Whether the client asked for it; the others are subagents.
    pub(super) is_asked_for: bool,
}

/// A connection while it is read.
pub(super) struct AppServer {
    source_id: String,
    conversations: HashMap<String, Conversation>,
    /// The first thread, which also gets facts without a thread.
    first: Option<String>,
    pub(super) requests: Requests,
    pub(super) version: Option<JsonString>,
    waiting: WaitingNotes,
    /// The thread whose last prompt is still the latest, so it can be written at its position.
    sending: Option<String>,
    /// Whether the current message only queued a prompt.
    is_quiet: bool,
    /// The threads with a call that is making a subagent.
    pub(super) spawning: Vec<String>,
    /// The creator of each thread, from the call that made it.
    pub(super) parents: HashMap<String, String>,
    pub(super) deltas: Deltas,
}

impl AppServer {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source_id: source.id.to_text().into_owned(),
            conversations: HashMap::new(),
            first: None,
            requests: Requests::default(),
            version: None,
            waiting: WaitingNotes::default(),
            sending: None,
            is_quiet: false,
            spawning: Vec::new(),
            parents: HashMap::new(),
            deltas: Deltas::default(),
        }
    }

    /// Returns true if any thread has appeared.
    pub(super) fn has_threads(&self) -> bool {
        self.first.is_some()
    }

    /// Returns a thread's conversation, if it has appeared.
    pub(super) fn get(&mut self, thread: &str) -> Option<&mut Conversation> {
        self.conversations.get_mut(thread)
    }

    /// Returns a thread's conversation; an unannounced one appears now.
    pub(super) fn conversation(&mut self, thread: &str, emit: &mut Emit<'_>) -> &mut Conversation {
        if !self.conversations.contains_key(thread) {
            self.appear(thread, &Appearance::default(), emit);
        }
        self.conversations.get_mut(thread).expect("appeared above")
    }

    /// Notes that the current message sent a prompt to a thread, and whether it has written anything.
    pub(super) fn sent(&mut self, thread: &str, is_written: bool) {
        if self.sending.as_deref() != Some(thread) {
            self.overtake();
        }
        self.sending = Some(thread.to_owned());
        self.is_quiet = !is_written;
    }

    /// Notes that something was written after the last prompt.
    fn overtake(&mut self) {
        if let Some(conversation) = self.sending.take().and_then(|thread| self.conversations.get_mut(&thread))
        {
            conversation.overtake();
        }
    }

    /// Begins the run of a thread.
    pub(super) fn appear(&mut self, thread: &str, appearance: &Appearance<'_>, emit: &mut Emit<'_>) {
        if self.conversations.contains_key(thread) {
            return;
        }
        self.overtake();
        let of = Channel::AppServer.run_of(&self.source_id, thread);
        let parent = self.parent_of(thread, appearance);
        let mut run = match &parent {
            Some(parent) => {
                Run::subagent(of.run, Channel::AppServer.run_of(&self.source_id, parent).run, thread)
            }
            None => Run::main(of.run),
        };
        let inherited = parent.and_then(|parent| self.get(&parent)?.thread.run.session.clone());
        let session = appearance.thread.session_id.text().map(std::borrow::Cow::into_owned).or(inherited);
        run.session = session.or_else(|| Some(thread.to_owned()));
        run.mirrors = of.session;
        let mut extra = Extra::default();
        push(&mut extra, "cwd", appearance.thread.cwd.json());
        push(&mut extra, "agent_nickname", appearance.thread.agent_nickname.json());
        push(&mut extra, "forked_from", self.forked_from(appearance));
        let version = appearance.thread.cli_version.string().or_else(|| self.version.clone());
        self.begin(thread, &mut run, (version, extra), emit);
        let start = if appearance.has_history { Start::Unknown } else { Start::Zero };
        let conversation = Conversation::new(Thread::new(Channel::AppServer, &self.source_id, run), start);
        self.conversations.insert(thread.to_owned(), conversation);
    }

    /// Writes the start of a run and the notes that waited for it.
    fn begin(
        &mut self,
        thread: &str,
        run: &mut Run,
        (version, extra): (Option<JsonString>, Extra),
        emit: &mut Emit<'_>,
    ) {
        let is_first = self.first.is_none();
        self.first.get_or_insert_with(|| thread.to_owned());
        let is_its =
            |waiter: &Waiter| waiter.thread.as_deref().map_or(is_first, |for_thread| for_thread == thread);
        let waited = self.waiting.take(is_its);
        let begin = |run: &mut Run, emit: &mut Emit<'_>| emit.begin(run, version.as_ref(), extra.clone());
        // Nothing was written before the first thread, so everything that waited keeps its position.
        for waiter in waited.iter().filter(|_| is_first) {
            waiter.write_at_its_place(run, begin, emit);
        }
        begin(run, emit);
        waited.iter().filter(|_| !is_first).for_each(|waiter| waiter.write_late(run, emit));
    }

    /// Returns the creator of a thread: from its call, from the server's notice, or the thread that is creating one
    /// now.
    fn parent_of(&self, thread: &str, appearance: &Appearance<'_>) -> Option<String> {
        let named = appearance.thread.parent_thread_id.text().map(std::borrow::Cow::into_owned);
        let linked = self.parents.get(thread).cloned().or(named);
        linked.or_else(|| self.spawning.last().cloned().filter(|_| !appearance.is_asked_for))
    }

    fn forked_from(&self, appearance: &Appearance<'_>) -> Option<RawJson> {
        let from = appearance.thread.forked_from_id.text()?;
        let of = Channel::AppServer.run_of(&self.source_id, &from);
        // A thread that is not on this connection is known by its rollout.
        let run = if self.conversations.contains_key(&*from) { of.run } else { of.session.unwrap_or(of.run) };
        Some(RawJson::object(|object| object.run_id("run_id", &run)))
    }

    /// Returns the names of all threads in a fixed order. The thread whose prompt can still be written at its position
    /// comes first.
    fn threads(&self) -> Vec<String> {
        let mut threads: Vec<String> = self.conversations.keys().cloned().collect();
        threads.sort_by_key(|thread| (self.sending.as_ref() != Some(thread), thread.clone()));
        threads
    }

    /// Ends the runs of all threads: the server's process has ended. The sessions may continue in another process, so
    /// open turns stay open.
    pub(super) fn end_runs(&mut self, params: Option<&RawValue>, emit: &mut Emit<'_>) -> RecordOutcome {
        let end = params.and_then(object::<ServerEnd<'_>>).unwrap_or_default();
        if end.exit_code.number().is_none() && end.signal.number().is_none() {
            return self.unknown(None, app_notices::ENDED, emit);
        }
        for thread in self.threads() {
            let Some(conversation) = self.conversations.get_mut(&thread) else { continue };
            conversation.finish(emit);
            let mut extra = Extra::default();
            push(&mut extra, "exit_code", end.exit_code.json());
            push(&mut extra, "signal", end.signal.json());
            emit.complete(&conversation.thread.run, extra);
        }
        let Some(run) = self.run() else { return RecordOutcome::Bookkeeping };
        let detail = params.map_or("null", RawValue::get);
        emit.entry_with(run, EntryType::SystemEvent, Some(app_notices::ENDED), detail);
        RecordOutcome::Understood
    }

    /// Writes a note, now or when its thread appears; a note without a thread goes to the first.
    pub(super) fn note(
        &mut self,
        thread: Option<&str>,
        note: Note,
        params: Option<&RawValue>,
        emit: &mut Emit<'_>,
    ) {
        let owner = thread.map(str::to_owned).or_else(|| self.first.clone());
        if let Some(conversation) = owner.and_then(|owner| self.conversations.get(&owner)) {
            note.write(&conversation.thread.run, params, emit);
        } else if !self.waiting.keep(thread, note, emit) {
            self.appear(thread.unwrap_or_default(), &Appearance::default(), emit);
        }
    }

    /// Writes a fact.
    pub(super) fn fact(
        &mut self,
        thread: Option<&str>,
        name: &str,
        params: Option<&RawValue>,
        emit: &mut Emit<'_>,
    ) {
        self.note(thread, Note::Fact(name.to_owned()), params, emit);
    }

    /// Writes that a message is of an unknown kind.
    pub(super) fn unknown(&mut self, thread: Option<&str>, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        self.note(thread, Note::Unknown(name.to_owned()), None, emit);
        RecordOutcome::Unknown(name.to_owned())
    }

    /// Writes that a request failed.
    pub(super) fn failed(
        &mut self,
        thread: Option<&str>,
        method: &str,
        error: &JsonString,
        emit: &mut Emit<'_>,
    ) {
        let note = Note::Failed { method: method.to_owned(), error: error.clone() };
        self.note(thread, note, None, emit);
    }
}

impl Mapper for AppServer {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let message: Message<'_> = parse(record.text)?;
        let params: Params<'_> = message.params.and_then(object::<Params<'_>>).unwrap_or_default();
        emit.set_time_ms(message.emitted_at_ms.number());
        let is_from_server = record.lane == steno_model::Lane::FromAgent;
        // Both sides count their requests from 0, so only the direction distinguishes their ids.
        let read = match (message.method.text(), message.id, is_from_server) {
            (Some(method), Some(id), true) => {
                emit.set_time_ms(params.started_at_ms.number());
                app_requests::of_server(self, &method, id, (&message, &params), emit)
            }
            (Some(method), _, _) if record.is_recorders => {
                app_notices::of_recorder(self, &method, message.params, emit)
            }
            (Some(method), None, true) => app_notices::notice(self, &method, &message, &params, emit),
            (Some(method), id, false) => {
                app_requests::of_client(self, &method, id, (&message, &params), emit)
            }
            (None, Some(id), true) => {
                let answer = message.result.and_then(object::<RpcReply<'_>>).unwrap_or_default();
                app_requests::answered_by_server(self, id, &message, &answer, emit)
            }
            (None, Some(id), false) => app_requests::answered_by_client(self, id, &message, emit),
            (None, None, _) => self.unknown(None, "message", emit),
        };
        if !std::mem::take(&mut self.is_quiet) && read != RecordOutcome::Bookkeeping {
            self.overtake();
        }
        Ok(read)
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        self.overtake();
        self.note(None, Note::Unreadable(why.to_owned()), None, emit);
    }

    fn run(&self) -> Option<&Run> {
        let first = self.conversations.get(self.first.as_ref()?)?;
        Some(&first.thread.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let message: Message<'_> = parse(text).unwrap_or_default();
        let method = message.method.text().unwrap_or_default();
        let is_event_delta = || method.starts_with("codex/event/") && method.ends_with(DELTA_EVENT);
        if DELTAS.contains(&&*method) || is_event_delta() {
            return LeftoverRecord::Delta;
        }
        let params: Params<'_> = message.params.and_then(object::<Params<'_>>).unwrap_or_default();
        let answer: RpcReply<'_> = message.result.and_then(object::<RpcReply<'_>>).unwrap_or_default();
        let made = params.thread.or(answer.thread).and_then(|thread| thread.id.text());
        let owner = params.thread_id.or(params.conversation_id).text().or(made);
        let its = owner.and_then(|owner| self.conversations.get(&*owner));
        let run = its.map(|its| &its.thread.run).or_else(|| self.run());
        run.map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: params_of(text) })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        while let Some(thread) = self.waiting.next_thread() {
            self.appear(&thread, &Appearance::default(), emit);
        }
        for thread in self.threads() {
            if let Some(conversation) = self.conversations.get_mut(&thread) {
                conversation.finish(emit);
            }
        }
    }
}
