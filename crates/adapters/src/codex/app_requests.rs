//! Requests on a connection and their answers: prompts and threads from the client, approvals and tools from the server.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, RawJson};
use steno_model::{EntryType, StepPayload};

use super::app_server::{AppServer, Appearance};
use super::events::settings;
use super::items::message_of;
use super::prompt;
use super::waits::Wait;
use super::wire::{Message, NetworkDecision, Params, RpcReply, WideDecision};
use crate::adapter::RecordOutcome;
use crate::emit::{Answer, CallReport, Decision, Emit, Outcome};
use crate::requests::{AnswerMatch, OpenRequests};
use crate::run::Class;
use crate::shapes::is_text;
use crate::wire::{Raw, RawField as _, object};

/// A request of the server without an answer.
struct OpenRequest {
    thread: Option<String>,
    /// The name of the request; for an unknown one, its method.
    name: JsonString,
    call: Option<JsonString>,
    what: DecisionKind,
}

/// What the answer decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DecisionKind {
    Approval,
    UserInput,
    Tool,
    /// Unknown.
    Unknown,
    /// A request that is never recorded.
    Secret,
}

/// A client's request: the method, and the thread that it named.
type AskedByClient = (String, Option<String>);

/// The requests of both sides, by id; each side has its own ids.
#[derive(Default)]
pub(super) struct Requests {
    by_client: OpenRequests<AskedByClient>,
    by_server: OpenRequests<OpenRequest>,
}

/// Requests that add to a thread besides prompts; the method is the fact's name.
const FACTS: [&str; 2] = ["review/start", "thread/inject_items"];

/// A message and its parameters.
type ClientRequest<'a, 'b> = (&'b Message<'a>, &'b Params<'a>);

/// Takes a request of the client.
pub(super) fn of_client(
    app: &mut AppServer,
    method: &str,
    id: Raw<'_>,
    (message, params): ClientRequest<'_, '_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let thread = params.thread_id.text();
    if let Some(id) = id {
        let thread = thread.as_deref().map(str::to_owned);
        app.requests.by_client.ask(id, (method.to_owned(), thread));
    }
    if FACTS.contains(&method) {
        app.fact(thread.as_deref(), method, message.params, emit);
        return RecordOutcome::Understood;
    }
    if !matches!(method, "turn/start" | "turn/steer") {
        return RecordOutcome::Bookkeeping;
    }
    let sent = params.input.map(prompt::sent).unwrap_or_default();
    let Some(thread) = thread.as_deref().filter(|_| !sent.blocks.is_empty()) else {
        return app.unknown(thread.as_deref(), &format!("request.{method}"), emit);
    };
    let is_odd = sent.is_odd;
    let is_new = app.get(thread).is_none();
    emit.set_user_text(&sent.text);
    let conversation = app.conversation(thread, emit);
    if method == "turn/start" {
        for (name, value) in [
            ("model", params.model),
            ("effort", params.effort),
            ("approval_policy", params.approval_policy),
            ("sandbox_policy", params.sandbox_policy),
            ("cwd", params.cwd),
        ] {
            conversation.settings.set(name, value);
        }
        conversation.thread.model = conversation.settings.get("model");
        conversation.send(id.map(|id| id.get().to_owned()), sent, Wait::new(None, emit));
    } else {
        conversation.steer(sent, emit);
    }
    let detail = message.params.map_or("null", RawValue::get);
    emit.entry_with(&conversation.thread.run, EntryType::UserMessage, None, detail);
    if method == "turn/start" {
        app.sent(thread, is_odd || is_new);
    }
    if is_odd {
        return app.unknown(Some(thread), &format!("request.{method}"), emit);
    }
    RecordOutcome::Understood
}

/// Takes the server's answer.
pub(super) fn answered_by_server(
    app: &mut AppServer,
    id: &RawValue,
    message: &Message<'_>,
    answer: &RpcReply<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let (method, thread) = match app.requests.by_client.answer(id) {
        AnswerMatch::One(asked) => asked,
        AnswerMatch::Again => return RecordOutcome::Bookkeeping,
        AnswerMatch::Nothing => (String::new(), None),
    };
    if let Some(error) = message.error {
        let error = message_of(Some(error)).unwrap_or_else(|| error.get().into());
        app.failed(thread.as_deref(), if method.is_empty() { "response" } else { &method }, &error, emit);
        if let Some(conversation) =
            thread.filter(|_| method == "turn/start").and_then(|thread| app.get(&thread))
        {
            conversation.refuse_turn(id.get(), error, emit);
        }
        return RecordOutcome::Understood;
    }
    match &*method {
        "initialize" => app.version = answer.user_agent.text().and_then(|agent| version_in(&agent)),
        "turn/start" | "review/start" => {
            let turn = answer.turn.and_then(|turn| turn.id.string());
            let is_odd = turn.is_none();
            if let Some(conversation) = thread.as_deref().and_then(|thread| app.get(thread)) {
                conversation.accept_turn(turn, emit);
            }
            if is_odd {
                return app.unknown(thread.as_deref(), &format!("response.{method}"), emit);
            }
        }
        "thread/start" | "thread/resume" | "thread/fork" => {
            if !announced(app, &method, answer, emit) {
                return app.unknown(thread.as_deref(), &format!("response.{method}"), emit);
            }
        }
        // Without the client's side of the connection, an answer that names a thread and its model is one of these.
        "" if answer.model.is_some() && announced(app, "", answer, emit) => {}
        "" if app.requests.by_client.is_empty() => return RecordOutcome::Bookkeeping,
        "" => return app.unknown(None, "response", emit),
        _ => return RecordOutcome::Bookkeeping,
    }
    RecordOutcome::Understood
}

/// Takes the answer that names the new thread; false if it names none.
fn announced(app: &mut AppServer, method: &str, answer: &RpcReply<'_>, emit: &mut Emit<'_>) -> bool {
    let thread = answer.thread.unwrap_or_default();
    let Some(id) = thread.id.text() else { return false };
    let has_history = method == "thread/resume" || thread.forked_from_id.json().is_some();
    app.appear(&id, &Appearance { thread, has_history, is_asked_for: true }, emit);
    let conversation = app.conversation(&id, emit);
    for (name, value) in [
        ("model", answer.model),
        ("effort", answer.effort),
        ("approval_policy", answer.approval_policy),
        ("sandbox_policy", answer.sandbox),
        ("cwd", answer.cwd),
    ] {
        conversation.settings.set(name, value);
    }
    conversation.thread.model = conversation.settings.get("model");
    true
}

/// Returns the version in `client/0.166.0 (system)`.
fn version_in(agent: &str) -> Option<JsonString> {
    let (_, rest) = agent.split_once('/')?;
    rest.split(' ').next().filter(|version| !version.is_empty()).map(JsonString::from)
}

/// Takes a request of the server.
pub(super) fn of_server(
    app: &mut AppServer,
    method: &str,
    id: &RawValue,
    (message, params): ClientRequest<'_, '_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let thread = params.thread_id.or(params.conversation_id).text();
    let what = what_of(method, params, thread.is_some());
    let Some(thread) = thread.filter(|_| !matches!(what, DecisionKind::Secret | DecisionKind::Unknown))
    else {
        let thread = params.thread_id.or(params.conversation_id).text().map(Cow::into_owned);
        let asked = OpenRequest { thread: thread.clone(), name: method.into(), call: None, what };
        app.requests.by_server.ask(id, asked);
        if what == DecisionKind::Secret {
            return RecordOutcome::Bookkeeping;
        }
        return app.unknown(thread.as_deref(), &format!("request.{method}"), emit);
    };
    let name = Some(id).string().unwrap_or_else(|| id.get().into());
    let detail = message.params.map_or("null", RawValue::get);
    let conversation = app.conversation(&thread, emit);
    let items = &mut conversation.thread;
    let mut call = params.item_id.or(params.call_id).string().or_else(|| open_mcp_call(items, params));
    match what {
        DecisionKind::Approval => {
            if let Some(call) = params.item_id.or(params.call_id).string() {
                items.call(&call, asked_call(method, params), Some(detail), emit);
            }
            emit.ask(&items.run, &name, call.as_ref());
            emit.entry_with(&items.run, EntryType::SystemEvent, Some("approval_requested"), detail);
        }
        DecisionKind::UserInput => {
            let mut payload = StepPayload::new(name.clone(), "user_input");
            payload.extra.push("request", message.params.json().unwrap_or_else(RawJson::null));
            emit.step_started(&items.run, &items.run.turns.path_of("user_input"), payload);
            emit.entry_with(&items.run, EntryType::SystemEvent, Some("user_input_requested"), detail);
        }
        DecisionKind::Tool => {
            let call = call.get_or_insert_with(|| name.clone());
            items.call(call, asked_call(method, params), Some(detail), emit);
        }
        DecisionKind::Unknown | DecisionKind::Secret => {}
    }
    let is_odd = !(is_text(params.item_id) && is_text(params.call_id) && is_text(params.tool));
    let asked = OpenRequest { thread: Some(thread.clone().into_owned()), name, call, what };
    app.requests.by_server.ask(id, asked);
    if is_odd {
        return app.unknown(Some(&thread), &format!("request.{method}"), emit);
    }
    RecordOutcome::Understood
}

/// Classifies a request of the server; without a thread it belongs to none.
fn what_of(method: &str, params: &Params<'_>, has_thread: bool) -> DecisionKind {
    match method {
        // Secrets of the account and attestations of the machine: never recorded.
        "account/chatgptAuthTokens/refresh" | "attestation/generate" => DecisionKind::Secret,
        _ if !has_thread => DecisionKind::Unknown,
        "item/commandExecution/requestApproval"
        | "item/fileChange/requestApproval"
        | "item/permissions/requestApproval"
        | "applyPatchApproval"
        | "execCommandApproval" => DecisionKind::Approval,
        "mcpServer/elicitation/request" if params.meta.is_some_and(|meta| meta.approval_kind.is_some()) => {
            DecisionKind::Approval
        }
        "mcpServer/elicitation/request" | "item/tool/requestUserInput" => DecisionKind::UserInput,
        "item/tool/call" => DecisionKind::Tool,
        _ => DecisionKind::Unknown,
    }
}

/// Returns the call that an elicitation asks approval for: the last open call of its server, because it does not name
/// the call.
fn open_mcp_call(thread: &super::thread::Thread, params: &Params<'_>) -> Option<JsonString> {
    let server = params.server_name.text()?;
    let prefix = format!("mcp__{server}__");
    thread.run.calls.last_open(|call| call.name.to_text().starts_with(&prefix)).map(|id| id.as_str().into())
}

/// Makes the call that a request is about, for one that comes before its item.
fn asked_call(method: &str, params: &Params<'_>) -> CallReport {
    match method {
        "item/fileChange/requestApproval" | "applyPatchApproval" => {
            let is_told = params.file_changes.is_some();
            let input = if is_told { settings(&[("changes", params.file_changes)]) } else { RawJson::null() };
            let mut call = CallReport::new("fileChange".into(), Class::FileChange, input);
            if !is_told {
                call.extra.push("input_available", RawJson::from(false));
            }
            call
        }
        "item/permissions/requestApproval" => {
            let input = settings(&[("permissions", params.permissions)]);
            CallReport::new("request_permissions".into(), Class::Other, input)
        }
        "item/tool/call" => {
            let input = params.arguments.map_or_else(RawJson::null, RawJson::from_raw);
            let name = params.tool.string().unwrap_or_else(|| "".into());
            let mut call = CallReport::new(name, Class::Other, input);
            crate::emit::push(&mut call.extra, "namespace", params.namespace.json());
            call
        }
        _ => {
            let input = settings(&[("command", params.command), ("cwd", params.cwd)]);
            CallReport::new("commandExecution".into(), Class::Command, input)
        }
    }
}

/// Takes the client's answer; only the first to a request counts.
pub(super) fn answered_by_client(
    app: &mut AppServer,
    id: &RawValue,
    message: &Message<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let asked = match app.requests.by_server.answer(id) {
        AnswerMatch::One(asked) => asked,
        AnswerMatch::Again => return RecordOutcome::Bookkeeping,
        AnswerMatch::Nothing => return app.unknown(None, "response", emit),
    };
    let answer = message.result.and_then(object::<RpcReply<'_>>).unwrap_or_default();
    let raw = message.result.or(message.error);
    let detail = raw.map_or("null", RawValue::get);
    if asked.what == DecisionKind::Unknown {
        return app.unknown(asked.thread.as_deref(), &format!("response.{}", asked.name.to_text()), emit);
    }
    let Some(conversation) = asked.thread.and_then(|thread| app.get(&thread)) else {
        return RecordOutcome::Bookkeeping;
    };
    let thread = &mut conversation.thread;
    match asked.what {
        DecisionKind::Approval => {
            let (decision, scope) = decision_of(&answer, message.error.is_some());
            if let Some(call) = asked.call.as_ref().filter(|_| decision != "allowed") {
                thread.declined.insert(call.to_text().into_owned());
            }
            let raw = answer.decision.json().or_else(|| answer.action.json()).or_else(|| raw.json());
            let what = Decision { verdict: decision, by: "host", scope, raw };
            emit.decide(&thread.run, &asked.name, asked.call.as_ref(), &what);
            emit.entry_with(&thread.run, EntryType::SystemEvent, Some("approval_resolved"), detail);
        }
        DecisionKind::UserInput => {
            let error =
                message.error.map(|error| message_of(Some(error)).unwrap_or_else(|| "refused".into()));
            let payload = StepPayload {
                result: message.result.json(),
                error,
                ..StepPayload::new(asked.name, "user_input")
            };
            emit.step_completed(&thread.run, &thread.run.turns.path_of("user_input"), payload);
            emit.entry_with(&thread.run, EntryType::SystemEvent, Some("user_input_resolved"), detail);
        }
        DecisionKind::Tool => {
            if let Some(call) = &asked.call {
                thread.answer(call, tool_answer(&answer, message), Some(detail), emit);
            }
        }
        DecisionKind::Unknown | DecisionKind::Secret => return RecordOutcome::Bookkeeping,
    }
    RecordOutcome::Understood
}

fn tool_answer(answer: &RpcReply<'_>, message: &Message<'_>) -> Answer {
    let is_ok = message.error.is_none() && answer.success.is_none_or(|raw| raw.get() == "true");
    let output = answer.content_items.json().or_else(|| message.result.json()).unwrap_or_else(RawJson::null);
    let mut result = Answer::new(output, if is_ok { Outcome::Ok } else { Outcome::Failed });
    if !is_ok {
        result.error = Some(message_of(message.error).unwrap_or_else(|| "the tool reported an error".into()));
    }
    result
}

/// Reads a decision and for how long it holds. A client that cannot answer has not allowed anything.
fn decision_of(answer: &RpcReply<'_>, is_error: bool) -> (&'static str, Option<&'static str>) {
    let word = answer.decision.or(answer.action).text();
    let wide = answer.decision.and_then(object::<WideDecision<'_>>).unwrap_or_default();
    let is_refusal =
        |network: NetworkDecision<'_>| network.amendment.is_some_and(|amendment| amendment.action.is("deny"));
    match word.as_deref() {
        _ if is_error => ("denied", None),
        Some("accept" | "approved") => ("allowed", Some(scope_of(answer))),
        Some("acceptForSession" | "approved_for_session") => ("allowed", Some("session")),
        Some(_) => ("denied", Some("once")),
        None if wide.network_policy.is_some_and(is_refusal) => ("denied", Some("always")),
        None if wide.network_policy.is_some()
            || wide.exec_policy.is_some()
            || wide.exec_policy_v1.is_some() =>
        {
            ("allowed", Some("always"))
        }
        None if answer.permissions.is_some() => ("allowed", Some(scope_of(answer))),
        None => ("denied", None),
    }
}

fn scope_of(answer: &RpcReply<'_>) -> &'static str {
    let persist = answer.meta.and_then(|meta| meta.persist).or(answer.scope).text();
    match persist.as_deref() {
        Some("session") => "session",
        Some("always") => "always",
        _ => "once",
    }
}

/// Takes the server's notice that a request is settled. Without a seen answer the decision is unknown.
pub(super) fn resolved(app: &mut AppServer, id: Raw<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let asked = id.map_or(AnswerMatch::Nothing, |id| app.requests.by_server.answer(id));
    let AnswerMatch::One(asked) = asked else { return RecordOutcome::Bookkeeping };
    let Some(conversation) = asked.thread.and_then(|thread| app.get(&thread)) else {
        return RecordOutcome::Bookkeeping;
    };
    let run = &conversation.thread.run;
    match asked.what {
        DecisionKind::Approval => {
            let what = Decision { verdict: "unknown", by: "unknown", scope: None, raw: None };
            emit.decide(run, &asked.name, asked.call.as_ref(), &what);
        }
        DecisionKind::UserInput => {
            let payload = StepPayload::new(asked.name, "user_input");
            emit.step_completed(run, &run.turns.path_of("user_input"), payload);
        }
        DecisionKind::Tool | DecisionKind::Unknown | DecisionKind::Secret => {
            return RecordOutcome::Bookkeeping;
        }
    }
    RecordOutcome::Understood
}
