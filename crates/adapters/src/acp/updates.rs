//! Updates of a session.

use steno_model::EntryType;
use steno_model::json::RawJson;

use super::connection::Connection;
use super::session::Speaker;
use super::wire::{Params, Update};
use crate::adapter::RecordOutcome;
use crate::emit::Emit;
use crate::wire::{RawField as _, WireObject as _, object};

/// Updates without information about the work: the output of a terminal, which its call has too.
pub(super) const BOOKKEEPING: [&str; 2] = ["terminal_output_chunk", "terminal_update"];

/// Updates that are facts; the kind is the fact's name.
pub(super) const FACTS: [&str; 9] = [
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "notice",
    "plan",
    "plan_removed",
    "plan_update",
    "session_info_update",
    "usage_update",
];

/// Updates that are parts of a message.
const CHUNKS: [(&str, Speaker); 3] = [
    ("agent_message_chunk", Speaker::Agent),
    ("agent_thought_chunk", Speaker::Thought),
    ("user_message_chunk", Speaker::User),
];

/// Updates that are whole messages.
const MESSAGES: [(&str, Speaker); 3] =
    [("agent_message", Speaker::Agent), ("agent_thought", Speaker::Thought), ("user_message", Speaker::User)];

/// Tells whether an update is a part of something that comes whole, or that is recorded with its last part.
pub(super) fn is_delta(update: &Update<'_>) -> bool {
    let kind = update.kind.text().unwrap_or_default();
    kind.ends_with("_chunk")
}

/// Writes the events of an update.
pub(super) fn update(connection: &mut Connection, params: &Params<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let read = params.update.and_then(|raw| Some((raw, object::<Update<'_>>(raw)?)));
    let Some((id, (raw, update))) = params.session.text().zip(read) else {
        return connection.unknown(None, "session/update", emit);
    };
    let (detail, kind) = (raw.get(), update.kind.text().unwrap_or_default());
    if connection.is_loading(&id) {
        // The agent repeats what the session has.
        return RecordOutcome::Bookkeeping;
    }
    let place = connection.session(&id, emit);
    let is_one_sided = connection.is_one_sided();
    let session = &mut connection.sessions[place];
    let find = |kinds: &[(&str, Speaker)]| kinds.iter().find(|(name, _)| *name == kind).map(|(_, who)| *who);
    let is_work = find(&CHUNKS).is_some() || find(&MESSAGES).is_some() || kind.starts_with("tool_call");
    if is_one_sided && is_work {
        session.begin_unasked_turn(emit);
    }
    let is_read = match &*kind {
        _ if FACTS.contains(&&*kind) => {
            emit.system(&session.run, &kind, Some(RawJson::from_raw(raw)));
            let entry_type =
                if kind == "usage_update" { EntryType::TokenUsage } else { EntryType::SystemEvent };
            emit.entry_with(&session.run, entry_type, Some(&kind), detail);
            true
        }
        _ if BOOKKEEPING.contains(&&*kind) => return RecordOutcome::Bookkeeping,
        "tool_call" | "tool_call_update" => session.call(&update, detail, emit),
        "tool_call_content_chunk" => session.add_content(&update),
        "compaction_summary_chunk" => {
            session.summarise(update.content);
            true
        }
        "compaction_update" => {
            session.compact(&update, emit);
            emit.entry_with(&session.run, EntryType::SystemEvent, Some("compaction"), detail);
            true
        }
        "state_update" => {
            if let Some(reason) = update.stop_reason.text() {
                session.end_turn(&reason, emit);
            } else {
                emit.system(&session.run, &kind, Some(RawJson::from_raw(raw)));
            }
            emit.entry_with(&session.run, EntryType::SystemEvent, Some(&kind), detail);
            true
        }
        _ => match (find(&CHUNKS), find(&MESSAGES)) {
            (Some(speaker), _) => session.chunk(speaker, &update, emit),
            (None, Some(speaker)) => session.message(speaker, &update, emit),
            (None, None) => false,
        },
    };
    if is_read && !update.is_odd() {
        return RecordOutcome::Understood;
    }
    connection.unknown(Some(&id), &format!("update.{kind}"), emit)
}
