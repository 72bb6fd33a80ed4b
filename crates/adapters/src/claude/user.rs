//! The user's side of a session file: prompts, results, interrupts, and messages of Claude Code in the user's name.

use steno_model::json::{Extra, RawJson};
use steno_model::{ContentBlock, EntryType};

use super::agents::{Agent, Notification, SubagentEnd, caller};
use super::content::Content;
use super::facts;
use super::prompt::{self, Kind};
use super::repeated_prompts::{PromptQueue, PromptRecord};
use super::results::{self, ResultContext, ResultOutcome};
use super::shapes::is_odd_report;
use super::wire::Line;
use crate::adapter::RecordOutcome;
use crate::emit::{Emit, EndedBy, TurnEnd, push, string};
use crate::run::Run;
use crate::wire::RawField as _;

/// Writes a `user` record.
pub(super) fn user(
    agents: &mut [Agent],
    place: usize,
    line: &Line<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let content = line.message.and_then(|message| message.content);
    let Some(content) = content.and_then(Content::read) else {
        return facts::unknown(&agents[place].run, "user", emit);
    };
    let is_odd_report = is_odd_report(line.tool_use_result, content.results().len());
    let read = if line.is_compact_summary.is_true() {
        facts::compaction_ends(&agents[place].run, &content.text(), emit);
        RecordOutcome::Understood
    } else {
        write_content(agents, place, line, &content, emit)
    };
    match content.odd() {
        _ if matches!(read, RecordOutcome::Unknown(_)) => read,
        Some(name) => facts::unknown(&agents[place].run, &name, emit),
        None if is_odd_report => facts::unknown(&agents[place].run, "user", emit),
        None => read,
    }
}

/// Writes the results in a message, and its other content.
fn write_content(
    agents: &mut [Agent],
    place: usize,
    line: &Line<'_>,
    content: &Content<'_>,
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let results = content.results();
    let mut origin = ResultContext { uuid: line.uuid, ..ResultContext::default() };
    // With several results in one record it is unknown which one the record's fields belong to.
    if results.len() == 1 {
        origin.report = line.tool_use_result;
        (origin.permission, origin.denial_kind) = (line.permission, line.denial_kind);
    }
    let is_beside_results = results.len() > 0;
    let (mut is_odd, mut is_news) = (false, false);
    for block in results {
        let caller = caller(agents, place, &block.tool_use_id.text().unwrap_or_default());
        let outcome = results::result(&mut agents[caller], block, origin, emit);
        is_odd |= outcome == ResultOutcome::Odd;
        is_news |= outcome == ResultOutcome::News;
    }
    let agent = &mut agents[place];
    let blocks = content.other_blocks();
    if !blocks.is_empty() {
        is_news = true;
        write_text(agent, line, &content.text(), UserContent { blocks, is_beside_results }, emit);
    }
    match () {
        () if is_odd => facts::unknown(&agent.run, "block.tool_result", emit),
        () if is_news => RecordOutcome::Understood,
        () => RecordOutcome::Bookkeeping,
    }
}

/// What a user's message holds besides results.
struct UserContent {
    blocks: Vec<ContentBlock>,
    is_beside_results: bool,
}

fn write_text(agent: &mut Agent, line: &Line<'_>, text: &str, content: UserContent, emit: &mut Emit<'_>) {
    let origin = line.origin.and_then(|origin| origin.kind.text());
    let kind = match (prompt::kind_of(text), origin.as_deref()) {
        (Kind::Prompt, _) if line.is_meta.is_true() => Kind::Notice("meta"),
        (Kind::Prompt, Some("task-notification")) => Kind::TaskNotice,
        (kind, _) => kind,
    };
    match kind {
        Kind::Prompt if content.is_beside_results => {
            emit.user(&agent.run, content.blocks, message_fields(line));
            emit.entry(&agent.run, EntryType::UserMessage, None);
        }
        // It was written when it was handed to the working model; now it begins a turn.
        Kind::Prompt if is_told(&mut agent.queue, line, text) => begin_turn(agent, line, emit),
        Kind::Prompt => {
            begin_turn(agent, line, emit);
            emit.user(&agent.run, content.blocks, message_fields(line));
            emit.entry(&agent.run, EntryType::UserMessage, None);
        }
        Kind::Interrupt => {
            if agent.run.turns.is_open() {
                let error = Some("interrupted".into());
                emit.end_turn(&mut agent.run, TurnEnd { error, ..TurnEnd::plain(EndedBy::Interrupt) });
            } else {
                emit.system(&agent.run, "interrupt", None);
            }
            emit.entry(&agent.run, EntryType::SystemEvent, Some("interrupt"));
        }
        Kind::TaskNotice => {
            // The model answers it like a prompt, but no person asked.
            if !content.is_beside_results && !line.is_meta.is_true() {
                begin_turn(agent, line, emit);
            }
            task_notice(agent, text, emit);
        }
        Kind::Notice(name) => notice(&agent.run, name, text, emit),
    }
}

fn is_told(queue: &mut PromptQueue, line: &Line<'_>, text: &str) -> bool {
    let id = line.uuid.text();
    queue.is_told(PromptRecord { text, id: id.as_deref(), is_queued: line.prompt_source.is("queued") })
}

fn message_fields(line: &Line<'_>) -> Extra {
    let mut extra = Extra::default();
    push(&mut extra, "id", line.uuid.json());
    push(&mut extra, "origin", line.origin.and_then(|origin| origin.kind.json()));
    extra
}

fn begin_turn(agent: &mut Agent, line: &Line<'_>, emit: &mut Emit<'_>) {
    agent.has_end_record = false;
    let run = &mut agent.run;
    if !std::mem::replace(&mut agent.is_turn_copied, emit.is_marked()) {
        // A copied line does not end a turn of this session.
        emit.unmarked(|emit| emit.end_turn(run, TurnEnd::plain(EndedBy::Prompt)));
    }
    let mode = line.permission_mode.json();
    let settings = mode.map(|mode| RawJson::object(|object| object.json("permission_mode", &mode)));
    // A fork gives all copied turns one prompt id, so the record's own id is preferred.
    emit.begin_turn(run, line.uuid.string().or_else(|| line.prompt_id.string()).as_ref(), settings);
}

/// Writes a message of Claude Code in the user's name.
pub(super) fn notice(run: &Run, name: &str, text: &str, emit: &mut Emit<'_>) {
    emit.system(run, name, Some(string(text)));
    emit.entry(run, EntryType::SystemEvent, Some(name));
}

/// Writes the notice of a background task, and ends it if it is a subagent.
pub(super) fn task_notice(agent: &mut Agent, text: &str, emit: &mut Emit<'_>) {
    notice(&agent.run, "task_notification", text, emit);
    let Some(notification) = Notification::read(text) else { return };
    if let Some(call) = agent.call_of_task(notification.task) {
        let status = notification.status.map(Into::into);
        agent.end_child(&call, SubagentEnd { status, more: Vec::new() }, emit);
    }
}
