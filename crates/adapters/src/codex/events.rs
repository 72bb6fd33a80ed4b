//! Rollouts' events: turns, totals, how calls ended, and the session as the user sees it.
//!
//! What the model said is here a second time and passed over; the response items have it.

use serde_json::value::RawValue;
use steno_model::json::{Extra, JsonString, ObjectWriter, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity, StepPayload};

use super::agents::{End, end_of, ended, is_spawn, receivers};
use super::items::{
    Kind, Tool, call_of, call_of_event, joined, kind_of, message_of, paragraphs, report_of, report_of_event,
    type_of,
};
use super::prompt::{self, UserMessage};
use super::session::Session;
use super::twins::{Shown, Side, Words};
use super::wire::{Item, Payload, RareLine};
use crate::adapter::Read;
use crate::emit::{Emit, string};
use crate::wire::{RawField as _, object, parse};

/// What response items say too, and better.
pub(super) const TWINS: [&str; 4] =
    ["agent_message", "agent_reasoning", "agent_reasoning_raw_content", "image_generation_end"];

/// Events that say nothing of the work: progress that an end follows, and answers to the user interface.
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

/// Writes what an event says.
pub(super) fn event_msg(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) -> Read {
    let kind = event.kind.text().unwrap_or_default();
    match &*kind {
        "task_started" | "turn_started" => session.announce_turn(event.turn_id.string(), emit),
        "task_complete" | "turn_complete" | "turn_aborted" => turn_ended(session, &kind, event, emit),
        "user_message" => user_message(session, event, emit),
        "token_count" => {
            if let Some(info) = &event.info {
                session.use_total(info, emit);
            }
        }
        "item_completed" => return item_completed(session, event, emit),
        "context_compacted" => compacted(session, emit),
        "thread_rolled_back" => session.fact("rollback", event.num_turns.json(), emit),
        "thread_name_updated" => session.fact("title", event.thread_name.json(), emit),
        "error" => session.error("api", &event.message.text().unwrap_or_default(), emit),
        "stream_error" => retry(session, event, emit),
        "collab_agent_spawn_end" | "collab_waiting_end" | "collab_close_end" => {
            children(session, event, emit);
        }
        "agent_message" => session.twins.show(shown(Words::Text, event.message.string())),
        "agent_reasoning" | "agent_reasoning_raw_content" => {
            session.twins.show(shown(Words::Thought, event.text.string()));
        }
        _ if TWINS.contains(&&*kind) => {}
        _ if BOOKKEEPING.contains(&&*kind) => return Read::Bookkeeping,
        _ if FACTS.contains(&&*kind) => fact(session, &kind, event, emit),
        _ => return call_ended(session, &kind, event, emit),
    }
    Read::Understood
}

fn shown(words: Words, text: Option<JsonString>) -> Shown {
    Shown { words, id: None, text: text.unwrap_or_else(|| "".into()) }
}

fn turn_ended(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) {
    if kind == "turn_aborted" {
        let reason = event.reason.string().unwrap_or_else(|| "interrupted".into());
        session.end_turn(Some(reason), None, emit);
        return emit.entry(&session.run, EntryType::SystemEvent, Some("interrupt"));
    }
    let error = message_of(event.error);
    let is_failed = error.is_some();
    session.end_turn(error, event.last_agent_message.json(), emit);
    if is_failed {
        emit.entry(&session.run, EntryType::Error, None);
    }
}

fn user_message(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) {
    // Up to 0.4x Codex's own messages to the model were told to the user too, and named as such.
    if event.activity.text().is_some_and(|kind| kind != "plain") {
        return;
    }
    let mut message = UserMessage::default();
    if let Some(text) = event.message.string().filter(|text| !text.is_empty()) {
        message.say(text);
    }
    for (label, images) in [("image", event.images), ("local_image", event.local_images)] {
        let images: Vec<&RawValue> =
            images.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        for image in images {
            let mut mark = ContentBlock::text(Fidelity::AgentEmitted, "");
            mark.extra.push("label", string(label));
            mark.extra.push("size_bytes", RawJson::from(image.get().len() as u64));
            message.blocks.push(mark);
        }
    }
    session.prompt(Side::User, None, message, emit);
}

fn item_completed(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) -> Read {
    let item = event.item.and_then(object::<Item<'_>>).unwrap_or_default();
    let spelled = type_of(&item);
    match kind_of(&spelled) {
        Kind::UserMessage => {
            let message = item.content.map(prompt::sent).unwrap_or_default();
            if !message.blocks.is_empty() {
                session.prompt(Side::User, item.id.json(), message, emit);
            }
        }
        Kind::AgentMessage => {
            let text = item.text.string().unwrap_or_else(|| joined(paragraphs(item.content), ""));
            session.twins.show(Shown { id: item.id.string(), ..shown(Words::Text, Some(text)) });
        }
        Kind::Reasoning => {
            for text in paragraphs(item.raw_content).into_iter().chain(paragraphs(item.summary_text)) {
                session.twins.show(Shown { id: item.id.string(), ..shown(Words::Thought, Some(text)) });
            }
        }
        Kind::Tool(Tool::Output) => {}
        Kind::Tool(tool) => tool_completed(session, &item, tool, emit),
        Kind::Compaction => compacted(session, emit),
        Kind::SubagentActivity => {
            if let Some(thread) = item.agent_thread_id.text().filter(|_| item.activity.is("started")) {
                session.begin_child(&thread, None, emit);
            }
            session.fact("sub_agent_activity", event.item.json(), emit);
        }
        Kind::Fact(name) => session.fact(name, event.item.json(), emit),
        Kind::Warning => session.fact("warning", item.message.json(), emit),
        Kind::Unknown => {
            let name = format!("item.{spelled}");
            emit.unknown(&session.run, &name, None);
            emit.entry(&session.run, EntryType::Unknown, None);
            return Read::Unknown(name);
        }
    }
    Read::Understood
}

fn tool_completed(session: &mut Session, item: &Item<'_>, tool: Tool, emit: &mut Emit<'_>) {
    let Some(id) = item.id.string() else {
        emit.unknown(&session.run, "item", None);
        return emit.entry(&session.run, EntryType::Unknown, None);
    };
    session.report(&id, report_of(item, tool), call_of(item, tool), emit);
    if tool == Tool::Collab {
        if item.tool.text().is_some_and(|tool| is_spawn(&tool)) {
            for thread in receivers(item) {
                session.begin_child(&thread, Some(&id.to_text()), emit);
            }
        }
        session.end_children(ended(item.states()), emit);
    }
}

/// What `compacted` told already, unless a version leaves it out.
fn compacted(session: &mut Session, emit: &mut Emit<'_>) {
    if session.compactions > 0 {
        session.compactions -= 1;
    } else {
        session.compaction(None, Extra::default(), emit);
    }
}

fn retry(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) {
    session.open_turn(emit);
    let error = event.message.string().or_else(|| Some("stream error".into()));
    let payload = StepPayload { error, ..StepPayload::new("api", "retry") };
    emit.step_completed(&session.run, &session.run.turns.path(), payload);
    emit.entry(&session.run, EntryType::Error, None);
}

/// How subagents began and ended before there were items.
fn children(session: &mut Session, event: &Payload<'_>, emit: &mut Emit<'_>) {
    if let Some(thread) = event.new_thread_id.text() {
        session.begin_child(&thread, event.call_id.text().as_deref(), emit);
    }
    session.end_children(ended(event.statuses), emit);
    let closed: Option<End> = event.status.and_then(end_of);
    if let Some((thread, end)) = event.receiver_thread_id.text().zip(closed) {
        session.end_children(vec![(thread.into_owned(), end)], emit);
    }
}

fn fact(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) {
    if let Some(thread) = event.agent_thread_id.text().filter(|_| event.activity.is("started")) {
        session.begin_child(&thread, None, emit);
    }
    let record = emit.record();
    let told = parse::<RareLine<'_>>(record.as_str()).ok().and_then(|line| line.payload.json());
    session.fact(kind, told, emit);
}

fn call_ended(session: &mut Session, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) -> Read {
    let report = report_of_event(kind, event);
    let (Some(id), Some(report)) = (event.call_id.string(), report) else {
        let name = format!("event_msg.{kind}");
        emit.unknown(&session.run, &name, None);
        emit.entry(&session.run, EntryType::Unknown, None);
        return Read::Unknown(name);
    };
    if kind == "web_search_end" && session.run.calls.get(&id.to_text()).is_none() {
        session.searches += 1;
    }
    session.report(&id, report, call_of_event(kind, event), emit);
    Read::Understood
}

/// Makes what a turn's settings are, of the fields that are there.
pub(super) fn settings(pairs: &[(&str, crate::wire::Raw<'_>)]) -> RawJson {
    RawJson::object(|object| {
        for (name, value) in pairs {
            object.optional(name, value.json().as_ref(), ObjectWriter::json);
        }
    })
}
