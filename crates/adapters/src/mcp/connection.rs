//! A connection to an MCP server: JSON-RPC both ways. Its calls go to the run of the session that they name.

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, Fidelity, Lane, RunId};

use super::requests::{self, Requests};
use super::wire::{Beginning, Meta, Program};
use super::{ADAPTER, PROVIDER};
use crate::adapter::{LeftoverRecord, Mapper, Record, RecordOutcome, Source};
use crate::emit::{AdapterInfo, Emit, push};
use crate::rpc::{BEGAN, ENDED, EarlyNotes, MISSING, Note, RpcKind, RpcMessage, ServerEnd, content_of};
use crate::run::{Run, derived_run_id, run_id_of};
use crate::wire::{NoObject, Raw, RawField as _, WireObject as _, object, parse};

static ABOUT: AdapterInfo = AdapterInfo {
    provider: PROVIDER,
    entry_adapter: PROVIDER,
    adapter: ADAPTER,
    channel: PROVIDER,
    carries: &["mcp_calls"],
    detail_name: "message",
};

/// A connection while it is read.
pub(super) struct Connection {
    source_id: String,
    /// The name of the server in the client's configuration, else the name that the server gives itself.
    server: Option<JsonString>,
    is_server_configured: bool,
    /// The session that the connection belongs to, unless a call names another.
    session: Option<RunId>,
    client: Option<RawJson>,
    server_info: Option<RawJson>,
    version: Option<JsonString>,
    /// The runs, one for each session that calls name.
    pub(super) runs: Vec<Run>,
    /// The turn that each run is in.
    turns: Vec<Option<JsonString>>,
    /// The run of the last call, which facts without a session go to.
    pub(super) current: usize,
    pub(super) requests: Requests,
    early: EarlyNotes,
}

impl Connection {
    pub(super) fn new(source: &Source) -> Self {
        Self {
            source_id: source.id.to_text().into_owned(),
            server: None,
            is_server_configured: false,
            session: None,
            client: None,
            server_info: None,
            version: None,
            runs: Vec::new(),
            turns: Vec::new(),
            current: 0,
            requests: Requests::default(),
            early: EarlyNotes::default(),
        }
    }

    /// Returns the name of a tool of this server, as agents name it.
    pub(super) fn tool_name(&self, tool: &str) -> JsonString {
        match &self.server {
            Some(server) => format!("mcp__{}__{tool}", server.to_text()).as_str().into(),
            None => tool.into(),
        }
    }

    /// Returns the name of the server.
    pub(super) fn server(&self) -> Option<&JsonString> {
        self.server.as_ref()
    }

    /// Takes what both sides say about themselves.
    pub(super) fn introduce(&mut self, content: Raw<'_>) {
        let Some(beginning) = content.and_then(object::<Beginning<'_>>) else { return };
        if let Some(client) = beginning.client_info {
            self.version = object::<Program<'_>>(client).and_then(|client| client.version.string());
            self.client = Some(RawJson::from_raw(client));
        }
        if let Some(server) = beginning.server_info {
            self.server_info = Some(RawJson::from_raw(server));
            if !self.is_server_configured {
                self.server = object::<Program<'_>>(server).and_then(|server| server.name.string());
            }
        }
    }

    /// Takes the first note of our recorder: the server's name, and the session if the environment named one.
    fn begin_recording(&mut self, params: Raw<'_>) -> bool {
        let Some(beginning) = params.and_then(object::<Beginning<'_>>) else { return false };
        if let Some(server) = beginning.server.string() {
            (self.server, self.is_server_configured) = (Some(server), true);
        }
        let named = beginning.session.text().or_else(|| beginning.run.text());
        self.session = named.and_then(|named| RunId::parse(&named).ok());
        !beginning.is_odd()
    }

    /// Returns the run of a call, which begins with its first call, and puts it into the call's turn.
    pub(super) fn enter(&mut self, meta: &Meta<'_>, emit: &mut Emit<'_>) -> usize {
        let turn = meta.codex_turn.unwrap_or_default();
        let thread = meta.thread.text().or_else(|| turn.thread.text()).or_else(|| meta.thread_snake.text());
        let session = thread.map(|thread| run_id_of("codex", &thread)).or(self.session);
        let place = self.run_of(session, emit);
        let turn = turn.turn.string().or_else(|| meta.turn.string());
        if turn.is_some() && self.turns[place] != turn {
            emit.begin_turn(&mut self.runs[place], turn.as_ref(), None);
            self.turns[place] = turn;
        }
        place
    }

    fn run_of(&mut self, session: Option<RunId>, emit: &mut Emit<'_>) -> usize {
        if let Some(known) = self.runs.iter().position(|run| run.mirrors == session) {
            self.current = known;
            return known;
        }
        let name = session.map(|session| session.to_string());
        let id = derived_run_id(&[PROVIDER, &self.source_id, name.as_deref().unwrap_or_default()]);
        let mut run = Run { fidelity: Fidelity::Router, mirrors: session, session: name, ..Run::main(id) };
        let mut extra = Extra::default();
        push(&mut extra, "client", self.client.clone());
        push(&mut extra, "server", self.server_info.clone());
        let version = self.version.clone();
        let begin = |run: &mut Run, emit: &mut Emit<'_>| emit.begin(run, version.as_ref(), extra.clone());
        self.early.write(&mut run, begin, emit);
        self.runs.push(run);
        self.turns.push(None);
        self.current = self.runs.len() - 1;
        self.current
    }

    /// Writes a note, now or when the first run begins.
    pub(super) fn note(&mut self, note: Note, emit: &mut Emit<'_>) {
        if let Some(run) = self.runs.get(self.current) {
            note.write(run, emit);
        } else if !self.early.keep(note, emit) {
            self.run_of(self.session, emit);
        }
    }

    /// Writes that a message is of an unknown kind.
    pub(super) fn unknown(&mut self, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
        self.note(Note::Unknown(name.to_owned()), emit);
        RecordOutcome::Unknown(name.to_owned())
    }

    fn of_recorder(&mut self, method: &str, params: Raw<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        match method {
            BEGAN if self.begin_recording(params) => RecordOutcome::Bookkeeping,
            MISSING => {
                self.note(Note::Fact(method.to_owned()), emit);
                RecordOutcome::Understood
            }
            ENDED => self.end_runs(params, emit),
            _ => self.unknown(method, emit),
        }
    }

    /// Ends the runs: the server's process has ended. Calls without a result stay open.
    fn end_runs(&mut self, params: Raw<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
        let Some(end) = ServerEnd::read(params) else { return self.unknown(ENDED, emit) };
        if !self.early.is_empty() {
            self.run_of(self.session, emit);
        }
        self.runs.iter().for_each(|run| emit.complete(run, end.clone()));
        let Some(run) = self.run() else { return RecordOutcome::Bookkeeping };
        let detail = params.map_or("null", RawValue::get);
        emit.entry_with(run, EntryType::SystemEvent, Some(ENDED), detail);
        RecordOutcome::Understood
    }
}

impl Mapper for Connection {
    fn about(&self) -> &'static AdapterInfo {
        &ABOUT
    }

    fn record(&mut self, record: Record<'_>, emit: &mut Emit<'_>) -> Result<RecordOutcome, NoObject> {
        let message: RpcMessage<'_> = parse(record.text)?;
        let is_from_server = record.lane == Lane::FromAgent;
        Ok(match message.kind() {
            RpcKind::Notice { method } if record.is_recorders => {
                self.of_recorder(&method, message.params, emit)
            }
            RpcKind::Request { method, id } => {
                requests::request(self, (&method, Some(id)), message.params, is_from_server, emit)
            }
            RpcKind::Notice { method } => {
                requests::request(self, (&method, None), message.params, is_from_server, emit)
            }
            RpcKind::Answer { id } => requests::answer(self, id, &message, is_from_server, emit),
            RpcKind::Other => self.unknown("message", emit),
        })
    }

    fn unreadable(&mut self, why: &str, emit: &mut Emit<'_>) {
        self.note(Note::Unreadable(why.to_owned()), emit);
    }

    fn run(&self) -> Option<&Run> {
        self.runs.first()
    }

    fn rest<'a>(&'a self, text: &'a str) -> LeftoverRecord<'a> {
        self.run()
            .map_or(LeftoverRecord::Waiting, |run| LeftoverRecord::Unknown { run, detail: content_of(text) })
    }

    fn finish(&mut self, emit: &mut Emit<'_>) {
        if !self.early.is_empty() {
            self.run_of(self.session, emit);
        }
    }
}
