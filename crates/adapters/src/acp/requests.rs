//! Requests of both sides and their answers: sessions and prompts of the client, permissions and files of the agent.

use serde_json::value::RawValue;
use steno_model::EntryType;
use steno_model::json::JsonString;

use super::connection::Connection;
use super::content;
use super::permissions::OpenPermission;
use super::wire::{Params, Reply};
use crate::adapter::RecordOutcome;
use crate::emit::Emit;
use crate::requests::{AnswerMatch, OpenRequests};
use crate::rpc::{Note, RpcMessage};
use crate::wire::{RawField as _, WireObject as _, object};

/// Methods without information about the work.
pub(super) const BOOKKEEPING: [&str; 15] = [
    "$/cancel_request",
    "authenticate",
    "fs/read_text_file",
    "initialize",
    "logout",
    "providers/list",
    "session/cancel",
    "session/close",
    "session/delete",
    "session/list",
    "session/new",
    "session/stop",
    "terminal/kill",
    "terminal/output",
    "terminal/release",
];

/// Methods that are facts; the method is the fact's name.
pub(super) const FACTS: [&str; 7] = [
    "elicitation/create",
    "fs/write_text_file",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
    "terminal/create",
    "terminal/wait_for_exit",
];

/// Methods whose answers are facts too.
const ANSWERED_FACTS: [&str; 2] = ["elicitation/create", "terminal/wait_for_exit"];

/// Requests that continue a session. While they are open, the agent repeats what the session has.
const CONTINUES: [&str; 2] = ["session/load", "session/resume"];

const PROMPT: &str = "session/prompt";
const FORK: &str = "session/fork";
const PERMISSION: &str = "session/request_permission";

/// A request without an answer.
struct OpenRequest {
    method: String,
    session: Option<String>,
    what: AnswerKind,
}

/// What the answer to a request is.
enum AnswerKind {
    /// The end of a turn, which is at this path.
    Prompt {
        session: usize,
        path: JsonString,
    },
    /// A choice.
    Permission {
        session: usize,
        asked: OpenPermission,
    },
    /// A session that begins, or continues.
    Session,
    /// A fact, if it fails or if its answer is one too.
    Fact,
    /// It gives no event.
    Bookkeeping,
    Unknown,
}

/// The requests of both sides, by id; each side has its own ids.
#[derive(Default)]
pub(super) struct Requests {
    by_client: OpenRequests<OpenRequest>,
    by_agent: OpenRequests<OpenRequest>,
}

impl Requests {
    /// Tells whether the client never asked: the recording may have only the agent's side.
    pub(super) fn is_one_sided(&self) -> bool {
        self.by_client.is_empty()
    }
}

/// Takes a request, or a notice if it has no id.
pub(super) fn request(
    connection: &mut Connection,
    (method, id): (&str, Option<&RawValue>),
    message: &RpcMessage<'_>,
    is_from_agent: bool,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let params: Params<'_> = message.params.and_then(object).unwrap_or_default();
    let session = params.session.text().map(std::borrow::Cow::into_owned);
    let (what, outcome) = match (method, id) {
        (PROMPT, _) => prompt(connection, &params, message, emit),
        (PERMISSION, Some(id)) => permission(connection, id, &params, message, emit),
        ("session/new" | FORK, _) => {
            connection.announce(params.cwd.json());
            (AnswerKind::Session, RecordOutcome::Bookkeeping)
        }
        _ if CONTINUES.contains(&method) => {
            connection.announce(params.cwd.json());
            connection.load(session.as_deref().unwrap_or_default());
            (AnswerKind::Session, RecordOutcome::Bookkeeping)
        }
        _ if FACTS.contains(&method) => {
            connection.note(session.as_deref(), Note::Fact(method.to_owned()), emit);
            (AnswerKind::Fact, RecordOutcome::Understood)
        }
        _ if BOOKKEEPING.contains(&method) => (AnswerKind::Bookkeeping, RecordOutcome::Bookkeeping),
        _ => {
            let kind = if id.is_some() { "request" } else { "notice" };
            let outcome = connection.unknown(session.as_deref(), &format!("{kind}.{method}"), emit);
            (AnswerKind::Unknown, outcome)
        }
    };
    if let Some(id) = id {
        let requests = &mut connection.requests;
        let open = if is_from_agent { &mut requests.by_agent } else { &mut requests.by_client };
        open.ask(id, OpenRequest { method: method.to_owned(), session, what });
    }
    outcome
}

fn prompt(
    connection: &mut Connection,
    params: &Params<'_>,
    message: &RpcMessage<'_>,
    emit: &mut Emit<'_>,
) -> (AnswerKind, RecordOutcome) {
    let prompt = content::prompt(params.prompt);
    let Some(id) = params.session.text().filter(|_| !prompt.blocks.is_empty()) else {
        return (AnswerKind::Unknown, connection.unknown(None, "request.session/prompt", emit));
    };
    let place = connection.session(&id, emit);
    let session = &mut connection.sessions[place];
    let is_odd = prompt.is_odd;
    session.begin_turn(prompt, emit);
    emit.entry_with(&session.run, EntryType::UserMessage, None, message.params.map_or("null", RawValue::get));
    let asked = AnswerKind::Prompt { session: place, path: session.run.turns.path() };
    if is_odd {
        return (asked, connection.unknown(Some(&id), "request.session/prompt", emit));
    }
    (asked, RecordOutcome::Understood)
}

fn permission(
    connection: &mut Connection,
    id: &RawValue,
    params: &Params<'_>,
    message: &RpcMessage<'_>,
    emit: &mut Emit<'_>,
) -> (AnswerKind, RecordOutcome) {
    let Some(session) = params.session.text() else {
        return (AnswerKind::Unknown, connection.unknown(None, "request.session/request_permission", emit));
    };
    let place = connection.session(&session, emit);
    let is_one_sided = connection.is_one_sided();
    if is_one_sided {
        connection.sessions[place].begin_unasked_turn(emit);
    }
    let detail = message.params.map_or("null", RawValue::get);
    let (asked, is_read) = connection.sessions[place].ask(id, params, detail, emit);
    let asked = AnswerKind::Permission { session: place, asked };
    if is_read && !params.is_odd() {
        return (asked, RecordOutcome::Understood);
    }
    (asked, connection.unknown(Some(&session), "request.session/request_permission", emit))
}

/// Takes an answer; only the first to a request counts.
pub(super) fn answer(
    connection: &mut Connection,
    id: &RawValue,
    message: &RpcMessage<'_>,
    is_from_agent: bool,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let requests = &mut connection.requests;
    let open = if is_from_agent { &mut requests.by_client } else { &mut requests.by_agent };
    let is_one_sided = open.is_empty();
    let reply: Reply<'_> = message.result.and_then(object).unwrap_or_default();
    let OpenRequest { method, session, what } = match open.answer(id) {
        AnswerMatch::One(asked) => asked,
        AnswerMatch::Again => return RecordOutcome::Bookkeeping,
        AnswerMatch::Nothing if is_one_sided => return unasked(connection, &reply, message, emit),
        AnswerMatch::Nothing => return connection.unknown(None, "response", emit),
    };
    match what {
        AnswerKind::Prompt { session, path } => {
            end_of_turn(connection, (session, &path), &reply, message, emit)
        }
        AnswerKind::Permission { session, asked } => {
            let choice = reply.outcome.unwrap_or_default();
            connection.sessions[session].decide(&asked, &choice, message, emit);
            if choice.outcome.is_some() || message.error.is_some() {
                return RecordOutcome::Understood;
            }
            connection.unknown(None, "response.session/request_permission", emit)
        }
        AnswerKind::Session => {
            begin_session(connection, &method, session.as_deref(), (&reply, message), emit)
        }
        AnswerKind::Fact | AnswerKind::Bookkeeping => {
            if method == "initialize" {
                connection.introduce(&reply);
            }
            let note = match message.failure() {
                Some(error) => Note::Failed { method, error },
                None if ANSWERED_FACTS.contains(&&*method) => Note::Fact(format!("{method}.result")),
                None => return RecordOutcome::Bookkeeping,
            };
            connection.note(session.as_deref(), note, emit);
            RecordOutcome::Understood
        }
        AnswerKind::Unknown => connection.unknown(session.as_deref(), &format!("response.{method}"), emit),
    }
}

/// Ends the turn of a prompt. In version 2 the answer only names the message, and an update ends the turn.
fn end_of_turn(
    connection: &mut Connection,
    (place, path): (usize, &JsonString),
    reply: &Reply<'_>,
    message: &RpcMessage<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let session = &mut connection.sessions[place];
    let is_current = session.run.turns.path() == *path && session.run.turns.is_open();
    let detail = message.content().map_or("null", RawValue::get);
    if let Some(error) = message.failure() {
        session.flush(emit);
        emit.error(&session.run, PROMPT, &error.to_text());
        if is_current {
            session.fail_turn(error, emit);
        }
        emit.entry_with(&session.run, EntryType::Error, None, detail);
        return RecordOutcome::Understood;
    }
    session.flush(emit);
    session.use_tokens(reply, emit);
    if let Some(reason) = reply.stop_reason.text().filter(|_| is_current) {
        session.end_turn(&reason, emit);
    }
    emit.entry_with(&session.run, EntryType::SystemEvent, Some("turn_end"), detail);
    if reply.is_odd() {
        let id = session.id.clone();
        return connection.unknown(Some(&id), "response.session/prompt", emit);
    }
    RecordOutcome::Understood
}

/// Begins the run of a session that was created, loaded, resumed or forked.
fn begin_session(
    connection: &mut Connection,
    method: &str,
    asked: Option<&str>,
    (reply, message): (&Reply<'_>, &RpcMessage<'_>),
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    connection.loaded(asked.unwrap_or_default());
    if let Some(error) = message.failure() {
        connection.note(None, Note::Failed { method: method.to_owned(), error }, emit);
        return RecordOutcome::Understood;
    }
    let named = reply.session.text();
    let Some(id) = named.as_deref().or(asked.filter(|_| method != FORK)) else {
        return connection.unknown(None, &format!("response.{method}"), emit);
    };
    if method == FORK {
        connection.fork_of(asked);
    }
    let place = connection.session(id, emit);
    let run = &connection.sessions[place].run;
    let detail = message.content().map_or("null", RawValue::get);
    if CONTINUES.contains(&method) {
        emit.system(run, "resume", None);
    }
    emit.entry_with(run, EntryType::SystemEvent, Some(method), detail);
    RecordOutcome::Understood
}

/// Takes an answer of a recording that has only one side: it may begin a session or end a turn.
fn unasked(
    connection: &mut Connection,
    reply: &Reply<'_>,
    message: &RpcMessage<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    if reply.agent.is_some() {
        connection.introduce(reply);
        return RecordOutcome::Bookkeeping;
    }
    if let Some(id) = reply.session.text() {
        connection.session(&id, emit);
        return RecordOutcome::Understood;
    }
    let place = connection.current;
    if let (Some(reason), Some(session)) = (reply.stop_reason.text(), connection.sessions.get_mut(place)) {
        session.flush(emit);
        session.use_tokens(reply, emit);
        session.end_turn(&reason, emit);
        let detail = message.content().map_or("null", RawValue::get);
        emit.entry_with(&session.run, EntryType::SystemEvent, Some("turn_end"), detail);
        return RecordOutcome::Understood;
    }
    RecordOutcome::Bookkeeping
}
