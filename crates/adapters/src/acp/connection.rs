//! A connection between a client and its agent: JSON-RPC both ways, several sessions on one.

use std::collections::HashSet;

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, Lane, Provider, RunId, Vocabulary as _};

use super::requests::{self, Requests};
use super::session::Session;
use super::updates;
use super::wire::{Params, Program, Reply, Update};
use super::{ADAPTER, PROVIDER};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::rpc::{BEGAN, ENDED, EarlyNotes, MISSING, Note, RpcKind, RpcMessage, ServerEnd, content_of};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, Raw, RawField as _, object, parse};

static ABOUT: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: PROVIDER,
    adapter: ADAPTER,
    channel: PROVIDER,
    carries: &["prompts", "calls", "results", "thinking", "approvals"],
    detail_name: "message",
};

const UPDATE: &str = "session/update";

/// A connection while it is read.
pub(super) struct Connection {
    source_id: String,
    /// What the agent says about itself.
    agent: Option<RawJson>,
    agent_name: String,
    version: Option<JsonString>,
    /// The directory of the session that is being created.
    cwd: Option<RawJson>,
    forked_from: Option<RunId>,
    pub(super) sessions: Vec<Session>,
    /// The session of the last message.
    pub(super) current: usize,
    /// Sessions whose history the agent repeats now.
    loading: HashSet<String>,
    pub(super) requests: Requests,
    early: EarlyNotes,
}

impl Connection {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source_id: source.id.to_text().into_owned(),
            agent: None,
            agent_name: String::new(),
            version: None,
            cwd: None,
            forked_from: None,
            sessions: Vec::new(),
            current: 0,
            loading: HashSet::new(),
            requests: Requests::default(),
            early: EarlyNotes::default(),
        }
    }

    /// Takes what the agent says about itself.
    pub(super) fn introduce(&mut self, reply: &Reply<'_>) {
        let Some(agent) = reply.agent else { return };
        let program: Program<'_> = object(agent).unwrap_or_default();
        self.agent = Some(RawJson::from_raw(agent));
        self.agent_name = program.name.text().unwrap_or_default().to_lowercase();
        self.version = program.version.string();
    }

    /// Takes the directory of a session that is being created or continued.
    pub(super) fn announce(&mut self, cwd: Option<RawJson>) {
        self.cwd = cwd;
    }

    /// Notes that the agent repeats the history of a session from now on.
    pub(super) fn load(&mut self, session: &str) {
        self.loading.insert(session.to_owned());
    }

    /// Notes that the agent has finished repeating the history of a session.
    pub(super) fn loaded(&mut self, session: &str) {
        self.loading.remove(session);
    }

    pub(super) fn is_loading(&self, session: &str) -> bool {
        self.loading.contains(session)
    }

    /// Tells whether the recording has only the agent's side, as far as is known.
    pub(super) fn is_one_sided(&self) -> bool {
        self.requests.is_one_sided()
    }

    /// Notes that the next session is a fork.
    pub(super) fn fork_of(&mut self, session: Option<&str>) {
        self.forked_from = session.map(|session| self.session_run(session));
    }

    /// Returns the run of the agent's own file.
    fn session_run(&self, session: &str) -> RunId {
        // Agents have files of their own; the name that an agent gives itself contains the provider's.
        let mut names = Provider::ALL.iter().map(|provider| provider.as_str());
        let agent = names.find(|agent| self.agent_name.contains(agent));
        run_id_of(agent.unwrap_or(PROVIDER), session)
    }

    /// Returns the place of a session; its run begins with the first message about it.
    pub(super) fn session(&mut self, id: &str, emit: &mut Emit<'_>) -> usize {
        if let Some(known) = self.sessions.iter().position(|session| session.id == id) {
            self.current = known;
            return known;
        }
        let run = derived_run_id(&[PROVIDER, &self.source_id, id]);
        let mut run = Run::main(run).of_session(id);
        run.mirrors = (!id.is_empty()).then(|| self.session_run(id));
        let mut extra = Extra::default();
        push(&mut extra, "cwd", self.cwd.take());
        push(&mut extra, "agent", self.agent.clone());
        let forked_from = self.forked_from.take();
        let forked_from = forked_from.map(|from| RawJson::object(|object| object.run_id("run_id", &from)));
        push(&mut extra, "forked_from", forked_from);
        let version = self.version.clone();
        let begin = |run: &mut Run, emit: &mut Emit<'_>| emit.begin(run, version.as_ref(), extra.clone());
        self.early.write(&mut run, begin, emit);
        self.sessions.push(Session::new(id, run));
        self.current = self.sessions.len() - 1;
        self.current
    }

    /// Writes a note, now or when the first session begins; one of no session goes to the last.
    pub(super) fn note(&mut self, session: Option<&str>, note: Note, emit: &mut Emit<'_>) {
        let named = session.filter(|id| !self.is_loading(id));
        let place = named.map_or(self.current, |id| self.session(id, emit));
        if let Some(session) = self.sessions.get(place) {
            note.write(&session.run, emit);
        } else if !self.early.keep(note, emit) {
            self.session("", emit);
        }
    }

    /// Writes that a message is of an unknown kind.
    pub(super) fn unknown(
        &mut self,
        session: Option<&str>,
        name: &str,
        emit: &mut Emit<'_>,
    ) -> RecordOutcome {
        self.note(session, Note::Unknown(name.to_owned()), emit);
        RecordOutcome::Unknown(name.to_owned())
    }

    /// Updates the state after a record.
    fn end_record(&mut self, emit: &Emit<'_>) {
        let has_flushed = self.sessions.iter_mut().fold(false, |any, session| session.take_flushed() | any);
        let has_written = has_flushed || emit.has_written();
        self.sessions.iter_mut().for_each(|session| session.end_record(has_written));
    }

    fn of_recorder(&mut self, method: &str, params: Raw<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        match method {
            BEGAN => RecordOutcome::Bookkeeping,
            MISSING => {
                self.note(None, Note::Fact(method.to_owned()), emit);
                RecordOutcome::Understood
            }
            ENDED => self.end_runs(params, emit),
            _ => self.unknown(None, method, emit),
        }
    }

    /// Ends the runs: the agent's process has ended. The sessions may continue, so open turns stay open.
    fn end_runs(&mut self, params: Raw<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(end) = ServerEnd::read(params) else { return self.unknown(None, ENDED, emit) };
        self.finish(emit);
        self.sessions.iter().for_each(|session| emit.complete(&session.run, end.clone()));
        let Some(run) = self.run() else { return RecordOutcome::Bookkeeping };
        emit.entry_with(run, EntryType::SystemEvent, Some(ENDED), params.map_or("null", RawValue::get));
        RecordOutcome::Understood
    }
}

impl Mapper for Connection {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let message: RpcMessage<'_> = parse(record.text)?;
        let is_from_agent = record.lane == Lane::FromAgent;
        let outcome = match message.kind() {
            RpcKind::Notice { method } if record.is_recorders => {
                self.of_recorder(&method, message.params, emit)
            }
            RpcKind::Notice { method } if method == UPDATE => {
                let params: Params<'_> = message.params.and_then(object).unwrap_or_default();
                updates::update(self, &params, emit)
            }
            RpcKind::Request { method, id } => {
                requests::request(self, (&method, Some(id)), &message, is_from_agent, emit)
            }
            RpcKind::Notice { method } => {
                requests::request(self, (&method, None), &message, is_from_agent, emit)
            }
            RpcKind::Answer { id } => requests::answer(self, id, &message, is_from_agent, emit),
            RpcKind::Other => self.unknown(None, "message", emit),
        };
        self.end_record(emit);
        Ok(outcome)
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        self.note(None, Note::Unreadable(why.to_owned()), emit);
        self.end_record(emit);
    }

    fn run(&self) -> Option<&Run> {
        self.sessions.first().map(|session| &session.run)
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        let message: RpcMessage<'_> = parse(text).unwrap_or_default();
        let params: Params<'_> = message.params.and_then(object).unwrap_or_default();
        let update = params.update.and_then(object::<Update<'_>>);
        if update.is_some_and(|update| updates::is_delta(&update)) {
            return LeftoverRecord::Delta;
        }
        let named = params.session.text();
        let named = named.and_then(|id| self.sessions.iter().find(|session| session.id == id));
        let run = named.map(|session| &session.run).or_else(|| self.run());
        run.map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: content_of(text) })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if !self.early.is_empty() {
            self.session("", emit);
        }
        for place in 0..self.sessions.len() {
            self.sessions[place].flush(emit);
            self.end_record(emit);
        }
    }
}
