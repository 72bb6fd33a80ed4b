//! The output of `codex exec --json` from 0.20 to 0.36: a header, the prompt, then events as `{id, msg}`.

use steno_model::json::{Extra, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity};

use super::events::{BOOKKEEPING, FACTS};
use super::exec::{Stream, error, unknown};
use super::items::{call_of_event, report_of_event};
use super::session::thinking_block;
use super::shapes::{is_odd_end, is_odd_usage};
use super::thread::Say;
use super::usage::{Growth, ResponseName, Start, Totals, fields, only_counts};
use super::wire::{ExecLine, Payload, TokenInfo};
use crate::adapter::RecordOutcome;
use crate::emit::{Emit, EndedBy, TurnEnd};
use crate::shapes::{is_text, words};
use crate::wire::{RawField as _, object};

/// Events that begin a call.
const BEGINNINGS: [&str; 4] =
    ["exec_command_begin", "patch_apply_begin", "mcp_tool_call_begin", "web_search_begin"];

/// The state of a stream of these versions.
pub(super) struct Legacy {
    /// The settings in the header.
    pub(super) settings: Option<RawJson>,
    /// Whether the prompt has already begun the turn that the next event announces.
    is_prompted: bool,
    totals: Totals,
    responses: u32,
}

impl Default for Legacy {
    fn default() -> Self {
        Self { settings: None, is_prompted: false, totals: Totals::new(Start::Zero), responses: 0 }
    }
}

/// Writes a line without a type.
pub(super) fn line(stream: &mut Stream, line: &ExecLine<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    if let Some(prompt) = line.prompt.string() {
        emit.begin_turn(&mut stream.thread.run, None, stream.legacy.settings.clone());
        emit.user(
            &stream.thread.run,
            vec![ContentBlock::text(Fidelity::AgentEmitted, prompt)],
            Extra::default(),
        );
        emit.entry(&stream.thread.run, EntryType::UserMessage, None);
        stream.legacy.is_prompted = true;
        return RecordOutcome::Understood;
    }
    let Some(event) = line.msg.and_then(object::<Payload<'_>>) else {
        return unknown(stream, "record", emit);
    };
    let kind = event.kind.text().unwrap_or_default();
    let mut is_odd = false;
    match &*kind {
        "task_started" | "turn_started" => {
            if !std::mem::take(&mut stream.legacy.is_prompted) {
                emit.begin_turn(&mut stream.thread.run, None, stream.legacy.settings.clone());
            }
        }
        "task_complete" | "turn_complete" => {
            let result = event.last_agent_message.json();
            let end = TurnEnd { result, ..TurnEnd::plain(EndedBy::Record) };
            emit.end_turn(&mut stream.thread.run, end);
        }
        "turn_aborted" => {
            let reason = words(event.reason).unwrap_or_else(|| "interrupted".into());
            emit.end_turn(&mut stream.thread.run, TurnEnd::failed(reason));
            emit.entry(&stream.thread.run, EntryType::SystemEvent, Some("interrupt"));
        }
        "agent_message" => {
            let text = event.message.string().unwrap_or_else(|| "".into());
            let say = Say::entry(EntryType::AssistantMessage, None);
            stream.thread.say(None, ContentBlock::text(Fidelity::AgentEmitted, text), say, emit);
            is_odd = !is_text(event.message);
        }
        "agent_reasoning" | "agent_reasoning_raw_content" => {
            let block = thinking_block(event.text.string().unwrap_or_else(|| "".into()));
            stream.thread.say(None, block, Say::entry(EntryType::Thinking, None), emit);
            is_odd = !is_text(event.text);
        }
        "token_count" => {
            token_count(stream, &event, line, emit);
            is_odd = is_odd_usage(event.info);
        }
        "error" | "stream_error" => {
            error(stream, &words(event.message).unwrap_or_else(|| "".into()).to_text(), emit);
        }
        _ if FACTS.contains(&&*kind) || kind == "plan_update" => {
            emit.system(&stream.thread.run, &kind, line.msg.json());
            emit.entry(&stream.thread.run, EntryType::SystemEvent, Some(&kind));
        }
        _ => return call(stream, &kind, &event, emit),
    }
    if is_odd { unknown(stream, &format!("event_msg.{kind}"), emit) } else { RecordOutcome::Understood }
}

fn call(stream: &mut Stream, kind: &str, event: &Payload<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let report = report_of_event(kind, event);
    let is_known = report.is_some() || BEGINNINGS.contains(&kind);
    let Some(id) = event.call_id.string().filter(|_| is_known) else {
        let is_bookkeeping = BOOKKEEPING.contains(&kind);
        return if is_bookkeeping {
            RecordOutcome::Bookkeeping
        } else {
            unknown(stream, &format!("event_msg.{kind}"), emit)
        };
    };
    stream.thread.call(&id, call_of_event(kind, event), None, emit);
    if let Some(report) = report {
        stream.thread.answer(&id, report.into_answer(RawJson::null()), None, emit);
    }
    if is_odd_end(kind, event) {
        return unknown(stream, &format!("event_msg.{kind}"), emit);
    }
    RecordOutcome::Understood
}

/// Writes the usage of a response: the count itself in 0.20, the growth of the total in later versions.
fn token_count(stream: &mut Stream, event: &Payload<'_>, line: &ExecLine<'_>, emit: &mut Emit<'_>) {
    let growth = match event.info.and_then(object::<TokenInfo<'_>>) {
        Some(info) => stream.legacy.totals.take(info.total, info.last),
        None => only_counts(line.msg).map_or(Growth::None, Growth::Exact),
    };
    let named = ResponseName::Number(stream.legacy.responses + 1, &stream.legacy.totals);
    if let Some(extra) = fields(growth, named, stream.thread.model.clone()) {
        stream.legacy.responses += 1;
        emit.assistant(&stream.thread.run, Vec::new(), extra);
        emit.entry(&stream.thread.run, EntryType::TokenUsage, None);
    }
}
