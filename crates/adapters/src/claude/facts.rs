//! Facts of session files besides the conversation: titles, costs, retries, compaction, attachments.

use std::borrow::Cow;

use serde_json::value::RawValue;
use steno_model::json::{Extra, ObjectWriter, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity, StepPayload};

use super::agents::Agent;
use super::content::{Content, text_of};
use super::prompt::{self, Kind};
use super::shapes::is_odd_line;
use super::user;
use super::wire::{ApiError, Attachment, Line};
use crate::adapter::RecordOutcome;
use crate::emit::{Emit, EndedBy, TurnEnd, push, string};
use crate::run::Run;
use crate::shapes::{are_names, is_absent, is_text};
use crate::wire::{Raw, RawField as _, WireObject as _, object};

/// Writes that a record, or something in it, is of an unknown kind.
pub(super) fn unknown(run: &Run, name: &str, emit: &mut Emit<'_>) -> RecordOutcome {
    emit.unknown(run, name, None);
    emit.entry(run, EntryType::Unknown, None);
    RecordOutcome::Unknown(name.to_owned())
}

/// Writes a fact whose name is the kind of its record.
pub(super) fn fact(run: &Run, name: &str, emit: &mut Emit<'_>) {
    emit.system(run, name, Some(emit.record()));
    emit.entry(run, EntryType::SystemEvent, Some(name));
}

/// Writes that prompts were removed from the queue, including those that the record does not name.
pub(super) fn prompt_taken(agent: &mut Agent, line: &Line<'_>, emit: &mut Emit<'_>) {
    let taken = if line.operation.is("popAll") {
        agent.queue.remove_all()
    } else {
        agent.queue.remove(line.content.map(text_of).as_deref()).into_iter().collect()
    };
    let mut payload = StepPayload::new("queue-operation", "system");
    payload.result = Some(emit.record());
    if !taken.is_empty() && is_absent(line.content) {
        payload.extra.push("taken", RawJson::array(taken.iter().map(|text| string(text))));
    }
    emit.step_completed(&agent.run, &agent.run.turns.path(), payload);
    emit.entry(&agent.run, EntryType::SystemEvent, Some("queue-operation"));
}

/// Writes a prompt that was dropped from the full queue.
pub(super) fn prompt_let_go(run: &Run, text: &str, emit: &mut Emit<'_>) {
    let mut payload = StepPayload::new("queue-operation", "system");
    payload.extra.push("let_go", RawJson::array([string(text)]));
    emit.step_completed(run, &run.turns.path(), payload);
    emit.entry(run, EntryType::SystemEvent, Some("queue-operation"));
}

/// Writes the title of the session.
pub(super) fn title(run: &Run, title: Raw<'_>, emit: &mut Emit<'_>) {
    emit.system(run, "title", title.json());
    emit.entry(run, EntryType::SystemEvent, Some("title"));
}

/// Returns the branch in the form of Codex's `git`. `HEAD` is what Claude Code writes without a branch.
pub(super) fn git_of(line: &Line<'_>) -> Option<RawJson> {
    let branch = line.git_branch.string().filter(|branch| !branch.is_empty() && !branch.is("HEAD"))?;
    Some(RawJson::object(|object| object.string("branch", &branch)))
}

/// Writes Claude Code's own totals of the session; they include requests that leave no other trace.
pub(super) fn cost(run: &Run, line: &Line<'_>, emit: &mut Emit<'_>) {
    let mut extra = Extra::default();
    push(&mut extra, "usage", line.model_usage.json());
    extra.push("usage_scope", string("session"));
    emit.usage(run, &run.turns.path(), extra);
    emit.entry(run, EntryType::TokenUsage, None);
}

/// Writes a `system` record.
pub(super) fn system(agent: &mut Agent, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let run = &agent.run;
    let subtype = line.subtype.text().unwrap_or("system".into());
    let mut is_read = !is_odd_line(line, emit);
    match &*subtype {
        "compact_boundary" => compaction_begins(run, line.compact.json(), emit),
        "api_error" => {
            let read = line.error.and_then(object::<ApiError<'_>>);
            let error = read.unwrap_or_default();
            let text = error.formatted.text().or_else(|| error.message.text()).or_else(|| line.error.text());
            let retry = Retry {
                error: text.unwrap_or("api error".into()).into_owned(),
                attempt: line.retry_attempt,
                max: line.retries_max,
                delay_ms: line.retry_in_ms,
                status: error.status,
            };
            retry.write(run, emit);
            is_read &= read.map_or_else(|| is_text(line.error), |error| is_told(line.error, &error));
        }
        // The whole record is kept.
        _ => {
            fact(run, &subtype, emit);
            is_read = true;
        }
    }
    if subtype == "turn_duration" && run.turns.is_open() {
        agent.has_end_record = true;
        emit.end_turn(&mut agent.run, TurnEnd::plain(EndedBy::Record));
    }
    if is_read { RecordOutcome::Understood } else { unknown(&agent.run, &subtype, emit) }
}

/// Tells whether a retry has the fields of an error; headers are left out.
fn is_told(raw: Raw<'_>, error: &ApiError<'_>) -> bool {
    let is_empty = raw.is_some_and(|raw| raw.get() == "{}");
    let is_any = [error.formatted, error.message, error.status].into_iter().any(|field| !is_absent(field));
    (is_any || is_empty) && !error.is_odd()
}

/// Writes the start of a compaction.
pub(super) fn compaction_begins(run: &Run, metadata: Option<RawJson>, emit: &mut Emit<'_>) {
    let mut payload = StepPayload::new("compaction", "compaction");
    push(&mut payload.extra, "metadata", metadata);
    emit.step_started(run, &run.turns.path_of("compaction"), payload);
    emit.entry(run, EntryType::SystemEvent, Some("compaction"));
}

/// Writes the summary that the conversation continues from.
pub(super) fn compaction_ends(run: &Run, summary: &str, emit: &mut Emit<'_>) {
    let result = Some(string(summary));
    let payload = StepPayload { result, ..StepPayload::new("compaction", "compaction") };
    emit.step_completed(run, &run.turns.path_of("compaction"), payload);
    emit.entry(run, EntryType::SystemEvent, Some("compaction_summary"));
}

/// A failed request that is retried.
pub(super) struct Retry<'a> {
    pub(super) error: String,
    pub(super) attempt: Raw<'a>,
    pub(super) max: Raw<'a>,
    pub(super) delay_ms: Raw<'a>,
    pub(super) status: Raw<'a>,
}

impl Retry<'_> {
    pub(super) fn write(self, run: &Run, emit: &mut Emit<'_>) {
        let result = RawJson::object(|object| {
            let fields = [
                ("attempt", self.attempt),
                ("max", self.max),
                ("delay_ms", self.delay_ms),
                ("status", self.status),
            ];
            for (name, value) in fields {
                object.optional(name, value.json().as_ref(), ObjectWriter::json);
            }
        });
        let error = Some(self.error.as_str().into());
        let payload = StepPayload { error, result: Some(result), ..StepPayload::new("api", "retry") };
        emit.step_completed(run, &run.turns.path(), payload);
        emit.entry(run, EntryType::Error, None);
    }
}

/// Writes an attachment, which may be a prompt.
pub(super) fn attachment(agent: &mut Agent, line: &Line<'_>, emit: &mut Emit<'_>) -> RecordOutcome {
    let attachment = line.attachment.and_then(object::<Attachment<'_>>).unwrap_or_default();
    let Some(kind) = attachment.kind.text() else {
        return unknown(&agent.run, "attachment", emit);
    };
    match (&*kind, attachment.system_prompt, attachment.prompt) {
        ("prompt_snapshot", Some(prompt), _) if !is_absent(Some(prompt)) => {
            system_prompt(agent, prompt, emit)
        }
        ("queued_command", _, Some(prompt)) => {
            let id = attachment.source_id.text().map(Cow::into_owned);
            queued(agent, line, (prompt, id), emit)
        }
        _ => {
            emit.system(&agent.run, &kind, line.attachment.json());
            emit.entry(&agent.run, EntryType::SystemEvent, Some(&kind));
            RecordOutcome::Understood
        }
    }
}

/// Writes the system prompt if it has changed; it is repeated with every request.
fn system_prompt(agent: &mut Agent, prompt: &RawValue, emit: &mut Emit<'_>) -> RecordOutcome {
    if agent.system_prompt.as_deref() == Some(prompt.get()) {
        return RecordOutcome::Bookkeeping;
    }
    if !is_text(Some(prompt)) && !are_names(Some(prompt)) {
        return unknown(&agent.run, "prompt_snapshot", emit);
    }
    agent.system_prompt = Some(prompt.get().into());
    let mut block = ContentBlock::text(Fidelity::AgentEmitted, joined(prompt).as_str());
    block.extra.push("label", string("system_prompt"));
    emit.user(&agent.run, vec![block], Extra::default());
    emit.entry(&agent.run, EntryType::UserMessage, None);
    RecordOutcome::Understood
}

/// Writes a prompt that was handed to the working model between two calls.
fn queued(
    agent: &mut Agent,
    line: &Line<'_>,
    (prompt, source_id): (&RawValue, Option<String>),
    emit: &mut Emit<'_>,
) -> RecordOutcome {
    let Some(content) = Content::read(prompt) else {
        fact(&agent.run, "queued_command", emit);
        return RecordOutcome::Understood;
    };
    let text = content.text();
    match prompt::kind_of(&text) {
        Kind::TaskNotice => user::task_notice(agent, &text, emit),
        Kind::Notice(name) => user::notice(&agent.run, name, &text, emit),
        Kind::Prompt | Kind::Interrupt => {
            let mut extra = Extra::default();
            push(&mut extra, "id", line.uuid.json());
            extra.push("queued", RawJson::from(true));
            emit.user(&agent.run, content.other_blocks(), extra);
            emit.entry(&agent.run, EntryType::UserMessage, None);
            agent.queue.hand_over(text, source_id);
        }
    }
    content.odd().map_or(RecordOutcome::Understood, |name| unknown(&agent.run, &name, emit))
}

/// Returns the joined strings of an array, or a string as it is.
fn joined(strings: &RawValue) -> String {
    if let Some(text) = Some(strings).text() {
        return text.into_owned();
    }
    let parts: Vec<&RawValue> = serde_json::from_str(strings.get()).unwrap_or_default();
    let parts: Vec<_> = parts.into_iter().filter_map(|part| Some(part).text()).collect();
    parts.join("\n")
}
