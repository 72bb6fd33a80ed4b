//! Events of rollouts: turns, totals, ends of calls, and the messages as the user sees them.
//!
//! The model's messages are here a second time, as the user saw them: each waits for its response item, and is written
//! if none comes.

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{EntryType, StepPayload};

use super::agents::{End, end_of, ended, is_spawn, receivers};
use super::items::{
    Kind, Tool, call_of, call_of_event, joined, kind_of, message_of, paragraphs, report_of, report_of_event,
    type_of,
};
use super::prompt::{self, UserMessage};
use super::session::Session;
use super::shapes::{are_states, are_texts, is_odd_end, is_odd_item, is_odd_usage};
use super::turn_ids::TurnChange;
use super::twins::{DisplayedText, Side, Words};
use super::waits::CallEnd;
use super::wire::{Item, Payload, RawLine};
use crate::adapter::RecordOutcome;
use crate::emit::Emit;
use crate::shapes::{is_list, is_text, words};
use crate::wire::{RawField as _, object, parse};

/// Events that response items repeat with more detail.
pub(super) const TWINS: [&str; 3] = ["agent_message", "agent_reasoning", "agent_reasoning_raw_content"];

/// Events without information about the work: progress that an end follows, and answers to the user interface.
pub(super) const BOOKKEEPING: [&str; 44] = [
    "agent_message_content_delta",
    "agent_message_delta",
    "agent_reasoning_delta",
    "agent_reasoning_raw_content_delta",
    "agent_reasoning_section_break",
    "apply_patch_approval_request",
    "background_event",
    "collab_agent_interaction_begin",
    "collab_agent_interaction_end",
    "collab_agent_spawn_begin",
    "collab_close_begin",
    "collab_resume_begin",
    "collab_resume_end",
    "collab_waiting_begin",
    "dynamic_tool_call_request",
    "exec_approval_request",
    "exec_command_begin",
    "exec_command_output_delta",
    "get_history_entry_response",
    "hook_started",
    "image_generation_begin",
    "item_started",
    "item_updated",
    "list_custom_prompts_response",
    "list_skills_response",
    "mcp_list_tools_response",
    "mcp_startup_complete",
    "mcp_startup_update",
    "mcp_tool_call_begin",
    "patch_apply_begin",
    "patch_apply_updated",
    "plan_delta",
    "raw_response_completed",
    "raw_response_item",
    "reasoning_content_delta",
    "reasoning_raw_content_delta",
    "request_permissions",
    "session_configured",
    "skills_update_available",
    "terminal_interaction",
    "thread_settings_applied",
    "turn_diff",
    "undo_started",
    "web_search_begin",
];

/// Events that are facts of the session; their type is the fact's name.
pub(super) const FACTS: [&str; 18] = [
    "deprecation_notice",
    "elicitation_request",
    "entered_review_mode",
    "exited_review_mode",
    "guardian_assessment",
    "guardian_warning",
    "hook_completed",
    "model_reroute",
    "model_verification",
    "plan_update",
    "request_user_input",
    "shutdown_complete",
    "sub_agent_activity",
    "thread_goal_cleared",
    "thread_goal_updated",
    "turn_moderation_metadata",
    "undo_completed",
    "warning",
];

/// Writes the events of an event record.
pub(super) fn event_msg(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let kind = event.kind.text().unwrap_or_default();
    let mut is_odd = false;
    match session.turn_ids.read(event, session.thread.as_deref()) {
        TurnChange::Begins => {
            session.announce_turn(event.turn_id.string(), emit);
            is_odd = !is_text(event.turn_id);
        }
        TurnChange::BeginsInChild => return RecordOutcome::Bookkeeping,
        TurnChange::BeginsUnannounced => session.begin_unannounced(event.turn_id.string().as_ref(), emit),
        TurnChange::Ends => turn_ended(session, &kind, event, emit),
        TurnChange::None => {}
    }
    match &*kind {
        "task_started" | "turn_started" | "task_complete" | "turn_complete" | "turn_aborted" => {}
        "user_message" => is_odd = user_message(session, event, emit),
        "token_count" => {
            let Some(info) = event.info.filter(|info| info.get() != "null") else {
                return RecordOutcome::Bookkeeping;
            };
            session.use_total(&object(info).unwrap_or_default(), emit);
            is_odd = is_odd_usage(event.info);
        }
        "item_completed" => return item_completed(session, event, emit),
        "context_compacted" => compacted(session, emit),
        "thread_rolled_back" => session.fact("rollback", event.num_turns.json(), emit),
        "thread_name_updated" => session.fact("title", event.thread_name.json(), emit),
        "error" => session.error("api", &words(event.message).unwrap_or_else(|| "".into()).to_text(), emit),
        "stream_error" => retry(session, event, emit),
        "collab_agent_spawn_end" | "collab_waiting_end" | "collab_close_end" => {
            is_odd = children(session, &kind, event, emit);
        }
        _ if TWINS.contains(&&*kind) => {
            let is_thought = kind != "agent_message";
            let (words, text) =
                if is_thought { (Words::Thought, event.text) } else { (Words::Text, event.message) };
            session.show(vec![shown(words, text.string())], emit);
            is_odd = !is_text(text);
        }
        _ if BOOKKEEPING.contains(&&*kind) => return RecordOutcome::Bookkeeping,
        _ if FACTS.contains(&&*kind) => fact(session, &kind, event, emit),
        _ => is_odd = !call_ended(session, &kind, event, emit),
    }
    if is_odd { session.unknown(&format!("event_msg.{kind}"), emit) } else { RecordOutcome::Understood }
}

fn shown(words: Words, text: Option<JsonString>) -> DisplayedText {
    DisplayedText { words, id: None, text: text.unwrap_or_else(|| "".into()) }
}

fn turn_ended(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) {
    if kind == "turn_aborted" {
        let reason = words(event.reason).unwrap_or_else(|| "interrupted".into());
        if !session.end_turn(Some(reason.clone()), None, emit) {
            emit.error(&session.run, kind, &reason.to_text());
        }
        return emit.entry(&session.run, EntryType::SystemEvent, Some("interrupt"));
    }
    let error = message_of(event.error);
    let is_ended = session.end_turn(error.clone(), event.last_agent_message.json(), emit);
    if let Some(error) = error {
        if !is_ended {
            // The start of the turn is missing, or another record has ended the turn.
            emit.error(&session.run, kind, &error.to_text());
        }
        emit.entry(&session.run, EntryType::Error, None);
    }
}

/// Writes a prompt as the user sees it; returns true if a value in it is of an unexpected kind.
fn user_message(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) -> bool {
    // Up to 0.4x Codex's own messages to the model were also shown to the user, and marked.
    if event.activity.text().is_some_and(|kind| kind != "plain") {
        return false;
    }
    let mut message = UserMessage::default();
    if let Some(text) = event.message.string().filter(|text| !text.is_empty()) {
        message.say(text);
    }
    for (label, images) in [("image", event.images), ("local_image", event.local_images)] {
        let images: Vec<&RawValue> =
            images.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        for image in images {
            message.mark(label, None, image.get().len(), true);
        }
    }
    let is_odd = !(is_text(event.message) && is_list(event.images) && is_list(event.local_images));
    if !is_odd || !message.blocks.is_empty() {
        session.prompt(Side::User, None, message, emit);
    }
    is_odd
}

fn item_completed(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let item = event.item.and_then(object::<Item<'_>>).unwrap_or_default();
    let spelled = type_of(&item);
    let is_odd = match kind_of(&spelled) {
        Kind::UserMessage => {
            let message = item.content.map(prompt::sent).unwrap_or_default();
            let is_odd = message.is_odd;
            if message.blocks.is_empty() && !is_odd {
                return RecordOutcome::Bookkeeping;
            }
            if !message.blocks.is_empty() {
                session.prompt(Side::User, item.id.json(), message, emit);
            }
            is_odd
        }
        Kind::AgentMessage => {
            let text = item.text.string().unwrap_or_else(|| joined(paragraphs(item.content), ""));
            session
                .show(vec![DisplayedText { id: item.id.string(), ..shown(Words::Text, Some(text)) }], emit);
            !(is_text(item.text) && are_texts(item.content))
        }
        Kind::Reasoning => {
            let texts = paragraphs(item.raw_content).into_iter().chain(paragraphs(item.summary_text));
            let thought = |text| DisplayedText { id: item.id.string(), ..shown(Words::Thought, Some(text)) };
            session.show(texts.map(thought).collect(), emit);
            !(are_texts(item.raw_content) && are_texts(item.summary_text))
        }
        Kind::Tool(Tool::Output) => return RecordOutcome::Understood,
        Kind::Tool(tool) => !tool_completed(session, &item, tool, emit),
        Kind::Compaction => {
            compacted(session, emit);
            false
        }
        Kind::SubagentActivity => {
            if let Some(thread) = item.agent_thread_id.text().filter(|_| item.activity.is("started")) {
                session.begin_child(&thread, None, emit);
            }
            session.fact("sub_agent_activity", event.item.json(), emit);
            false
        }
        Kind::Fact(name) => {
            session.fact(name, event.item.json(), emit);
            false
        }
        Kind::Warning => {
            session.fact("warning", item.message.json(), emit);
            false
        }
        Kind::Unknown => true,
    };
    if is_odd { session.unknown(&format!("item.{spelled}"), emit) } else { RecordOutcome::Understood }
}

/// Writes how the call of a tool ended; false if a value in the item is of an unexpected kind.
fn tool_completed(session: &mut Session, item: &Item<'_>, tool: Tool, emit: &mut Emit<'_>) -> bool {
    let Some(id) = item.id.string() else { return false };
    let is_collab = tool == Tool::Collab;
    let is_spawning = is_collab && item.tool.text().is_some_and(|tool| is_spawn(&tool));
    let made = if is_spawning { receivers(item) } else { Vec::new() };
    let done = if is_collab { ended(item.states()) } else { Vec::new() };
    let ended = CallEnd { id, report: report_of(item, tool), call: call_of(item, tool), made, done };
    session.report(ended, emit);
    !is_odd_item(item, tool)
}

/// Skips the notice of a compaction that a `compacted` record reported; some versions have only the notice.
fn compacted(session: &mut Session, emit: &mut Emit<'_>) {
    if session.compactions > 0 {
        session.compactions -= 1;
    } else {
        session.compaction(None, Extra::default(), emit);
    }
}

fn retry(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) {
    session.open_turn(emit);
    let error = words(event.message).or_else(|| Some("stream error".into()));
    let payload = StepPayload { error, ..StepPayload::new("api", "retry") };
    emit.step_completed(&session.run, &session.run.turns.path(), payload);
    emit.entry(&session.run, EntryType::Error, None);
}

/// Writes how subagents began and ended, from events before there were items; other events are facts. Returns true if a
/// value is of an unexpected kind.
fn children(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) -> bool {
    let before = session.children.written();
    if let Some(thread) = event.new_thread_id.text() {
        session.begin_child(&thread, event.call_id.text().as_deref(), emit);
    }
    session.end_children(ended(event.statuses), emit);
    let closed: Option<End> = event.status.and_then(end_of);
    if let Some((thread, end)) = event.receiver_thread_id.text().zip(closed) {
        session.end_children(vec![(thread.into_owned(), end)], emit);
    }
    if session.children.written() == before {
        fact(session, kind, event, emit);
    }
    !are_states(event.statuses)
}

fn fact(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) {
    if let Some(thread) = event.agent_thread_id.text().filter(|_| event.activity.is("started")) {
        session.begin_child(&thread, None, emit);
    }
    let record = emit.record();
    let payload = parse::<RawLine<'_>>(record.as_str()).ok().and_then(|line| line.payload.json());
    session.fact(kind, payload, emit);
}

/// Writes how a call ended; false if the event is not the end of a call, or a value in it is of an unexpected kind.
fn call_ended(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) -> bool {
    let report = report_of_event(kind, event);
    let (Some(id), Some(report)) = (event.call_id.string(), report) else { return false };
    if kind == "web_search_end" && session.run.calls.get(&id.to_text()).is_none() {
        session.searches += 1;
    }
    let (call, made, done) = (call_of_event(kind, event), Vec::new(), Vec::new());
    session.report(CallEnd { id, report, call, made, done }, emit);
    !is_odd_end(kind, event)
}

/// Makes the settings of a turn from the fields that are present.
pub(super) fn settings(pairs: &[(&str, crate::wire::Raw<'_>)]) -> RawJson {
    RawJson::object(|object| {
        for (name, value) in pairs {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
    })
}
