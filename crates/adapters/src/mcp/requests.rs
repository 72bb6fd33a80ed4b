//! Requests of both sides and their answers: calls of tools first of all.

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, RawJson};
use steno_model::{EntryType, StepPayload};

use super::PROVIDER;
use super::connection::Connection;
use super::wire::{CancelNotice, Meta, Part, ToolCall, ToolResult};
use crate::adapter::RecordOutcome;
use crate::emit::{Answer, CallReport, Emit, Outcome, push};
use crate::requests::{AnswerMatch, OpenRequests};
use crate::rpc::{Note, RpcMessage};
use crate::run::{Class, derived_run_id};
use crate::wire::{Raw, RawField as _, WireObject as _, list, object};

/// Methods without information about the work: lists, settings of the connection, and progress of calls that come whole.
pub(super) const BOOKKEEPING: [&str; 24] = [
    "completion/complete",
    "initialize",
    "logging/setLevel",
    "notifications/elicitation/complete",
    "notifications/initialized",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
    "notifications/tools/list_changed",
    "ping",
    "prompts/list",
    "resources/list",
    "resources/subscribe",
    "resources/templates/list",
    "resources/unsubscribe",
    "roots/list",
    "server/discover",
    "tasks/cancel",
    "tasks/get",
    "tasks/list",
    "tools/list",
];

/// Methods that are facts: the request is a step with its name, and so is the answer.
pub(super) const FACTS: [&str; 5] =
    ["notifications/message", "prompts/get", "resources/read", "sampling/createMessage", "tasks/result"];

const CALL: &str = "tools/call";
const CANCELLED: &str = "notifications/cancelled";
const ELICITATION: &str = "elicitation/create";

/// A request without an answer.
struct OpenRequest {
    method: String,
    what: AnswerKind,
}

/// What the answer to a request is.
enum AnswerKind {
    /// The result of a call, in a run.
    Call {
        run: usize,
        id: JsonString,
    },
    /// A fact.
    Fact,
    /// The answer of a user, in a run.
    UserInput {
        run: usize,
        name: JsonString,
    },
    /// It gives no event.
    Bookkeeping,
    Unknown,
}

/// The requests of both sides, by id; each side has its own ids.
#[derive(Default)]
pub(super) struct Requests {
    by_client: OpenRequests<OpenRequest>,
    by_server: OpenRequests<OpenRequest>,
}

/// Takes a request, or a notice if it has no id.
pub(super) fn request(
    connection: &mut Connection,
    (method, id): (&str, Option<&RawValue>),
    params: Raw<'_>,
    is_from_server: bool,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let (what, outcome) = match method {
        CALL => call(connection, params, emit),
        CANCELLED => (AnswerKind::Bookkeeping, cancelled(connection, params, is_from_server, emit)),
        ELICITATION if id.is_some() => ask_user(connection, id, params, emit),
        _ if FACTS.contains(&method) => {
            connection.note(Note::Fact(method.to_owned()), emit);
            (AnswerKind::Fact, RecordOutcome::Understood)
        }
        _ if BOOKKEEPING.contains(&method) => {
            if method == "initialize" {
                connection.introduce(params);
            }
            (AnswerKind::Bookkeeping, RecordOutcome::Bookkeeping)
        }
        _ => {
            let kind = if id.is_some() { "request" } else { "notice" };
            (AnswerKind::Unknown, connection.unknown(&format!("{kind}.{method}"), emit))
        }
    };
    if let Some(id) = id {
        let requests = &mut connection.requests;
        let open = if is_from_server { &mut requests.by_server } else { &mut requests.by_client };
        open.ask(id, OpenRequest { method: method.to_owned(), what });
    }
    outcome
}

/// Writes a call.
fn call(connection: &mut Connection, params: Raw<'_>, emit: &mut Emit<'_>) -> (AnswerKind, RecordOutcome) {
    let call: ToolCall<'_> = params.and_then(object).unwrap_or_default();
    let Some(tool) = call.name.text() else {
        return (AnswerKind::Unknown, connection.unknown("request.tools/call", emit));
    };
    let meta = call.meta.unwrap_or_default();
    let run = connection.enter(&meta, emit);
    let name = connection.tool_name(&tool);
    let mut extra = Extra::default();
    push(&mut extra, "server", connection.server().map(JsonString::to_json));
    push(&mut extra, "tool", call.name.json());
    let id = call_id(connection, run, &meta, &mut extra, emit);
    let input = call.arguments.map_or_else(RawJson::null, RawJson::from_raw);
    let report = CallReport { extra, ..CallReport::new(name, Class::Mcp, input) };
    let run_now = &mut connection.runs[run];
    emit.call(run_now, &id, report);
    emit.entry_with(run_now, EntryType::ToolUse, None, params.map_or("null", RawValue::get));
    let is_odd = call.is_odd();
    let asked = AnswerKind::Call { run, id };
    if is_odd {
        (asked, connection.unknown("request.tools/call", emit))
    } else {
        (asked, RecordOutcome::Understood)
    }
}

/// Returns the id of a call: the client's own, else one that is made from the message. A client that calls again with the
/// id of an earlier call makes another call.
fn call_id(
    connection: &Connection,
    run: usize,
    meta: &Meta<'_>,
    extra: &mut Extra,
    emit: &Emit<'_>,
) -> JsonString {
    let given = [meta.claude_call, meta.codex_call, meta.codex_call_snake].into_iter().find_map(Raw::string);
    let calls = &connection.runs[run].calls;
    let is_known = |id: &JsonString| calls.get(&id.to_text()).is_some();
    match given {
        Some(given) if !is_known(&given) => return given,
        Some(given) => extra.push("repeats", given.to_json()),
        None => {}
    }
    extra.push("id_available", RawJson::from(false));
    let server = connection.server().map(JsonString::to_text).unwrap_or_default();
    let time = emit.time_text();
    let number = calls.len().to_string();
    let key = [PROVIDER, "call", &server, &time, emit.text(), &number];
    format!("mcp-{}", derived_run_id(&key)).as_str().into()
}

/// Notes that a call was cancelled. It has no result, unless the server sends one anyway.
fn cancelled(
    connection: &mut Connection,
    params: Raw<'_>,
    is_from_server: bool,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let requests = &connection.requests;
    let open = if is_from_server { &requests.by_server } else { &requests.by_client };
    let request = params.and_then(object::<CancelNotice<'_>>).and_then(|cancelled| cancelled.request);
    let asked = request.and_then(|request| open.waiting(request).next());
    let Some(AnswerKind::Call { run, id }) = asked.map(|asked| &asked.what) else {
        return RecordOutcome::Bookkeeping;
    };
    let run = &connection.runs[*run];
    let mut payload = StepPayload { result: params.json(), ..StepPayload::new(CANCELLED, "system") };
    payload.extra.push("tool_call_id", id.to_json());
    emit.step_completed(run, &run.turns.path(), payload);
    emit.entry_with(run, EntryType::SystemEvent, Some(CANCELLED), params.map_or("null", RawValue::get));
    RecordOutcome::Understood
}

/// Writes that the server asks the user something. Without a run it is a fact that waits.
fn ask_user(
    connection: &mut Connection,
    id: Option<&RawValue>,
    params: Raw<'_>,
    emit: &mut Emit<'_>,
) -> (AnswerKind, RecordOutcome) {
    let place = connection.current;
    let Some(run) = connection.runs.get(place) else {
        connection.note(Note::Fact(ELICITATION.to_owned()), emit);
        return (AnswerKind::Fact, RecordOutcome::Understood);
    };
    let name = id.string().or_else(|| id.map(|id| id.get().into())).unwrap_or_else(|| "".into());
    let mut payload = StepPayload::new(name.clone(), "user_input");
    payload.extra.push("request", params.json().unwrap_or_else(RawJson::null));
    emit.step_started(run, &run.turns.path_of("user_input"), payload);
    let detail = params.map_or("null", RawValue::get);
    emit.entry_with(run, EntryType::SystemEvent, Some("user_input_requested"), detail);
    (AnswerKind::UserInput { run: place, name }, RecordOutcome::Understood)
}

/// Takes an answer; only the first to a request counts.
pub(super) fn answer(
    connection: &mut Connection,
    id: &RawValue,
    message: &RpcMessage<'_>,
    is_from_server: bool,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let requests = &mut connection.requests;
    let open = if is_from_server { &mut requests.by_client } else { &mut requests.by_server };
    let is_one_sided = open.is_empty();
    let OpenRequest { method, what } = match open.answer(id) {
        AnswerMatch::One(asked) => asked,
        AnswerMatch::Again => return RecordOutcome::Bookkeeping,
        // A recording may have only one side.
        AnswerMatch::Nothing if is_one_sided => return RecordOutcome::Bookkeeping,
        AnswerMatch::Nothing => return connection.unknown("response", emit),
    };
    let detail = message.content().map_or("null", RawValue::get);
    match what {
        AnswerKind::Call { run, id } => {
            let (answer, is_read) = result_of(message);
            let run = &mut connection.runs[run];
            emit.result(run, &id, "", answer);
            emit.entry_with(run, EntryType::ToolResult, None, detail);
            if is_read { RecordOutcome::Understood } else { connection.unknown("response.tools/call", emit) }
        }
        AnswerKind::Fact => {
            let name = format!("{method}.result");
            let note = message.failure().map_or(Note::Fact(name), |error| Note::Failed { method, error });
            connection.note(note, emit);
            RecordOutcome::Understood
        }
        AnswerKind::UserInput { run, name } => {
            let run = &connection.runs[run];
            let payload = StepPayload {
                result: message.result.json(),
                error: message.failure(),
                ..StepPayload::new(name, "user_input")
            };
            emit.step_completed(run, &run.turns.path_of("user_input"), payload);
            emit.entry_with(run, EntryType::SystemEvent, Some("user_input_resolved"), detail);
            RecordOutcome::Understood
        }
        AnswerKind::Bookkeeping if method == "initialize" => {
            connection.introduce(message.result);
            match message.failure() {
                None => RecordOutcome::Bookkeeping,
                Some(error) => {
                    connection.note(Note::Failed { method, error }, emit);
                    RecordOutcome::Understood
                }
            }
        }
        AnswerKind::Bookkeeping => RecordOutcome::Bookkeeping,
        AnswerKind::Unknown => connection.unknown(&format!("response.{method}"), emit),
    }
}

/// Makes the result of a call, and tells whether it could be read. A tool that fails says so in its result; an error of the
/// protocol means that the server did not run it.
fn result_of(message: &RpcMessage<'_>) -> (Answer, bool) {
    if let Some(error) = message.failure() {
        let mut answer = Answer::new(RawJson::null(), Outcome::Failed);
        answer.error = Some(error);
        push(&mut answer.extra, "protocol_error", message.error.json());
        return (answer, true);
    }
    let output = message.result.map_or_else(RawJson::null, RawJson::from_raw);
    let Some(result) = message.result.and_then(object::<ToolResult<'_>>) else {
        return (Answer::new(output, Outcome::Unknown), false);
    };
    let is_read = !result.is_odd() && (result.content.is_some() || result.structured.is_some());
    if result.is_error.is_true() {
        let mut answer = Answer::new(output, Outcome::Failed);
        answer.error = Some(text_of(result.content).unwrap_or_else(|| "the tool reported an error".into()));
        return (answer, is_read);
    }
    // A server may answer with a task, whose result comes later.
    let outcome = if is_read { Outcome::Ok } else { Outcome::Unknown };
    (Answer::new(output, outcome), is_read)
}

/// Returns the texts of a result.
fn text_of(content: Raw<'_>) -> Option<JsonString> {
    let parts = list::<Part<'_>>(content?)?;
    let is_text = |part: &Part<'_>| part.kind.is("text");
    let texts = parts.into_iter().flatten().filter(is_text).filter_map(|part| part.text.text());
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then(|| text.as_str().into())
}
