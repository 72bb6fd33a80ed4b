//! What session files tell besides the conversation: titles, costs, retries, compaction, attachments.

use serde_json::value::RawValue;
use steno_model::json::{Extra, ObjectWriter, RawJson};
use steno_model::{ContentBlock, EntryType, Fidelity, StepPayload};

use super::agents::Agent;
use super::content::Content;
use super::prompt::{self, Kind};
use super::user;
use super::wire::{ApiError, Attachment, Line};
use crate::emit::{Emit, push, string};
use crate::run::Run;
use crate::wire::{Raw, RawField as _, object};

/// Writes a fact whose name is the kind of its record.
pub(super) fn fact(run: &Run, name: &str, emit: &mut Emit<'_>) {
    emit.system(run, name, Some(emit.record()));
    emit.entry(run, EntryType::SystemEvent, Some(name));
}

/// Writes what somebody calls the session.
pub(super) fn title(run: &Run, title: Raw<'_>, emit: &mut Emit<'_>) {
    emit.system(run, "title", title.json());
    emit.entry(run, EntryType::SystemEvent, Some("title"));
}

/// Writes what Claude Code itself has added up for the session; it covers requests that leave no other trace.
pub(super) fn cost(run: &Run, line: &Line<'_>, emit: &mut Emit<'_>) {
    let mut extra = Extra::default();
    push(&mut extra, "usage", line.model_usage.json());
    extra.push("usage_scope", string("session"));
    emit.usage(run, &run.turns.path(), extra);
    emit.entry(run, EntryType::TokenUsage, None);
}

/// Writes a `system` record.
pub(super) fn system(run: &Run, line: &Line<'_>, emit: &mut Emit<'_>) {
    let subtype = line.subtype.text().unwrap_or("system".into());
    match &*subtype {
        "compact_boundary" => compaction_begins(run, line.compact.json(), emit),
        "api_error" => {
            let error = line.error.and_then(object::<ApiError<'_>>).unwrap_or_default();
            let text = error.formatted.text().or_else(|| error.message.text()).or_else(|| line.error.text());
            let retry = Retry {
                error: text.unwrap_or("api error".into()).into_owned(),
                attempt: line.retry_attempt,
                max: line.retries_max,
                delay_ms: line.retry_in_ms,
                status: error.status,
            };
            retry.write(run, emit);
        }
        _ => fact(run, &subtype, emit),
    }
}

/// Writes that the conversation is about to be cut down to a summary.
pub(super) fn compaction_begins(run: &Run, metadata: Option<RawJson>, emit: &mut Emit<'_>) {
    let mut payload = StepPayload::new("compaction", "compaction");
    push(&mut payload.extra, "metadata", metadata);
    emit.step_started(run, &run.turns.path_of("compaction"), payload);
    emit.entry(run, EntryType::SystemEvent, Some("compaction"));
}

/// Writes the summary that the conversation goes on from.
pub(super) fn compaction_ends(run: &Run, summary: &str, emit: &mut Emit<'_>) {
    let result = Some(string(summary));
    let payload = StepPayload { result, ..StepPayload::new("compaction", "compaction") };
    emit.step_completed(run, &run.turns.path_of("compaction"), payload);
    emit.entry(run, EntryType::SystemEvent, Some("compaction_summary"));
}

/// A request that failed and is made again.
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

/// Writes an attachment; false when it does not say what it is.
pub(super) fn attachment(agent: &mut Agent, line: &Line<'_>, emit: &mut Emit<'_>) -> bool {
    let attachment = line.attachment.and_then(object::<Attachment<'_>>).unwrap_or_default();
    let Some(kind) = attachment.kind.text() else {
        emit.unknown(&agent.run, "attachment", None);
        emit.entry(&agent.run, EntryType::Unknown, None);
        return false;
    };
    match (&*kind, attachment.system_prompt, attachment.prompt) {
        ("prompt_snapshot", Some(prompt), _) => system_prompt(agent, prompt, emit),
        ("queued_command", _, Some(prompt)) => queued(agent, line, prompt, emit),
        _ => {
            emit.system(&agent.run, &kind, line.attachment.json());
            emit.entry(&agent.run, EntryType::SystemEvent, Some(&kind));
        }
    }
    true
}

/// Writes the system prompt when it is another than before; it is repeated with every request.
fn system_prompt(agent: &mut Agent, prompt: &RawValue, emit: &mut Emit<'_>) {
    if agent.system_prompt.as_deref() == Some(prompt.get()) {
        return;
    }
    agent.system_prompt = Some(prompt.get().into());
    let mut block = ContentBlock::text(Fidelity::AgentEmitted, joined(prompt).as_str());
    block.extra.push("label", string("system_prompt"));
    emit.user(&agent.run, vec![block], Extra::default());
    emit.entry(&agent.run, EntryType::SystemEvent, Some("system_prompt"));
}

/// Writes what came while the model was at work, and was handed to it between two calls.
fn queued(agent: &mut Agent, line: &Line<'_>, prompt: &RawValue, emit: &mut Emit<'_>) {
    let Some(content) = Content::read(prompt) else { return fact(&agent.run, "queued_command", emit) };
    let text = content.text();
    match prompt::kind_of(&text) {
        Kind::TaskNotice => user::task_notice(agent, &text, emit),
        Kind::Notice(name) => user::notice(&agent.run, name, &text, emit),
        Kind::Prompt | Kind::Interrupt => {
            let mut extra = Extra::default();
            push(&mut extra, "id", line.uuid.json());
            extra.push("queued", RawJson::from(true));
            emit.user(&agent.run, content.said(), extra);
            emit.entry(&agent.run, EntryType::UserMessage, None);
        }
    }
}

/// Returns the strings of an array one after the other, or a string as it is.
fn joined(strings: &RawValue) -> String {
    if let Some(text) = Some(strings).text() {
        return text.into_owned();
    }
    let parts: Vec<&RawValue> = serde_json::from_str(strings.get()).unwrap_or_default();
    let parts: Vec<_> = parts.into_iter().filter_map(|part| Some(part).text()).collect();
    parts.join("\n")
}
