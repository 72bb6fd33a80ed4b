//! Notices of the app-server to its client: turns, items, totals, and other facts.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::agents::{is_spawn, receivers};
use super::app_server::{AppServer, Appearance};
use super::items::{Kind, Tool, kind_of, message_of, type_of};
use super::prompt;
use super::shapes::{has_counts, is_odd_item};
use super::thread::ToolItem;
use super::wire::{Item, Message, Params, ThreadUsage, Turn};
use crate::adapter::RecordOutcome;
use crate::emit::Emit;
use crate::shapes::{is_text, words};
use crate::wire::{Raw, RawField as _, object};

/// Notices without information about the work: deltas, states of the user interface, accounts.
pub(super) const BOOKKEEPING: [&str; 50] = [
    "account/gatewayOAuth/changed",
    "account/login/completed",
    "account/rateLimits/updated",
    "account/updated",
    "app/list/updated",
    "authStatusChange",
    "command/exec/outputDelta",
    "externalAgentConfig/import/completed",
    "externalAgentConfig/import/progress",
    "fs/changed",
    "fuzzyFileSearch/sessionCompleted",
    "fuzzyFileSearch/sessionUpdated",
    "hook/started",
    "item/agentMessage/delta",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "item/updated",
    "loginChatGptComplete",
    "mcpServer/event/stream/notification",
    "mcpServer/oauthLogin/completed",
    "model/safetyBuffering/updated",
    "model/verification",
    "process/outputDelta",
    "project/changed",
    "rawResponseItem/completed",
    "remoteControl/status/changed",
    "sessionConfigured",
    "skills/changed",
    "thread/attachment/updated",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/prediction/updated",
    "thread/project/updated",
    "thread/queue/changed",
    "thread/readState/changed",
    "thread/realtime/item/transcript/delta",
    "thread/realtime/outputAudio/delta",
    "thread/realtime/sdp",
    "thread/realtime/transcript/delta",
    "thread/status/changed",
    "turn/diff/updated",
    "windows/worldWritableWarning",
    "windowsSandbox/setupCompleted",
];

/// Notices that are facts of the session; their method is the fact's name.
pub(super) const FACTS: [&str; 30] = [
    "autoApprovalReview/strictReviewRequired",
    "configWarning",
    "deprecationNotice",
    "guardianWarning",
    "hook/completed",
    "item/autoApprovalReview/completed",
    "item/commandExecution/terminalInteraction",
    "mcpServer/startupStatus/updated",
    "model/rerouted",
    "modelProvider/authRecoveryCompleted",
    "modelProvider/authRecoveryStarted",
    "process/exited",
    "thread/archived",
    "thread/closed",
    "thread/deleted",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/realtime/closed",
    "thread/realtime/error",
    "thread/realtime/item/completed",
    "thread/realtime/item/started",
    "thread/realtime/itemAdded",
    "thread/realtime/started",
    "thread/realtime/transcript/done",
    "thread/reverted",
    "thread/unarchived",
    "turn/moderationMetadata",
    "turn/plan/updated",
    "warning",
];

/// Notes of our recorder: messages that it could not write, and how the server's process ended.
const MISSING: &str = "steno/missing";
pub(super) const ENDED: &str = "steno/ended";

/// Writes a note of our recorder.
pub(super) fn of_recorder(
    app: &mut AppServer,
    method: &str,
    params: Raw<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    match method {
        MISSING => {
            app.fact(None, method, params, emit);
            RecordOutcome::Understood
        }
        ENDED => app.end_runs(params, emit),
        _ => app.unknown(None, method, emit),
    }
}

/// Returns the entry type of a notice: `item/` and `turn/` notices without a type of their own are unknown (R23).
pub(super) fn entry_of(method: &str) -> (EntryType, Option<&str>) {
    if method.starts_with("item/") || method.starts_with("turn/") {
        (EntryType::Unknown, None)
    } else {
        (EntryType::SystemEvent, Some(method))
    }
}

/// Writes the events of a notice.
pub(super) fn notice(
    app: &mut AppServer,
    method: &str,
    message: &Message<'_>,
    params: &Params<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let owner = params.thread_id.or(params.conversation_id).text();
    let detail = message.params.map_or("null", RawValue::get);
    if emit.wants_entries() && method.starts_with("item/") && params.item_id.is_some() {
        app.deltas.take(method, params);
    }
    // Notices of the first protocol repeat the current ones.
    if BOOKKEEPING.contains(&method) || (method.starts_with("codex/event") && app.has_threads()) {
        return RecordOutcome::Bookkeeping;
    }
    if FACTS.contains(&method) {
        app.fact(owner.as_deref(), method, message.params, emit);
        return RecordOutcome::Understood;
    }
    if method == "thread/started" {
        let thread = params.thread.unwrap_or_default();
        let Some(id) = thread.id.text() else { return app.unknown(None, method, emit) };
        let has_history = thread.forked_from_id.json().is_some();
        app.appear(&id, &Appearance { thread, has_history, is_asked_for: false }, emit);
        return RecordOutcome::Understood;
    }
    let Some(owner) = owner else { return app.unknown(None, method, emit) };
    let mut is_odd = false;
    match method {
        "turn/started" => {
            let turn: Turn<'_> = params.turn.and_then(object).unwrap_or_default();
            let conversation = app.conversation(&owner, emit);
            conversation.begin_turn(turn.id.string(), emit);
            emit.entry_with(&conversation.thread.run, EntryType::Unknown, None, detail);
            is_odd = turn.id.string().is_none();
        }
        "turn/completed" => is_odd = !turn_completed(app, &owner, params, detail, emit),
        "item/started" | "item/completed" => return item(app, &owner, method, (params, detail), emit),
        // Not in the current protocol; it means the same as an item (R19).
        "item/reasoning/completed" => {
            let item =
                params.item.unwrap_or(Item { id: params.item_id, text: params.item_text, ..Item::default() });
            is_odd = !thought(app, &owner, &item, detail, emit);
        }
        "thread/tokenUsage/updated" => {
            let conversation = app.conversation(&owner, emit);
            let usage: ThreadUsage<'_> = params.token_usage.and_then(object).unwrap_or_default();
            conversation.use_total(&usage, emit);
            emit.entry_with(&conversation.thread.run, EntryType::TokenUsage, None, detail);
            is_odd = params.token_usage.json().is_some() && !has_counts(usage.total);
        }
        "rawResponse/completed" => {
            let Some((response, usage)) = params.response_id.json().zip(params.usage.json()) else {
                return RecordOutcome::Bookkeeping;
            };
            app.conversation(&owner, emit).use_exactly(response, usage, emit);
        }
        "thread/compacted" => app.conversation(&owner, emit).compacted(detail, emit),
        "thread/settings/updated" => {
            let settings = params.settings.unwrap_or_default();
            let conversation = app.conversation(&owner, emit);
            conversation.settings.set("model", settings.model);
            conversation.settings.set("effort", settings.effort);
            conversation.settings.set("approval_policy", settings.approval_policy);
            conversation.settings.set("sandbox_policy", settings.sandbox_policy);
            conversation.settings.set("cwd", settings.cwd);
            conversation.thread.model = conversation.settings.get("model");
        }
        "serverRequest/resolved" => return super::app_requests::resolved(app, params.request_id, emit),
        "error" => error(app, &owner, params, detail, emit),
        _ => is_odd = true,
    }
    if is_odd { app.unknown(Some(&owner), method, emit) } else { RecordOutcome::Understood }
}

/// Ends a turn; false if the notice does not have its id and outcome.
fn turn_completed(
    app: &mut AppServer,
    owner: &str,
    params: &Params<'_>,
    detail: &str,
    emit: &mut Emit<'_>,
) -> bool {
    let turn: Turn<'_> = params.turn.and_then(object).unwrap_or_default();
    let id = turn.id.string();
    let status = turn.status.text();
    let failure = || message_of(turn.error);
    let (error, entry_type, subtype) = match status.as_deref() {
        Some("failed") => (Some(failure().unwrap_or_else(|| "failed".into())), EntryType::Error, None),
        Some("interrupted") => (Some("interrupted".into()), EntryType::SystemEvent, Some("interrupt")),
        _ => (failure(), EntryType::Unknown, None),
    };
    let unsaid = app.deltas.end_turn(owner);
    let conversation = app.conversation(owner, emit);
    for (entry_type, text) in unsaid {
        // The user has seen this incomplete text, so it gets an entry.
        emit.set_accumulated(Some(text));
        emit.entry_with(&conversation.thread.run, entry_type, None, detail);
        emit.set_accumulated(None);
    }
    if !conversation.end_turn(id.as_ref(), error, emit) {
        emit.system(&conversation.thread.run, "turn/completed", RawJson::parse(detail).ok());
    }
    emit.entry_with(&conversation.thread.run, entry_type, subtype, detail);
    let is_known = |status: &str| ["completed", "failed", "inProgress", "interrupted"].contains(&status);
    id.is_some() && is_text(turn.status) && status.as_deref().is_none_or(is_known)
}

fn item(
    app: &mut AppServer,
    owner: &str,
    method: &str,
    (params, detail): (&Params<'_>, &str),
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let Some(item) = &params.item else { return app.unknown(Some(owner), method, emit) };
    let is_completed = method == "item/completed";
    let spelled = type_of(item);
    let mut is_odd = false;
    if let Some(thread) = started_agent(item) {
        // The subagent may write before the item is complete.
        app.parents.insert(thread.into_owned(), owner.to_owned());
    }
    if is_completed && let Some(text) = app.deltas.complete(owner, item) {
        emit.set_accumulated(Some(text));
    }
    match kind_of(&spelled) {
        Kind::Tool(tool) => is_odd = !tool_item(app, owner, (item, tool, is_completed), detail, emit),
        Kind::Compaction if is_completed => app.conversation(owner, emit).end_compaction(detail, emit),
        Kind::Compaction => app.conversation(owner, emit).begin_compaction(emit),
        Kind::Unknown => is_odd = true,
        // The completed item has the whole text.
        _ if !is_completed => {}
        Kind::UserMessage => {
            let message = item.content.map(prompt::sent).unwrap_or_default();
            let conversation = app.conversation(owner, emit);
            is_odd = message.is_odd;
            if message.blocks.is_empty() && !is_odd {
                return RecordOutcome::Bookkeeping;
            }
            if !message.blocks.is_empty() && conversation.echo(item.id.json(), message, emit) {
                emit.entry_with(&conversation.thread.run, EntryType::UserMessage, None, detail);
            }
        }
        Kind::AgentMessage => {
            is_odd = !app.conversation(owner, emit).thread.write_text(item, false, Some(detail), emit);
        }
        Kind::Reasoning => is_odd = !thought(app, owner, item, detail, emit),
        Kind::SubagentActivity => {
            let conversation = app.conversation(owner, emit);
            if let Some(thread) = started_agent(item) {
                conversation.thread.begin_child(&thread, None, emit);
            }
            emit.system(&conversation.thread.run, "sub_agent_activity", RawJson::parse(detail).ok());
            emit.entry_with(&conversation.thread.run, EntryType::Unknown, None, detail);
        }
        Kind::Fact(name) => said_fact(app, owner, name, detail, emit),
        Kind::Warning => said_fact(app, owner, "warning", detail, emit),
    }
    if is_odd {
        app.unknown(Some(owner), &format!("item.{spelled}"), emit)
    } else {
        RecordOutcome::Understood
    }
}

/// Returns the subagent that an item says was started.
fn started_agent<'a>(item: &Item<'a>) -> Option<Cow<'a, str>> {
    item.agent_thread_id_camel.text().filter(|_| item.activity.is("started"))
}

fn said_fact(app: &mut AppServer, owner: &str, name: &str, detail: &str, emit: &mut Emit<'_>) {
    let run = &app.conversation(owner, emit).thread.run;
    emit.system(run, name, RawJson::parse(detail).ok());
    emit.entry_with(run, EntryType::Unknown, None, detail);
}

/// Writes a thought, once; false if a field is of an unexpected kind.
fn thought(app: &mut AppServer, owner: &str, item: &Item<'_>, detail: &str, emit: &mut Emit<'_>) -> bool {
    let conversation = app.conversation(owner, emit);
    let text = words(item.text.or(item.content)).or_else(|| words(item.summary)).unwrap_or_else(|| "".into());
    let mut is_new = |id: &str| conversation.thoughts.insert((id.to_owned(), text.to_text().into_owned()));
    let is_new = item.id.text().is_none_or(|id| is_new(&id));
    !is_new || conversation.thread.write_text(item, true, Some(detail), emit)
}

/// Writes a tool's item; false if a field is of an unexpected kind.
fn tool_item(
    app: &mut AppServer,
    owner: &str,
    (item, tool, is_completed): (&Item<'_>, Tool, bool),
    detail: &str,
    emit: &mut Emit<'_>,
) -> bool {
    let Some(id) = item.id.string() else { return false };
    let is_spawning = tool == Tool::Collab && item.tool.text().is_some_and(|tool| is_spawn(&tool));
    if is_spawning {
        // Threads may write before the call that created them names them.
        app.spawning.retain(|thread| thread != owner);
        if !is_completed {
            app.spawning.push(owner.to_owned());
        }
        for thread in receivers(item) {
            app.parents.insert(thread, owner.to_owned());
        }
    }
    let tool_item = ToolItem { id: &id, item, tool, detail: Some(detail) };
    let conversation = app.conversation(owner, emit);
    let is_its = if is_completed {
        conversation.thread.complete(&tool_item, emit)
    } else {
        conversation.thread.start(&tool_item, emit)
    };
    is_its && !is_odd_item(item, tool)
}

/// Writes an error or a retry.
fn error(app: &mut AppServer, owner: &str, params: &Params<'_>, detail: &str, emit: &mut Emit<'_>) {
    let text = message_of(params.error).unwrap_or_else(|| "error".into());
    let run = &app.conversation(owner, emit).thread.run;
    if params.will_retry.is_true() {
        let result = RawJson::object(|object| retry_count(&text, object));
        let payload =
            StepPayload { error: Some(text), result: Some(result), ..StepPayload::new("api", "retry") };
        emit.step_completed(run, &run.turns.path(), payload);
    } else {
        emit.error(run, "api", &text.to_text());
    }
    emit.entry_with(run, EntryType::Error, None, detail);
}

/// Writes the number of attempts if the text has it: `Reconnecting... 1/5`.
fn retry_count(text: &JsonString, object: &mut ObjectWriter<'_>) {
    let text = text.to_text();
    let counts =
        text.strip_prefix("Reconnecting... ").and_then(|rest| rest.split(' ').next()?.split_once('/'));
    if let Some((attempt, max)) = counts {
        for (name, count) in [("attempt", attempt), ("max", max)] {
            if let Ok(count) = count.parse() {
                object.number(name, count);
            }
        }
    }
}
