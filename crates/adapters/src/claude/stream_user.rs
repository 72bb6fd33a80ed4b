//! The user's side of a stream: prompts that are sent, results and notices that are printed.

use std::collections::HashMap;

use steno_model::json::{Extra, RawJson};
use steno_model::{ContentBlock, EntryType};

use super::content::Content;
use super::frames::{ResultMeta, StreamFrame};
use super::prompt::{self, Kind};
use super::results::{ResultContext, ResultOutcome};
use super::shapes::{is_odd_meta, is_odd_report};
use super::stream::Stream;
use super::{facts, user};
use crate::adapter::RecordOutcome;
use crate::emit::{Emit, push};
use crate::wire::{RawField as _, objects};

/// Commands that Claude Code runs itself when they are sent as prompts.
const LOCAL_COMMANDS: [&str; 4] = ["/clear", "/compact", "/context", "/cost"];

/// Writes a message that was sent.
pub(super) fn sent(stream: &mut Stream, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let Some(content) = content_of(frame) else { return stream.unknown("user", emit) };
    let outcome = results(stream, frame, &content, emit);
    if content.other_blocks().is_empty() {
        return understood(stream, &content, outcome, emit);
    }
    let (text, open) = (content.text(), stream.turns.open_len());
    if stream.sent.send(frame.uuid.text().as_deref(), &text, open) {
        sent_words(stream, frame, &text, content.other_blocks(), emit);
    } else if outcome == ResultOutcome::Again {
        return RecordOutcome::Bookkeeping;
    }
    understood(stream, &content, outcome, emit)
}

/// Returns how much of a message was understood.
fn understood(
    stream: &Stream,
    content: &Content<'_>,
    outcome: ResultOutcome,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    match (content.odd(), outcome) {
        (Some(name), _) => stream.unknown(&name, emit),
        (None, ResultOutcome::Odd) => stream.unknown("block.tool_result", emit),
        (None, ResultOutcome::Again) if content.other_blocks().is_empty() => RecordOutcome::Bookkeeping,
        (None, ResultOutcome::Again | ResultOutcome::News) => RecordOutcome::Understood,
    }
}

/// Writes a prompt or a command.
fn sent_words(
    stream: &mut Stream,
    frame: &StreamFrame<'_>,
    text: &str,
    blocks: Vec<ContentBlock>,
    emit: &mut Emit<'_>,
) {
    let run = &mut stream.agents[stream.main].run;
    if is_local_command(text) {
        return user::notice(run, "local_command", text, emit);
    }
    let mut extra = Extra::default();
    push(&mut extra, "id", frame.uuid.json());
    if stream.turns.open_len() > 0 {
        extra.push("queued", RawJson::from(true));
    } else {
        stream.turns.begin_prompted(run, frame.uuid, emit);
    }
    emit.user(run, blocks, extra);
    emit.entry(run, EntryType::UserMessage, None);
}

/// Writes a message of the user's side that was printed.
pub(super) fn printed(stream: &mut Stream, frame: &StreamFrame<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let Some(content) = content_of(frame) else { return stream.unknown("user", emit) };
    let is_odd_report = is_odd_report(frame.tool_use_result, content.results().len());
    let outcome = results(stream, frame, &content, emit);
    let read = if content.other_blocks().is_empty() {
        RecordOutcome::Understood
    } else {
        write_printed(stream, frame, &content, emit)
    };
    match understood(stream, &content, outcome, emit) {
        RecordOutcome::Understood if is_odd_report => stream.unknown("user", emit),
        RecordOutcome::Understood => read,
        other @ (RecordOutcome::Bookkeeping | RecordOutcome::Unknown(_) | RecordOutcome::Waiting) => other,
    }
}

/// Writes the results that a frame holds.
fn results(
    stream: &mut Stream,
    frame: &StreamFrame<'_>,
    content: &Content<'_>,
    emit: &mut Emit<'_>,
) -> ResultOutcome {
    let results: Vec<_> = content.results().collect();
    let is_single = results.len() == 1;
    let metas = frame.tool_result_meta.and_then(objects::<ResultMeta<'_>>).unwrap_or_default();
    let ids = results.iter().filter_map(|block| block.tool_use_id.text()).collect();
    let mut is_odd = metas.iter().any(|(_, meta)| is_odd_meta(*meta, &ids));
    let by_id: HashMap<_, _> =
        metas.iter().rev().filter_map(|(_, meta)| Some((meta.as_ref()?.id.text()?, meta))).collect();
    let mut is_news = false;
    if !results.is_empty() {
        let place = stream.agent_at_work(frame, emit);
        for block in results {
            let id = block.tool_use_id.text().unwrap_or_default();
            let meta = by_id.get(&id).and_then(|meta| **meta).unwrap_or_default();
            let origin = ResultContext {
                uuid: frame.uuid,
                // With several results in one frame it is unknown which one the report belongs to.
                report: frame.tool_use_result.filter(|_| is_single),
                permission: meta.permission,
                denial_kind: meta.non_execution_kind,
                is_refused: stream.requests.is_refused(&id),
            };
            let outcome = stream.result(place, block, origin, emit);
            is_odd |= outcome == ResultOutcome::Odd;
            is_news |= outcome == ResultOutcome::News;
        }
    }
    match () {
        () if is_odd => ResultOutcome::Odd,
        () if is_news => ResultOutcome::News,
        () => ResultOutcome::Again,
    }
}

fn write_printed(
    stream: &mut Stream,
    frame: &StreamFrame<'_>,
    content: &Content<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let text = content.text();
    let is_main = frame.parent_tool_use_id.text().is_none();
    let is_replay = frame.is_replay.is_true() && is_main;
    let is_own = frame.is_synthetic.is_true() && is_main;
    // Up to 2.1.50 the summary is not marked; a prompt is printed only as a replay.
    let is_summary = stream.is_compacting && is_main && !is_replay;
    let place = if is_main { stream.main } else { stream.agent_at_work(frame, emit) };
    match prompt::kind_of(&text) {
        Kind::Interrupt => {
            if is_main {
                stream.turns.interrupt();
            }
            user::notice(&stream.agents[place].run, "interrupt", &text, emit);
        }
        Kind::TaskNotice => user::task_notice(&mut stream.agents[place], &text, emit),
        Kind::Notice(name) => user::notice(&stream.agents[place].run, name, &text, emit),
        Kind::Prompt if is_summary => {
            stream.is_compacting = false;
            facts::compaction_ends(&stream.agents[place].run, &text, emit);
        }
        Kind::Prompt if is_own => user::notice(&stream.agents[place].run, "meta", &text, emit),
        Kind::Prompt if is_replay && stream.sent.is_printed(frame.uuid.text().as_deref(), &text) => {
            return RecordOutcome::Bookkeeping;
        }
        Kind::Prompt if is_replay && is_local_command(&text) => {
            user::notice(&stream.agents[stream.main].run, "local_command", &text, emit);
        }
        Kind::Prompt => {
            let place = stream.agent_at_work(frame, emit);
            let mut extra = Extra::default();
            push(&mut extra, "id", frame.uuid.json());
            emit.user(&stream.agents[place].run, content.other_blocks(), extra);
            emit.entry(&stream.agents[place].run, EntryType::UserMessage, None);
        }
    }
    RecordOutcome::Understood
}

/// Tells whether Claude Code runs a prompt itself.
fn is_local_command(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|word| LOCAL_COMMANDS.contains(&word))
}

fn content_of<'a>(frame: &StreamFrame<'a>) -> Option<Content<'a>> {
    frame.message.and_then(|message| message.content).and_then(Content::read)
}
